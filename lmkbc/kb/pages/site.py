"""A knowledge base as a folder of static files: contents, confidence, and every entity with its facts.

The base is read part by part. Rows by entity stay on disk until they are written, so only names are in memory.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from lmkbc.files import atomic
from lmkbc.files.checksum import sha256
from lmkbc.kb.base.fact_row import worded
from lmkbc.kb.base.knowledge import COLUMNS, Knowledge
from lmkbc.kb.base.manifest import About
from lmkbc.kb.base.reviews import PERSON, REVIEWED
from lmkbc.kb.pages.entity_pieces import (
    GIVEN,
    IN,
    MISSING,
    NOTHING,
    OUT,
    EntityKeys,
    RowGroups,
    in_order,
    name_pieces,
    named,
    pieces,
    shortened,
    starts,
)
from lmkbc.kinds.kind import kind_of
from lmkbc.progress import Report, silent
from lmkbc.report.page import as_toml, asset, render

FOLDER, INDEX, RECORD = "report", "index.html", "report.json"
ASSETS = {"page.js": "entities.js", "style.css": "style.css", "icon.svg": "icon.svg"}
"""Files beside the page, and their templates."""
_FORM = re.compile(r"index\.html|page\.js|style\.css|icon\.svg|(?:facts|names)/[0-9]{1,9}\.js")
KIND = atomic.DirectoryKind("a knowledge base's report", RECORD, form=_FORM)
SAMPLE, FEWEST = 60, 3
"""Approximate number of facts in the sample, and least number per relation."""
HUBS, MODELS = 12, 3
"""Numbers of entities (those with most facts) and of models that are listed."""


def write(source: Knowledge, out: Path, report: Report = silent) -> int:
    """Write the files to a directory, and return their total size in bytes.

    InputError for a damaged base, or for a directory with other files than such a report's.
    """
    with atomic.filling(out, KIND) as stage:
        folder = _Folder(stage)
        with TemporaryDirectory(dir=stage) as held:
            contents = _Contents(source, RowGroups(Path(held), 2 * source.rows))
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

    def __init__(self, source: Knowledge, rows: RowGroups) -> None:
        self._source, self._rows = source, rows
        self._numbers = {name: number for number, name in enumerate(source.relations)}
        nouns = [about.subject for about in source.relations.values()]
        size = max(FEWEST, SAMPLE // max(1, len(nouns)))
        self._coverage = [Coverage(name, noun, size) for name, noun in zip(self._numbers, nouns, strict=True)]
        self._classes = ClassCoverage(nouns)
        self._consistency = Consistency(source.relations)
        self._names = list[pl.DataFrame]()
        self._keys = EntityKeys()
        self._columns = dict[str, int]()  # of the file of subjects

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
            linkable = kind_of(self._source.relations[name]).is_entity
            for facts in self._source.parts(name, (*COLUMNS, "calibrated", "subject_entity", "object_entity")):
                rows = self._facts(facts, number, linkable=linkable)
                self._coverage[number].add(facts, rows)
                yield facts, pl.concat([rows, _mentions(rows, facts["object"])])
        for kind, table in ((NOTHING, "nothing"), (MISSING, "missing")):
            for answers in self._source.answers(table):
                for name, reason, count in (
                    answers.group_by("relation", "reason", maintain_order=True).len().iter_rows()
                ):
                    self._coverage[self._numbers[name]].reasons[kind][reason] += count
                yield answers, _answers(answers, self._keys.of_answers(answers), self._numbers, kind)
        for given in self._source.own_columns():
            for column in given["column"].unique(maintain_order=True):
                self._columns.setdefault(column, len(self._columns))
            stated = given.rename({"column": "relation", "value": "reason"})
            yield given.clear(), _answers(stated, self._keys.of_answers(stated), self._columns, GIVEN)

    def _facts(self, facts: pl.DataFrame, number: int, *, linkable: bool) -> pl.DataFrame:
        """Return facts of a relation as rows of their subjects. linkable: whether their objects are entities."""
        others = self._keys.of(facts, "object") if linkable else [None] * len(facts)
        sources, rows = pl.col("sources").list.join("; "), pl.col("stated_by").list.join(" and ")
        return facts.select(
            pl.Series("key", self._keys.of(facts, "subject"), pl.String),
            name="subject",
            kind=pl.lit(OUT, pl.UInt8),
            relation=pl.lit(number, pl.UInt16),
            other=pl.Series(others, dtype=pl.String),
            text=pl.coalesce(
                "literal", pl.Series(map(worded, facts["object"], facts["object_label"]), dtype=pl.String)
            ),
            confidence="confidence",
            source=pl.concat_str(
                sources, pl.format(", stated by {}", rows), *map(pl.format, _DECIDED, REVIEWED), ignore_nulls=True
            ),
            known=pl.col("stated_by").is_not_null(),
        )

    def write(self, folder: _Folder, report: Report) -> None:
        """Write all files except the record."""
        for numbers, rows in self._rows.sorted():
            report("write (files)", numbers[0], self._rows.pieces)
            entity_names = named(rows)
            self._classes.add(rows)
            self._consistency.add(rows, entity_names)
            self._names.append(entity_names)
            for name, content in pieces(numbers, rows, entity_names):
                folder.add(name, content)
        names = pl.concat(self._names)
        self._consistency.check_names(names)
        ordered = in_order(names)
        for name, content in name_pieces(ordered):
            folder.add(name, content)
        for name, template in ASSETS.items():
            folder.add(name, asset(template).encode())
        folder.add(INDEX, self._index(names, starts(ordered)).encode("utf-8", "backslashreplace"))
        report("write (files)", self._rows.pieces, self._rows.pieces)

    def _index(self, names: pl.DataFrame, begins: Sequence[str]) -> str:
        each, recipe = names.unique("key", maintain_order=True), self._source.inputs.get("recipe")
        chosen = self._source.inputs.get("selection")
        few = chosen.get("few") if isinstance(chosen, dict) else None
        relations = self._source.relations
        links = any(coverage.linked for coverage in self._coverage)  # else no entity is called one without a QID
        linkable = [coverage for coverage in self._coverage if kind_of(relations[coverage.name]).is_entity]
        return render(
            "knowledge.html",
            title=_title(self._source.inputs),
            about=self._about(),
            whole=self._source.is_whole,
            coverage=[coverage for coverage in self._coverage if coverage.asked],
            few=few if isinstance(few, dict) else {},
            relations=self._source.relations,
            classes=self._classes.table(),
            findings=self._consistency.findings,
            entities=len(each),
            linked=each["key"].str.starts_with("Q").sum(),
            linkable={
                "facts": sum(coverage.facts for coverage in linkable),
                "linked": sum(coverage.linked for coverage in linkable),
            },
            asked=each["asked"].sum(),
            hubs=each.sort("facts", "key", descending=[True, False])
            .head(HUBS)
            .with_columns(shortened("name"))
            .to_dicts(),
            levels=self._levels(),
            recipe=as_toml(recipe) if isinstance(recipe, dict) else "",
            data=json.dumps(
                {
                    "pieces": self._rows.pieces,
                    "starts": begins,
                    "relations": self._described(),
                    "columns": [*self._columns],
                    "links": links,
                }
            ),
        )

    def _about(self) -> dict[str, str]:
        """Return the settings and models of the base."""
        inputs, chosen = self._source.inputs, self._source.inputs.get("selection")
        models = sum((coverage.models for coverage in self._coverage), Counter[str]())
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
        """Return each relation's data for the page: name, property, unit, nouns of subject and object, definition."""
        relations = self._source.relations.items()
        return [
            [name, about.property, about.unit, about.subject, about.object, about.definition]
            for name, about in relations
        ]

    def _levels(self) -> list[Counter[str]]:
        """Return counts for each level of a base that was grown; [] for other bases."""
        made = dict[int, Counter[str]]()
        for shard in self._source.shards:
            for what in ("facts", "linked", "nothing", "failed"):
                counts = getattr(shard, what)
                made.setdefault(shard.depth, Counter())[what] += sum(counts.get(name, 0) for name in self._numbers)
        return [made[depth] for depth in sorted(made)] if len(made) > 1 else []


