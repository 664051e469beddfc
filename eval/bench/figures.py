"""Figures of the benchmarks: one file that the benchmark commands write, and the documents' tables filled from it.

    python -m eval.bench recorded --figures eval/figures.toml    # measure, and store the figures
    python -m eval.bench figures                                 # list the documents' cells that differ from the file
    python -m eval.bench figures --write                         # copy the file's figures into the documents

A table between `<!-- figures: NAME ... -->` and `<!-- end -->` shows values of the named entries; `NAME-*` names
several. Its head and its first cells choose columns and rows, in any order. A cell without a value in these entries is
empty or "-". A column that none of these entries has is the document's own.
"""

from __future__ import annotations

import fnmatch
import json
import os
import platform
import re
import shlex
import sys
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from eval.bench import ROOT, parsed, parser_of

FIGURES = ROOT / "eval" / "figures.toml"
MENDED = "python -m eval.bench figures --write"
ENCLOSED = re.compile(r"(?<=<!-- figures: )([^>]+?)( -->\n\n)(.*?)(?=\n\n<!-- end -->)", re.DOTALL)

Values = Mapping[str, Mapping[str, str]]
"""Row -> column -> the value as documents show it."""


class Table:
    """A table whose rows are printed and kept as soon as they are measured. file: where figures are kept, or None."""

    def __init__(self, name: str, first: str = "", file: Path | None = None) -> None:
        self._file, self._name, self._first = file, name, first or name
        self.rows: dict[str, Mapping[str, str]] = {}

    def add(self, row: str, cells: Mapping[str, str], **printed: object) -> None:
        """Add a row. printed: further cells, which no document shows."""
        shown = {**cells, **{column.replace("_", " "): str(cell) for column, cell in printed.items()}}
        if not self.rows:
            print(f"{self._first:40}  {'  '.join(f'{column:>8}' for column in shown)}")
        self.rows[row] = cells
        print(f"{row:40}  {'  '.join(f'{cell:>{max(8, len(column))}}' for column, cell in shown.items())}", flush=True)
        record(self._file, self._name, self.rows)


def record(file: Path | None, name: str, values: Values, command: str = "", machine: str = "") -> None:
    """Write the table of one command to a file, in place of its earlier entry. Without a file, do nothing.

    command: command line; empty for this process's. machine: description; empty for this machine.
    """
    if file is None:
        return
    known = read(file)
    today = datetime.now(UTC).date()
    known[name] = {"command": command or typed(), "date": today, "machine": machine or described(), "rows": values}
    file.write_text(written(known), encoding="utf-8")


def typed() -> str:
    """Return this process's command, without --figures."""
    command, *words = sys.argv
    if "--figures" in words:
        place = words.index("--figures")
        words[place : place + 2] = []
    return " ".join([command, *map(shlex.quote, words)])


def described() -> str:
    """Return a description of this machine."""
    from torch.backends import cpu

    count = len(os.sched_getaffinity(0))
    return f"{count} core{'s' * (count > 1)}, {platform.machine()}, {cpu.get_cpu_capability()}"


def read(file: Path = FIGURES) -> dict[str, Any]:
    """Return the entries of a file; {} without a file."""
    return tomllib.loads(file.read_text(encoding="utf-8")) if file.exists() else {}


def written(known: Mapping[str, Mapping[str, Any]]) -> str:
    """Return entries as TOML: sorted by name, rows in the order of their command, one per line."""
    lines = [
        "# Written by the commands named below, with --figures eval/figures.toml; those of lmkbc are copied by hand.",
        "# Documents show them.",
    ]
    for name, entry in sorted(known.items()):
        lines += ["", f"[{name}]", f"command = {quoted(entry['command'])}", f"date = {entry['date'].isoformat()}"]
        lines += [f"machine = {quoted(entry['machine'])}", "", f"[{name}.rows]"]
        for row, cells in entry["rows"].items():
            pairs = ", ".join(f"{quoted(column)} = {quoted(value)}" for column, value in cells.items())
            lines.append(f"{quoted(row)} = {{ {pairs} }}")
    return "\n".join(lines) + "\n"


def quoted(text: str) -> str:
    """Return a TOML string. For text without control characters, it is the same as in JSON."""
    return json.dumps(text, ensure_ascii=False)


def pages() -> Iterator[Path]:
    """Yield the documents that may show figures."""
    yield ROOT / "README.md"
    yield from sorted((ROOT / "docs").glob("*.md"))


def filled(text: str, known: Mapping[str, Any]) -> str:
    """Return a document with the values of a file in its enclosed tables. ValueError for a cell without a value."""
    return ENCLOSED.sub(lambda found: found[1] + found[2] + _table(found[3], found[1].split(), known), text)


def _table(text: str, names: list[str], known: Mapping[str, Any]) -> str:
    values: dict[str, dict[str, str]] = {}
    for pattern in names:
        if not (found := fnmatch.filter(known, pattern)):
            raise ValueError(f"no command has written the figures {pattern!r}")
        for name in found:
            for row, cells in known[name]["rows"].items():
                values.setdefault(row, {}).update(cells)
    head, rule, *rows = text.splitlines()
    columns, measured = _cells(head)[1:], {column for row in values.values() for column in row}
    lines = [head, rule]
    for row, *cells in map(_cells, rows):
        if row not in values:
            raise ValueError(f"the figures {', '.join(names)} have no row {row!r}")
        shown = []
        for column, cell in zip(columns, cells, strict=True):
            if column in measured and column not in values[row] and cell not in ("", "-"):
                raise ValueError(f"the figures {', '.join(names)} have no {column!r} of {row!r}")
            shown.append(values[row].get(column, cell))
        lines.append("".join(f"| {cell} " if cell else "| " for cell in (row, *shown)) + "|")
    return "\n".join(lines)


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip().removeprefix("|").removesuffix("|").split("|")]


def documents(file: Path = FIGURES) -> Iterator[tuple[Path, str, str, str]]:
    """Yield each document, its text, the text with a file's figures, and an error if it cannot be filled."""
    known = read(file)
    for page in pages():
        text = page.read_text(encoding="utf-8")
        try:
            yield page, text, filled(text, known), ""
        except ValueError as error:
            where = page.relative_to(ROOT)
            yield page, text, text, f"{where}: {error}; measure it with --figures, or take its row out"


def differing(file: Path = FIGURES) -> list[str]:
    """Return the lines of documents with other figures than in a file, each with the right line."""
    found = []
    for page, text, full, wrong in documents(file):
        pairs = zip(text.splitlines(), full.splitlines(), strict=True)
        where = page.relative_to(ROOT)
        found += [wrong] if wrong else [f"{where}: {a!r} should be {b!r}" for a, b in pairs if a != b]
    return found


def main(argv: Sequence[str]) -> None:
    parser = parser_of(__doc__, data=False)
    parser.add_argument("--write", action="store_true", help="write the documents in place of naming what differs")
    given = parsed(parser, argv)
    if not given.write:
        if found := differing():
            sys.exit("\n".join([*found, f"To mend it: {MENDED}"]))
        print("The documents show the figures of the file.")
        return
    for page, text, full, wrong in documents():
        if wrong:
            sys.exit(wrong)
        if full != text:
            page.write_text(full, encoding="utf-8")
            print(f"wrote {page.relative_to(ROOT)}")
