"""The closed set of a relation, the class prior over it, and naive Bayes: no evidence from the query's own row."""

import re
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from opened import learned
from small import THING, small_edition, small_relation
from space import MINI, RELATIONS, TRAIN

from lmkbc import AliasScorer, Edition, IdScorer, MatchingScorer, Metric, Relation, ValueScorer
from lmkbc.generate.baselines import ClosedSet, log_posterior
from lmkbc.testing import CandidateSet, Example, GoldObject, Query


def words(name: str) -> list[str]:
    return re.findall(r"\w+", name.lower())


def asked(query: Query) -> CandidateSet:
    (found,) = learned("naive-bayes", MINI, RELATIONS, TRAIN).generate([query])
    return found


def test_the_formula() -> None:
    """log P(o) + sum of log((count + 1) / (tokens + vocabulary)), by hand for one new subject."""
    relation = TRAIN[0].query.relation
    rows = [row for row in TRAIN if row.query.relation == relation]
    subject = f"{words(rows[0].query.subject)[0]} of nowhere"
    vocabulary = {word for row in rows for word in words(row.query.subject)}
    found = {candidate.text: candidate.score for candidate in asked(Query(subject, relation)).candidates}
    scorer = MINI.metric.scorer
    by_hand = {}
    for text in found:
        right = [
            row
            for row in rows
            if any(scorer.key(text) == scorer.key(n) for gold in row.objects for n in gold.names)
            or not (text or row.objects)
        ]
        tokens = [word for row in right for word in words(row.query.subject)]
        share = len(right) / len(rows)
        for word in words(subject):
            if word in vocabulary:
                share *= (tokens.count(word) + 1) / (len(tokens) + len(vocabulary))
        by_hand[text] = share
    total = sum(by_hand.values())
    assert {text: share / total for text, share in by_hand.items()} == pytest.approx(found)
    assert sum(found.values()) == pytest.approx(1.0)


def test_a_train_query_is_not_its_own_evidence() -> None:
    for row in TRAIN[::4]:
        others = [one for one in TRAIN if one.query.subject != row.query.subject]
        (without,) = learned("naive-bayes", MINI, RELATIONS, others).generate([row.query])
        kept = {candidate.text for candidate in asked(row.query).candidates}
        assert kept == {candidate.text for candidate in without.candidates}


def test_a_relation_without_other_rows_proposes_nothing() -> None:
    (found,) = learned("naive-bayes", MINI, RELATIONS, TRAIN[:1]).generate([TRAIN[0].query])
    assert found.candidates == ()


@given(st.data(), st.integers(1, 4), st.integers(1, 6))
def test_the_order_of_candidates_changes_no_bit(data: st.DataObject, words_asked: int, candidates: int) -> None:
    """So that ties are ties, and a run's bytes do not depend on where a candidate stands."""
    counts = st.lists(st.integers(0, 9), min_size=candidates, max_size=candidates)
    seen = np.array([data.draw(counts) for _ in range(words_asked)], dtype=float)
    prior, totals = (np.array(data.draw(counts), dtype=float) + 1 for _ in range(2))
    order = data.draw(st.permutations(range(candidates)))
    how: Any = {"size": 7, "trust": 0.6}
    (there,) = log_posterior(prior, seen, totals, **how)
    (here,) = log_posterior(prior[order], seen[:, order], totals[order], **how)
    assert here.tolist() == there[order].tolist()


def relation(kind: str = "entity", symmetric: bool = False) -> Relation:
    return small_relation("near", kind=kind, symmetric=symmetric, object_type=THING.subject_type)


def edition(scorer: Any, ids: bool = False) -> Edition:
    column, target = ("ObjectEntitiesID", "id") if ids else ("ObjectEntities", "string")
    return small_edition(["near"], column=column, target=target, metric=Metric(scorer, average="relation"))


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
def test_a_number_is_right_within_the_tolerance(scorer: Any) -> None:
    closed = ClosedSet.of(edition(scorer), relation("number"), [row("a", "100"), row("b", "104"), row("c", "500")])
    assert closed.hits[:, 1:].astype(int).tolist() == [[1, 1, 0], [1, 1, 0], [0, 0, 1]]


def test_prior_proposes_shares_and_the_share_of_empties() -> None:
    train = [row("a", "x"), row("b", "x", "y"), row("c"), row("d", "x")]
    (found,) = learned("prior", edition(AliasScorer()), {"near": relation()}, train).generate([Query("e", "near")])
    assert [(candidate.text, candidate.score) for candidate in found.candidates] == [
        ("x", 0.75),
        ("y", 0.25),
    ]
    assert [nil.score for nil in found.nothing] == [0.25]


def test_a_train_query_is_no_evidence_for_itself() -> None:
    train = [row("a", "x"), row("b", "unique")]
    found = list(
        learned("prior", edition(AliasScorer()), {"near": relation()}, train).generate([r.query for r in train])
    )
    assert [[candidate.text for candidate in each.candidates] for each in found] == [["unique"], ["x"]]


def test_a_relation_without_train_rows_has_no_candidates() -> None:
    (found,) = learned("prior", edition(AliasScorer()), {"near": relation()}, []).generate([Query("e", "near")])
    assert found.candidates == ()


def test_a_name_that_the_scorer_reads_as_nothing_is_no_candidate() -> None:
    closed = ClosedSet.of(edition(AliasScorer()), relation(), [row("a", "?!"), row("b", "x")])
    assert [candidate.text for candidate in closed.candidates] == ["", "x"]
    assert not closed.hits[:, 0].any()