_DECIDED = (", reviewed by {}", " on {}", "; {}", ": \u201c{}\u201d")
"""Words behind the sources of a fact that a person decided, for each of its columns that is not empty."""


def _mentions(rows: pl.DataFrame, names: pl.Series) -> pl.DataFrame:
    """Return facts as rows of their objects, if these are entities."""
    turned = rows.with_columns(kind=pl.lit(IN, pl.UInt8), key="other", name=names, other="key", text="name")
    return turned.filter(pl.col("key").is_not_null())


def _answers(answers: pl.DataFrame, keys: Sequence[str], numbers: Mapping[str, int], kind: int) -> pl.DataFrame:
    """Return queries without a fact, or values of the file of subjects, as rows of their subjects."""
    return answers.select(
        pl.Series("key", keys, pl.String),
        name="subject",
        kind=pl.lit(kind, pl.UInt8),
        relation=pl.col("relation").replace_strict(numbers, return_dtype=pl.UInt16),
        other=pl.lit(None, pl.String),
        text="reason",
        confidence=pl.lit(None, pl.Float64),
        source=pl.lit(""),
        known=pl.lit(False),
    )


def _title(inputs: Mapping[str, Any]) -> str:
    system, title = inputs.get("system"), inputs.get("title")
    return f"Knowledge base of {system}, {title}" if system and title else "Knowledge base"


