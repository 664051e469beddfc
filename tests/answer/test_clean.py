"""Cleaning by declaration: what is dropped, what is renamed, and that gold-like names pass untouched."""

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmkbc import EntityType, Relation, Shape, Workspace
from lmkbc.answer.clean import sifted

SUBJECT = "Acme Motors"


def relation(kind: str = "entity", noun: str = "organisation", qid: str = "Q43229", **shape: object) -> Relation:
    return Relation(
        name="parent",
        names=("CompanyHasParent",),
        property="P749",
        subject_type=EntityType("company", "Q4830453"),
        object_type=EntityType(noun, qid),
        kind=kind,  # type: ignore[arg-type]
        may_be_empty=True,
        definition="The owner.",
        clozes=("{subject} belongs to {mask}.",),
        question="Who owns {subject}?",
        triple="has parent",
        statement="{object} owns {subject}.",
        unit="km2" if kind == "number" else None,
        shape=Shape(**shape),  # type: ignore[arg-type]
    )


OPEN = relation(variants={"VW": "Volkswagen Group", "Volkswagen AG": "Volkswagen Group"}, stop=frozenset({"public"}))
PHYSICS, PEACE = "Nobel Prize in Physics", "Nobel Peace Prize"
PRIZES = {PHYSICS: ("physics", "in physics"), PEACE: ("peace",)}
CLOSED = relation(closed=PRIZES | {"carbon": ("C", "carbon atoms"), "hydrogen": ("H", "hydrogen atoms")})
CITY = relation(noun="city or town", qid="Q486972", variants={"Washington DC": "Washington, D.C."})
OWN = relation(may_be_subject=True)
CASTLE = replace(OPEN, subject_type=EntityType("castle"))
COUNT = relation("number", minimum=1, maximum=500, integer=True)
AREA = relation("number", minimum=0.5)

CASES: list[tuple[str, Relation, list[str], list[str]]] = [
    ("order and duplicates", OPEN, ["Beta", "Gamma", "beta", "BETA "], ["Beta", "Gamma"]),
    ("white space", OPEN, ["  Beta\t  Works\n"], ["Beta Works"]),
    ("quotes", OPEN, ['"Beta"', "'Gamma'", "“Delta”", "**Eta**"], ["Beta", "Gamma", "Delta", "Eta"]),
    ("inner quotes stay", OPEN, ['Ron "Bumblefoot" Thal'], ['Ron "Bumblefoot" Thal']),
    ("trailing punctuation", OPEN, ["Beta.", "Gamma,", "Delta;"], ["Beta", "Gamma", "Delta"]),
    ("abbreviations", OPEN, ["Beta Co., Ltd.", "Sam Jr.", "U.S."], ["Beta Co., Ltd.", "Sam Jr.", "U.S."]),
    ("exclamations belong to names", OPEN, ["Wham!"], ["Wham!"]),
    ("small articles", OPEN, ["the Netherlands", "a holding", "The Hague"], ["Netherlands", "holding", "The Hague"]),
    ("trailers", OPEN, ["Beta (born 1960)", "Gamma (G) [1]", "(G)I-DLE"], ["Beta", "Gamma", "(G)I-DLE"]),
    ("word pieces and marks", OPEN, ["##ing", "-", ".", "", "[UNK]"], ["UNK"]),
    ("variants", OPEN, ["vw", "Volkswagen  AG", "Volkswagen Group"], ["Volkswagen Group"]),
    ("stop words", OPEN, ["Public", "public."], []),
    ("the subject itself", OPEN, ["Acme Motors", "ACME MOTORS", "Acme Motors, Inc.", "The Acme Motors Company"], []),
    ("the subject's relatives", OPEN, ["Acme", "Acme Motors Group"], ["Acme", "Acme Motors Group"]),
    ("a firm named as what it owns", CASTLE, ["Acme Motors, Inc.", "Acme Motors"], ["Acme Motors, Inc."]),
    ("the subject where it may be", OWN, ["Acme Motors"], ["Acme Motors"]),
    ("placeholders", OPEN, ["Parent", "Organisation A", "Parent 1", "other organisations", "Others"], []),
    ("closed list", CLOSED, ["Physics", "PEACE", "Chemistry", "Nobel"], [PHYSICS, PEACE]),
    ("closed list with a year", CLOSED, ["Nobel Prize in Physics 1964", "1920 Nobel Peace Prize"], [PHYSICS, PEACE]),
    ("closed list in brackets", CLOSED, ["Nobel Prize (Physics)", "Peace (shared)"], [PHYSICS, PEACE]),
    ("closed list with counts", CLOSED, ["21 carbon atoms", "a hydrogen"], ["carbon", "hydrogen"]),
    ("top-k tokens", CLOSED, ["carbon", "##gen", "the", "h", "water"], ["carbon", "hydrogen"]),
    ("a city's region", CITY, ["Riga, Latvia", "Kozhikode, Kerala, India"], ["Riga", "Kozhikode"]),
    ("a comma in a city's name", CITY, ["Washington, D.C.", "washington dc"], ["Washington, D.C."]),
    ("a comma elsewhere", OPEN, ["University of California, Los Angeles"], ["University of California, Los Angeles"]),
    ("prose", OPEN, ["word " * 100], []),
    ("numbers", COUNT, ["12", "three", "1,000", "0", "2.5", "12.0", "many"], ["12", "3"]),
    ("areas", AREA, ["1,250 km2", "0.25", "-3", "12.50"], ["1250", "12.5"]),
]


@pytest.mark.parametrize(("asked", "texts", "kept"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_cleaning(asked: Relation, texts: list[str], kept: list[str]) -> None:
    assert sifted(texts, asked, SUBJECT)[0] == tuple(kept)


PARTS = [
    "the ",
    "a ",
    "(",
    ")",
    '"',
    "'",
    ".",
    ", ",
    "Acme Motors",
    "VW",
    "21 ",
    "carbon",
    "1,250",
    "##",
    " Inc.",
    "[",
    "]",
    "*",
]


@given(st.one_of(st.text(max_size=40), st.lists(st.sampled_from(PARTS), max_size=8).map("".join)))
@pytest.mark.parametrize("asked", [OPEN, CLOSED, CITY, COUNT, AREA], ids=["open", "closed", "city", "count", "area"])
def test_cleaning_twice_changes_nothing(asked: Relation, text: str) -> None:
    once, _ = sifted([text], asked, SUBJECT)
    assert sifted(once, asked, SUBJECT)[0] == once
    assert all(name == name.strip() and name for name in once)


def test_gold_survives(data_dir: Path) -> None:
    """Cleaning is for models' words: of the train gold it may drop or rename to something wrong hardly anything."""
    space = Workspace(data=data_dir)
    for name in ("2022", "2026"):
        edition = space.edition(name)
        key = edition.metric.scorer.key
        lost = total = 0
        for example in space.examples(edition, "train"):
            asked = space.relation(example.query.relation)
            for gold in example.objects:
                accepted = {key(one) for one in gold.names}
                total += 1
                lost += not accepted.intersection(map(key, sifted(gold.names[:1], asked, example.query.subject)[0]))
        assert lost / total < 0.01
