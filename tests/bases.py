"""Small knowledge bases, as tests make them: a stub for the model, and a directory of facts."""

import hashlib
import os
import shutil
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from space import SPACE

import lmkbc
from lmkbc.kb.base import manifest
from lmkbc.kb.builder import engine as engines
from lmkbc.kb.builder import growth, shards
from lmkbc.run.pipeline import Block
from lmkbc.testing import Candidate, CandidateSet, Query, Replies, Reply, Source, State
from tests.opened import CUTOFF

SOURCE = (Source("model"),)
Answer = Callable[[Query], CandidateSet]


def answered(query: Query, *objects: tuple[str, str | None, float]) -> CandidateSet:
    """A set of objects: text, id and score each."""
    return CandidateSet(query, tuple(Candidate(text, score, SOURCE, qid) for text, qid, score in objects))


def failed(query: Query) -> CandidateSet:
    """The set of a query that no model answered."""
    return CandidateSet(query, (), (State.MISSING,))


def neighbours(query: Query) -> CandidateSet:
    """Answer as a model would that knows two neighbours of each country, and four children of each person."""
    if query.relation == "CountryBordersCountry":
        return answered(query, (f"left of {query.subject}", "Q9", 0.9), (f"right of {query.subject}", None, 0.8))
    return answered(query, ("4", None, 0.7)) if query.subject not in ("Togo", "Land 3") else answered(query)


def tree(folder: Path) -> dict[str, bytes]:
    """Return the files of a base, but for what differs from run to run."""
    files = [path for path in folder.rglob("*") if path.is_file() and path.name != "timing.json"]
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


class Base:
    """A build of some subjects by a stub. asked: the queries that the stub was asked, in order.

    data: directory of an official edition.
    """

    def __init__(
        self, folder: Path, names: Sequence[str], edition: str = "mini", shard: int = 4, data: Path | None = None
    ) -> None:
        self.file, self.out, self.shard = folder / "subjects.csv", folder / "kb", shard
        self.file.write_text("name,id\n" + "".join(f"{name},Q{n}\n" for n, name in enumerate(names, start=1)))
        self.edition, self.data = edition, data
        self.asked: list[Query] = []
        self.select: Mapping[str, Any] = CUTOFF
        self.writes: Callable[[Query], str] | None = None  # what the model writes about a query

    def build(
        self,
        monkeypatch: pytest.MonkeyPatch,
        answer: Answer,
        relations: Sequence[str],
        engine: Any = None,
        size: int | None = None,
        system: Mapping[str, Any] = {},
        **options: Any,
    ) -> Any:
        """Build, or go on; or add to the base that is there. size: queries of a round of a base that grows by value."""
        base = self

        class Steps:
            def __init__(self, *_: object) -> None:
                self.usage = {"model": {"calls": 0}}

            def over(self, queries: Iterable[Query], _: object = None) -> Iterator[Block]:
                for query in queries:
                    base.asked.append(query)
                    texts = [Reply(base.writes(query))] if base.writes else []
                    replies = {query: [Replies("stub", ((*texts, None),))]} if texts else {}
                    yield Block((query,), (answer(query),), replies=replies)
                    self.usage["model"]["calls"] += 1

            def ended(self) -> None:
                pass

        with monkeypatch.context() as patch:
            patch.setattr(engines, "Steps", Steps)
            patch.setattr(shards, "SHARD", self.shard)
            patch.setattr(growth, "ROUND", size or growth.ROUND)
            table = {"name": "stub", "generate": [{"component": "nothing"}], "select": self.select, **system}
            asked: Any = {"edition": self.edition, "data": self.data, "system": table, "relation": relations}
            how = {"untuned": True, "offline": True, "engine": None if engine is None else nullcontext(engine)}
            return lmkbc.build(self.file, self.out, **asked, **how, **options).manifest


RUN = "0" * 16
FACTS = lmkbc.KnowledgeBase(Path(), {"outputs": []}).facts.collect_schema()
"""Columns of facts."""
ATTACK = '<script>window.broken = 1</script>"><img src=x onerror="window.broken = 2">{{ 7 * 7 }}</script>\u2028'


def fact(row: int, relation: str, object_: str, confidence: float, **more: Any) -> dict[str, Any]:
    """A row of facts: subject N is QN."""
    known = SPACE.relations[relation]
    about = {"subject_row": row, "subject": f"subject {row}", "subject_id": f"Q{row + 1}", "relation": relation}
    made = {
        "property": known.property,
        "object": object_,
        "object_id": None,
        "confidence": confidence,
        "sources": ["m#0"],
    }
    return {**dict.fromkeys(FACTS), "calibrated": True, "model": "m", "run": RUN, **about, **made, **more}


def written(folder: Path, facts: Iterable[dict[str, Any]], **inputs: Any) -> Path:
    """The directory of a base, its facts by relation and in the order given."""
    frame, outputs = pl.DataFrame(list(facts), schema=FACTS), dict[str, str]()
    tables = frame.partition_by("relation", as_dict=True, include_key=False)
    parts = {f"facts/relation={name}/part-000000.parquet": rows for (name,), rows in tables.items()}
    about = ("subject_row", "subject", "subject_id", "relation", "property", "confidence", "model", "run")
    parts["nothing/part-000000.parquet"] = frame.head(0).select(*about, reason=pl.lit(""))
    for part, rows in parts.items():
        (folder / part).parent.mkdir(parents=True)
        rows.write_parquet(folder / part)
        outputs[part] = hashlib.sha256((folder / part).read_bytes()).hexdigest()
    counts = dict(Counter(frame["relation"].to_list()))
    shard = manifest.Shard(number=0, queries=len(frame), facts=counts, linked={}, nothing={}, failed={})
    begun = manifest.started({"edition": "mini", **inputs}, {name: SPACE.relations[name] for name in counts})
    whole = manifest.finished(begun, len(frame), [shard], {"outputs": outputs})
    (folder / manifest.MANIFEST).write_bytes(manifest.written(whole))
    return folder


def mixed(count: int = 300) -> list[dict[str, Any]]:
    """Facts of two relations and of many confidences, some with texts that are made to break a page."""
    borders = [
        fact(row, "country-borders", f"land {row}", row % 97 / 97, object_id=f"Q{row + 1000}") for row in range(count)
    ]
    children = [fact(row, "children", str(row % 5), 0.9, literal=str(row % 5)) for row in range(count // 3)]
    hostile = {"object": ATTACK, "model": ATTACK, "sources": [ATTACK] * 50, "subject": "x" * 10_000}
    return [*borders, *children, *(fact(row, "children", "", 0.95, **hostile) for row in range(3))]


class Killed(BaseException):
    """The end of a process."""


CALLS = [(os, "replace"), (os, "rename"), (os, "fsync"), (Path, "unlink"), (shutil, "rmtree")]


def dying(monkeypatch: pytest.MonkeyPatch, after: int) -> Callable[[], int]:
    """End the process at the so-manyth change of the disk, before it. Gives the number of changes so far."""
    count = 0

    def wrap(real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*given: Any, **named: Any) -> Any:
            nonlocal count
            count += 1
            if count > after:
                raise Killed
            return real(*given, **named)

        return call

    for owner, name in CALLS:
        monkeypatch.setattr(owner, name, wrap(getattr(owner, name)))
    return lambda: count
