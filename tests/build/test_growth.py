"""Growing: exactly what can be reached is found, each thing once, and every bound ends it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import polars as pl
import pytest
from bases import Base, answered, failed
from hypothesis import given, settings
from hypothesis import strategies as st

from lmkbc.build.growth import Bounds
from lmkbc.types import CandidateSet, Query

BORDERS, RIVERS = "CountryBordersCountry", "RiverBasinsCountry"
World = Mapping[int, tuple[int, ...]]
FAR = Bounds(depth=99)


def land(number: int) -> str:
    return f"Land {number}"


def answering(world: World, unlinked: frozenset[int] = frozenset()):  # type: ignore[no-untyped-def]
    """A stub that knows which land borders which; some lands it names without a link, and otherwise cased."""

    def answer(query: Query) -> CandidateSet:
        if query.relation != BORDERS:
            return answered(query)
        number = int(query.subject.split()[-1])
        others = [
            (land(n).upper(), None, 0.9) if n in unlinked else (land(n), f"Q{n}", 0.9) for n in world.get(number, ())
        ]
        return answered(query, *others)

    return answer


def reachable(world: World, start: int) -> set[int]:
    met, rest = {start}, [start]
    while rest:
        new = [one for one in world.get(rest.pop(), ()) if one not in met]
        met.update(new)
        rest += new
    return met


def asked(base: Base) -> list[str]:
    return [query.subject.upper() for query in base.asked if query.relation == BORDERS]


@settings(max_examples=15, deadline=None)
@given(
    st.dictionaries(st.integers(1, 9), st.lists(st.integers(1, 9), max_size=3, unique=True).map(tuple), max_size=9),
    st.frozensets(st.integers(2, 9)),
)
def test_exactly_what_can_be_reached_is_asked_and_it_ends(
    tmp_path_factory: pytest.TempPathFactory, world: World, unlinked: frozenset[int]
) -> None:
    base = Base(tmp_path_factory.mktemp("world"), [land(1)])
    with pytest.MonkeyPatch.context() as patch:
        made = base.build(patch, answering(world, unlinked), ("country-borders", "river-countries"), FAR)
    assert sorted(asked(base)) == sorted(land(one).upper() for one in reachable(world, 1))
    assert {query.subject for query in base.asked if query.relation == RIVERS} == {land(1)}  # whose class is not known
    assert made["graph"]["stopped"] == "closed"
    assert made["graph"]["entities"] == len(reachable(world, 1))
    assert sum(level["subjects"] for level in made["graph"]["levels"]) == made["counts"]["subjects"]


CHAIN: World = {n: (n + 1, n - 1) for n in range(2, 50)} | {1: (2,)}


@pytest.mark.parametrize(
    ("bounds", "stopped", "levels"),
    [
        (Bounds(depth=3), "depth", [1, 1, 1, 1]),
        (Bounds(depth=99, budget=5), "budget", [1, 1, 1, 1, 1]),
        (Bounds(depth=99, novelty=0.6), "novelty", [1, 1]),
        (Bounds(), None, None),
    ],
)
def test_every_bound_ends_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bounds: Bounds, stopped: str | None, levels: list[int] | None
) -> None:
    base = Base(tmp_path, [land(1)])
    made = base.build(monkeypatch, answering(CHAIN), ("country-borders",), bounds)
    assert made.get("graph", {}).get("stopped") == stopped
    assert [level["subjects"] for level in made.get("graph", {}).get("levels", [])] == (levels or [])
    assert len(base.asked) == sum(levels or [1])


def test_a_budget_that_cuts_a_level_takes_its_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    base = Base(tmp_path, [land(1)])
    base.build(monkeypatch, answering({1: (5, 4, 3, 2)}), ("country-borders",), Bounds(depth=9, budget=3))
    assert asked(base) == ["LAND 1", "LAND 5", "LAND 4"]


def test_a_level_is_described_and_rows_of_subjects_go_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    base = Base(tmp_path, [land(1)])
    made = base.build(monkeypatch, answering({1: (2, 3), 2: (3, 4)}, frozenset({3})), ("country-borders",), FAR)
    first, second, third = made["graph"]["levels"]
    assert first == {
        "depth": 0,
        "subjects": 1,
        "queries": 1,
        "facts": 2,
        "mentions": 2,
        "new": 2,
        "new_linked": 1,
    }
    assert (second["new"], third["new"]) == (1, 0)
    spent = json.loads((base.out / "timing.json").read_text())["usage"]
    assert spent == [{"model": {"calls": calls}} for calls in (1, 2, 1)]
    facts = pl.read_parquet(base.out / "facts").sort("subject_row")
    assert facts.select("subject_row", "subject").rows() == [(0, land(1))] * 2 + [(1, land(2))] * 2


def test_relations_vote_for_what_a_new_subject_is_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first relation that names it calls it a country; the surer one calls it a river, by another spelling."""
    base = Base(tmp_path, [land(1)], "2023")
    named = {BORDERS: ("Elbe", "Q50", 0.6), "CityLocatedAtRiver": ("ELBE", None, 0.9)}

    def answer(query: Query) -> CandidateSet:
        return answered(
            query, *([named[query.relation]] if query.subject == land(1) and query.relation in named else [])
        )

    base.build(monkeypatch, answer, ("country-borders", "city-rivers", "river-countries"), Bounds(depth=1))
    assert [query.relation for query in base.asked if query.subject == "Elbe"] == [RIVERS]
    assert "ELBE" not in {query.subject for query in base.asked}


def test_a_killed_growth_goes_on_where_it_was_and_failed_queries_are_asked_before_it_grows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "alone").mkdir()
    alone, base = Base(tmp_path / "alone", [land(1)]), Base(tmp_path, [land(1)])
    whole = alone.build(monkeypatch, answering(CHAIN), ("country-borders",), Bounds(depth=6))

    def fails(query: Query) -> CandidateSet:
        return failed(query) if query.subject == land(4) else answering(CHAIN)(query)

    def dies(query: Query) -> CandidateSet:
        if query.subject == land(6):
            raise KeyboardInterrupt
        return answering(CHAIN)(query)

    made = base.build(monkeypatch, fails, ("country-borders",), Bounds(depth=6))
    assert made["graph"]["stopped"] == "failed queries"
    with pytest.raises(KeyboardInterrupt):
        base.build(monkeypatch, dies, ("country-borders",), Bounds(depth=6))
    assert base.build(monkeypatch, answering(CHAIN), ("country-borders",), Bounds(depth=6)) == whole
    counts = {name: asked(base).count(name) for name in asked(base)}
    assert counts == {f"LAND {n}": 2 if n in (4, 6) else 1 for n in range(1, 8)}
    for table in ("facts", "nothing"):
        parts = [sorted(path.rglob("*.parquet")) for path in (alone.out / table, base.out / table)]
        assert [path.read_bytes() for path in parts[0]] == [path.read_bytes() for path in parts[1]]
