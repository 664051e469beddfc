"""Addition to a finished base: what it holds already, in the order of the build of all subjects and relations.

So the shards of the larger build are begun with the answers of the base, and their other queries are missing. From
there on it is a build like any other.
"""

from __future__ import annotations

import json
import logging
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import polars as pl

from lmkbc.errors import InputError, counted
from lmkbc.files.arrays import key
from lmkbc.files.checksum import sha256
from lmkbc.kb.base.manifest import TIMING, differing, started
from lmkbc.kb.builder.base_directory import Directory, part
from lmkbc.kb.builder.facts import Ask, Tables, among, sums_of
from lmkbc.kb.builder.subjects import LISTED, Subjects
from lmkbc.relation import Relation

log = logging.getLogger(__name__)
SUBJECTS = part("subjects", 0)


class Earlier:
    """A finished base that a build adds to. subjects: its given subjects, as in `SubjectFile`.

    manifest: as it was when the base was read, which the build compares again when it has the lock. anew: relations of
    the base that are decided anew, once the larger build is known.

    InputError if there is none, if it is damaged, or if it was grown.
    """

    def __init__(self, path: Path) -> None:
        self._directory, self._path = Directory(path), path
        self.manifest = self._directory.finished()
        if self.manifest.inputs.get("grow") or SUBJECTS not in self.manifest.outputs:
            why = "was grown" if self.manifest.inputs.get("grow") else "does not list its subjects"
            raise InputError(
                f"{path} {why}, so nothing can be added: build all into a new directory; kept answers are not asked "
                "again"
            )
        listed = pl.read_parquet(path / SUBJECTS, glob=False).drop("subject_row", strict=False)
        self.subjects = pl.concat([pl.DataFrame(schema=LISTED), listed], how="diagonal")
        self.anew: Sequence[str] = ()

    def names_relations(self, classes: Any, given: Sequence[str]) -> bool:
        """Return whether the user named the relations of the base. InputError if only the given ones are named."""
        is_named = self.manifest.inputs.get("classes") == key([classes, True])
        if given and not is_named:
            raise InputError(
                f"{self._path} has all relations of its subjects' classes: leave out --relation; new relations of the "
                "edition are asked too"
            )
        return is_named

    @property
    def relations(self) -> Sequence[str]:
        """Return the names of the base's relations."""
        return [*self.manifest.relations]

    def started(
        self, begun: Mapping[str, Any], subjects: Subjects, relations: Mapping[str, Relation], folder: str = ""
    ) -> dict[str, Any]:
        """Return the manifest of the larger build before its first query. begun: that of a build of its own.

        folder: of the edition's splits. Further subjects and relations are asked. Relations whose module or rule
        changed are asked anew, and all of them if labelled rows changed. InputError if another input differs.
        """
        mine, theirs, frame = begun["inputs"], self.manifest.inputs, subjects.frame
        if (other := differing({**mine, **self._shared(mine, folder)}, theirs)) != "nothing":
            raise InputError(
                f"{self._path} is a base of other inputs, which differ in {other}: add with those of the base, or "
                f"build all into a new directory with --reviews {self._path}; kept answers are not asked again"
            )
        new = [name for name in mine["relations"] if name not in theirs["relations"]]
        self.anew = self._changed(begun)
        added = {"subjects": len(frame) - len(self.subjects), "relations": new}
        added |= {"anew": self.anew} if self.anew else {}
        told = f"{counted(len(frame) - len(self.subjects), 'new subject')}, {counted(len(new), 'new relation')}"
        told += f"; decided anew, since rules, modules or labelled rows changed: {', '.join(self.anew)}"
        log.info("%s: %s", self._path, told if self.anew else told.partition(";")[0])
        more = {name: begun[name] for name in ("rules",) if name in begun}
        if not new and not self.anew and frame.equals(self.subjects):
            return {**started(theirs, relations), **more, "additions": list(self.manifest.additions)}
        about = {"sha256": sha256(frame.write_csv().encode()), "subjects": len(frame)}
        whole = started({**mine, "limit": None, "subjects": about}, relations)
        about = {"run": whole["run"], "after": self.manifest.run, "system": mine["system"], "model": mine["model"]}
        return {**whole, **more, "additions": [*self.manifest.additions, about | added]}

    def expect(self, inputs: Callable[[Mapping[str, Any]], Mapping[str, Any]]) -> None:
        """Note which relations an addition asks anew, for an estimate. inputs: those of a selection.

        What tuning changed is left out, since kept answers are decided anew without a question.
        """
        self.anew = self._changed({"inputs": inputs(self.manifest.inputs.get("selection") or {})})

    def _shared(self, mine: Mapping[str, Any], folder: str) -> dict[str, Any]:
        """Return the inputs that may differ, as those of the base: subjects, tuned rules, and labelled rows."""
        theirs = self.manifest.inputs
        shared = {name: theirs.get(name) for name in ("limit", "subjects")}
        shared["relations"] = {
            name: theirs["relations"][name] for name in theirs["relations"] if name in mine["relations"]
        }
        asked, held = (one.get("selection") or {} for one in (mine, theirs))
        if all(asked.get(name) == held.get(name) for name in ("precision", "narrowed")):
            shared |= {name: theirs[name] for name in ("selection", "thresholds") if name in theirs}
        if "files" in theirs:
            labelled = {name: sha for name, sha in theirs["files"].items() if name.startswith(f"{folder}/")}
            others = {name: sha for name, sha in mine["files"].items() if not name.startswith(f"{folder}/")}
            shared["files"] = {**labelled, **others} if folder else mine["files"]
        return shared

    def _changed(self, begun: Mapping[str, Any]) -> list[str]:
        """Return the relations of the base that are decided anew."""
        mine, theirs = begun["inputs"], self.manifest.inputs
        same = {name: mine.get(name) == theirs.get(name) for name in ("files", "selection", "thresholds")}
        rules, held = begun.get("rules", {}), self.manifest.rules
        return [
            name
            for name, module in theirs["relations"].items()
            if not same["files"]
            or mine["relations"][name] != module
            or (not (same["selection"] and same["thresholds"]) and rules.get(name) != held.get(name, ""))
        ]

    def kept(
        self,
        asks: Iterator[Ask],
        relations: Mapping[str, Relation],
        size: int,
        there: Collection[int] = (),
    ) -> Iterator[tuple[int, Sequence[Ask], Tables]]:
        """Yield shards of a larger build: number, the queries that the base does not answer, and its answers.

        asks: the queries of the larger build, by the row of their subjects. size: queries of a shard. there: shards to
        pass over.
        """
        names, number = {own: relation.name for own, relation in relations.items()}, 0
        shards = self.manifest.shards or ()
        tokens = sum((Counter(shard.tokens) for shard in shards), Counter[str]())
        below = sum((Counter(shard.below_least) for shard in shards), Counter[str]())
        below = Counter({name: count for name, count in below.items() if name not in self.anew})
        earlier = (tables for _, tables in self._directory.read(self.manifest))
        held = next(earlier)  # a base has a query at least, so a shard
        while some := [*islice(asks, size)]:
            last = some[-1].row
            while _last(held) <= last and (more := next(earlier, None)) is not None:
                held = Tables.together([held, more])
            if number not in there:
                keys = [(ask.row, name) for ask in some if (name := names[ask.query.relation]) not in self.anew]
                own = pl.DataFrame(keys, schema=_QUERY, orient="row")
                kept = held.each(partial(_among, own))
                sums = sums_of(tokens, below) if number == 0 else sums_of({}, {})
                kept = kept._replace(missing=held.missing.clear(), sums=sums)
                yield number, among(some, kept.answered, relations, inside=False), kept
            held = held.each(partial(_from, last))
            number += 1

    def timings(self, run: str) -> list[Any]:
        """Return what the base's file of timings holds of earlier builds, in order. run: id of this build."""
        found: dict[str, Any] = {}
        with suppress(OSError, ValueError):
            found = json.loads((self._path / TIMING).read_bytes())
        return [one for one in (*found.pop("earlier", []), found) if one and one.get("run") != run]


_QUERY = {"subject_row": pl.Int64, "relation": pl.String}


def _from(row: int, frame: pl.DataFrame) -> pl.DataFrame:
    return frame.filter(pl.col("subject_row") >= row)


def _among(queries: pl.DataFrame, frame: pl.DataFrame) -> pl.DataFrame:
    return frame.join(queries, on=[*_QUERY], how="semi", maintain_order="left")


def _last(tables: Tables) -> int:
    """Return the row of the last subject in some tables, -1 if they are empty."""
    return int(pl.concat(frame["subject_row"] for frame in tables[:3]).to_numpy().max(initial=-1))
