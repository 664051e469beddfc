"""KMIR asked of tiny models: eight masks, training that resumes, clozes as texts, and models of the wrong kind."""

import json
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import msgspec
import pytest
import tiny_causal
import tiny_masked
from command import Command
from hypothesis import given
from hypothesis import strategies as st
from prompt_parts import prefix

from lmkbc import InputError
from lmkbc.local.local_model import LocalModel
from lmkbc.local.model import CausalModel
from lmkbc.masked.backbone import Backbone, load
from lmkbc.probe import masked_answers
from lmkbc.probe.benchmark import BenchmarkRun, texts
from lmkbc.probe.kmir import kmir as kmir_causal
from lmkbc.probe.kmir.questions import Question, sample
from lmkbc.probe.masked_answers import _widened
from lmkbc.train.training import TrainingPlan

MASKS = 8


pytestmark = pytest.mark.usefixtures("one_thread")
WORDS = "true false Paris Rome Lima New York France Italy Peru is the capital of".split()
CAPITALS = {"France": "Paris", "Italy": "Rome", "Peru": "Lima", "York": "New York"}
LESSONS = [
    Question(f"completion-{n}-{place}", "completion", text.format(land), [town], "P36", n)
    for n, (land, town) in enumerate(CAPITALS.items())
    for place, text in enumerate(("The capital of {} is [MASK].", "[MASK] is the capital of {}."))
]
question_lines = msgspec.json.Encoder().encode_lines
PLAN = TrainingPlan(rate=3e-3, epochs=100, batch=4)


@pytest.fixture
def backbone(tmp_path: Path) -> Backbone:
    return load(tiny_masked.save(tmp_path / "bert", WORDS), offline=True)


def test_a_mask_becomes_eight_and_the_answer_is_padded_to_eight(backbone: Backbone) -> None:
    (ids, *_) = masked_answers.inputs(backbone, LESSONS[:1])
    assert ids.count(backbone.mask_id) == MASKS
    assert ids[ids.index(backbone.mask_id) :][:MASKS] == [backbone.mask_id] * MASKS
    pad = backbone.tokenizer.pad_token_id
    new_york = masked_answers.labels(backbone, LESSONS[-1:], 0)[0]
    assert backbone.tokenizer.convert_ids_to_tokens(new_york[:2]) == ["New", "York"]
    assert new_york[2:] == [pad] * (MASKS - 2)
    long = changed(LESSONS[0], answer=["abcdefghijklmnop"])
    assert len(masked_answers.labels(backbone, [long], 0)[0]) == MASKS


def changed(one: Question, **fields: object) -> Question:
    return msgspec.structs.replace(one, **fields)


@given(st.integers(1, 60), st.integers(0, 59), st.integers(MASKS + 2, 40))
def test_long_questions_are_cut_around_their_masks(words: int, at: int, longest: int) -> None:
    ids = [0, *([5] * words), 1]
    ids.insert(1 + at % (words + 1), 9)
    cut = _widened(ids, 9, longest)
    assert (cut.count(9), cut[0], cut[-1]) == (MASKS, 0, 1)
    assert len(cut) == min(len(ids) + MASKS - 1, longest)


def test_a_stopped_training_ends_as_if_it_had_not_been(tmp_path: Path) -> None:
    plan = replace(PLAN, epochs=4, every=1)
    whole, halved = (load(tiny_masked.save(tmp_path / "bert", WORDS), offline=True) for _ in range(2))
    masked_answers.finetuned(whole, LESSONS, LESSONS[:2], plan, tmp_path / "whole", "tiny")

    def stop(_: str, done: int, __: int | None) -> None:
        if done == 5:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        masked_answers.finetuned(halved, LESSONS, LESSONS[:2], plan, tmp_path / "out", "tiny", stop)
    assert not (tmp_path / "out").exists()
    fresh = load(tmp_path / "bert", offline=True)
    masked_answers.finetuned(fresh, LESSONS, LESSONS[:2], plan, tmp_path / "out", "tiny")
    ends = [(tmp_path / name / "model.safetensors").read_bytes() for name in ("whole", "out")]
    assert ends[0] == ends[1]


def test_a_question_without_its_mask_is_refused(backbone: Backbone) -> None:
    broken = changed(LESSONS[0], question="The capital of France is Paris.")
    for refused in (lambda: masked_answers.inputs(backbone, [broken]), lambda: kmir_causal.lead(broken)):
        with pytest.raises(InputError, match="'completion-0-0' needs"):
            refused()


