"""The estimate: exact for a census, Wilson's for a simple sample, and it covers; calibration finds what is wrong."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmkbc.audit.estimate import RIDGE, Recalibration, fitted, shares, stratified
from lmkbc.audit.sample import SampleCell
from lmkbc.report.figures import wilson
from lmkbc.select.calibration import SHARE_EDGE, log_odds, logistic

COUNTS = st.lists(st.tuples(st.integers(0, 10**6), st.floats(0, 1), st.floats(0, 1)), min_size=1, max_size=6)


@given(COUNTS)
def test_a_fit_is_where_no_step_is_left(bins: list[tuple[int, float, float]]) -> None:
    of = np.array([float(count) for count, _, _ in bins])
    right, confidence = np.floor(of * [share for _, share, _ in bins]), np.array([p for _, _, p in bins])
    weights = fitted(confidence, of, right, np.array([0.0, 1.0]))
    features = np.stack([np.ones_like(of), log_odds(confidence, SHARE_EDGE)], axis=-1)
    slope = (right - of * logistic(weights @ features.T)) @ features - RIDGE * (weights - [0.0, 1.0])
    assert np.abs(slope).max() <= 1e-4 * max(of.max(), 1)


@given(st.lists(st.tuples(st.integers(1, 50), st.floats(0, 1)), min_size=1, max_size=6))
def test_a_census_is_certain(strata: list[tuple[int, float]]) -> None:
    sizes = np.array([float(size) for size, _ in strata])
    right = np.floor(sizes * [share for _, share in strata])
    found = stratified(sizes, sizes, right, np.full_like(sizes, 0.5))
    assert [float(value) for value in found] == pytest.approx([right.sum() / sizes.sum()] * 3)


def test_one_stratum_is_wilson_s_interval() -> None:
    found = stratified(np.array([1e9]), np.array([100.0]), np.array([83.0]), np.array([0.83]))
    low, high = wilson(np.array([83.0]), np.array([100.0]))
    assert [float(value) for value in found] == pytest.approx([0.83, low[0], high[0]], abs=1e-3)


def test_a_relation_without_labels_is_left_open() -> None:
    cells = [SampleCell("a", 0, 50, 0.8), SampleCell("b", 0, 50, 0.8)]
    found = shares(cells, np.array([10.0, 0.0]), np.array([10.0, 0.0]))
    assert found["b"].high - found["b"].low > 0.7


def test_intervals_cover() -> None:
    random = np.random.default_rng(0)
    p = np.array([0.1, 0.3, 0.5, 0.7, 0.9, 0.95])
    cells = [SampleCell("ab"[at // 3], at, 400, confidence) for at, confidence in enumerate(p)]
    right = random.binomial(400, logistic(log_odds(p) - 1))  # too sure
    drawn = np.full((4000, 6), 15.0)
    found = shares(cells, drawn, random.hypergeometric(right, 400 - right, 15, (4000, 6)).astype(float))
    for name, own in ((None, slice(6)), ("a", slice(3)), ("b", slice(3, 6))):
        truth = right[own].sum() / (400 * len(p[own]))
        covered = (found[name].low <= truth) & (truth <= found[name].high)
        assert covered.mean() == pytest.approx(0.95, abs=0.015), name


def test_labels_mend_confidence_and_few_are_shrunk_to_all() -> None:
    confidence = np.tile([0.6, 0.9], 60)
    right = np.tile([0.0, 1, 1, 0], 30)  # half of each is right
    made = Recalibration.of(["a"] * 100 + ["b"] * 20, confidence, np.ones(120), right)
    assert made.expected(["a", "b", "never seen"], np.full(3, 0.9)) == pytest.approx([0.5, 0.5, 0.5], abs=0.06)
    odd = Recalibration.of(["a"] * 100 + ["c"], confidence[:101], np.ones(101), np.append(right[:100], 1.0))
    assert 0.5 < odd.expected(["c"], np.array([0.6]))[0] < 0.8
