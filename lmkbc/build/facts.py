"""From a block of queries to rows of facts: pure, so that it runs wherever the queries were answered.

Three tables come of a block. `facts` has a row for each object that was kept. `nothing` has a row for each query that
was answered with none, and why: an empty answer is knowledge too, where nothing was withheld. `missing` lists the
queries that no model answered, which are neither.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from functools import lru_cache
from typing import Any, NamedTuple

import polars as pl

from lmkbc.build.floor import floors
from lmkbc.names import as_qid
from lmkbc.pipeline import decide
from lmkbc.relation import Kind, Relation
from lmkbc.select.confidence import confidences
from lmkbc.select.rule import PerRelation
from lmkbc.types import (
    Candidate,
    CandidateSet,
    Source,
    State,
)

SCHEMA_VERSION = "1"
"""Raised when a column changes its meaning; columns that are new and may be null leave it."""
SUBJECT: dict[str, Any] = {"subject_row": pl.Int64, "subject": pl.String, "subject_id": pl.String}
ABOUT: dict[str, Any] = {**SUBJECT, "relation": pl.String, "property": pl.String}
FACTS: dict[str, Any] = {
    **ABOUT,
    "object": pl.String,
    "object_id": pl.String,
    "literal": pl.String,
    "unit": pl.String,
    "confidence": pl.Float64,
    "calibrated": pl.Boolean,
    "sources": pl.List(pl.String),
    "model": pl.String,
    "run": pl.String,
}
NOTHING: dict[str, Any] = {**ABOUT, "reason": pl.String, "confidence": pl.Float64, "model": pl.String, "run": pl.String}
MISSING: dict[str, Any] = {**ABOUT, "reason": pl.String, "run": pl.String}
DIGITS = 40
"""Places before and behind the point that a number may have."""


SCHEMAS: Mapping[str, Mapping[str, Any]] = {"facts": FACTS, "nothing": NOTHING, "missing": MISSING}
"""Table -> column -> type."""


class Tables(NamedTuple):
    """What became of a block of queries: data frames with the columns of `SCHEMAS`."""

    facts: pl.DataFrame
    nothing: pl.DataFrame
    missing: pl.DataFrame

    @classmethod
    def together(cls, parts: Sequence[Tables]) -> Tables:
        """Join the tables of several blocks, one after the other."""
        return cls(*(pl.concat(frames) for frames in zip(*parts, strict=True)))

    def encoded(self) -> list[bytes]:
        """Return the tables as Arrow writes them, to be sent or stored."""
        buffers = [frame.write_ipc(None, compression="zstd") for frame in self]
        return [buffer.getvalue() for buffer in buffers]

    @classmethod
    def decoded(cls, tables: Iterable[bytes]) -> Tables:
        """Read tables that were encoded."""
        return cls(*(pl.read_ipc(io.BytesIO(table)) for table in tables))


@dataclass(frozen=True, slots=True)
class Stated:
    """What a fact's row says of its relation: the module's name, Wikidata's property, the kind of objects, the unit.

    has_one_object: of what a rule keeps, the best alone is a fact.
    """

    name: str
    property: str
    kind: Kind
    unit: str | None = None
    has_one_object: bool = False

    @classmethod
    def of(cls, relation: Relation) -> Stated:
        """What rows say of a relation."""
        return cls(relation.name, relation.property, relation.kind, relation.unit, relation.has_one_object())


@dataclass(frozen=True, slots=True)
class Maker:
    """Makes tables of answered queries. relations: by the names that queries use. run: the id of the build.

    least: the least confidence of a fact, beside what its rule keeps; None for what expected F1 keeps (see `floors`).
    """

    selector: PerRelation
    relations: Mapping[str, Stated]
    run: str
    least: float | None = None

    def tables(self, rows: Sequence[int], sets: Sequence[CandidateSet]) -> Tables:
        """The tables of a block. rows: of each set the place of its subject; sets: pooled, one per query."""
        made: tuple[list[tuple[Any, ...]], ...] = ([], [], [])
        heard: dict[tuple[Source, ...], int] = {}  # many facts have the same sources, which are written once
        chosen, made_sure = decide(self.selector, sets), confidences(self.selector, sets)
        least = [self.least or 0.0] * len(sets)
        if self.least is None:
            least = floors(self.selector, sets, chosen, made_sure)
        decided = zip(rows, sets, chosen, made_sure, least, strict=True)
        for row, found, kept, sure, floor in decided:
            query, stated = found.query, self.relations[found.query.relation]
            about = (row, writable(query.subject), query.subject_id, stated.name, stated.property)
            if kept.failed:
                reason = ", ".join(dict.fromkeys(found.draws)) or "not asked"
                made[2].append((*about, reason, self.run))
                continue
            pairs = zip(kept.objects, sure.of_each(kept.objects), strict=True)
            stating = [(one, p) for one, p in pairs if p >= floor]
            if stating:
                for one, p in stating[:1] if stated.has_one_object else stating:
                    heard.setdefault(one.sources, len(heard))
                    made[0].append((*about, *self._fact(one, stated, p, sure.calibrated, heard[one.sources])))
            else:
                made[1].append((*about, *self._nothing(found, "withheld" if kept.withheld else why_nothing(found))))
        facts, nothing, missing = map(_frame, made, (FACTS | {"sources": pl.Int64}, NOTHING, MISSING))
        named = pl.Series("sources", [named_sources(sources)[0] for sources in heard], pl.List(pl.String))
        return Tables(facts.with_columns(named.gather(facts["sources"])), nothing, missing)

    def _fact(self, kept: Candidate, stated: Stated, p: float, calibrated: bool, sources: int) -> tuple[Any, ...]:
        number = (decimal(kept.id or "") or decimal(kept.text)) if stated.kind == "number" else None
        qid = kept.id if stated.kind == "entity" and kept.id and as_qid(kept.id) == kept.id else None
        return (
            writable(kept.text),
            qid,
            number,
            stated.unit if number is not None else None,
            round(p, 6),
            calibrated,
            sources,
            named_sources(kept.sources)[1],
            self.run,
        )

    def _nothing(self, found: CandidateSet, reason: str) -> tuple[Any, ...]:
        heard = tuple(source for nil in found.nothing for source in nil.sources)
        score = max((nil.score for nil in found.nothing), default=None)
        return reason, None if score is None else round(score, 6), named_sources(heard)[1], self.run


def _frame(rows: Sequence[tuple[Any, ...]], schema: Mapping[str, Any]) -> pl.DataFrame:
    return pl.DataFrame(rows, schema=schema, orient="row")


def why_nothing(found: CandidateSet) -> str:
    """Why a query that was answered has no fact.

    "abstained": no object was named; "dropped": none of those named can be one; "not kept": those that can be were not
    likely enough.
    """
    if found.candidates:
        return "not kept"
    return "dropped" if State.DROPPED in found.draws and State.ABSTAINED not in found.draws else "abstained"


@lru_cache(1 << 16)
def named_sources(sources: tuple[Source, ...]) -> tuple[list[str], str]:
    """Some sources as files name them, and the models behind them."""
    names = [writable(str(source)) for source in sorted(sources)]
    return names, "; ".join(sorted({writable(str(Source(source.model))) for source in sources}))


def writable(text: str) -> str:
    """A model's text as a column holds it: the halves of broken characters are written out."""
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode()


def decimal(text: str) -> str | None:
    """A number in plain digits, thousands commas left out; None for a text that is none, or that no one writes out."""
    if len(text) > 2 * DIGITS:
        return None
    try:
        value = Decimal(text.replace(",", "").strip())
    except InvalidOperation:
        return None
    if not value.is_finite() or abs(value.adjusted()) > DIGITS:
        return None
    digits = format(value, "f")
    digits = digits.rstrip("0").rstrip(".") if "." in digits else digits
    return digits if value else "0"
