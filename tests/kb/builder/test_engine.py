"""A worker's work on a block, and what a build makes of blocks that come in any order; no cluster is needed."""

import random
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from bases import SPACE, Base, answered, failed, tree

from lmkbc import InputError, LmkbcError
from lmkbc.kb.builder import engine as module
from lmkbc.kb.builder.engine import Ask, ShardPart, Work, Worker
from lmkbc.kb.builder.facts import Maker, Tables
from lmkbc.models.store_place import Database
from lmkbc.plan import Plan
from lmkbc.run.pipeline import Block
from lmkbc.testing import CandidateSet, Query, Run
from tests.opened import recipe_of

RUN = Run(workspace=SPACE, edition=SPACE.edition("mini"), offline=True)
RELATIONS = ("country-borders", "children")
NAMES = ["Chad", "Mali", "Niger", "Togo", "Benin", "Ghana", "Kenya"]
QUERIES = [Query(name, "CountryBordersCountry") for name in NAMES]
ASKS = [Ask(row, query) for row, query in enumerate(QUERIES)]


def answer(query: Query) -> CandidateSet:
    if query.subject == "Togo":
        return failed(query)
    return answered(query) if query.subject == "Mali" else answered(query, (f"near {query.subject}", "Q7", 0.9))


class Steps:
    """Steps that are opened once, and break over some subjects."""

    opened = 0

    def __init__(self, *_: object) -> None:
        self.usage: dict[str, object] = {}
        self.answer = ANSWER[0]
        Steps.opened += 1
        self.bad: dict[str, Exception] = BAD

    def over(self, queries: Iterable[Query]) -> Iterator[Block]:
        for query in queries:
            if query.subject in self.bad:
                raise self.bad[query.subject]
            yield Block((query,), (self.answer(query),))


BAD: dict[str, Exception] = {}
ANSWER = [answer]


@pytest.fixture
def work(monkeypatch: pytest.MonkeyPatch) -> Work:
    monkeypatch.setattr(module, "Steps", Steps)
    monkeypatch.setattr(Steps, "opened", 0)
    BAD.clear()
    recipe = recipe_of({"component": "prior"})
    return Work(Plan.of(RUN, recipe), Maker(recipe.select, RUN.relations, "0" * 16))


def tables_of(worker: Worker) -> Tables:
    return worker.answers(ASKS).tables(worker._work.maker)


def reasons(tables: Tables) -> dict[str, str]:
    return dict(tables.missing.select("subject", "reason").iter_rows())


def test_models_are_loaded_once(work: Work) -> None:
    worker = Worker(work)
    first, second = tables_of(worker), tables_of(worker)
    assert first.facts.equals(second.facts)
    assert Steps.opened == 1


def test_a_block_that_breaks_has_no_answer_and_says_why(work: Work) -> None:
    BAD["Niger"] = KeyError("surprise")
    worker = Worker(work)
    tables = tables_of(worker)
    assert not len(tables.facts)
    assert reasons(tables).keys() == {*NAMES}
    assert reasons(tables)["Niger"].startswith("KeyError in test_engine.py:")
    (remark,) = worker.remarks
    assert remark.startswith("7 queries have no answer, first 'Chad': KeyError")


def test_what_is_wrong_with_all_ends_the_build(work: Work) -> None:
    BAD["Niger"] = LmkbcError("the store is gone")
    with pytest.raises(LmkbcError, match="the store is gone"):
        Worker(work).answers(ASKS)


class Anywhere:
    """An engine whose blocks come in any order."""

    def __init__(self, workers: int, seed: int) -> None:
        self.workers, self._seed, self.usage = workers, seed, [{}]

    def tables(self, work: Work, parts: Iterable[ShardPart]) -> Iterator[tuple[ShardPart, Tables]]:
        worker, came = Worker(work), [*parts]
        assert all(part.asks for part in came)
        random.Random(self._seed).shuffle(came)
        for part in came:
            yield part, worker.answers(part.asks).tables(work.maker)


@pytest.mark.whole(but=["3-1-0", "64-3-3"])
@pytest.mark.parametrize(("shard", "workers", "seed"), [(3, 1, 0), (3, 2, 1), (5, 4, 2), (64, 3, 3)])
def test_blocks_in_any_order_are_the_same_bytes(
    work: Work, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shard: int, workers: int, seed: int
) -> None:
    built = []
    for name, engine in (("here", None), ("elsewhere", Anywhere(workers, seed))):
        (tmp_path / name).mkdir()
        base = Base(tmp_path / name, NAMES, shard=shard)
        base.build(monkeypatch, answer, RELATIONS, engine=engine)
        built.append(tree(base.out))
    assert built[0] == built[1]


def test_what_workers_are_told(work: Work, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("x.jsonl").write_text('{"SubjectEntity": "Chad", "completions": []}', encoding="utf-8")
    servers = {"max_cost": 3.0, "max_tokens": 1000, "store": Path("deep/store.sqlite")}
    run = replace(RUN, servers=servers, files=(Path("x.jsonl"),), index=Path("i.sqlite"))
    asked = replace(work, plan=Plan.of(run, recipe_of({"component": "recorded"})))
    told = asked.shared(4).plan.run
    assert told.servers == {"max_cost": 0.75, "max_tokens": 250, "store": tmp_path / "deep" / "store.sqlite"}
    assert (told.files, told.index, told.search_table) == ((tmp_path / "x.jsonl",), tmp_path / "i.sqlite", None)


def test_a_password_is_sent_to_no_worker(work: Work) -> None:
    for url in ("postgresql://me:secret@host/kb", "postgresql://me@host/kb?password=secret"):
        run = replace(RUN, servers={"store": Database(url)})
        with pytest.raises(InputError, match="PGPASSWORD") as caught:
            replace(work, plan=Plan.of(run, work.plan.recipe)).shared(2)
        assert "secret" not in str(caught.value)
