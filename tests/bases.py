"""Small knowledge bases, as tests make them: a stub for the model, and a directory of facts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from space import SPACE

from lmkbc.build import build as module
from lmkbc.build import engine as engines
from lmkbc.build.build import Build, BuildPlan
from lmkbc.build.directory import Directory
from lmkbc.build.engine import Engine
from lmkbc.build.frontier import Frontier
from lmkbc.build.growth import Bounds, Growth
from lmkbc.build.manifest import started
from lmkbc.build.subjects import Classes, SubjectFile
from lmkbc.files.checksum import file_sha256
from lmkbc.pipeline import Block
from lmkbc.progress import silent
from lmkbc.run.base import Run
from lmkbc.types import Candidate, CandidateSet, Query, Source, State
from tests.opened import CUTOFF, recipe_of

SOURCE = (Source("model", "0"),)
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
    """A build of some subjects by a stub. asked: the queries that the stub was asked, in order."""

    def __init__(self, folder: Path, names: Sequence[str], edition: str = "mini", shard: int = 4) -> None:
        self.file, self.out, self.shard = folder / "subjects.csv", folder / "kb", shard
        self.file.write_text("name,id\n" + "".join(f"{name},Q{n}\n" for n, name in enumerate(names, start=1)))
        self.run = Run(workspace=SPACE, edition=SPACE.edition(edition), offline=True)
        self.asked: list[Query] = []
        self.select: Mapping[str, Any] = CUTOFF

    def build(
        self,
        monkeypatch: pytest.MonkeyPatch,
        answer: Answer,
        relations: Sequence[str],
        bounds: Bounds | None = None,
        engine: Engine | None = None,
        by_value: Mapping[str, Any] | None = None,
        **inputs: Any,
    ) -> Any:
        """Build, or go on."""
        chosen = module.chosen(self.run, relations)

        base = self

        class Steps:
            def __init__(self, *_: object) -> None:
                self.usage = {"model": {"calls": 0}}

            def over(self, queries: Iterable[Query], _: object = None) -> Iterator[Block]:
                for query in queries:
                    base.asked.append(query)
                    yield Block((query,), (answer(query),))
                    self.usage["model"]["calls"] += 1

            def ended(self) -> None:
                pass

        monkeypatch.setattr(engines, "Steps", Steps)
        recipe = recipe_of({"component": "prior"}, select=self.select)
        plan = BuildPlan(SubjectFile(self.file), chosen, Classes(chosen, named=True))
        bounds, names = bounds or Bounds(), {name: one.name for name, one in chosen.items()}
        frontier = None if by_value is None else Frontier(plan.classes, names, bounds.depth, **by_value)
        growth = Growth(bounds, plan.classes, {one.name: one for one in chosen.values()}, frontier)
        inputs |= {} if by_value is None else {"grow": {"by": "value"}}
        about = {"subjects": file_sha256(self.file), **inputs}
        directory = Directory(self.out)
        with directory.held():
            made = Build(self.run, recipe, recipe.select, started(about, chosen), self.shard, engine)
            return made.into(directory, plan, growth, silent)
