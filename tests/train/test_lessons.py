"""Facts as lessons: no held-out subject is in one, every answer is learnt, and nothing but answers."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
import tiny_causal
from hypothesis import given
from hypothesis import strategies as st
from opened import recipe_of
from space import MINI, SPACE

from lmkbc.generate.language_model import LanguageModelSpec
from lmkbc.models.local.model import CausalModel
from lmkbc.run.base import Run
from lmkbc.train.corpus import SILVER, Corpus, HeldOut, gather
from lmkbc.train.lora import IGNORED, _TaughtPrompt, alike, of_facts
from lmkbc.types import Fact, Query

RUN = Run(workspace=SPACE, edition=MINI)
MODEL = CausalModel(tiny_causal.model("llama"), tiny_causal.tokenizer())
CHAT = (
    "{% for turn in messages %}<{{ turn.role }}>{{ turn.content }}</>\n{% endfor %}"
    "{% if add_generation_prompt %}<assistant>{% endif %}"
)
RELATION = "PersonPlaysInstrument"
NOBODY = HeldOut(frozenset(), ())


def source(**more: Any) -> LanguageModelSpec:
    style = {"form": "completion", "listing": "comma", "null": "none"}
    table = {"component": "causal", "model": "tiny", "prompt": style, "shots": {"k": 2, "names": 20}, **more}
    spec = recipe_of(table).generate[0]
    assert isinstance(spec, LanguageModelSpec)
    return spec


def fact(subject: str, *objects: str) -> Fact:
    relation = RUN.relations[RELATION]
    return Fact(subject, relation.name, relation.clozes, objects, ("",) * len(objects))


def lessons(facts: Sequence[Fact], spec: LanguageModelSpec | None = None) -> list[_TaughtPrompt]:
    return of_facts(RUN, spec or source(), MODEL, Corpus(tuple(facts), (), {}, NOBODY), 0, 0)


def text(lesson: _TaughtPrompt) -> str:
    return str(MODEL.tokenizer.decode(lesson.tokens))


def learnt(lesson: _TaughtPrompt) -> list[str]:
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
        assert all(stretch.endswith(("\n", "<end>")) for stretch in learnt(lesson))
    said = [stretch.split("\n")[0].strip() for lesson in found for stretch in learnt(lesson)]
    assert sorted(sorted(one.split(", ")) for one in said) == sorted(sorted(objects) or ["none"] for objects in answers)


@pytest.mark.parametrize("form", ["completion", "single", "chat"])
def test_in_every_form_the_last_answer_at_least_is_learnt(form: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(MODEL.tokenizer, "chat_template", CHAT)
    style = {"form": form, "listing": "comma", "null": "none"}
    (lesson,) = lessons([fact(f"S{number}", f"object{number}") for number in range(3)], source(prompt=style))
    last = text(lesson).split("S")[-1][0]
    assert f"object{last}" in learnt(lesson)[-1]
    assert all("?" not in stretch for stretch in learnt(lesson))


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


@given(st.lists(st.integers(1, 9), max_size=20), st.integers(1, 5))
def test_batches_hold_every_lesson_once_by_length(lengths: list[int], size: int) -> None:
    rows = [_TaughtPrompt((number,) * length, ()) for number, length in enumerate(lengths)]
    batches = alike(rows, size)
    flat = [row for batch in batches for row in batch]
    assert sorted(flat) == sorted(rows)
    assert [len(row.tokens) for row in flat] == sorted(lengths)
    assert all(len(batch) == size for batch in batches[:-1])
