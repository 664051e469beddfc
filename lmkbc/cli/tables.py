"""A result as a table on stdout, on a terminal and in a pipe."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

from rich.cells import cell_len

from lmkbc.cli.terminal import plain


def show_table(columns: Sequence[str], rows: Sequence[Sequence[Any]], *, title: str | None = None) -> None:
    """Write a table to stdout: the first column to the left, numbers to the right; never cut when piped."""
    cells = [[_cell(value) for value in row] for row in rows]
    numeric = [at > 0 and all(isinstance(row[at], int | float | None) for row in rows) for at in range(len(columns))]
    if sys.stdout.isatty():
        from lmkbc.cli.terminal import show_table as show_on_terminal

        show_on_terminal(columns, cells, numeric, title)
    else:
        _write_plain(columns, cells, numeric, title)


def _write_plain(columns: Sequence[str], rows: list[list[str]], numeric: list[bool], title: str | None) -> None:
    """Write the same as plain text, without loading rich's tables."""
    lines = [list(columns), *rows]
    widths = [max(map(cell_len, column)) for column in zip(*lines, strict=True)]
    if title is not None:
        sys.stdout.write(title.ljust(sum(widths) + 2 * len(widths) - 2) + "\n")
    for line in lines:
        spaces = [" " * (width - cell_len(cell)) for width, cell in zip(widths, line, strict=True)]
        cells = (gap + cell if right else cell + gap for gap, cell, right in zip(spaces, line, numeric, strict=True))
        sys.stdout.write("  ".join(cells) + "\n")
    sys.stdout.flush()


def _cell(value: Any) -> str:
    return f"{value:.3f}" if isinstance(value, float) else plain("" if value is None else str(value))
