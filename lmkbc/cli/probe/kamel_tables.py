"""KAMEL's tables as `lmkbc probe kamel` shows them: in percent, with the paper's beside."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lmkbc.probe.kamel.score import KamelTable


Shown = tuple[list[str], list[list[Any]]]
"""Heads and rows."""


def overall(ways: Mapping[str, KamelTable]) -> Shown:
    """Means over properties, by way of scoring: all, and F1 of each group; then what the paper reports.

    +-: half of the 95 % interval of F1, by bootstrap over queries.
    """
    from lmkbc.probe.kamel import score as paper

    heads = ["scoring", "P %", "R %", "F1 %", "+-", "entities", "literals", "LAMA's", "properties"]
    rows: list[list[Any]] = [
        [
            way,
            *(100 * value for value in (table.overall.p, table.overall.r, table.overall.f1)),
            None if table.half_width is None else 100 * table.half_width,
            *(100 * part.f1 if part.count else None for part in (table.entities, table.literals, table.lama)),
            table.overall.count,
        ]
        for way, table in ways.items()
    ]
    for name, table in paper.PUBLISHED.items():
        rows += ([f"paper: {name}, {_shots(k)}", *scores, *[None] * 4, 234] for k, scores in table.items())
    for name, labels in paper.PUBLISHED_LABELS.items():
        rows += (
            [f"paper: {name}, {_shots(k)}, labels only", None, None, f1, *[None] * 4, 234] for k, f1 in labels.items()
        )
    rows.append(["paper: majority object", None, None, paper.PUBLISHED_MAJORITY, *[None] * 4, 234])
    for whose, f1 in paper.PUBLISHED_LAMA.items():
        rows.append([f"paper: 10 shots, {whose}", *[None] * 6, f1, 40])
    return heads, rows


def by_answers(ways: Mapping[str, KamelTable]) -> Shown:
    """F1 over the queries with so many gold answers."""
    counts = sorted({count for table in ways.values() for count in table.by_answers})
    rows: list[list[Any]] = [
        [way, *(100 * mean.f1 if (mean := table.by_answers.get(count)) else None for count in counts)]
        for way, table in ways.items()
    ]
    plain = ways["published"].by_answers
    return ["F1 % by number of gold answers", *map(str, counts)], [
        *rows,
        ["queries", *(plain[count].count if count in plain else None for count in counts)],
    ]


def by_property(ways: Mapping[str, KamelTable]) -> Shown:
    """What each property reached."""
    from lmkbc.probe.kamel.score import PUBLISHED_PROPERTIES

    columns = [
        "property",
        "kind",
        "queries",
        "P %, published",
        "R %, published",
        *(f"F1 %, {way}" for way in ways),
        "F1 %, paper",
    ]
    plain = ways["published"]
    return columns, [
        [
            name,
            plain.kinds[name],
            mean.count,
            100 * mean.p,
            100 * mean.r,
            *(100 * table.properties[name].f1 for table in ways.values()),
            PUBLISHED_PROPERTIES.get(name),
        ]
        for name, mean in plain.properties.items()
    ]


def _shots(count: int) -> str:
    return f"{count} shot{'s' if count > 1 else ''}"
