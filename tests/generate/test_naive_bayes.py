"""Naive Bayes: the textbook formula on a few rows, and no evidence from the query's own row."""

from __future__ import annotations

import pytest

from lmkbc.generate.naive_bayes import NaiveBayes, words
from lmkbc.types import CandidateSet, Query
from lmkbc.workspace import Workspace

SPACE = Workspace()
EDITION = SPACE.edition("mini")
RELATIONS = {name: SPACE.relation(name) for name in EDITION.relations}
TRAIN = SPACE.examples(EDITION, "train")


def asked(query: Query) -> CandidateSet:
    (found,) = NaiveBayes(EDITION, RELATIONS, TRAIN).generate([query])
    return found


def test_the_formula() -> None:
    """log P(o) + sum of log((count + 1) / (tokens + vocabulary)), by hand for one new subject."""
    relation = TRAIN[0].query.relation
    rows = [row for row in TRAIN if row.query.relation == relation]
    subject = f"{words(rows[0].query.subject)[0]} of nowhere"
    vocabulary = {word for row in rows for word in words(row.query.subject)}
    found = {candidate.text: candidate.score for candidate in asked(Query(subject, relation)).candidates}
    scorer = EDITION.metric.scorer
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
    for row in TRAIN:
        others = [one for one in TRAIN if one.query.subject != row.query.subject]
        (without,) = NaiveBayes(EDITION, RELATIONS, others).generate([row.query])
        kept = {candidate.text for candidate in asked(row.query).candidates}
        assert kept == {candidate.text for candidate in without.candidates}


def test_a_relation_without_other_rows_proposes_nothing() -> None:
    (found,) = NaiveBayes(EDITION, RELATIONS, TRAIN[:1]).generate([TRAIN[0].query])
    assert found.candidates == ()
