"""Coverage of a knowledge base, and contradictions in it.

Coverage counts queries with facts, with nothing and without an answer, and the confidence of facts. Contradictions are
facts that cannot all be right, or that do not agree.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from lmkbc.kb.pages.entity_pieces import IN, MISSING, NOTHING, OUT, shortened
from lmkbc.relation import Relation

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
    """Checks of all facts, some entities at a time. names: names of the relations, in the order of their numbers."""

    def __init__(self, names: Sequence[str], known: Mapping[str, Relation]) -> None:
        own = {at: known[name] for at, name in enumerate(names) if name in known}
        self._back = {at: names.index(one.other_side()) for at, one in own.items() if one.other_side() in names}
        self._several = {at: _Finding("several", names[at]) for at, one in own.items() if one.has_one_object()}
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
        examples = [[_ExampleName(key, name) for name in found] for key, found, _ in several.head(EXAMPLES).iter_rows()]
        self._names.add(len(several), len(each), examples)

    def _check_objects(self, rows: pl.DataFrame) -> None:
        """Find subjects with several objects, for relations with at most one object per subject."""
        out = rows.filter((pl.col("kind") == OUT) & pl.col("relation").is_in([*self._several]))
        found = out.group_by("relation", "key", maintain_order=True).agg(
            shortened("name").first(), pl.col("other").fill_null(""), shortened("text"), same=_same().n_unique() == 1
        )
        for at, finding in self._several.items():
            own = found.filter(pl.col("relation") == at)
            wrong = own.filter(~pl.col("same"))
            examples = [
                [_ExampleName(key, name), *map(_ExampleName, others[:EXAMPLES], texts[:EXAMPLES])]
                for _, key, name, others, texts, _ in wrong.head(EXAMPLES).iter_rows()
            ]
            finding.add(len(wrong), len(own), examples)

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
            own = lacking.filter(pl.col("relation") == at)
            shown = own.head(EXAMPLES).select("other", shortened("text"), "key", shortened("name"))
            examples = [[_ExampleName(one, text), _ExampleName(key, name)] for one, text, key, name in shown.rows()]
            finding.add(len(own), len(both.filter(pl.col("relation") == at)), examples)

    def check_names(self, names: pl.DataFrame) -> None:
        """Find names that several entities share. names: names of all entities."""
        own = names.unique(["fold", "key"], maintain_order=True)
        shared = own.filter(pl.col("fold").is_duplicated()).sort(
            "fold", "facts", "key", descending=[False, True, False]
        )
        each = shared.group_by("fold", maintain_order=True).agg("key", pl.col("facts").sum())
        best = each.sort("facts", "fold", descending=[True, False]).head(EXAMPLES)
        examples = [
            [_ExampleName("", fold), *(_ExampleName(key, "") for key in found[:EXAMPLES])]
            for fold, found, _ in best.iter_rows()
        ]
        self._entities.add(len(each), own["fold"].n_unique(), examples)


def _same() -> pl.Expr:
    """Return what distinguishes objects: the entity, else the text."""
    return pl.coalesce("other", "text")
