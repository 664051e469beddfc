"""The top level of a recipe's file: which steps there are, and whence the system comes."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from lmkbc.ask.words import WordingSource


@dataclass(frozen=True, slots=True, kw_only=True)
class RecipeFile:
    """What stands at the top level of a recipe's file, the steps not yet looked into.

    year: of the challenge that a published system took part in. wording: whose words its prompts are: our own, or the
    authors', which 'lmkbc systems fetch' gets. differs: what is still not theirs, a sentence each. source: where their
    words are published.
    """

    description: str
    generate: tuple[Mapping[str, Any], ...]
    select: Mapping[str, Any]
    link: Mapping[str, Any] = field(default_factory=dict)
    clean: Mapping[str, Any] = field(default_factory=dict)
    group: Mapping[str, Any] = field(default_factory=dict)
    pool: Mapping[str, Any] = field(default_factory=dict)
    citation: str = ""
    year: int | None = None
    wording: Literal["own", "authors"] = "own"
    differs: tuple[str, ...] = ()
    source: WordingSource | None = None
    published: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Raise ValueError for no generator, and for a published score of no split, or that is none."""
        if not self.generate:
            raise ValueError("generate is empty: give a table [[generate]] for each generator")
        for place, score in self.published.items():
            if not re.fullmatch("[^/]+/[^/]+(/[^/]+)?", place):
                raise ValueError(
                    f"published names {place!r}: give an edition and a split, as in '2023/val', and behind them the "
                    "metric profile where it is not the edition's own"
                )
            if not 0 <= score <= 1:
                raise ValueError(f"published.{place} is {score}: give a macro-F1 from 0 to 1")

    @property
    def models(self) -> tuple[str, ...]:
        """Return the models that its generators name, and those of their signals and the like, each once."""
        return tuple(dict.fromkeys(name for table in self.generate for name in _models(table)))

    @property
    def score(self) -> float | None:
        """Return the published score of its year: on test where there is one, else on the split that is held out."""
        own = {place: score for place, score in self.published.items() if place.startswith(f"{self.year}/")}
        return own.get(f"{self.year}/test", next(iter(own.values()), None))


def _models(table: Mapping[str, Any]) -> Iterator[str]:
    """Yield the models of a generator's table, source by source, and of the tables within."""
    sources = table.get("each")
    for source in sources if isinstance(sources, list) else [{}]:
        whole = {name: value for name, value in {**table, **source}.items() if value is not sources}
        if isinstance(model := whole.get("model"), str):
            yield model
        for value in whole.values():
            for within in value if isinstance(value, list) else [value]:
                if isinstance(within, Mapping):
                    yield from _models(within)