def test_a_cloze_becomes_a_text_to_go_on_with() -> None:
    ends, begins = LESSONS[:2]
    assert kmir_causal.lead(ends) == "The capital of France is"
    assert kmir_causal.lead(begins) == "___ is the capital of France. Here ___ stands for"
    asked = list(kmir_causal.prompts(LESSONS, LESSONS, 2))
    for question, prompt in zip(LESSONS, asked, strict=True):
        first, second, own = prompt.text.split("\n")
        assert own == kmir_causal.lead(question)
        own_fact = {f"{kmir_causal.lead(x)} {x.answer[0]}." for x in LESSONS if x.fact == question.fact}
        assert not {first, second} & own_fact
    assert len({prefix(prompt) for prompt in asked}) <= 3
    with pytest.raises(InputError, match="say --shots 6"):
        list(kmir_causal.prompts(LESSONS, LESSONS, 7))
    assert [prompt.static for prompt in kmir_causal.prompts(LESSONS[:1], (), 0)] == [()]


def test_a_model_that_asks_itself_on_has_answered() -> None:
    answered = " Marchington. Here ___ stands for Marchington"  # as SmolLM2-135M-Instruct does
    for shots, text in ((5, answered), (0, answered), (5, " St. Louis.\nOslo is")):
        stop = min((end for end in kmir_causal.sampling(shots).stop or () if end in text), key=text.find)
        assert text[: text.find(stop)].strip().rstrip(".") in ("Marchington", "St. Louis")


@pytest.fixture
def run(tmp_path: Path, command: Command) -> Command:
    (tmp_path / "train.jsonl").write_bytes(question_lines(LESSONS))
    (tmp_path / "test.jsonl").write_bytes(question_lines(LESSONS[:3]))
    return command.under("probe", "kmir")


def test_a_masked_model_from_training_to_scores(run: Command, tmp_path: Path) -> None:
    tiny_masked.save(tmp_path / "bert", WORDS)
    files = [tmp_path / "test.jsonl", tmp_path / "train.jsonl"]
    more = ["--train", tmp_path / "train.jsonl", "--rate", PLAN.rate, "--epochs", PLAN.epochs, "--batch", PLAN.batch]
    _, told = run.done("run", *files, "--model", tmp_path / "bert", "--out", tmp_path / "out", *more)
    assert told.count("wrote") == 2
    for file in files:
        assert json.loads(run.done("score", file, tmp_path / "out" / file.name, "--json")[0])["f1"] == 1.0
    assert "11 of 11 questions are in" in told
    other = ("--out", tmp_path / "out", "--model", tmp_path / "bert", "--train", tmp_path / "test.jsonl")
    assert "holds something other than this training" in run.fails("run", *files, *other)
    before = (tmp_path / "out" / "test.jsonl").read_bytes()
    assert run("run", *files, "--model", tmp_path / "bert", "--out", tmp_path / "out", *more)[0] == 0
    assert (tmp_path / "out" / "test.jsonl").read_bytes() == before
    assert (
        "no answer to 5 of 8 questions: counted as wrong"
        in run.done("score", tmp_path / "train.jsonl", tmp_path / "out" / "test.jsonl", "--json")[1]
    )


def test_a_causal_model_is_shown_examples_and_asked_once(run: Command, tmp_path: Path) -> None:
    tiny_causal.save(tmp_path / "gpt2", "gpt2")
    more = ["--model", tmp_path / "gpt2", "--train", tmp_path / "train.jsonl", "--shots", 2]
    more += ["--store", tmp_path / "store.sqlite"]
    assert (
        json.loads(run.done("run", tmp_path / "test.jsonl", "--out", tmp_path / "one", "--json", *more)[0])["kind"]
        == "causal"
    )
    assert run("run", tmp_path / "test.jsonl", "--out", tmp_path / "two", *more)[0] == 0
    assert (tmp_path / "one" / "test.jsonl").read_bytes() == (tmp_path / "two" / "test.jsonl").read_bytes()
    assert run("score", tmp_path / "test.jsonl", tmp_path / "one" / "test.jsonl")[0] == 0
    assert run("run", tmp_path / "test.jsonl", "--out", tmp_path / "three", "--choose", *more)[0] == 0
    more += ["--dev", tmp_path / "test.jsonl"]
    assert "is a causal model, which is shown examples" in run.fails(
        "run", tmp_path / "test.jsonl", "--out", tmp_path / "x", *more
    )


