"""A knowledge base as a folder of static files: contents, confidence, and every entity with its facts.

The base is read part by part. Rows by entity stay on disk until they are written, so only names are in memory.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import polars as pl

from lmkbc.files import atomic
from lmkbc.files.checksum import sha256
from lmkbc.kb.build.knowledge import COLUMNS, Knowledge
from lmkbc.kb.pages import entity_pieces
from lmkbc.kb.pages.entity_pieces import IN, MISSING, NOTHING, OUT, RowGroups, keys, shortened
from lmkbc.kb.pages.quality import ClassCoverage, Consistency, Coverage
from lmkbc.progress import Report, silent
from lmkbc.relation import Relation
from lmkbc.report.page import as_toml, asset, render

FOLDER, INDEX, RECORD = "report", "index.html", "report.json"
ASSETS = {"page.js": "entities.js", "style.css": "style.css", "icon.svg": "icon.svg"}
"""Files beside the page, and their templates."""
_FORM = re.compile(r"index\.html|page\.js|style\.css|icon\.svg|(?:facts|names)/[0-9]{1,9}\.js")
KIND = atomic.Kind("a knowledge base's report", RECORD, form=_FORM)
SAMPLE, FEWEST = 60, 3
"""Approximate number of facts in the sample, and least number per relation."""
HUBS, MODELS = 12, 3
"""Numbers of entities (those with most facts) and of models that are listed."""


def write(source: Knowledge, known: Mapping[str, Relation], out: Path, report: Report = silent) -> int:
    """Write the files to a directory, and return their total size in bytes.

    known: relations by name, for their nouns and constraints. InputError for a damaged base, or for a directory with
    other files than such a report's.
    """
    with atomic.filling(out, KIND) as stage:
        folder = _Folder(stage)
        with TemporaryDirectory(dir=stage) as held:
            contents = _Contents(source, known, RowGroups(Path(held), 2 * source.rows))
            contents.read(report)
            contents.write(folder, report)
        folder.finish(source.run)
    return folder.size


class _Folder:
    """The files of a report. They are not flushed one by one, since a lost report can be written again."""

    def __init__(self, path: Path) -> None:
        self._path, self._outputs, self.size = path, dict[str, str](), 0

    def add(self, name: str, content: bytes) -> None:
        path = self._path / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(content)
        self._outputs[name] = sha256(content)
        self.size += len(content)

    def finish(self, run: str) -> None:
        """Write the record, which lists all other files."""
        record = {"run": run, "outputs": dict(sorted(self._outputs.items())), "versions": atomic.versions("lmkbc")}
        self.add(RECORD, (json.dumps(record, indent=2) + "\n").encode())


class _Contents:
    """Contents of a report about a base. rows: facts by entity, on disk."""

    def __init__(self, source: Knowledge, known: Mapping[str, Relation], rows: RowGroups) -> None:
        self._source, self._known, self._rows = source, known, rows
        self._numbers = {name: number for number, name in enumerate(source.relations)}
        nouns = [known[name].subject_type.noun if name in known else "" for name in self._numbers]
        size = max(FEWEST, SAMPLE // max(1, len(nouns)))
        self._coverage = [Coverage(name, noun, size) for name, noun in zip(self._numbers, nouns, strict=True)]
        self._classes = ClassCoverage(nouns)
        self._consistency = Consistency([*self._numbers], known)
        self._names = list[pl.DataFrame]()

    def read(self, report: Report) -> None:
        """Read the whole base, and store its rows."""
        done = 0
        for frame, rows in self._read():
            report("read (rows)", done, self._source.rows)
            done += len(frame)
            self._rows.add(rows)

    def _read(self) -> Iterator[tuple[pl.DataFrame, pl.DataFrame]]:
        """Yield each part of the base, and its rows by entity."""
        for name, number in self._numbers.items():
            linkable = self._source.relations[name].kind == "entity"
            for facts in self._source.parts(name, (*COLUMNS, "calibrated")):
                rows = _facts(facts, number, linkable=linkable)
                self._coverage[number].add(facts, rows)
                yield facts, pl.concat([rows, _mentions(rows, facts["object"])])
        for kind, table in ((NOTHING, "nothing"), (MISSING, "missing")):
            for answers in self._source.answers(table):
                for name, reason, count in (
                    answers.group_by("relation", "reason", maintain_order=True).len().iter_rows()
                ):
                    self._coverage[self._numbers[name]].reasons[kind][reason] += count
                yield answers, _answers(answers, self._numbers, kind)

    def write(self, folder: _Folder, report: Report) -> None:
        """Write all files except the record."""
        for numbers, rows in self._rows.sorted():
            report("write (files)", numbers[0], self._rows.pieces)
            found = entity_pieces.named(rows)
            self._classes.add(rows)
            self._consistency.add(rows, found)
            self._names.append(found)
            for name, content in entity_pieces.pieces(numbers, rows, found):
                folder.add(name, content)
        names = pl.concat(self._names)
        self._consistency.check_names(names)
        ordered = entity_pieces.in_order(names)
        for name, content in entity_pieces.name_pieces(ordered):
            folder.add(name, content)
        for name, template in ASSETS.items():
            folder.add(name, asset(template).encode())
        folder.add(INDEX, self._index(names, entity_pieces.starts(ordered)).encode("utf-8", "backslashreplace"))
        report("write (files)", self._rows.pieces, self._rows.pieces)

    def _index(self, names: pl.DataFrame, starts: Sequence[str]) -> str:
        each = names.unique("key", maintain_order=True)
        linkable = [one for one in self._coverage if self._source.relations[one.name].kind == "entity"]
        return render(
            "knowledge.html",
            title=_title(self._source.inputs),
            about=self._about(),
            whole=self._source.is_whole,
            coverage=[one for one in self._coverage if one.asked],
            relations=self._source.relations,
            classes=self._classes.table(),
            findings=self._consistency.findings,
            entities=len(each),
            linked=each["key"].str.starts_with("Q").sum(),
            linkable={"facts": sum(one.facts for one in linkable), "linked": sum(one.linked for one in linkable)},
            asked=each["asked"].sum(),
            hubs=each.sort("facts", "key", descending=[True, False])
            .head(HUBS)
            .with_columns(shortened("name"))
            .to_dicts(),
            levels=self._levels(),
            recipe=_recipe(self._source.inputs),
            data=json.dumps({"pieces": self._rows.pieces, "starts": starts, "relations": self._described()}),
        )

    def _about(self) -> dict[str, str]:
        """Return the settings and models of the base."""
        inputs, chosen = self._source.inputs, self._source.inputs.get("selection")
        models = sum((one.models for one in self._coverage), Counter[str]())
        more = f" and {len(models) - MODELS} more" if len(models) > MODELS else ""
        fields = {
            "system": inputs.get("system"),
            "model" if len(models) == 1 else "models": ", ".join(
                sorted(models, key=lambda name: (-models[name], name))[:MODELS]
            )
            + more,
            "edition": inputs.get("edition"),
            "objects kept": chosen.get("how") if isinstance(chosen, dict) else None,
            "least confidence": inputs.get("least"),
            "built": self._source.date,
            "id": self._source.run,
        }
        return {name: str(value) for name, value in fields.items() if value}

    def _described(self) -> list[list[str | None]]:
        """Return each relation's data for the page's script: name, property, unit, nouns of subject and object."""
        made = []
        for name, about in self._source.relations.items():
            own = self._known.get(name)
            nouns = [own.subject_type.noun, own.object_type.noun] if own else ["", ""]
            made.append([name, about.property, about.unit, *nouns])
        return made

    def _levels(self) -> list[Counter[str]]:
        """Return counts for each level of a base that was grown; [] for other bases."""
        made = dict[int, Counter[str]]()
        for shard in self._source.shards:
            for what in ("facts", "linked", "nothing", "failed"):
                own = getattr(shard, what)
                made.setdefault(shard.depth, Counter())[what] += sum(own.get(name, 0) for name in self._numbers)
        return [made[depth] for depth in sorted(made)] if len(made) > 1 else []


def _facts(facts: pl.DataFrame, number: int, *, linkable: bool) -> pl.DataFrame:
    """Return facts of a relation as rows of their subjects. linkable: whether their objects are entities."""
    others = keys(facts["object_id"], facts["object"]) if linkable else [None] * len(facts)
    sources, rows = pl.col("sources").list.join("; "), pl.col("stated_by").list.join(" and ")
    return facts.select(
        _subjects(facts),
        name="subject",
        kind=pl.lit(OUT, pl.UInt8),
        relation=pl.lit(number, pl.UInt16),
        other=pl.Series(others, dtype=pl.String),
        text=pl.coalesce("literal", "object"),
        confidence="confidence",
        source=pl.when(pl.col("stated_by").is_null())
        .then(sources)
        .otherwise(pl.format("{}, stated by {}", sources, rows)),
    )


def _mentions(rows: pl.DataFrame, names: pl.Series) -> pl.DataFrame:
    """Return facts as rows of their objects, if these are entities."""
    turned = rows.with_columns(kind=pl.lit(IN, pl.UInt8), key="other", name=names, other="key", text="name")
    return turned.filter(pl.col("key").is_not_null())


def _answers(answers: pl.DataFrame, numbers: Mapping[str, int], kind: int) -> pl.DataFrame:
    """Return queries without a fact as rows of their subjects."""
    return answers.select(
        _subjects(answers),
        name="subject",
        kind=pl.lit(kind, pl.UInt8),
        relation=pl.col("relation").replace_strict(numbers, return_dtype=pl.UInt16),
        other=pl.lit(None, pl.String),
        text="reason",
        confidence=pl.lit(None, pl.Float64),
        source=pl.lit(""),
    )


def _subjects(frame: pl.DataFrame) -> pl.Series:
    return pl.Series("key", keys(frame["subject_id"], frame["subject"]), pl.String)


def _title(inputs: Mapping[str, Any]) -> str:
    system, edition = inputs.get("system"), inputs.get("edition")
    return f"Knowledge base of {system}, LM-KBC {edition}" if system and edition else "Knowledge base"


def _recipe(inputs: Mapping[str, Any]) -> str:
    recipe = inputs.get("recipe")
    return as_toml(recipe) if isinstance(recipe, dict) else ""
