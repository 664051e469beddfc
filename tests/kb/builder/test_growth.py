"""Growing, by level or by value: each thing that can be reached is asked once, every bound ends it, no kill shows."""

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from bases import Base, answered, failed, tree
from hypothesis import given, settings
from hypothesis import strategies as st

from lmkbc.kb.base.knowledge import Knowledge
from lmkbc.kb.builder.engine import ShardPart, Work, Worker
from lmkbc.kb.builder.facts import Tables
from lmkbc.testing import CandidateSet, Query, State

BORDERS, LANGUAGES, RIVERS = "CountryBordersCountry", "CountryHasOfficialLanguage", "RiverBasinsCountry"
RELATIONS = ("country-borders", "country-languages")
World = Mapping[int, tuple[tuple[int, float], ...]]
FAR: dict[str, Any] = {"grow": 99}
BY_VALUE: dict[str, Any] = {"grow_by": "value"}


def lands(folder: Path) -> Base:
    """A base that starts from one land, and keeps all that is answered."""
    folder.mkdir(exist_ok=True)
    base = Base(folder, ["Land 1"])
    base.select = {"rule": "cutoff", "threshold": 0.1}
    return base


def answering(world: World, unlinked: frozenset[int] = frozenset()) -> Callable[[Query], CandidateSet]:
    """Stub that knows which land borders which, and how sure it is; every land has one language.

    unlinked: lands that it names without a link, and otherwise cased.
    """

    def answer(query: Query) -> CandidateSet:
        if query.relation == RIVERS:
            return answered(query)
        number = int(query.subject.split()[-1])
        if query.relation == LANGUAGES:
            return replace(answered(query, (f"Language {number % 3}", None, 0.5)), tokens=700)
        found = [
            (f"LAND {other}", None, sure) if other in unlinked else (f"Land {other}", f"Q{other}", sure)
            for other, sure in world.get(number, ())
        ]
        return replace(answered(query, *found), tokens=100)

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
UNLINKED = st.frozensets(st.integers(2, 9))


