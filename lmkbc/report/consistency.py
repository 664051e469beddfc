"""Contradictions in a knowledge base: facts that cannot all be right, or that do not agree."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import polars as pl

from lmkbc.relation import Relation
from lmkbc.report.entities import IN, NOTHING, OUT, shortened

EXAMPLES = 5


class ExampleName(NamedTuple):
    """A name in an example. key: key of its entity, "" for a literal."""

    key: str
    text: str


@dataclass(slots=True)
class Finding:
    """Cases of one kind, the number of checks, and examples. of: a relation, "" for all."""

    kind: str
    of: str = ""
    cases: int = 0
    checked: int = 0
    examples: list[Sequence[ExampleName]] = field(default_factory=list)

    def add(self, cases: int, checked: int, examples: Iterable[Sequence[ExampleName]]) -> None:
        """Add the cases among some of the entities."""
        self.cases += cases
        self.checked += checked
        self.examples = [*self.examples, *examples][:EXAMPLES]


class Consistency:
    """Checks of all facts, some entities at a time. names: names of the relations, in the order of their numbers."""

    def __init__(self, names: Sequence[str], known: Mapping[str, Relation]) -> None:
        own = {at: known[name] for at, name in enumerate(names) if name in known}
        self._back = {at: names.index(one.other_side()) for at, one in own.items() if one.other_side() in names}
        self._several = {at: Finding("several", names[at]) for at, one in own.items() if one.has_one_object()}
        self._one_way = {at: Finding("one way", names[at]) for at in self._back}
        self._names, self._entities = Finding("names"), Finding("entities")

    @property
    def findings(self) -> list[Finding]:
        """Return the findings of all kinds."""
        return [*self._one_way.values(), *self._several.values(), self._entities, self._names]

    def add(self, rows: pl.DataFrame, names: pl.DataFrame) -> None:
        """Check some entities. rows, names: all rows and names of these entities."""
        self._check_objects(rows)
        self._check_sides(rows)
        linked = names.filter(pl.col("key").str.starts_with("Q")).unique(["key", "fold"], maintain_order=True)
        each = linked.group_by("key", maintain_order=True).agg(shortened("name"), pl.col("facts").first())
        several = each.filter(pl.col("name").list.len() > 1).sort("facts", "key", descending=[True, False])
        examples = [[ExampleName(key, name) for name in found] for key, found, _ in several.head(EXAMPLES).iter_rows()]
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
                [ExampleName(key, name), *map(ExampleName, others[:EXAMPLES], texts[:EXAMPLES])]
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
            examples = [[ExampleName(one, text), ExampleName(key, name)] for one, text, key, name in shown.iter_rows()]
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
            [ExampleName("", fold), *(ExampleName(key, "") for key in found[:EXAMPLES])]
            for fold, found, _ in best.iter_rows()
        ]
        self._entities.add(len(each), own["fold"].n_unique(), examples)


def _same() -> pl.Expr:
    """Return what distinguishes objects: the entity, else the text."""
    return pl.coalesce("other", "text")
