"""No text makes the reader raise: sentences that end early, odd letters, and random texts of the reader's own words."""

import json
import random
from pathlib import Path
from typing import Any

import pytest
from command import Command
from opened import part
from reader_grammar import text
from rows import jsonl
from space import MINI, SPACE

from lmkbc.generate.reply import candidates
from lmkbc.testing import CandidateSet, Query, Reply

RELATIONS = [*SPACE.relations.values()]
STYLES = [
    part("prompt"),
    part("prompt", listing="comma", null="none"),
    part("prompt", listing="line"),
    part("prompt", listing="python"),
    part("prompt", listing="semicolon", parse_as="split"),
    part("prompt", listing="comma", parse_as="line", answer="ANSWER: {{ answer }}"),
    part("prompt", component="bl23-gpt-ids/prompt"),
]
SUBJECTS = ["Some Subject", "", "2012", "The", "Côte d'Ivoire", "ı", "(", "C++", "One"]
KINDS = "country-borders", "company-parent", "compound-elements", "area", "autobiography"
BORDERS = "CountryBordersCountry"
EACH = 10_000
EARLY = ["It borders The", "The answer is The", "Her husband was Al.", "It shares a border with the", "died in An Al"]
ODD = [
    "5 mıllion",
    "5 mı²",
    "XİX century",
    "ıx century",
    "5 \u212a",
    "2 thouſand",
    "5 ſec",
    "٥ mi²",
    "²",
    "1²³ km",
    "①",
]
HUGE = ["&#" + "9" * 5000, "&#" + "9" * 5000 + ";", "10^40 sq mi 5 acres", "10^40 °F", "9" * 5000, "1e99999 km2"]
GONE = [",  though I", "Only", ", though I am not sure", "Unfortunately, ", "**", "[[[[[[[[[[", '["[' * 400, "['" * 400]
"""Texts of which nothing is left without their remarks, and literals in literals."""


def read(name: str, written: str, style: Any = STYLES[0], finish: str = "stop") -> CandidateSet:
    return candidates(Query("Some Subject", name), SPACE.relation(name), style, [Reply(written, finish)], "m")


def test_no_sentence_that_ends_early_makes_the_reader_raise() -> None:
    for relation in RELATIONS:
        for written in EARLY:
            read(relation.name, written)


@pytest.mark.whole(but=["country-borders", "area"])
@pytest.mark.parametrize(
    "relation", ["country-borders", "company-parent", "compound-elements", "area", "autobiography"]
)
def test_no_odd_text_makes_the_reader_raise(relation: str) -> None:
    for place, written in enumerate((*ODD, *HUGE, *GONE)):
        read(relation, written, STYLES[place % len(STYLES)], ("stop", "length")[place % 2])


@pytest.mark.parametrize(
    ("relation", "written", "objects"),
    [
        ("area", "5 mıllion km2", ["5000000"]),
        ("area", "5 mı²", ["12.94994"]),
        ("capacity", "2 thouſand", ["2000"]),
        ("spouse", "Her husband was Al.", []),
    ],
)
def test_odd_letters_are_read_as_the_plain_ones(relation: str, written: str, objects: list[str]) -> None:
    assert [one.text for one in read(relation, written).candidates] == objects


@pytest.mark.parametrize(
    ("seed", "count"), [(-1, 400), *(pytest.param(seed, EACH, marks=pytest.mark.whole) for seed in range(100))]
)
@pytest.mark.timeout(3600)
def test_no_random_text_makes_the_reader_raise(seed: int, count: int) -> None:
    draw = random.Random(seed)
    for _ in range(count):
        written, relation, style = text(draw), draw.choice(RELATIONS), draw.choice(STYLES)
        query, reply = Query(draw.choice(SUBJECTS), relation.name), Reply(written, draw.choice(("stop", "length")))
        try:
            candidates(query, relation, style, [reply], "m", clean=draw.choice((True, True, False, "spellings")))
        except Exception as error:
            raise AssertionError(f"{relation.name}, {style.listing}, {query.subject!r}: {written!r}") from error


def test_a_fault_of_the_reader_costs_one_reply_and_is_named(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    def faulty(written: str) -> str:
        if "Chad" in written:
            raise IndexError  # stands for a fault that is not found yet
        return written

    monkeypatch.setattr("lmkbc.generate.reply.answer_of", faulty)
    monkeypatch.delenv("LMKBC_RAISE")
    first, second, *_ = (one.query for one in SPACE.examples(MINI, "val") if one.query.relation == BORDERS)
    rows = [(first, "Chad"), (second, '["Belize"]')]
    recorded = [{"SubjectEntity": one.subject, "Relation": BORDERS, "completions": [said]} for one, said in rows]
    answers = jsonl(Path("answers.jsonl"), recorded)
    words = f"--edition mini --split val --relation {BORDERS} --untuned --offline --failed-as-empty --no-report --out r"
    _, told = command.done("predict", "--from", answers, *words.split())
    assert "please report it" in told
    assert "IndexError in test_random_texts.py" in told
    lost = Path("r/missing.jsonl").read_text(encoding="utf-8").splitlines()
    missing = {row["SubjectEntity"]: row["reason"] for row in map(json.loads, lost)}
    assert missing[first.subject].startswith("unparsed, fault: IndexError in test_random_texts.py")
    assert second.subject not in missing


def test_only_the_ends_of_a_very_long_text_are_read_and_the_row_says_so() -> None:
    names = [f"Name Number {index}x" for index in range(8000)]
    found = read("award-winners", json.dumps(names))
    kept = [one.text for one in found.candidates]
    assert kept == [name for name in names if name in set(kept)]
    assert (kept[0], kept[-1]) == (names[0], names[-1])
    assert 3000 < len(kept) < 4000
    assert found.dropped[-1].rule.startswith("not read: the middle, ")
