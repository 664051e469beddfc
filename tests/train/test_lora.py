"""LoRA on a tiny model: it learns, resumes to the same bytes after a kill, and its adapter answers."""

import gzip
import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import tiny_causal
import torch
from command import Command
from hypothesis import given
from hypothesis import strategies as st
from opened import recipe_file, recipe_of
from space import MINI, SPACE, TRAIN

from lmkbc import InputError, LmkbcError, Workspace
from lmkbc.generate.access import step_model
from lmkbc.local.checkpoint import load
from lmkbc.local.decode import Decoding
from lmkbc.local.model import CausalModel
from lmkbc.recipe import read_recipe
from lmkbc.testing import Example, Hit, Notes, Query, Run
from lmkbc.train.corpus import HeldOut, gather
from lmkbc.train.lora import _TaughtPrompt, loss, of_facts, of_split, train
from lmkbc.train.training import Lora
from lmkbc.types import Fact

SILVER = Path("silver2023")
IGNORED = -100


QUICK = Lora(rate=0.01, epochs=2, batch=16, every=1, longest=100)
ADAPTER = "adapter_model.safetensors"


def recipe(model: Path | str, **more: Any) -> Any:
    table = {"component": "causal", "model": str(model), "prompt": {"form": "completion"}, "shots": {"k": 0}, **more}
    return recipe_of(table, name="tiny")


def run(**more: Any) -> Run:
    return Run(workspace=SPACE, edition=MINI, **more)


@pytest.fixture(scope="module")
def trained(tiny: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Any]:
    pytest.importorskip("peft", reason="peft is not installed: install lmkbc[lora]")
    out = tmp_path_factory.mktemp("lora") / "adapter"
    return out, train(run(), recipe(tiny), out, QUICK)


