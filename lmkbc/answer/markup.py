"""Signs, tables and tags around an answer, which carry it and are no part of it.

Signs around an answer are those of vocabularies, LaTeX, links, references, flags and other scripts. The texts of tags
are an object whose keys are the tags; a table has heads and rows.
"""

from __future__ import annotations

import csv
import html
import re
import unicodedata
from collections.abc import Callable
from functools import lru_cache
from itertools import groupby
from typing import NamedTuple

from lmkbc.answer.literal import DEEPEST, Bracketed, Word
from lmkbc.words import FORM, WORDS, replaced

_WIDE = str.maketrans(
    {
        **dict(zip("，、；：（）［］｛｝＝｜＂＇．،؛؟？！｡।", ",,;:()[]{}=|\"'.,;??!..", strict=True)),
        **{chr(0xFF10 + digit): str(digit) for digit in range(10)},
        **dict.fromkeys("▁\u3000", " "),
        **dict.fromkeys("\u2028\u2029\x85", "\n"),
        **dict.fromkeys("─━═", "-"),
        **dict.fromkeys("│┃║┼├┤┌┐└┘┬┴╔╗╚╝╠╣╬╦╩", "|"),
    }
)
"""Signs of other scripts, blanks, line ends and lines of tables -> their plain forms."""


def without_signs(text: str) -> str:
    """Return an answer without signs that only carry it: its names and numbers, lists and lines stay."""
    if (sources := FORM.sources.search(text)) and text[: sources.start()].strip():
        text = text[: sources.start()]
    text = FORM.unprinted.sub("", text)
    if "\n" not in text and text[:1] not in ('"', "{", "["):
        text = re.sub(r"\\n(?=[A-Z*\d-])", "\n", text)
    if "Ġ" in text or "Ċ" in text:
        text = _from_bytes(text)
    text = FORM.braced.sub(r"^\1", text.replace("{,}", ","))
    if text.isascii() and not any(mark in text for mark in "\\$[<&^~"):
        return text
    text = FORM.bytes.sub(lambda raw: bytes.fromhex(re.sub(r"<0x|>", "", raw[0])).decode(errors="replace"), text)
    text = unescaped(text)
    text = FORM.circled.sub(lambda one: f"{unicodedata.digit(one[0], 0) or int(unicodedata.numeric(one[0]))}. ", text)
    text = replaced(text.translate(_WIDE), "plain")
    if "\\" in text or "$" in text:
        text = _from_latex(text)
    if FORM.ticked.search(text):
        text = FORM.ticked.sub(r"\1", FORM.not_ticked.sub("", text))
    text = FORM.reference.sub("", replaced(text, "links"))
    return FORM.picture.sub("", text) if re.search(r"\w", FORM.picture.sub("", text)) else text


def unescaped(text: str) -> str:
    """Return a text with characters in place of HTML's references; one of more digits than any has is U+FFFD."""
    return html.unescape(FORM.no_reference.sub("\ufffd", text)) if "&" in text else text


def _from_latex(text: str) -> str:
    text = re.sub(r"\\textsuperscript\s*\{([^{}]*)\}", r"^\1", re.sub(r"(?<=\S)\s?\\\[\d{1,2}\\\]", "", text))
    if boxes := _boxes(text):
        text = ", ".join(boxes)
    elif not re.search(r"\\(?![\"'/nrtu])|\$[^$\n]*\$", text):
        return text
    for _ in range(DEEPEST):
        text = FORM.latex_text.sub(r"\1", text)
    if re.search(r"\\begin\{(?:tabular|array)", text):
        line = r"(?m)^([^\n&]*(?<!\\)&[^\n]*?)\\\\"
        text = re.sub(line, lambda row: "| " + re.sub(r"(?<!\\)&", "|", row[1]) + " |", text)
    return replaced(text, "latex").strip()


def _boxes(text: str) -> list[str]:
    """Return what stands in the last boxes that follow each other."""
    found, end = list[str](), 0
    for box in FORM.boxed.finditer(text):
        follows = not re.sub(r"and|[\s,;$&]", "", text[end : box.start()])
        found, end = [*(found if follows else []), box[1]], box.end()
    return found


