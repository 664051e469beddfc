"""Naive Bayes: the textbook formula on a few rows, and no evidence from the query's own row."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from space import MINI, RELATIONS, TRAIN

from lmkbc.generate.baselines import NaiveBayes, log_posterior, words
from lmkbc.types import CandidateSet, Query


def asked(query: Query) -> CandidateSet:
    (found,) = NaiveBayes(MINI, RELATIONS, TRAIN).generate([query])
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
        (without,) = NaiveBayes(MINI, RELATIONS, others).generate([row.query])
        kept = {candidate.text for candidate in asked(row.query).candidates}
        assert kept == {candidate.text for candidate in without.candidates}


def test_a_relation_without_other_rows_proposes_nothing() -> None:
    (found,) = NaiveBayes(MINI, RELATIONS, TRAIN[:1]).generate([TRAIN[0].query])
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
