"""The rule that lets verdicts count: what each way of combining does, and that nothing else is touched."""

from typing import Any

import pytest

from lmkbc.select.composed import with_verification
from lmkbc.testing import Candidate, Nil, Query, State, build
from tests.candidates import candidate_set
from tests.rules import rule_of

FOUND = candidate_set(
    Query("s", "r"),
    (
        Candidate("a", 0.9, verification=0.1),
        Candidate("b", 0.6, verification=0.9),
        Candidate("c", 0.5),
        Candidate("d", 0.4, verification=0.5),
        Nil(0.2),
    ),
)


@pytest.mark.parametrize(
    ("table", "left"),
    [
        ({}, {"b": 0.6, "c": 0.5, "d": 0.4}),
        ({"combine": "product"}, {"b": 0.54, "c": 0.5, "d": 0.2, "a": 0.09}),
        ({"combine": "mean"}, {"b": 0.75, "a": 0.5, "c": 0.5, "d": 0.45}),
    ],
)
def test_what_the_verdicts_leave_best_first(table: dict[str, Any], left: dict[str, float]) -> None:
    kept = build({"rule": "verified", "inner": {"rule": "top-k", "k": 9}, **table}).select(FOUND).objects
    assert [(one.text, pytest.approx(one.score)) for one in kept] == list(left.items())


def test_the_score_of_nothing_stays() -> None:
    for combine in ("veto", "product", "mean"):
        assert with_verification(FOUND, combine).nothing == FOUND.nothing


def test_any_rule_may_stand_inside() -> None:
    gate = rule_of("abstention-threshold", inner=rule_of("cutoff", threshold=0.1), threshold=0.2)
    assert rule_of("verified", inner=gate).select(FOUND).objects == ()
    assert [one.text for one in rule_of("verified", inner=rule_of("top-k", k=1)).select(FOUND).objects] == ["b"]
    assert build(rule_of("verified", inner=gate, combine="product").to_table()) == rule_of(
        "verified", inner=gate, combine="product"
    )


def test_without_the_rule_verdicts_count_nothing_and_failures_stay_failed() -> None:
    assert [one.text for one in rule_of("cutoff", threshold=0.45).select(FOUND).objects] == ["a", "b", "c"]
    failed = candidate_set(FOUND.query, (), (State.MISSING,))
    assert rule_of("verified", inner=rule_of("expected-f1")).select(failed).failed