@settings(max_examples=settings.default.max_examples // 2)
@given(WORLDS, UNLINKED, st.one_of(st.none(), st.integers(1, 9)))
def test_every_query_that_can_be_reached_is_asked_once_and_it_ends(
    tmp_path_factory: pytest.TempPathFactory, world: World, unlinked: frozenset[int], size: int | None
) -> None:
    base = lands(tmp_path_factory.mktemp("world"))
    by_value = {} if size is None else BY_VALUE | {"size": size}
    relations = (*RELATIONS, "river-countries")
    with pytest.MonkeyPatch.context() as patch:
        made = base.build(patch, answering(world, unlinked), relations, **FAR, **by_value)
    there = reachable(world, 1)
    assert sorted(asked(base)) == sorted(asked(base, LANGUAGES)) == sorted(there)
    assert asked(base, RIVERS) == [1]  # whose class is not known
    assert made["graph"]["stopped"] == "closed"
    assert made["counts"]["subjects"] == len(there)
    facts = [facts[0].subject_row for facts in Knowledge(base.out).by_subject()]
    assert facts == list(range(len(there)))


FORK: World = {1: ((2, 0.3), (3, 0.9), (4, 0.6)), 3: ((5, 0.9),), 5: ((6, 0.9),)}
CHAIN: World = {n: ((n + 1, 0.9), (n - 1, 0.9)) for n in range(2, 50)} | {1: ((2, 0.9),)}
WIDE: World = {n: tuple((n * 20 + k, 0.9 if n == 1 else 0.2) for k in range(20)) for n in range(1, 500)}


def test_the_surest_subjects_and_the_relation_that_gives_most_for_its_tokens_are_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    base = lands(tmp_path)
    made = base.build(monkeypatch, answering(FORK), RELATIONS, **FAR, **BY_VALUE, size=1)
    queries = [(int(query.subject.split()[-1]), query.relation == BORDERS) for query in base.asked]
    assert queries[2:7] == [(3, True), (5, True), (6, True), (4, True), (2, True)]
    assert [is_border for _, is_border in queries[7:]] == [False] * 5  # as sure, and seven times the tokens
    tokens = [shard["tokens"] for shard in made["shards"]]
    assert tokens[:2] == [{"country-borders": 100, "country-languages": 700}, {"country-borders": 100}]


@pytest.mark.parametrize(
    ("world", "bounds", "stopped", "found"),
    [
        (CHAIN, {"grow": 3}, "depth", 4),
        (CHAIN, FAR | {"budget": 5}, "budget", 5),
        (CHAIN, FAR | {"novelty": 0.6}, "novelty", 2),
        (CHAIN, {}, None, 1),
        (FORK, BY_VALUE | {"grow": 2, "size": 2}, "depth", 5),
        (FORK, BY_VALUE | FAR | {"budget": 3, "size": 2}, "budget", 3),
        (WIDE, BY_VALUE | {"grow": 4, "size": 20}, "precision", 21),  # whose newest facts are unsure
    ],
)
def test_every_bound_ends_it(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    world: World,
    bounds: dict[str, Any],
    stopped: str | None,
    found: int,
) -> None:
    base = lands(tmp_path)
    made = base.build(monkeypatch, answering(world), RELATIONS[:1], **bounds)
    graph = made.get("graph", {})
    assert (graph.get("stopped"), made["counts"]["subjects"], len(base.asked)) == (stopped, found, found)
    assert (graph.get("closed") == ["country-borders"]) == (stopped == "precision")


def test_a_budget_that_cuts_a_level_takes_its_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    base = lands(tmp_path)
    world = {1: tuple((other, 0.9) for other in (5, 4, 3, 2))}
    base.build(monkeypatch, answering(world), RELATIONS[:1], grow=9, budget=3)
    assert asked(base) == [1, 5, 4]


def test_a_level_is_described_and_rows_of_subjects_go_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    base = lands(tmp_path)
    world = {1: ((2, 0.9), (3, 0.9)), 2: ((3, 0.9), (4, 0.9))}
    made = base.build(monkeypatch, answering(world, frozenset({3})), RELATIONS[:1], **FAR)
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
    assert facts.select("subject_row", "subject").rows() == [(0, "Land 1")] * 2 + [(1, "Land 2")] * 2


def test_relations_vote_for_what_a_new_subject_is_asked(
    tmp_path: Path, data_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first relation that names it calls it a country; the surer one calls it a river, by another spelling."""
    base = Base(tmp_path, ["Land 1"], "2023", data=data_dir)
    named = {BORDERS: ("Elbe", "Q50", 0.6), "CityLocatedAtRiver": ("ELBE", None, 0.9)}

    def answer(query: Query) -> CandidateSet:
        return answered(
            query, *([named[query.relation]] if query.subject == "Land 1" and query.relation in named else [])
        )

    base.build(monkeypatch, answer, ("country-borders", "city-rivers", "river-countries"), grow=1)
    assert [query.relation for query in base.asked if query.subject == "Elbe"] == [RIVERS]
    assert "ELBE" not in {query.subject for query in base.asked}


class Backwards:
    """Engine whose blocks come back in another order than they went."""

    workers, usage = 3, ()

    def tables(self, work: Work, parts: Iterable[ShardPart]) -> Iterator[tuple[ShardPart, Tables]]:
        for part in reversed(list(parts)):
            made = Worker(work).answers(part.asks).tables(work.maker)
            yield part, Tables.decoded(made.encoded())


LONG: World = {n: ((2 * n, 0.9), (2 * n + 1, 0.4)) for n in range(1, 8)}


def test_a_reply_that_cannot_be_read_does_not_end_growth(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    alone, unread = lands(tmp_path / "alone"), lands(tmp_path / "unread")

    def unreadable(query: Query) -> CandidateSet:
        is_last = query.subject == "Land 12"
        return CandidateSet(query, draws=(State.UNPARSED,)) if is_last else answering(LONG)(query)

    how: dict[str, Any] = {"relations": RELATIONS, **FAR}
    ended = alone.build(monkeypatch, answering(LONG), **how)["graph"]["stopped"]
    made = unread.build(monkeypatch, unreadable, **how)
    assert made["graph"]["stopped"] == ended != "failed queries"
    assert pl.read_parquet(unread.out / "missing" / "*.parquet")["subject"].unique().to_list() == ["Land 12"]


@pytest.mark.parametrize("by_value", [pytest.param({}, marks=pytest.mark.whole), BY_VALUE | {"size": 8}])
def test_kills_failures_and_workers_change_no_byte(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, by_value: dict[str, Any]
) -> None:
    alone, workers, killed = (lands(tmp_path / name) for name in ("alone", "workers", "killed"))
    how: dict[str, Any] = {"relations": RELATIONS, **FAR, **by_value}
    alone.build(monkeypatch, answering(LONG), **how)
    workers.build(monkeypatch, answering(LONG), engine=Backwards(), **how)
    assert tree(workers.out) == tree(alone.out)

    def spoilt(query: Query) -> CandidateSet:
        return failed(query) if query.subject == "Land 12" else answering(LONG)(query)

    def dies(query: Query) -> CandidateSet:
        if query.subject == "Land 12":
            raise KeyboardInterrupt
        return answering(LONG)(query)

    assert killed.build(monkeypatch, spoilt, **how)["graph"]["stopped"] == "failed queries"
    with pytest.raises(KeyboardInterrupt):
        killed.build(monkeypatch, dies, **how)
    killed.build(monkeypatch, answering(LONG), **how)
    again = Counter(asked(killed)) - Counter(asked(alone))
    assert again == {12: 2}  # what failed and what was killed, alone
    assert tree(killed.out) == tree(alone.out)
    rows = pl.read_parquet(alone.out / "facts" / "relation=country-languages")["subject_row"]
    assert rows.n_unique() == len(rows)
