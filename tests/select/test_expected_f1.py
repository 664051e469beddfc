"""Expected F1 against enumeration of every possible truth and every possible answer."""

import itertools
from functools import reduce
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmkbc.testing import Candidate, CandidateSet, Nil, Query
from tests.candidates import candidate_set
from tests.rules import rule_of

PROBABILITIES = st.lists(st.floats(0, 1), min_size=1, max_size=5).map(lambda p: sorted(p, reverse=True))


def f1(hits: int, answered: int, gold: int) -> float:
    return 2 * hits / (answered + gold) if answered + gold else 1.0


def enumerated(p: list[float], answer: frozenset[int]) -> float:
    total = 0.0
    for truth in itertools.product((0, 1), repeat=len(p)):
        chance = np.prod([q if true else 1 - q for q, true in zip(p, truth, strict=True)])
        total += float(chance) * f1(sum(truth[i] for i in answer), len(answer), sum(truth))
    return total


def listed(p: list[float]) -> CandidateSet:
    """Candidates of these scores, which are named in their order."""
    return candidate_set(Query("s", "r"), tuple(Candidate(f"{i:02}", x) for i, x in enumerate(p)))


def prefix_values(p: list[float]) -> list[float]:
    """Expected F1 of the first k for each k, from the number of right ones among them and among the rest."""

    def counts(some: list[float]) -> Any:
        return reduce(np.convolve, ([1 - x, x] for x in some), np.ones(1))

    return [
        float(
            sum(
                here * there * f1(hits, k, hits + more)
                for hits, here in enumerate(counts(p[:k]))
                for more, there in enumerate(counts(p[k:]))
            )
        )
        for k in range(len(p) + 1)
    ]


@given(PROBABILITIES)
def test_no_subset_is_better_than_what_is_kept(p: list[float]) -> None:
    subsets = [frozenset(s) for k in range(len(p) + 1) for s in itertools.combinations(range(len(p)), k)]
    best = max(enumerated(p, subset) for subset in subsets)
    kept = len(rule_of("expected-f1").select(listed(p)).objects)
    assert enumerated(p, frozenset(range(kept))) == pytest.approx(best, abs=1e-9)
    assert prefix_values(p)[kept] == pytest.approx(best, abs=1e-9)


@given(st.lists(st.floats(0, 1), min_size=6, max_size=20))
def test_no_other_number_of_the_best_is_better_in_lists_up_to_the_limit(p: list[float]) -> None:
    p = sorted(p, reverse=True)
    values = prefix_values(p)
    assert values[len(rule_of("expected-f1").select(listed(p)).objects)] == pytest.approx(max(values), abs=1e-9)


def test_missing_objects_make_longer_answers_worthwhile() -> None:
    found = candidate_set(
        Query("s", "r"), tuple(Candidate(name, p) for name, p in zip("abcd", (0.9, 0.2, 0.2, 0.2), strict=True))
    )
    few, many = (len(rule_of("expected-f1", missing=m, min=1).select(found).objects) for m in (0.0, 20.0))
    assert (few, many) == (1, 4)


def test_the_proposal_of_nothing_replaces_the_chance_that_all_are_wrong() -> None:
    found = (Candidate("a", 0.5),)
    assert rule_of("expected-f1").select(candidate_set(Query("s", "r"), (*found, Nil(0.6)))).objects == ()
    assert rule_of("expected-f1").select(candidate_set(Query("s", "r"), (*found, Nil(0.4)))).objects == found


def test_a_long_list_is_not_cut_at_the_limit() -> None:
    likely = candidate_set(Query("s", "r"), tuple(Candidate(f"{i:02}", 0.9) for i in range(50)))
    assert len(rule_of("expected-f1").select(likely).objects) == 50
    mixed = tuple(Candidate(f"{i:02}", 0.9 if i < 25 else 0.05) for i in range(50))
    assert len(rule_of("expected-f1").select(candidate_set(Query("s", "r"), mixed)).objects) == 25
    assert not rule_of("expected-f1").select(candidate_set(Query("s", "r"), (*likely.candidates, Nil(0.99)))).objects


@given(st.lists(st.floats(0, 1), min_size=21, max_size=30))
def test_counting_expectations_comes_close_in_lists_beyond_the_limit(p: list[float]) -> None:
    p = sorted((0.2 + 0.8 * x for x in p), reverse=True)
    values = prefix_values(p)
    assert values[len(rule_of("expected-f1").select(listed(p)).objects)] >= max(values) - 0.03