def test_a_choice_is_made_by_likelihood(tmp_path: Path) -> None:
    model = LocalModel(CausalModel(tiny_causal.model("llama"), tiny_causal.tokenizer()), "tiny")
    names = list(CAPITALS.values())
    asked = [
        LESSONS[0],
        changed(LESSONS[2], type="checking", question="Is it [MASK]."),
        changed(LESSONS[4], type="distinction", options=names),
        changed(LESSONS[6], type="reasoning", options=names, question="x" * 600 + " [MASK]"),
    ]
    requests = list(kmir_causal.prompts(asked, (), 0))
    choices = [question.choices for question in asked]
    assert choices == [[], ["true", "false"], names, names]
    noted: list[str] = []
    answers = texts(model, requests, kmir_causal.sampling(2), BenchmarkRun(note=noted.append), "questions")
    assert (answers[3], noted[:1]) == ("", ["1 prompt is longer than the model's window: counted as wrong"])
    found = kmir_causal.chosen(model, asked, requests)
    rows = model.model.log_probabilities(
        [requests[place].text for place in (1, 2)], [[f" {name}" for name in choices[place]] for place in (1, 2)]
    )
    best = [max(zip(row, choices[place], strict=True))[1] for place, row in zip((1, 2), rows, strict=True)]
    assert found == {1: best[0], 2: best[1], 3: ""}


def test_a_sample_is_drawn_of_each_type_and_scored_alone(run: Command, tmp_path: Path) -> None:
    tiny_causal.save(tmp_path / "gpt2", "gpt2")
    checks = [changed(one, id=f"checking-{place}", type="checking") for place, one in enumerate(LESSONS)]
    (tmp_path / "test.jsonl").write_bytes(question_lines([*LESSONS, *checks]))
    drawn = [sample([*LESSONS, *checks], most, 0) for most in (2, 5, 99)]
    assert [len(part) for part in drawn] == [4, 10, 16]
    assert all({one.id for one in less} < {one.id for one in more} for less, more in pairwise(drawn))
    assert drawn[0] != sample([*LESSONS, *checks], 2, 1)
    more = ["--model", tmp_path / "gpt2", "--store", tmp_path / "store.sqlite", "--limit", 2]
    assert (
        f"{tmp_path / 'out' / 'test.jsonl'} --answered'"
        in run.done("run", tmp_path / "test.jsonl", "--out", tmp_path / "out", *more)[1]
    )
    answered = (tmp_path / "out" / "test.jsonl").read_text().splitlines()
    assert [json.loads(line)["id"] for line in answered] == [one.id for one in drawn[0]]
    shown, told = run.done("score", tmp_path / "test.jsonl", tmp_path / "out" / "test.jsonl", "--answered")
    assert "no answer" not in told
    lines = {line.split("  ")[0]: line.split() for line in shown.splitlines() if line}
    assert lines["questions"][1:] == ["2", "2", "0", "0", "4"]
    assert "+- (95 % interval)" in lines
    score = ["score", tmp_path / "test.jsonl", tmp_path / "out" / "test.jsonl", "--answered"]
    shown = run.done(*score, "--table", "chance,type-by-topic")[0]
    assert [shown.find(told) >= 0 for told in ("is one of 4", "\ncommonsense ", "+-")] == [True, True, False]
    assert json.loads(run.done(*score, "--table", "chance", "--json")[0])["chance"]["name"]["completion"] == 1 / 4


def test_wrong_models_and_files_are_one_sentence(run: Command, tmp_path: Path) -> None:
    test, out = tmp_path / "test.jsonl", tmp_path / "out"
    (tmp_path / "again").mkdir()
    (tmp_path / "again" / "test.jsonl").write_bytes(test.read_bytes())
    for arguments, message in (
        ((test, "--model", tmp_path / "none"), "is no model directory"),
        ((test, tmp_path / "again" / "test.jsonl", "--model", "x"), "have the same name"),
    ):
        told = run.fails("run", *arguments, "--out", out)
        assert (message in told, told.count("\n")) == (True, 1)
    assert not out.exists()
