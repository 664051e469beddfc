"""The sample: every fact has a chance, sizes add up, and the same base and seed give the same facts."""

from __future__ import annotations

from pathlib import Path

import pytest
from bases import fact, mixed, written
from hypothesis import given
from hypothesis import strategies as st

from lmkbc.audit.sample import LEAST_DRAWN, OTHERS, BinKey, ConfidenceBin, allocated, draw, facts_of, planned
from lmkbc.build.saved import Knowledge

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
