"""KMIR asked of tiny models: eight masks, training that resumes, clozes as texts, and models of the wrong kind."""

import json
import sqlite3
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
import tiny_causal
import tiny_masked
import torch
from command import Command
from rows import jsonl

from lmkbc.probe.kmir import kmir as kmir_causal

pytestmark = pytest.mark.usefixtures("one_thread")
WORDS = "true false Paris Rome Lima New York France Italy Peru is the capital of".split()
CAPITALS = {"France": "Paris", "Italy": "Rome", "Peru": "Lima", "York": "New York"}
Row = dict[str, Any]


def question(name: str, text: str, answer: str, fact: int, **more: Any) -> Row:
    about = {"id": name, "type": name.partition("-")[0], "question": text, "answer": [answer], "relation": "P36"}
    return {**about, "fact": fact, **more}


LESSONS = [
    question(f"completion-{n}-{place}", text.format(land), town, n)
    for n, (land, town) in enumerate(CAPITALS.items())
    for place, text in enumerate(("The capital of {} is [MASK].", "[MASK] is the capital of {}."))
]
TAUGHT = ("--rate", "3e-3", "--epochs", "101", "--batch", "4")


def written(folder: Path, **files: Iterable[Row]) -> None:
    for name, rows in files.items():
        jsonl(folder / f"{name}.jsonl", rows)


def answers(file: Path) -> dict[str, str]:
    """Return question id -> answer."""
    return {row["id"]: row["ret"] for row in map(json.loads, file.read_text().splitlines())}


@pytest.mark.parametrize("kind", ["masked", "causal"])
def test_a_question_without_its_mask_is_refused(run: Command, tmp_path: Path, kind: str) -> None:
    model = tmp_path / "model"
    tiny_masked.save(model, WORDS) if kind == "masked" else tiny_causal.save(model, "gpt2")
    written(tmp_path, test=[LESSONS[0] | {"question": "The capital of France is Paris."}])
    said = run.fails("run", tmp_path / "test.jsonl", "--model", model, "--out", tmp_path / "out")
    assert "question 'completion-0-0' needs [MASK] exactly once" in said


def kept(path: Path) -> list[str]:
    """Return the texts of the prompts in a store of answers."""
    with sqlite3.connect(path) as opened:
        rows = [json.loads(prompt) for (prompt,) in opened.execute("SELECT prompt FROM prompts")]
    opened.close()
    return rows


def test_a_cloze_becomes_a_text_to_go_on_with(run: Command, tmp_path: Path) -> None:
    tiny_causal.save(tmp_path / "gpt2", "gpt2")
    written(tmp_path, test=LESSONS)
    words = ("run", tmp_path / "test.jsonl", "--model", tmp_path / "gpt2", "--train", tmp_path / "train.jsonl")
    run.done(*words, "--out", tmp_path / "out", "--shots", 2, "--store", tmp_path / "two.sqlite")
    leads = [
        lead
        for land in CAPITALS
        for lead in (f"The capital of {land} is", f"___ is the capital of {land}. Here ___ stands for")
    ]
    solved = {f"{lead} {row['answer'][0]}.": row["fact"] for lead, row in zip(leads, LESSONS, strict=True)}
    prompts = kept(tmp_path / "two.sqlite")
    assert sorted(prompt.split("\n")[-1] for prompt in prompts) == sorted(leads)
    for prompt in prompts:
        *shown, own = prompt.split("\n")
        assert len(shown) == 2
        assert LESSONS[leads.index(own)]["fact"] not in {solved[line] for line in shown}
    assert len({prompt.rpartition("\n")[0] for prompt in prompts}) <= 3
    assert "say --shots 6" in run.fails(*words, "--out", tmp_path / "x", "--shots", 7)
    run.done(*words[:4], "--out", tmp_path / "bare", "--store", tmp_path / "none.sqlite")
    assert sorted(kept(tmp_path / "none.sqlite")) == sorted(leads)


def test_a_model_that_asks_itself_on_has_answered() -> None:
    answered = " Marchington. Here ___ stands for Marchington"  # as SmolLM2-135M-Instruct does
    for shots, text in ((5, answered), (0, answered), (5, " St. Louis.\nOslo is")):
        stop = min((end for end in kmir_causal.sampling(shots).stop or () if end in text), key=text.find)
        assert text[: text.find(stop)].strip().rstrip(".") in ("Marchington", "St. Louis")


@pytest.fixture
def run(tmp_path: Path, command: Command) -> Command:
    written(tmp_path, train=LESSONS, test=LESSONS[:3])
    return command.under("probe", "kmir")


