"""Growing by value: what is worth most is asked first, everything once, and kills or workers change no byte."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from bases import Base, answered, failed, tree
from hypothesis import given, settings
from hypothesis import strategies as st

from lmkbc.build.engine import Answers, ShardPart, Work
from lmkbc.build.facts import Tables
from lmkbc.build.growth import Bounds
from lmkbc.build.saved import Knowledge
from lmkbc.types import CandidateSet, Query

BORDERS = "CountryBordersCountry"
RELATIONS = ("country-borders", "country-languages")
World = Mapping[int, tuple[tuple[int, float], ...]]
FAR = Bounds(depth=99)


def lands(folder: Path) -> Base:
    """A base that starts from one land, and keeps all that is answered."""
    base = Base(folder, ["Land 1"])
    base.select = {"rule": "cutoff", "threshold": 0.1}
    return base


def answering(world: World, tokens: int = 100) -> Callable[[Query], CandidateSet]:
    """Stub that knows which land borders which, and how sure it is; every land has one language."""

    def answer(query: Query) -> CandidateSet:
        number = int(query.subject.split()[-1])
        if query.relation != BORDERS:
            return replace(answered(query, (f"Language {number % 3}", None, 0.5)), tokens=7 * tokens)
        found = [(f"Land {other}", f"Q{other}", sure) for other, sure in world.get(number, ())]
        return replace(answered(query, *found), tokens=tokens)

    return answer


def asked(base: Base, relation: str = BORDERS) -> list[int]:
    return [int(query.subject.split()[-1]) for query in base.asked if query.relation == relation]


def reachable(world: World, start: int) -> set[int]:
    met, rest = {start}, [start]
    while rest:
        new = [one for one, _ in world.get(rest.pop(), ()) if one not in met]
        met.update(new)
        rest += new
    return met


WORLDS = st.dictionaries(
    st.integers(1, 9),
    st.dictionaries(st.integers(1, 9), st.sampled_from([0.25, 0.5, 0.75]), max_size=3).map(lambda one: (*one.items(),)),
    max_size=9,
)


@settings(max_examples=10, deadline=None)
@given(WORLDS, st.integers(1, 9))
def test_every_query_that_can_be_reached_is_asked_once(
    tmp_path_factory: pytest.TempPathFactory, world: World, size: int
) -> None:
    base = lands(tmp_path_factory.mktemp("world"))
    with pytest.MonkeyPatch.context() as patch:
        made = base.build(patch, answering(world), RELATIONS, FAR, by_value={"size": size})
    assert sorted(asked(base)) == sorted(asked(base, "CountryHasOfficialLanguage")) == sorted(reachable(world, 1))
    assert made["graph"]["stopped"] == "closed"
    assert sum(made["graph"]["by_depth"]) == made["counts"]["subjects"] == len(reachable(world, 1))
    facts = [facts[0].subject_row for facts in Knowledge(base.out).by_subject()]
    assert facts == list(range(len(reachable(world, 1))))


FORK: World = {1: ((2, 0.3), (3, 0.9), (4, 0.6)), 3: ((5, 0.9),), 5: ((6, 0.9),)}


def test_the_surest_subjects_and_the_relation_that_gives_most_for_its_tokens_are_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    base = lands(tmp_path)
    made = base.build(monkeypatch, answering(FORK), RELATIONS, FAR, by_value={"size": 1})
    queries = [(int(query.subject.split()[-1]), query.relation == BORDERS) for query in base.asked]
    assert queries[2:7] == [(3, True), (5, True), (6, True), (4, True), (2, True)]
    assert [is_border for _, is_border in queries[7:]] == [False] * 5  # as sure, and seven times the tokens
    tokens = [shard["tokens"] for shard in made["shards"]]
    assert tokens[:2] == [{"country-borders": 100, "country-languages": 700}, {"country-borders": 100}]


@pytest.mark.parametrize(("depth", "budget", "stopped", "found"), [(2, None, "depth", 5), (99, 3, "budget", 3)])
def test_depth_and_budget_end_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, depth: int, budget: int | None, stopped: str, found: int
) -> None:
    base = lands(tmp_path)
    bounds = Bounds(depth=depth, budget=budget)
    made = base.build(monkeypatch, answering(FORK), RELATIONS, bounds, by_value={"size": 2})
    assert (made["graph"]["stopped"], made["counts"]["subjects"]) == (stopped, found)
    assert len(asked(base)) == len(asked(base, "CountryHasOfficialLanguage")) == found


def test_a_relation_whose_newest_facts_are_unsure_is_asked_no_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    base = lands(tmp_path)
    wide: World = {n: tuple((n * 20 + k, 0.9 if n == 1 else 0.2) for k in range(20)) for n in range(1, 500)}
    bounds, floor = Bounds(depth=4), {"precision": 0.5, "size": 20}
    made = base.build(monkeypatch, answering(wide), ("country-borders",), bounds, by_value=floor)
    assert (made["graph"]["stopped"], made["graph"]["closed"]) == ("precision", ["country-borders"])
    assert made["counts"]["subjects"] == 1 + 20


class Backwards:
    """Engine whose blocks come back in another order than they went."""

    workers, usage = 3, ()

    def __init__(self, answer: Callable[[Query], CandidateSet]) -> None:
        self._answer = answer

    def tables(self, work: Work, parts: Iterable[ShardPart]) -> Iterator[tuple[ShardPart, Tables]]:
        for part in reversed(list(parts)):
            sets = [self._answer(ask.query) for ask in part.asks]
            made = Answers(part.asks, sets, {}).tables(work.maker)
            yield part, Tables.decoded(made.encoded())


LONG: World = {n: ((2 * n, 0.9), (2 * n + 1, 0.4)) for n in range(1, 16)}


def test_kills_failures_and_workers_change_no_byte(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folders = [tmp_path / name for name in ("alone", "workers", "killed")]
    for folder in folders:
        folder.mkdir()
    alone, workers, killed = (lands(folder) for folder in folders)
    how: dict[str, Any] = {"relations": RELATIONS, "bounds": FAR, "by_value": {"size": 8}}
    alone.build(monkeypatch, answering(LONG), **how)
    workers.build(monkeypatch, answering(LONG), engine=Backwards(answering(LONG)), **how)
    assert tree(workers.out) == tree(alone.out)

    def spoilt(query: Query) -> CandidateSet:
        if query.subject == "Land 12":
            return failed(query)
        return answering(LONG)(query)

    def dies(query: Query) -> CandidateSet:
        if query.subject == "Land 13":
            raise KeyboardInterrupt
        return answering(LONG)(query)

    assert killed.build(monkeypatch, spoilt, **how)["graph"]["stopped"] == "failed queries"
    with pytest.raises(KeyboardInterrupt):
        killed.build(monkeypatch, dies, **how)
    killed.build(monkeypatch, answering(LONG), **how)
    assert len(killed.asked) < len(alone.asked) + 4 * killed.shard
    assert tree(killed.out) == tree(alone.out)
    rows = pl.read_parquet(alone.out / "facts" / "relation=country-languages")["subject_row"]
    assert rows.n_unique() == len(rows)
