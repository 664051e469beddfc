"""The paired statistics: the exact test against enumeration, the interval against theory, Holm by its definition."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmkbc.evaluation.comparison import holm, interval, sign_flip

SHARES = st.sampled_from([-1.0, -0.5, -1 / 3, 0.0, 0.25, 2 / 3, 1.0]) | st.floats(-1, 1).map(lambda x: round(x, 6))


@given(st.lists(SHARES, min_size=1, max_size=10))
def test_the_p_value_is_that_of_all_flips(values: list[float]) -> None:
    sums = np.array(list(itertools.product((1, -1), repeat=len(values)))) @ np.abs(values)
    scale = math.sqrt(math.fsum(value * value for value in values)) or 1.0
    exact, wider = (float((np.abs(sums) >= abs(math.fsum(values)) - slack * scale).mean()) for slack in (1e-12, 2e-3))
    assert exact - 1e-9 <= sign_flip(np.array(values)) <= wider + 1e-9


@pytest.mark.parametrize("count", [30, 400, 3000])
def test_many_subjects_come_near_the_normal_law(count: int) -> None:
    values = np.random.default_rng(count).normal(size=count)
    values += 2.0 / math.sqrt(count) - values.mean()
    z = values.sum() / math.sqrt(values @ values)
    assert sign_flip(values) == pytest.approx(math.erfc(z / math.sqrt(2)), abs=0.003)


def test_one_sided_wins_have_the_smallest_p_there_is() -> None:
    assert sign_flip(np.ones(12)) == pytest.approx(2**-11)
    assert sign_flip(np.zeros(5)) == 1.0


@pytest.mark.parametrize("count", [50, 2000])
def test_the_interval_is_as_wide_as_that_of_a_mean(count: int) -> None:
    values = np.random.default_rng(0).normal(size=count)
    low, high = interval(0.3, (values - values.mean()) / count)
    assert (low + high) / 2 == pytest.approx(0.3, abs=0.1 / math.sqrt(count))
    assert high - low == pytest.approx(2 * 1.96 * values.std() / math.sqrt(count), rel=0.05)


def test_rows_that_never_differ_have_no_width() -> None:
    assert interval(0.25, np.zeros(9)) == (0.25, 0.25)


@given(st.lists(st.floats(0, 1), max_size=8))
def test_holm_rejects_what_its_steps_reject(values: list[float]) -> None:
    corrected = holm(values)
    rejected, open_ = set(), sorted(range(len(values)), key=values.__getitem__)
    for rank, place in enumerate(open_):
        if values[place] * (len(values) - rank) >= 0.05:
            break
        rejected.add(place)
    assert {place for place, p in enumerate(corrected) if p < 0.05} == rejected
    assert all(one >= p for one, p in zip(corrected, values, strict=True))