BINS = 20


@dataclass(slots=True)
class Coverage:
    """Results of a relation's queries, and confidence of its facts.

    subjects: noun for its subjects. size: number of facts in its sample. stated: number of facts
    that labelled rows state. answered: queries with facts. reasons: reasons of the other queries, by kind. confidence:
    sum over all facts. bins: number of facts by confidence, from 0 to 1.
    """

    name: str
    subjects: str
    size: int
    facts: int = 0
    linked: int = 0
    stated: int = 0
    calibrated: int = 0
    answered: int = 0
    reasons: dict[int, Counter[str]] = field(default_factory=lambda: {NOTHING: Counter(), MISSING: Counter()})
    confidence: float = 0.0
    bins: list[int] = field(default_factory=lambda: [0] * BINS)
    models: Counter[str] = field(default_factory=Counter)
    _drawn: list[pl.DataFrame] = field(default_factory=list)
    _draw: np.random.Generator = field(default_factory=lambda: np.random.default_rng(0))

    @property
    def nothing(self) -> Counter[str]:
        """Return the number of queries with an empty answer, by reason."""
        return self.reasons[NOTHING]

    @property
    def missing(self) -> int:
        """Return the number of queries without an answer."""
        return self.reasons[MISSING].total()

    @property
    def asked(self) -> int:
        """Return the number of queries."""
        return self.answered + self.nothing.total() + self.missing

    def add(self, facts: pl.DataFrame, rows: pl.DataFrame) -> None:
        """Count some facts. Their subjects must be in no other part. rows: the same facts, by entity."""
        self.facts += len(facts)
        self.linked += facts["object_id"].count()
        self.stated += facts["stated_by"].count()
        self.calibrated += int(facts["calibrated"].sum())
        self.answered += facts["subject_row"].n_unique()
        self.confidence += float(facts["confidence"].sum())
        places = np.minimum((facts["confidence"].to_numpy() * BINS).astype(int), BINS - 1)
        self.bins = (np.bincount(places, minlength=BINS) + self.bins).tolist()
        of_models = facts.filter(pl.col("model") != PERSON)
        proposed = of_models.filter(~pl.col("model").is_in(pl.coalesce("stated_by", pl.lit([]))))
        self.models.update(dict(proposed["model"].str.split("; ").explode().value_counts().iter_rows()))
        drawn = rows.with_columns(draw=self._draw.random(len(rows)))
        self._drawn = [pl.concat([*self._drawn, drawn]).sort("draw").head(self.size)]

    @property
    def sample(self) -> list[dict[str, Any]]:
        """Return facts drawn at random, with a fixed seed."""
        short = [shortened(column) for column in ("name", "text", "source")]
        return [row for drawn in self._drawn for row in drawn.with_columns(short).to_dicts()]


class ClassCoverage:
    """Results of the subjects of each class. classes: class of each relation's subjects, by the relation's number."""

    def __init__(self, classes: Sequence[str]) -> None:
        self._classes = dict(enumerate(classes))
        self._counts: dict[str, Counter[int]] = {}

    def add(self, rows: pl.DataFrame) -> None:
        """Count the subjects among some entities, each by the best result of its queries."""
        names = pl.col("relation").replace_strict(self._classes, return_dtype=pl.String)
        asked = rows.filter(pl.col("kind").is_in([OUT, NOTHING, MISSING])).select("key", "kind", name=names)
        best = asked.group_by("name", "key").agg(pl.col("kind").min())  # facts, then nothing, then missing
        for name, kind, count in best.group_by("name", "kind").len().iter_rows():
            self._counts.setdefault(name, Counter())[kind] += count

    def table(self) -> list[dict[str, Any]]:
        """Return the counts by class, the largest class first."""
        ordered = sorted(self._counts.items(), key=lambda item: (-item[1].total(), item[0]))
        return [
            {
                "name": name,
                "asked": counts.total(),
                "answered": counts[OUT],
                "nothing": counts[NOTHING],
                "missing": counts[MISSING],
            }
            for name, counts in ordered
        ]


EXAMPLES = 5


class _ExampleName(NamedTuple):
    """A name in an example. key: key of its entity, "" for a literal."""

    key: str
    text: str


