"""`lmkbc compare` of two knowledge bases."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from lmkbc.commands.terminal import progress, show_json, show_table
from lmkbc.errors import InputError, OptionError, counted
from lmkbc.kb.api.comparing_bases import compare_bases as compared
from lmkbc.kb.api.exporting import LEAST

MOST_ROWS = 20
"""Most facts of a kind that are printed."""


def compare_bases(bases: Sequence[Path], least: float | None, given: dict[str, Any], *, json: bool) -> None:
    """Print which facts came, went and changed between two bases. InputError for options that only runs have."""
    own = {name: given.pop(name) for name in ("relation", "workspace", "trust")}
    if len(bases) != 2:
        raise InputError(f"compare takes two knowledge bases, and {len(bases)} directories are given: give two")
    if name := next((name for name, value in given.items() if value is not None), None):
        raise OptionError(name, f"is of runs, and {bases[0]} and {bases[1]} are knowledge bases: leave it out")
    with progress() as report:
        made = compared(*bases, least=LEAST if least is None else least, progress=report, **own)
    tables = {name: getattr(made, name) for name in ("counts", "came", "went", "changed")}
    if json:
        show_json(
            {"first": str(made.first), "second": str(made.second), "least": made.least}
            | {name: table.to_dicts() for name, table in tables.items()}
        )
        return
    sums = ["*** All ***", *made.counts.drop("relation").sum().row(0)]
    show_table(
        made.counts.columns,
        [*(row for row in made.counts.rows() if row[1] or row[2]), sums],
        title=f"{made.second} (second) beside {made.first} (first)",
    )
    for name in ("came", "went", "changed"):
        rows = tables[name].head(MOST_ROWS).iter_rows()
        lines = [["; ".join(value) if isinstance(value, list) else value for value in row] for row in rows]
        if lines:
            show_table(tables[name].columns, lines, title=f"{counted(len(tables[name]), 'fact')} {name}")
        if more := len(tables[name]) - len(lines):
            sys.stdout.write(f"{more:,} more: --json has them all\n")
