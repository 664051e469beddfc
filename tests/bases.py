"""Small knowledge bases, as tests make them: a stub for the model, and a directory of facts."""

import hashlib
import os
import shutil
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from space import SPACE

from lmkbc import Workspace
from lmkbc.kb.base import manifest
from lmkbc.kb.base.manifest import started
from lmkbc.kb.base.schemas import FACTS, MISSING, NOTHING
from lmkbc.kb.builder import engine as engines
from lmkbc.kb.builder import shards as module
from lmkbc.kb.builder.addition import Earlier
from lmkbc.kb.builder.base_directory import Directory, write_parts
from lmkbc.kb.builder.facts import Tables
from lmkbc.kb.builder.growth import Bounds, Frontier, Growth
from lmkbc.kb.builder.settle import REMOVED, Settled
from lmkbc.kb.builder.shards import Build, BuildQueries
from lmkbc.kb.builder.subjects import Classes, SubjectFile
from lmkbc.models.base import Reply
from lmkbc.notes import Replies
from lmkbc.plan import Plan
from lmkbc.progress import silent
from lmkbc.run.pipeline import Block
from lmkbc.testing import Candidate, CandidateSet, Query, Run, Source, State
from tests.opened import CUTOFF, recipe_of

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
        space = Workspace(data=data) if data else SPACE
        self.run = Run(workspace=space, edition=space.edition(edition), offline=True)
        self.asked: list[Query] = []
        self.select: Mapping[str, Any] = CUTOFF
        self.writes: Callable[[Query], str] | None = None  # what the model writes about a query

    def build(
        self,
        monkeypatch: pytest.MonkeyPatch,
        answer: Answer,
        relations: Sequence[str],
        bounds: Bounds | None = None,
        engine: Any = None,
        by_value: Mapping[str, Any] | None = None,
        add: bool = False,
        **inputs: Any,
    ) -> Any:
        """Build, or go on; or add to the base that is there."""
        chosen = module.chosen(self.run, relations)

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

        monkeypatch.setattr(engines, "Steps", Steps)
        recipe = recipe_of({"component": "prior"}, select=self.select)
        earlier = Earlier(self.out) if add else None
        subjects = SubjectFile(self.file, None, None if earlier is None else earlier.subjects)
        plan = BuildQueries(subjects, chosen, Classes(chosen, named=True))
        bounds, names = bounds or Bounds(), {name: one.name for name, one in chosen.items()}
        frontier = None if by_value is None else Frontier(plan.classes, names, bounds.depth, **by_value)
        growth = Growth(bounds, plan.classes, {one.name: one for one in chosen.values()}, frontier)
        inputs |= {} if by_value is None else {"grow": {"by": "value"}}
        asked = {one.name: "" for one in chosen.values()}
        about = {
            "subjects": hashlib.sha256(self.file.read_bytes()).hexdigest(),
            "relations": asked,
            "system": "stub",
            "model": None,
            **inputs,
        }
        begun = started(about, chosen)
        if earlier is not None:
            begun = earlier.started(begun, plan.subjects, chosen)
        directory = Directory(self.out)
        with directory.held():
            made = Build(Plan.of(self.run, recipe), recipe.select, begun, self.shard, engine, earlier=earlier)
            return made.into(directory, plan, growth, silent)


RUN = "0" * 16
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
    frame = pl.DataFrame(list(facts), schema=FACTS)
    tables = Tables(frame, pl.DataFrame(schema=NOTHING), pl.DataFrame(schema=MISSING))
    settled = Settled(tables, pl.DataFrame(schema=REMOVED))
    outputs = dict(write_parts(folder, [settled], RUN))
    counts = dict(Counter(frame["relation"].to_list()))
    shard = manifest.Shard(number=0, queries=len(frame), facts=counts, linked={}, nothing={}, failed={})
    begun = started({"edition": "mini", **inputs}, {name: SPACE.relations[name] for name in counts})
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
