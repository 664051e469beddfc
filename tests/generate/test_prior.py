"""The closed set of a relation, and the class prior over it."""

from __future__ import annotations

import pytest

from lmkbc import AliasScorer, Edition, EntityType, IdScorer, MatchingScorer, Metric, Relation, ValueScorer
from lmkbc.generate.baselines import ClassPrior, ClosedSet
from lmkbc.relation import Kind
from lmkbc.scoring.table import Scorer
from lmkbc.types import Example, GoldObject, Query


def relation(kind: Kind = "entity", symmetric: bool = False) -> Relation:
    place = EntityType("place", "Q1")
    return Relation(
        name="near",
        names=("near",),
        property="P1",
        subject_type=place,
        object_type=place,
        kind=kind,
        may_be_empty=True,
        definition="What is near.",
        clozes=("{subject} is near {mask}.",),
        question="What is near {subject}?",
        triple="is near",
        statement="{subject} is near {object}.",
        symmetric=symmetric,
    )


def edition(scorer: Scorer, ids: bool = False) -> Edition:
    return Edition(
        name="tiny",
        folder="tiny",
        relations=("near",),
        splits={"train": None, "val": None, "test": None},
        column="ObjectEntitiesID" if ids else "ObjectEntities",
        target="id" if ids else "string",
        metric=Metric(scorer, average="relation"),
    )


def row(subject: str, *objects: tuple[str, ...] | str, ids: tuple[str, ...] = ()) -> Example:
    names = [(found,) if isinstance(found, str) else found for found in objects]
    return Example(Query(subject, "near"), tuple(map(GoldObject, names, ids or [None] * len(names))))


def test_one_string_answers_every_object_that_accepts_it() -> None:
    rows = [row("c", "poet"), row("a", ("actor",), ("film actor", "actor")), row("b", ("film actor", "actor"))]
    closed = ClosedSet.of(edition(AliasScorer()), relation(), rows)
    assert [candidate.text for candidate in closed.candidates] == ["", "actor", "poet"]
    assert closed.labels == ("", "actor", "poet")
    assert closed.hits.astype(int).tolist() == [[0, 0, 1], [0, 1, 0], [0, 1, 0]]


def test_a_spelling_of_two_objects_names_neither() -> None:
    chile, syria = ("Chile", "Republic of Chile", "Silia"), ("Syria", "Silia")
    rows = [row("a", chile), row("b", syria), row("c", syria), row("d", ("Chile", "CHL"))]
    closed = ClosedSet.of(edition(AliasScorer()), relation(), rows)
    assert [candidate.text for candidate in closed.candidates] == ["", "Chile", "Syria"]
    assert closed.hits.astype(int).tolist() == [[0, 1, 0], [0, 0, 1], [0, 0, 1], [0, 1, 0]]


def test_ids_merge_names() -> None:
    rows = [row("a", "Rhine", ids=("Q1",)), row("b", "Rhein", ids=("Q1",)), row("c", "Main", ids=("Q2",)), row("d")]
    closed = ClosedSet.of(edition(IdScorer(distinct=True), ids=True), relation(), rows)
    assert [(candidate.text, candidate.id) for candidate in closed.candidates] == [
        ("", None),
        ("Rhine", "Q1"),
        ("Main", "Q2"),
    ]
    assert closed.hits[:, 0].tolist() == [False, False, False, True]


def test_subjects_of_a_symmetric_relation_are_candidates_whose_source_is_their_row() -> None:
    rows = [row("a", "b"), row("c", "b")]
    closed = ClosedSet.of(edition(AliasScorer()), relation(symmetric=True), rows)
    assert [candidate.text for candidate in closed.candidates] == ["", "a", "b", "c"]
    assert closed.sources[:, 1].tolist() == [True, False]
    assert not closed.hits[:, 1].any()


@pytest.mark.parametrize("scorer", [ValueScorer(frozenset({"near"})), MatchingScorer(frozenset({"near"}))])
def test_a_number_is_right_within_the_tolerance(scorer: Scorer) -> None:
    closed = ClosedSet.of(edition(scorer), relation("number"), [row("a", "100"), row("b", "104"), row("c", "500")])
    assert closed.hits[:, 1:].astype(int).tolist() == [[1, 1, 0], [1, 1, 0], [0, 0, 1]]


def test_prior_proposes_shares_and_the_share_of_empties() -> None:
    train = [row("a", "x"), row("b", "x", "y"), row("c"), row("d", "x")]
    (found,) = ClassPrior(edition(AliasScorer()), {"near": relation()}, train).generate([Query("e", "near")])
    assert [(candidate.text, candidate.score) for candidate in found.candidates] == [
        ("x", 0.75),
        ("y", 0.25),
    ]
    assert [nil.score for nil in found.nothing] == [0.25]


def test_a_train_query_is_no_evidence_for_itself() -> None:
    train = [row("a", "x"), row("b", "unique")]
    found = list(ClassPrior(edition(AliasScorer()), {"near": relation()}, train).generate([r.query for r in train]))
    assert [[candidate.text for candidate in each.candidates] for each in found] == [["unique"], ["x"]]


def test_a_relation_without_train_rows_has_no_candidates() -> None:
    (found,) = ClassPrior(edition(AliasScorer()), {"near": relation()}, []).generate([Query("e", "near")])
    assert found.candidates == ()


def test_a_name_that_the_scorer_reads_as_nothing_is_no_candidate() -> None:
    closed = ClosedSet.of(edition(AliasScorer()), relation(), [row("a", "?!"), row("b", "x")])
    assert [candidate.text for candidate in closed.candidates] == ["", "x"]
    assert not closed.hits[:, 0].any()
