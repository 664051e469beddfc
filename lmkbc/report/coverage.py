"""Coverage of a knowledge base: queries with facts, with nothing and without an answer; and confidence of facts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import polars as pl

from lmkbc.report.entities import IN, MISSING, NOTHING, OUT, shortened

BINS = 20


@dataclass(slots=True)
class Coverage:
    """Results of a relation's queries, and confidence of its facts.

    subjects: noun for its subjects, "" without a module. size: number of facts in its sample. stated: number of facts
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
        proposed = facts.filter(~pl.col("model").is_in(pl.coalesce("stated_by", pl.lit([]))))
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
        asked = rows.filter(pl.col("kind") != IN).select("key", "kind", name=names)
        best = asked.group_by("name", "key").agg(pl.col("kind").min())  # facts, then nothing, then missing
        for name, kind, count in best.group_by("name", "kind").len().iter_rows():
            self._counts.setdefault(name, Counter())[kind] += count

    def table(self) -> list[dict[str, Any]]:
        """Return the counts by class, the largest class first; "" for relations without a module."""
        ordered = sorted(self._counts.items(), key=lambda item: (-item[1].total(), item[0]))
        return [
            {"name": name, "asked": own.total(), "answered": own[OUT], "nothing": own[NOTHING], "missing": own[MISSING]}
            for name, own in ordered
        ]
