"""Tables and tags: the texts of tags are an object whose keys are the tags; a table has heads and rows."""

from __future__ import annotations

import csv
import re
from collections.abc import Callable
from itertools import groupby
from typing import NamedTuple

from lmkbc.answer.literal import Bracketed, Word

_INLINE = re.compile(
    r"</?(?:b|i|u|em|strong|code|span|a|mark|small|font|big|tt|kbd|q|cite|abbr|br)(?:\s[^<>]*)?/?>", re.I
)
_RAISED = re.compile(r"<su[pb]>\s*(.{1,40}?)\s*</su[pb]>", re.IGNORECASE)
_LEAF = re.compile(r"<(?P<tag>[A-Za-z][\w:.=-]*)(?:\s[^<>]*)?>(?P<text>[^<>]*)</(?P=tag)\s*>")
_EMPTY = re.compile(
    r"<(?P<tag>[A-Za-z][\w:.-]*)\s+(?:[\w:-]+=\"[^\"<>]*\"\s+)*?(?:name|label|value|title)=\"(?P<text>[^\"<>]+)\"[^<>]*/?>"
)
_CELLS = re.compile(r"</t[dh]>\s*<t[dh](?:\s[^<>]*)?>", re.IGNORECASE)
_ROW = re.compile(
    r"<tr(?:\s[^<>]*)?>\s*(?:<t(?P<kind>[dh])(?:\s[^<>]*)?>)(?P<cells>.*?)</t[dh]>\s*</tr>", re.DOTALL | re.I
)
_TAG = re.compile(r"</?[A-Za-z][^<>\n]{0,300}>")
_RULE = re.compile(r"[ \t]*[|+]?[ \t]*:?-+:?[ \t]*(?:[|+][ \t]*:?-+:?[ \t]*)*[|+]?[ \t]*")
_FIXED = re.compile(r"={2,}(?: +={2,})+")
_FIELD = re.compile(r"[ \t]*([a-z][\w ]{0,40}):[ \t]+(\S[^\n]*)")
_LIST_TAGS = frozenset("li item option td p div dd entry element".split())


def unstyled(text: str) -> str:
    """Return a text without tags of style; a raised figure becomes a power."""
    if "<" not in text:
        return text
    text = re.sub(r"<br\s*/?>", "\n", _RAISED.sub(_raised, text), flags=re.IGNORECASE)
    text = re.sub(r"</?(?:table|thead|tbody)(?:\s[^<>]*)?>", "", _INLINE.sub("", text), flags=re.IGNORECASE)
    return _ROW.sub(
        lambda row: f"\n| {_CELLS.sub(' | ', row['cells'])} |" + ("\n|---|" if row["kind"] in "hH" else ""), text
    )


def _raised(mark: re.Match[str]) -> str:
    """Return a raised power, "" for the mark of a reference."""
    letter = mark.string[max(0, mark.start() - 1) : mark.start()]
    if not mark[1].strip("+-").isdigit() or mark[0][3] in "bB":
        return mark[1] if mark[1].strip("[]").isalnum() and mark[0][3] in "bB" else ""
    unit = re.search(r"(?:[kcm]?m|mi|ft|10)$", mark.string[max(0, mark.start() - 4) : mark.start()])
    return f"^{mark[1]}" if unit or not letter.isalpha() else ""


def untagged(text: str) -> str:
    """Return a text without any tags."""
    return _TAG.sub(" ", text)


def read_tags(text: str) -> list[Bracketed]:
    """Return the texts of a text's innermost tags as one object, whose keys are the tags; none without such tags."""
    leaves = list(_LEAF.finditer(text)) or list(_EMPTY.finditer(text))
    words = [
        Word(leaf["text"].strip(), quoted=True, key="item" if leaf["tag"].casefold() in _LIST_TAGS else leaf["tag"])
        for leaf in leaves
        if leaf["text"].strip()
    ]
    return [Bracketed("{", [*words], closed=True)] if words else []


def read_fields(text: str) -> list[Bracketed]:
    """Return the texts of tags, else lines such as "city: Paris", as one object; none for other texts."""
    if "<" in text and (tagged := read_tags(text)):
        return tagged
    fields = [_FIELD.fullmatch(line) for line in text.split("\n") if line.strip()]
    if len(fields) < 2 or not all(fields):
        return []
    return [Bracketed("{", [Word(one[2], quoted=False, key=one[1]) for one in fields if one], closed=True)]


class TextTable(NamedTuple):
    """A table's column heads, () if it has none, and its rows of cells."""

    head: tuple[str, ...]
    rows: list[list[str]]


def read_table(text: str, keys: Callable[[str], bool]) -> TextTable | None:
    """Return the last table of a text, in Markdown, in lines of signs, of tabs, or of commas; None if there is none.

    keys: returns whether a cell can be the head of a column, as a table in commas needs one.
    """
    lines = text.split("\n")
    if any(_FIXED.fullmatch(line) for line in lines):
        lines = ["|---|" if _FIXED.fullmatch(line) else re.sub(r"[ \t]{2,}", " | ", line.strip()) for line in lines]
    blocks = [[*block] for barred, block in groupby(lines, lambda line: "|" in line or _RULE.fullmatch(line)) if barred]
    for block in reversed(blocks):
        rows = [_cells(line) for line in block if not _RULE.fullmatch(line)]
        inner = [at for at, line in enumerate(block) if at and _RULE.fullmatch(line) and "|" in line + block[at - 1]]
        if rows and inner and (len(rows) > 1 or inner[0] == len(block) - 1):
            return TextTable(tuple(rows[0]), rows[1:])
        if len(rows) > 1 and all(len(row) > 1 for row in rows):
            return TextTable(tuple(rows[0]), rows[1:]) if any(map(keys, rows[0])) else TextTable((), rows)
    for mark in "\t;,":
        try:
            read = csv.reader(lines, delimiter=mark, skipinitialspace=True)
            rows = [[cell.strip() for cell in row] for row in read if row]
        except csv.Error:  # an open quotation mark before a very long text
            continue
        widths = {*map(len, rows[:-1])}
        if len(rows) > 1 and widths == {len(rows[0])} != {1} and len(rows[-1]) <= len(rows[0]):
            if any(map(keys, rows[0])) and all(len(cell.split()) < 4 for cell in rows[0]):
                return TextTable(tuple(rows[0]), rows[1:])
            if mark == "\t":
                return TextTable((), rows)
    return None


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in re.split(r"(?<!\\)\|", line.strip().removeprefix("|").removesuffix("|"))]
