"""Tables in Markdown."""

from __future__ import annotations


def cell(text: str) -> str:
    """Return text as it stands within a table."""
    return " ".join(text.split()).replace("|", "\\|").replace("<", "&lt;")


def table(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> list[str]:
    """Return the lines of a Markdown table."""
    lines = ["| " + " | ".join(row) + " |" for row in (head, ("---",) * len(head), *rows)]
    return [*lines, ""]