@dataclass(slots=True)
class _Finding:
    """Cases of one kind, the number of checks, and examples. of: a relation, "" for all."""

    kind: str
    of: str = ""
    cases: int = 0
    checked: int = 0
    examples: list[Sequence[_ExampleName]] = field(default_factory=list)

    def add(self, cases: int, checked: int, examples: Iterable[Sequence[_ExampleName]]) -> None:
        """Add the cases among some of the entities."""
        self.cases += cases
        self.checked += checked
        self.examples = [*self.examples, *examples][:EXAMPLES]


class Consistency:
    """Checks of all facts, some entities at a time. relations: by name, in the order of their numbers."""

    def __init__(self, relations: Mapping[str, About]) -> None:
        names = [*relations]
        self._back = {
            at: names.index(about.other_side)
            for at, about in enumerate(relations.values())
            if about.other_side in relations
        }
        self._several = {at: _Finding("several", name) for at, name in enumerate(names) if relations[name].one_object}
        self._one_way = {at: _Finding("one way", names[at]) for at in self._back}
        self._names, self._entities = _Finding("names"), _Finding("entities")

    @property
    def findings(self) -> list[_Finding]:
        """Return the findings of all kinds."""
        return [*self._one_way.values(), *self._several.values(), self._entities, self._names]

    def add(self, rows: pl.DataFrame, names: pl.DataFrame) -> None:
        """Check some entities. rows, names: all rows and names of these entities."""
        self._check_objects(rows)
        self._check_sides(rows)
        linked = names.filter(pl.col("key").str.starts_with("Q")).unique(["key", "fold"], maintain_order=True)
        each = linked.group_by("key", maintain_order=True).agg(shortened("name"), pl.col("facts").first())
        several = each.filter(pl.col("name").list.len() > 1).sort("facts", "key", descending=[True, False])
        examples = [
            [_ExampleName(key, name) for name in spellings] for key, spellings, _ in several.head(EXAMPLES).iter_rows()
        ]
        self._names.add(len(several), len(each), examples)

    def _check_objects(self, rows: pl.DataFrame) -> None:
        """Find subjects with several objects, for relations with at most one object per subject."""
        out = rows.filter((pl.col("kind") == OUT) & pl.col("relation").is_in([*self._several]))
        subjects = out.group_by("relation", "key", maintain_order=True).agg(
            shortened("name").first(),
            pl.col("other").fill_null(""),
            shortened("text"),
            same=pl.coalesce("other", "text").n_unique() == 1,
        )
        for at, finding in self._several.items():
            of_relation = subjects.filter(pl.col("relation") == at)
            wrong = of_relation.filter(~pl.col("same"))
            examples = [
                [_ExampleName(key, name), *map(_ExampleName, others[:EXAMPLES], texts[:EXAMPLES])]
                for _, key, name, others, texts, _ in wrong.head(EXAMPLES).iter_rows()
            ]
            finding.add(len(wrong), len(of_relation), examples)

    def _check_sides(self, rows: pl.DataFrame) -> None:
        """Find facts that are missing on the object's side, although the inverse relation was asked there."""
        named = rows.filter((pl.col("kind") == IN) & pl.col("relation").is_in([*self._back]))
        back = pl.col("relation").replace_strict(self._back, return_dtype=pl.UInt16, default=None)
        named = named.filter(pl.col("key") != pl.col("other")).with_columns(back=back)
        asked = rows.filter(pl.col("kind").is_in([OUT, NOTHING])).select("key", back="relation")
        both = named.join(asked, on=["key", "back"], how="semi", maintain_order="left")
        stated = rows.filter(pl.col("kind") == OUT).select("key", "other", back="relation")
        lacking = both.join(stated, on=["key", "back", "other"], how="anti", maintain_order="left")
        for at, finding in self._one_way.items():
            of_relation = lacking.filter(pl.col("relation") == at)
            shown = of_relation.head(EXAMPLES).select("other", shortened("text"), "key", shortened("name"))
            examples = [[_ExampleName(other, text), _ExampleName(key, name)] for other, text, key, name in shown.rows()]
            finding.add(len(of_relation), len(both.filter(pl.col("relation") == at)), examples)

    def check_names(self, names: pl.DataFrame) -> None:
        """Find names that several entities share. names: names of all entities."""
        distinct = names.unique(["fold", "key"], maintain_order=True)
        shared = distinct.filter(pl.col("fold").is_duplicated()).sort(
            "fold", "facts", "key", descending=[False, True, False]
        )
        each = shared.group_by("fold", maintain_order=True).agg("key", pl.col("facts").sum())
        best = each.sort("facts", "fold", descending=[True, False]).head(EXAMPLES)
        examples = [
            [_ExampleName("", fold), *(_ExampleName(key, "") for key in holders[:EXAMPLES])]
            for fold, holders, _ in best.iter_rows()
        ]
        self._entities.add(len(each), distinct["fold"].n_unique(), examples)
