"""`lmkbc compare`: which run is better on the same queries, and whether the difference is significant."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lmkbc.api.comparing import compare as compared
from lmkbc.api.pages import is_knowledge
from lmkbc.commands.terminal import note, plain, show_json, show_table
from lmkbc.commands.typed import made_from
from lmkbc.errors import OptionError, counted

if TYPE_CHECKING:
    from lmkbc.evaluation.comparison import Comparison, Difference

EXAMPLE = "Example: lmkbc compare submissions/2023-val-prior submissions/2023-val-embedded --html compare.html"
COLUMNS = ("relation", "rows", "first", "second", "difference", "low", "high", "p", "p (Holm)", "won", "lost", "")

ROW_COLUMNS = ("subject", "relation", "first F1", "second F1", "first answer", "second answer", "gold")
MOST_ROWS = 20
"""Most rows won, and most rows lost, that are printed."""


@made_from(compared)
def compare(
    *,
    html: Annotated[Path | None, typer.Option(help="Write the comparison as an HTML page too.")] = None,
    rows: Annotated[bool, typer.Option("--rows", help="Show the rows won and lost too: the first 20 of each.")] = False,
    least: Annotated[
        float | None,
        typer.Option(min=0, max=1, help="Of knowledge bases: list changes of confidence across this. Default: 0.5."),
    ] = None,
    json: bool = False,
    runs: Sequence[Path],
    **given: Any,
) -> None:
    """Compare runs with the first one: difference of macro-F1, its 95 % interval and p-value, rows won and lost.

    Of two knowledge bases: which facts came, went and changed.
    """
    if any(map(is_knowledge, runs)):
        from lmkbc.kb.cli.compare_bases import compare_bases

        given["baselines"] = None if given["baselines"] == 1 else given["baselines"]
        compare_bases(runs, least, given | {"html": html}, json=json)
        return
    if least is not None:
        raise OptionError("least", "is of knowledge bases, and these are runs: leave it out")
    if html is not None:
        from lmkbc.report.page import check_page  # here, since it loads numpy

        check_page(html, *runs, given["gold"])
    made = compared(*runs, **given)
    if html is not None:
        note(f"{made.write(html)}: written; open it in a browser")
    if json:
        comparisons = [_json(one, rows=rows) for one in made.comparisons]
        show_json(
            {
                "edition": made.edition.name,
                "split": made.split,
                "comparisons": comparisons,
                "remarks": list(made.remarks),
            }
        )
        return
    for one in made.comparisons:
        _print(made.title, one)
        if rows:
            _print_rows(one)
    for remark in made.remarks:
        sys.stdout.write(plain(remark) + "\n")


def _json(one: Comparison, *, rows: bool) -> dict[str, Any]:
    relations = {name: _values(part) for name, part in one.relations.items()}
    head = {"first": one.first, "second": one.second, "subjects": one.subjects, "verdict": one.verdict}
    changed = {"rows": [row._asdict() | {"won": row.is_won} for row in one.changed]} if rows else {}
    return head | {"overall": _values(one.overall), "relations": relations} | changed


def _values(part: Difference) -> dict[str, Any]:
    return asdict(part) | {"significant": part.is_significant}


def _print(title: str, one: Comparison) -> None:
    lines = [_line(name, part) for name, part in one.relations.items()]
    lines.append(_line("*** Average ***", one.overall))
    show_table(COLUMNS, lines, title=f"{title}: {one.second} (second) beside {one.first} (first)")
    sys.stdout.write(plain(one.verdict) + "\n")


def _print_rows(one: Comparison) -> None:
    """Print the rows with the largest differences, won ones before lost ones."""
    for title, is_won in (("won", True), ("lost", False)):
        own = [row for row in one.changed if row.is_won is is_won]
        lines = [[x.subject, x.relation, x.first, x.second, *map("; ".join, x[4:])] for x in own[:MOST_ROWS]]
        if lines:
            show_table(ROW_COLUMNS, lines, title=f"{counted(len(own), 'row')} {title} by {one.second}")
        if more := len(own) - len(lines):
            sys.stdout.write(f"{more:,} more: --json has them all\n")


def _line(name: str, part: Difference) -> Sequence[Any]:
    numbers = (part.first, part.second, part.difference, part.low, part.high, part.p, part.corrected)
    return [name, part.rows, *numbers, part.won, part.lost, part.result]
