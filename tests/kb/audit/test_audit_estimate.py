"""The sample has every fact's chance; the estimate is exact for a census and covers; what is wrong is found."""

from pathlib import Path

import numpy as np
import pytest
from bases import fact, mixed, written
from hypothesis import given
from hypothesis import strategies as st

from lmkbc.kb.audit.precision import Recalibration, fitted, shares, stratified
from lmkbc.kb.audit.sample import BinKey, ConfidenceBin, SampleCell, allocated, draw, facts_of, planned
from lmkbc.kb.base.knowledge import Knowledge

LEAST_DRAWN = 2
OTHERS = 8


COUNTS = st.lists(st.tuples(st.integers(0, 10**6), st.floats(0, 1), st.floats(0, 1)), min_size=1, max_size=6)


@given(COUNTS)
def test_a_fit_is_where_no_step_is_left(bins: list[tuple[int, float, float]]) -> None:
    of = np.array([float(count) for count, _, _ in bins])
    right, confidence = np.floor(of * [share for _, share, _ in bins]), np.array([p for _, _, p in bins])
    weights = fitted(confidence, of, right, np.array([0.0, 1.0]))
    clipped = np.clip(confidence, 0.02, 0.98)
    features = np.stack([np.ones_like(of), np.log(clipped / (1 - clipped))], axis=-1)
    slope = (right - of / (1 + np.exp(-weights @ features.T))) @ features - 0.5 * (weights - [0.0, 1.0])
    assert np.abs(slope).max() <= 1e-4 * max(of.max(), 1)


@given(st.lists(st.tuples(st.integers(1, 50), st.floats(0, 1)), min_size=1, max_size=6))
def test_a_census_is_certain(strata: list[tuple[int, float]]) -> None:
    sizes = np.array([float(size) for size, _ in strata])
    right = np.floor(sizes * [share for _, share in strata])
    found = stratified(sizes, sizes, right, np.full_like(sizes, 0.5))
    assert [float(value) for value in found] == pytest.approx([right.sum() / sizes.sum()] * 3)


def test_one_stratum_is_wilson_s_interval() -> None:
    """Of 83 in 100, by hand."""
    found = stratified(np.array([1e9]), np.array([100.0]), np.array([83.0]), np.array([0.83]))
    assert [float(value) for value in found] == pytest.approx([0.83, 0.7445, 0.8911], abs=1e-3)


def test_a_relation_without_labels_is_left_open() -> None:
    cells = [SampleCell("a", 0, 50, 0.8), SampleCell("b", 0, 50, 0.8)]
    found = shares(cells, np.array([10.0, 0.0]), np.array([10.0, 0.0]))
    assert found["b"].high - found["b"].low > 0.7


def test_intervals_cover() -> None:
    random = np.random.default_rng(0)
    p = np.array([0.1, 0.3, 0.5, 0.7, 0.9, 0.95])
    cells = [SampleCell("ab"[at // 3], at, 400, confidence) for at, confidence in enumerate(p)]
    right = random.binomial(400, 1 / (1 + np.e * (1 - p) / p))  # too sure
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


WEIGHED = st.lists(st.tuples(st.integers(1, 500), st.floats(0.2, 0.5)), min_size=1, max_size=8)


@given(WEIGHED, st.integers(10, 400))
def test_facts_are_divided_among_strata(strata: list[tuple[int, float]], count: int) -> None:
    sizes = [size for size, _ in strata]
    drawn = allocated(sizes, [size * sd for size, sd in strata], count)
    assert all(min(LEAST_DRAWN, size) <= one <= size for one, size in zip(drawn, sizes, strict=True))
    assert sum(drawn) == max(min(count, sum(sizes)), sum(min(LEAST_DRAWN, size) for size in sizes))


def test_unsure_strata_are_drawn_from_more_often() -> None:
    assert allocated([1000, 1000], [500.0, 200.0], 70) == [50, 20]


BINS = st.dictionaries(
    st.builds(BinKey, st.sampled_from("abc"), st.integers(0, 9)),
    st.tuples(st.integers(1, 9999), st.floats(0, 1)).map(lambda one: ConfidenceBin(one[0], one[0] * one[1])),
    min_size=1,
)


@given(BINS, st.integers(10, 400))
def test_each_bin_is_in_a_stratum_that_is_drawn_from(bins: dict[BinKey, ConfidenceBin], size: int) -> None:
    plan = planned(bins, size)
    assert sorted(key for stratum in plan.strata for key in stratum) == sorted(bins)
    assert min(plan.counts) > 0
    assert sum(cell.size for cell in plan.cells) == sum(one.size for one in bins.values())
    assert all(plan.cells[plan.cell_of[key]].relation == key.relation for key in bins)
    assert len(plan.strata) <= max(size / 4, 1) + 1


def test_a_draw_can_be_repeated(tmp_path: Path) -> None:
    knowledge = Knowledge(written(tmp_path, mixed()))
    first, again, other = (draw(knowledge, 40, seed) for seed in (1, 1, 2))
    assert (len(first.drawn), first, first.drawn != other.drawn) == (40, again, True)
    sampled = facts_of(knowledge, first)
    assert [one.place for one in sampled] == [*first.drawn]
    assert all(one.fact.relation == first.cells[first.cell_of[one.place]].relation for one in sampled)
    assert all(one.fact.confidence == first.drawn[one.place].confidence for one in sampled)


def test_a_sample_may_be_the_whole_base(tmp_path: Path) -> None:
    facts = mixed(30)
    assert len(draw(Knowledge(written(tmp_path, facts)), 500, 0).drawn) == len(facts)


def test_a_fact_is_drawn_as_often_as_its_like(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    knowledge = Knowledge(written(tmp_path, [fact(row, "children", "1", 0.5) for row in range(30)]))
    facts = list(knowledge.facts())
    monkeypatch.setattr(knowledge, "facts", lambda: iter(facts))
    times = [sum(row in draw(knowledge, 10, seed).drawn for seed in range(200)) for row in range(30)]
    assert sum(times) == 2000
    assert max(abs(one - 200 / 3) for one in times) < 5 * (200 * 2 / 9) ** 0.5


@pytest.mark.slow
def test_an_entity_of_many_facts_shows_few(tmp_path: Path) -> None:
    many = [fact(0, "country-borders", f"land {number}", 0.5) for number in range(100_000)]
    knowledge = Knowledge(written(tmp_path, many))
    sampled = facts_of(knowledge, draw(knowledge, 10, 0))
    assert {(len(one.others), one.further) for one in sampled} == {(OTHERS, 100_000 - 1 - OTHERS)}