@pytest.mark.whole
def test_a_masked_model_from_training_that_was_stopped_to_scores(
    run: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tiny_masked.save(tmp_path / "bert", WORDS)
    files = [tmp_path / "test.jsonl", tmp_path / "train.jsonl"]
    more = ["--train", tmp_path / "train.jsonl", *TAUGHT]
    step, steps = torch.optim.AdamW.step, 0

    def counted(self: Any, *given: Any, **named: Any) -> Any:
        nonlocal steps
        steps += 1
        if steps == 202:
            raise KeyboardInterrupt
        return step(self, *given, **named)

    monkeypatch.setattr(torch.optim.AdamW, "step", counted)
    assert run("run", *files, "--model", tmp_path / "bert", "--out", tmp_path / "out", *more)[0] == 1
    assert not (tmp_path / "out-model").exists()
    _, told = run.done("run", *files, "--model", tmp_path / "bert", "--out", tmp_path / "out", *more)
    assert 202 < steps < 210  # it went on
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


def test_long_questions_are_cut_around_their_masks_and_long_answers_after_eight_tokens(
    run: Command, tmp_path: Path
) -> None:
    tiny_masked.save(tmp_path / "bert", WORDS)
    rest = "is the capital of " * 50
    texts = (f"{rest}[MASK] {rest}", f"{rest}[MASK]", f"[MASK] {rest}")
    long = [question(f"completion-{9 + n}-0", text, "abcdefghijklmnop", 9 + n) for n, text in enumerate(texts)]
    written(tmp_path, train=long, test=long)
    words = ("run", tmp_path / "test.jsonl", "--model", tmp_path / "bert", "--train", tmp_path / "train.jsonl")
    run.done(*words, "--rate", "1e-2", "--epochs", 40, "--batch", 4, "--out", tmp_path / "out")
    assert {text.replace(" ", "") for text in answers(tmp_path / "out" / "test.jsonl").values()} == {"abcdefgh"}


def test_a_choice_is_made_by_likelihood(run: Command, tmp_path: Path) -> None:
    tiny_causal.save(tmp_path / "llama", "llama")
    names = list(CAPITALS.values())
    asked = [
        LESSONS[0],
        question("checking-1", "Is it [MASK].", "true", 1),
        *(question(f"distinction-{land}", f"{land} has [MASK].", "x", 2, options=names) for land in CAPITALS),
        question("reasoning-3", "x" * 600 + " [MASK]", "x", 3, options=names),
        question("completion-4", "x" * 600 + " [MASK]", "x", 3),
    ]
    written(tmp_path, test=asked)
    words = ("run", tmp_path / "test.jsonl", "--model", tmp_path / "llama", "--out", tmp_path / "out", "--choose")
    told = run.done(*words, "--store", tmp_path / "s.sqlite")[1]
    assert "1 prompt is longer than the model's window: counted as wrong" in told
    found = answers(tmp_path / "out" / "test.jsonl")
    model, tokenizer = tiny_causal.model("llama"), tiny_causal.tokenizer()

    def log(text: str, name: str) -> float:
        first, ids = len(tokenizer(text)["input_ids"]), tokenizer(f"{text} {name}")["input_ids"]
        with torch.inference_mode():
            logs = model(torch.tensor([ids])).logits[0].log_softmax(-1)
        return sum(float(logs[at - 1, ids[at]]) for at in range(first, len(ids)))

    for row in asked[1:-2]:
        text = row["question"].removesuffix(" [MASK].")
        options = row.get("options", ["true", "false"])
        assert found[row["id"]] == max(options, key=lambda name: log(text, name))
    assert (found["reasoning-3"], found["completion-4"]) == ("", "")


def test_a_sample_is_drawn_of_each_type_and_scored_alone(run: Command, tmp_path: Path) -> None:
    tiny_causal.save(tmp_path / "gpt2", "gpt2")
    checks = [one | {"id": f"checking-{place}", "type": "checking"} for place, one in enumerate(LESSONS)]
    written(tmp_path, test=[*LESSONS, *checks])
    drawn = {}
    for limit, seed in ((2, 0), (5, 0), (99, 0), (2, 1)):
        more = ("--model", tmp_path / "gpt2", "--store", tmp_path / "store.sqlite", "--limit", limit, "--seed", seed)
        out = tmp_path / f"out{limit}-{seed}"
        assert f"{out / 'test.jsonl'} --answered'" in run.done("run", tmp_path / "test.jsonl", "--out", out, *more)[1]
        drawn[limit, seed] = [*answers(out / "test.jsonl")]
    assert [len(drawn[limit, 0]) for limit in (2, 5, 99)] == [4, 10, 16]
    assert {*drawn[2, 0]} < {*drawn[5, 0]} < {*drawn[99, 0]}
    assert drawn[2, 0] != drawn[2, 1]
    assert drawn[99, 0] == [one["id"] for one in (*LESSONS, *checks)]
    given = tmp_path / "out2-0" / "test.jsonl"
    shown, told = run.done("score", tmp_path / "test.jsonl", given, "--answered")
    assert "no answer" not in told
    lines = {line.split("  ")[0]: line.split() for line in shown.splitlines() if line}
    assert lines["questions"][1:] == ["2", "2", "0", "0", "4"]
    assert "+- (95 % interval)" in lines
    score = ["score", tmp_path / "test.jsonl", given, "--answered"]
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
