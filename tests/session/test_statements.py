"""Labelled rows state: their own facts, and those of the other side, by QID or by name."""

from dataclasses import replace

import pytest
from space import SPACE

from lmkbc.session.statements import Statements
from lmkbc.testing import Candidate, Example, GoldObject, Query
from tests.small import small_relation

BORDERS, CHILDREN, RIVERS = "CountryBordersCountry", "PersonHasNumberOfChildren", "RiverBasinsCountry"
RELATIONS = {name: SPACE.relation(name) for name in (BORDERS, CHILDREN, RIVERS)}


def row(subject: str, *objects: tuple[str, str | None], relation: str = BORDERS, qid: str | None = None) -> Example:
    golds = tuple(GoldObject(names=tuple(filter(None, names.split("|"))), id=id_) for names, id_ in objects)
    return Example(Query(subject, relation, qid), golds)


def asked(subject: str, qid: str | None = None, relation: str = BORDERS) -> Query:
    return Query(subject, relation, qid)


TRAIN = [row("Chile", ("Peru|República del Perú", "Q419"), ("Bolivia", "Q750"), qid="Q298")]
VAL = [row("Brazil", ("Peru", "Q419"), qid="Q155"), row("Chile", ("Peru", "Q419"), qid="Q298")]
STATED = Statements({"train": TRAIN, "val": VAL}, RELATIONS)


@pytest.mark.parametrize(
    ("query", "candidate", "splits"),
    [
        (asked("Peru", "Q419"), Candidate("Brazil", id="Q155"), ("val",)),
        (asked("Peru", "Q419"), Candidate("Chile", id="Q298"), ("train", "val")),
        (asked("Peru", "Q419"), Candidate("Brasilien", id="Q155"), ("val",)),  # a QID is enough
        (asked("Perú", "Q419"), Candidate("República de Chile", id="Q298"), ("train", "val")),
        (asked("PERU"), Candidate("brazil"), ("val",)),  # names, as the scorer folds them
        (asked("Republica del Peru"), Candidate("Chile"), ("train",)),  # any of the row's names
        (asked("Peru", "Q419"), Candidate("Brazil"), ("val",)),  # a kept name without a link
        (asked("Peru", "Q999"), Candidate("Brazil", id="Q155"), ()),  # another thing of this name
        (asked("Peru", "Q419"), Candidate("Brazil", id="Q999"), ()),
        (asked("Peru", "Q419"), Candidate("Ecuador", id="Q736"), ()),
        (asked("Chile", "Q298"), Candidate("Peru", id="Q419"), ()),  # its own row, not the other side
        (asked("Peru", "Q419", RIVERS), Candidate("Chile", id="Q298"), ()),  # a relation without another side
    ],
)
def test_the_other_side_of_a_symmetric_relation(query: Query, candidate: Candidate, splits: tuple[str, ...]) -> None:
    assert STATED.from_other_side(query, candidate) == splits


def test_rows_without_qids_are_found_by_name() -> None:
    stated = Statements({"train": [row("Côte d'Ivoire", ("Ghana|Republic of Ghana", None))]}, RELATIONS)
    assert stated.from_other_side(asked("Ghana", "Q117"), Candidate("Cote d’Ivoire", id="Q1008")) == ("train",)
    assert stated.from_other_side(asked("republic of ghana"), Candidate("Cote d'Ivoire")) == ("train",)


def test_an_inverse_states_the_other_relation_alone() -> None:
    parent = replace(SPACE.relation(RIVERS), name="parent", names=("hasParent",), inverse_of="child")
    child = replace(parent, name="child", names=("hasChild",), inverse_of="parent")
    stated = Statements(
        {"train": [row("Bach", ("Carl", None), relation="hasChild")]}, {"hasParent": parent, "hasChild": child}
    )
    assert stated.from_other_side(asked("Carl", relation="hasParent"), Candidate("Bach")) == ("train",)
    assert stated.from_other_side(asked("Carl", relation="hasChild"), Candidate("Bach")) == ()
    assert stated.stated_by(asked("Bach", relation="hasChild"), Candidate("Carl")) == ("train",)
    assert stated.stated_by(asked("Bach", relation="hasParent"), Candidate("Carl")) == ()


def test_the_qid_of_an_object_is_that_of_its_subject_s_own_rows() -> None:
    rows = [row("Chad", ("Congo", "Q971")), row("Chile", ("Peru", "Q419")), row("Mali", ("Congo", "Q974"))]
    stated = Statements({"train": rows, "val": [row("Chad", ("congo", "Q974"))]}, RELATIONS)
    assert stated.qid(asked("chile", "Q298"), Candidate("PERU")) == "Q419"
    assert stated.qid(asked("Mali"), Candidate("Congo")) == "Q974"
    assert stated.qid(asked("Chad"), Candidate("Congo")) is None  # the rows differ
    assert stated.qid(asked("Niger"), Candidate("Congo")) is None


def test_a_row_s_own_facts_count_too_and_numbers_by_their_value() -> None:
    stated = Statements({"train": [*TRAIN, row("Bach", ("", "20"), relation=CHILDREN)]}, RELATIONS)
    assert stated.stated_by(asked("Chile", "Q298"), Candidate("Peru", id="Q419")) == ("train",)
    assert stated.stated_by(asked("Peru", "Q419"), Candidate("Chile", id="Q298")) == ("train",)
    for text, id_ in (("20", "20"), ("twenty", "20.0"), ("20", None)):
        assert stated.stated_by(asked("Bach", relation=CHILDREN), Candidate(text, id=id_)) == ("train",)
    assert stated.stated_by(asked("Bach", relation=CHILDREN), Candidate("2", id="2")) == ()


@pytest.mark.parametrize(
    ("kind", "gold", "given", "is_stated"),
    [
        ("date", "1850-05-12", "1850-05-12", True),
        ("date", "1850-05-12", "1850", True),  # says less
        ("date", "1850", "1850-05-12", False),  # says more
        ("date", "1850", "1851", False),
        ("number", "100", "104", True),  # within the relation's tolerance
        ("number", "100", "106", False),
        ("string", "Per aspera", "per  aspera", True),
        ("string", "Per aspera", "Ad astra", False),
    ],
)
def test_values_are_compared_by_their_kind(kind: str, gold: str, given: str, is_stated: bool) -> None:
    more = {"tolerance": 0.05} if kind == "number" else {}
    relation = small_relation(name="value", names=("value",), kind=kind, **more)
    stated = Statements({"train": [row("Bach", (gold, None), relation="value")]}, {"value": relation})
    assert stated.stated_by(asked("Bach", relation="value"), Candidate(given)) == (("train",) if is_stated else ())