@lru_cache(maxsize=1)
def _alphabet() -> dict[str, int]:
    """Return the letters of byte-level BPE: printable bytes stand for themselves, the others from U+0100 on (GPT-2)."""
    printable = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    others = enumerate(sorted({*range(256)} - printable), start=0x100)
    return {chr(byte): byte for byte in printable} | {chr(code): byte for code, byte in others}


def _from_bytes(text: str) -> str:
    """Return the text that a byte-level vocabulary spells; unchanged if it is none."""
    if not FORM.byte_level.search(text):
        return text
    letters = _alphabet()
    if all(letter in letters for letter in text):
        return bytes(letters[letter] for letter in text).decode(errors="replace")
    return text.replace("Ġ", " ").replace("Ċ", "\n")


def unstyled(text: str) -> str:
    """Return a text without tags of style; a raised figure becomes a power."""
    if "<" not in text:
        return text
    return FORM.row.sub(
        lambda row: f"\n| {FORM.cells.sub(' | ', row['cells'])} |" + ("\n|---|" if row["kind"] in "hH" else ""),
        FORM.inline_tag.sub("", replaced(FORM.raised.sub(_raised, text), "tags")),
    )


def _raised(mark: re.Match[str]) -> str:
    """Return a raised power, "" for the mark of a reference."""
    if not mark[1].strip("+-").isdigit() or mark[0][3] in "bB":
        return mark[1] if mark[1].strip("[]").isalnum() and mark[0][3] in "bB" else ""
    before = mark.string[max(0, mark.start() - 2) : mark.start()]
    return f"^{mark[1]}" if before.endswith(("m", "mi", "ft")) or not before[-1:].isalpha() else ""


def read_tags(text: str) -> list[Bracketed]:
    """Return the texts of a text's innermost tags as one object, whose keys are the tags; none without such tags."""
    leaves = list(FORM.leaf.finditer(text)) or list(FORM.empty.finditer(text))
    words = [
        Word(
            leaf["text"].strip(),
            quoted=True,
            key="item" if leaf["tag"].casefold() in WORDS["list_tags"] else leaf["tag"],
        )
        for leaf in leaves
        if leaf["text"].strip()
    ]
    return [Bracketed("{", [*words], closed=True)] if words else []


def read_fields(text: str) -> list[Bracketed]:
    """Return the texts of tags, else lines such as "city: Paris", as one object; none for other texts."""
    if "<" in text and (tagged := read_tags(text)):
        return tagged
    fields = [FORM.line_field.fullmatch(line) for line in text.split("\n") if line.strip()]
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
    if any(FORM.fixed.fullmatch(line) for line in lines):
        lines = ["|---|" if FORM.fixed.fullmatch(line) else re.sub(r"[ \t]{2,}", " | ", line.strip()) for line in lines]
    blocks = [
        [*block] for barred, block in groupby(lines, lambda line: "|" in line or FORM.rule.fullmatch(line)) if barred
    ]
    for block in reversed(blocks):
        bare = [line.strip().removeprefix("|").removesuffix("|") for line in block if not FORM.rule.fullmatch(line)]
        rows = [[*map(str.strip, re.split(r"(?<!\\)\|", line))] for line in bare]
        inner = [
            at for at, line in enumerate(block) if at and FORM.rule.fullmatch(line) and "|" in line + block[at - 1]
        ]
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
        whole = len(rows) > 1 and len(rows[-1]) == len(rows[0])
        if widths == {len(rows[0])} != {1} and (whole or (len(rows) > 2 and len(rows[-1]) < len(rows[0]))):
            short = [len(cell.split()) < 4 and not re.search(r":|\b\d", cell) for cell in rows[0]]
            if any(map(keys, rows[0])) and all(short):  # "Capacity: 20" of "Capacity: 20,000" is no head
                return TextTable(tuple(rows[0]), rows[1:])
            if mark == "\t":
                return TextTable((), rows)
    return None