def test_the_loss_falls_and_only_an_adapter_is_written(trained: tuple[Path, Any]) -> None:
    out, made = trained
    assert made.losses[-1] < made.losses[0] - 0.1
    assert sorted(path.name for path in out.iterdir()) == ["adapter_config.json", ADAPTER, "training.json"]
    assert [path.name for path in out.parent.iterdir()] == [out.name]  # no checkpoint is left
    told = json.loads((out / "training.json").read_text())
    assert told["examples"] + told["left_out"] + told["held_out"] == len(TRAIN)
    assert made.steps == 2 * -(-told["examples"] // 16), "every row once an epoch"
    assert told["lora"]["rank"] == 4
    assert "/" not in told["base"]


def test_a_held_out_fact_stops_the_training_before_it_begins(tiny: Path, tmp_path: Path) -> None:
    pytest.importorskip("peft", reason="peft is not installed: install lmkbc[lora]")
    corpus = facts()["corpus"]
    known = replace(corpus.challenge[0], subject=SPACE.queries(MINI, "val")[0].subject)
    with pytest.raises(LmkbcError, match="held-out subjects"):
        train(run(), recipe(tiny), tmp_path / "x", QUICK, corpus=replace(corpus, others=(known,)))


def test_the_command_teaches_facts_and_tells_the_proof(command: Command, tiny: Path, tmp_path: Path) -> None:
    pytest.importorskip("peft", reason="peft is not installed: install lmkbc[lora]")
    only = {"only": ["PersonPlaysInstrument"], "prompt": {"form": "completion"}, "shots": {"k": 1}}
    recipe_file(tmp_path / "tiny.toml", {"component": "causal", **only})
    out = tmp_path / "adapter"
    arguments = ["train", "lora", "--out", out, "--edition", "mini", "--system", "tiny.toml"]
    arguments += ["--model", tiny, "--facts", "1", "--epochs", "1", "--batch", "8", "--json"]
    _, told = command.done(*arguments)
    training = json.loads((out / "training.json").read_text())
    assert training["proof"][-1] == "overlap of subjects to train on with held-out names: 0"
    assert training["proof"][-1] in told
    rows = [row for row in learnt(Workspace()) if row.query.relation == "PersonPlaysInstrument"]
    assert training["examples"] + training["left_out"] == len(rows)


def facts() -> dict[str, Any]:
    """The corpus of the bundled edition, as training takes it."""
    return {"corpus": gather(SPACE, [], [MINI.name])}


def test_a_run_is_answered_by_the_model_that_it_had_before(tiny: Path, tmp_path: Path) -> None:
    pytest.importorskip("peft", reason="peft is not installed: install lmkbc[lora]")
    asked, system = run(), recipe(tiny)
    opened = step_model({"component": "causal", "model": str(tiny)})
    model = opened.open(asked, Notes()).model
    before = {name: value.clone() for name, value in model.model.state_dict().items()}
    train(asked, system, tmp_path / "x", QUICK)
    assert opened.open(asked, Notes()).model is model
    after = model.model.state_dict()
    assert before.keys() == after.keys()
    assert all(torch.equal(value, after[name]) for name, value in before.items())


def test_the_adapter_is_loaded_as_a_model_and_changes_it(tiny: Path, trained: tuple[Path, Any]) -> None:
    prompts = [prompt for prompt, _ in written(tiny)[:3]]

    def answers(name: Path) -> dict[int, Any]:
        return dict(CausalModel(*load(str(name))).complete(prompts, Decoding(max_tokens=12)))

    assert answers(trained[0]) != answers(tiny)


def learnt(space: Workspace = SPACE) -> list[Example]:
    """The rows of the train split whose subject no edition holds out."""
    held_out = HeldOut.of(space, [gold.names for row in TRAIN for gold in row.objects])
    return [row for row in TRAIN if not held_out.names(row.query.subject)]


def test_no_held_out_subject_is_learnt_or_shown(tiny: Path) -> None:
    subjects = {row.query.subject for row in learnt()}
    held_out = {row.query.subject for row in run().train} - subjects
    assert held_out & {query.subject for query in SPACE.queries(MINI, "val")}
    pairs = written(tiny, shots={"k": 3, "method": "random"})
    assert len(pairs) == len(learnt())
    assert all(gold.name in said for row, (_, said) in zip(learnt(), pairs, strict=True) for gold in row.objects)
    asked = [prompt.rpartition("\n\n")[0] for prompt, _ in pairs]
    shown = [line for prompt in asked for line in prompt.split("\n") if line.startswith("Question:")]
    assert shown
    assert not any(f" {subject}?" in line for line in shown for subject in held_out)


def written(tiny: Path, **more: Any) -> list[tuple[str, str]]:
    """Prompts and answers of the train split, as text."""
    model = CausalModel(*load(str(tiny)))
    rows = of_split(run(), recipe(tiny, **more).generate[0], model)
    firsts = [row.golds.count(IGNORED) for row in rows]
    return [
        (model.tokenizer.decode(row.tokens[:first]), model.tokenizer.decode(row.golds[first:]))
        for row, first in zip(rows, firsts, strict=True)
    ]


def test_context_is_learnt_with(tiny: Path, tmp_path: Path) -> None:
    subject = learnt()[0].query.subject
    path = tmp_path / "texts.jsonl"
    path.write_text(json.dumps({"title": subject, "text": "A telling text."}) + "\n")
    told = written(tiny, context={"provider": "titles", "path": str(path)})
    assert "A telling text." in told[0][0]
    assert sum("A telling text." in prompt for prompt, _ in told) < len(told)


def test_only_the_answer_is_learnt() -> None:
    model = tiny_causal.model("llama")
    rows = [_TaughtPrompt((5, 6, 7, 8, 9), (*[IGNORED] * 3, 8, 9)), _TaughtPrompt((1, 2, 3), (IGNORED, IGNORED, 3))]
    with torch.inference_mode():
        found = float(loss(model, rows))
        logs = [model(torch.tensor([row.tokens])).logits[0].log_softmax(-1) for row in rows]
    picked = [float(logs[0][2, 8]), float(logs[0][3, 9]), float(logs[1][1, 3])]
    assert found == pytest.approx(-sum(picked) / 3, abs=1e-4)


def test_the_rate_is_constant_once_warm() -> None:
    shares = [Lora(warm_up=0.1).plan.share(step, 100) for step in range(100)]
    assert shares[:3] == pytest.approx([0.1, 0.2, 0.3])
    assert set(shares[10:]) == {1.0}
    assert (Lora().rank, Lora().alpha, Lora().dropout, Lora().rate, Lora().epochs) == (4, 16, 0.05, 2e-5, 3)


def test_without_peft_the_extra_is_named(tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "peft", None)
    with pytest.raises(InputError, match=r"lmkbc\[lora\]"):
        train(run(), recipe(tiny), tmp_path / "x", QUICK)


def test_a_recipe_without_a_causal_model_cannot_be_trained(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no 'causal' generator"):
        train(run(), read_recipe(SPACE, "embedded"), tmp_path / "x", QUICK)


def test_three_kinds_of_prompt_are_learnt(tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def hits(named: list[str]) -> dict[str, tuple[Hit, ...]]:
        qids = {gold.name: gold.id or "" for row in TRAIN for gold in row.objects}
        return {name: (Hit("Q0", "other", "a namesake"), Hit(qids[name], name)) for name in named}

    monkeypatch.setattr("lmkbc.train.lora.open_search", lambda *_, **__: SimpleNamespace(search=hits))
    texts = tmp_path / "texts.jsonl"
    texts.write_text("".join(json.dumps({"title": row.query.subject, "text": "A text."}) + "\n" for row in TRAIN))
    context = {"context": {"provider": "titles", "path": str(texts)}}
    (spec,) = recipe(tiny, only=["PersonPlaysInstrument"], **context).generate
    model = CausalModel(*load(str(tiny), offline=True))

    def learnt(mixed: bool) -> list[str]:
        rows = of_split(run(), spec, model, mixed=mixed)
        return [model.tokenizer.decode(row.tokens) for row in rows]

    plain, mixed = learnt(False), learnt(True)
    rest = [text for text in mixed if text not in plain]
    assert len(mixed) - len(rest) == len(plain)
    assert all("Context:" not in text for text in rest)
    chosen = [text for text in rest if "does the answer mean?" in text]
    assert len(rest) - len(chosen) == len(plain)
    assert chosen
    assert all(text.replace(model.tokenizer.eos_token or "", "").rstrip().endswith("2") for text in chosen)


RUN = Run(workspace=SPACE, edition=MINI)
MODEL = CausalModel(tiny_causal.model("llama"), tiny_causal.tokenizer())
CHAT = (
    "{% for turn in messages %}<{{ turn.role }}>{{ turn.content }}</>\n{% endfor %}"
    "{% if add_generation_prompt %}<assistant>{% endif %}"
)
RELATION = "PersonPlaysInstrument"
CORPUS = gather(SPACE, [], [MINI.name])


def source(**more: Any) -> Any:
    style = {"form": "completion", "listing": "comma", "null": "none"}
    table = {"component": "causal", "model": "tiny", "prompt": style, "shots": {"k": 2, "names": 20}, **more}
    return recipe_of(table).generate[0]


def fact(subject: str, *objects: str) -> Fact:
    relation = RUN.relations[RELATION]
    return Fact(subject, relation.name, relation.clozes, objects, ("",) * len(objects))


def lessons(facts: Sequence[Fact], spec: Any = None) -> list[_TaughtPrompt]:
    return of_facts(RUN, spec or source(), MODEL, replace(CORPUS, challenge=tuple(facts)), 0, 0)


def text(lesson: _TaughtPrompt) -> str:
    return str(MODEL.tokenizer.decode(lesson.tokens))


def stretches(lesson: _TaughtPrompt) -> list[str]:
    """Each stretch of tokens that is learnt, as text."""
    runs: list[list[int]] = [[]]
    for gold in lesson.golds:
        if gold != IGNORED:
            runs[-1].append(gold)
        elif runs[-1]:
            runs.append([])
    return [str(MODEL.tokenizer.decode(run)) for run in runs if run]


SPELLINGS: Sequence[Callable[[str], str]] = (
    str,
    str.upper,
    str.lower,
    lambda name: f"{name} (person)",
    lambda name: f" The {name} ",
)


@pytest.mark.whole(but=["test"])
@pytest.mark.parametrize("split", ["val", "test"])
def test_no_lesson_tells_of_a_held_out_subject_however_it_is_spelt(split: str, tmp_path: Path) -> None:
    secret = sorted({query.subject for query in SPACE.queries(MINI, split)})
    names = [spell(name) for name in secret for spell in SPELLINGS]
    rows = [
        {"SubjectEntity": name, "ObjectEntities": ["zither"], "Relation": RELATION} for name in (*names, "Free One")
    ]
    (tmp_path / SILVER).mkdir()
    packed = gzip.compress("\n".join(map(json.dumps, rows)).encode())
    (tmp_path / SILVER / f"{RELATION}.jsonl.gz").write_bytes(packed)
    corpus = gather(SPACE, [tmp_path], [MINI.name])
    assert corpus.removed["silver"] == (1, len(names))
    found = of_facts(RUN, source(), MODEL, corpus, 10**6, 0)
    questions = [line for lesson in found for line in text(lesson).split("\n") if line.startswith("Question:")]
    assert any("Free One" in line for line in questions)
    asked = {RUN.relations[name].question.format(subject=subject) for name in RUN.relations for subject in secret}
    assert asked.isdisjoint(line.removeprefix("Question: ") for line in questions)
    assert len(questions) == sum(lesson.answers for lesson in found) == len(corpus.challenge) + 1


@given(st.lists(st.lists(st.sampled_from(["lute", "harp", "viol", "zither"]), unique=True), min_size=1, max_size=8))
def test_every_answer_is_learnt_with_its_end_and_nothing_else(answers: list[list[str]]) -> None:
    facts = [fact(f"Subject{number}", *objects) for number, objects in enumerate(answers)]
    found = lessons(facts)
    assert sum(lesson.answers for lesson in found) == len(facts)
    for lesson in found:
        assert all(gold in (IGNORED, token) for token, gold in zip(lesson.tokens, lesson.golds, strict=True))
        assert all(stretch.endswith(("\n", "<end>")) for stretch in stretches(lesson))
    said = [stretch.split("\n")[0].strip() for lesson in found for stretch in stretches(lesson)]
    assert sorted(sorted(one.split(", ")) for one in said) == sorted(sorted(objects) or ["none"] for objects in answers)


@pytest.mark.parametrize("form", ["completion", "single", "chat"])
def test_in_every_form_the_last_answer_at_least_is_learnt(form: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(MODEL.tokenizer, "chat_template", CHAT)
    style = {"form": form, "listing": "comma", "null": "none"}
    (lesson,) = lessons([fact(f"S{number}", f"object{number}") for number in range(3)], source(prompt=style))
    last = text(lesson).split("S")[-1][0]
    assert f"object{last}" in stretches(lesson)[-1]
    assert all("?" not in stretch for stretch in stretches(lesson))


def test_a_prompt_holds_as_many_facts_as_it_shows_and_asks_and_is_what_the_model_is_asked() -> None:
    facts = [fact(f"S{number}", "harp") for number in range(7)]
    assert sorted(lesson.answers for lesson in lessons(facts)) == [1, 3, 3]
    assert [lesson.answers for lesson in lessons(facts, source(shots={"k": 0}))] == [1] * 7
    spec = source()
    (lesson,) = lessons(facts[:1], spec)
    assert text(lesson).startswith(spec.asking(RUN, []).prompt(Query("S0", RELATION)).text)


def test_only_the_relations_that_the_source_answers_are_learnt() -> None:
    assert lessons([fact("S", "harp")], source(only=[RELATION]))
    assert not lessons([fact("S", "harp")], source(only=["CountryBordersCountry"]))
