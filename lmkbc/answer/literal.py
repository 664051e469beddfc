"""Tolerant reader of Python and JSON literals: lists, tuples and objects with broken quotes, brackets or ends.

It never fails, and looks at each character a bounded number of times. A quote closes a string only before a separator,
a bracket or the end of the line, so apostrophes and inner quotes need no escape. A missing quote is repaired at the
start of the next element. Nothing is evaluated.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from lmkbc.words import FORM

DEEPEST = 8
LONGEST_STRING = 1000
_OPENING = {"[": "]", "(": ")", "{": "}"}
_QUOTES = {'"': '"', "'": "'", "`": "`", "“": "”", "‘": "’", "«": "»", "„": "“"}


class Word(NamedTuple):
    """Element of a literal.

    quoted: whether it is in quotes. whole: whether its end was seen. key: its key in an object.
    """

    text: str
    quoted: bool
    whole: bool = True
    key: str | None = None


@dataclass(slots=True)
class Bracketed:
    """A bracket and its items. closed: whether it ended before the text did."""

    bracket: str
    items: list[Word | Bracketed] = field(default_factory=list)
    closed: bool = False
    key: str | None = None

    def words(self) -> Iterator[Word]:
        """Yield all words inside, in order."""
        for item in self.items:
            if isinstance(item, Bracketed):
                yield from item.words()
            else:
                yield item


class Reader:
    """Reads the literals of one text. commas: whether a comma separates the unquoted elements of a list."""

    def __init__(self, text: str, commas: bool = True) -> None:
        self._text = text
        self._list_item = FORM.bare if commas else FORM.bare_with_commas
        self._closers: dict[str, list[int]] = {mark: [] for mark in _QUOTES.values()}
        for match in FORM.closer.finditer(text):
            self._closers[match[0]].append(match.start())

    def read(self, start: int) -> tuple[Bracketed, int]:
        """Return the literal whose bracket is at `start`, and the position after it."""
        text, at = self._text, start + 1
        root = Bracketed(text[start])
        stack, key = [root], None
        while at < len(text) and stack:
            char, group = text[at], stack[-1]
            if char.isspace() or char in ",;":
                at += 1
            elif char == ":" and group.bracket == "{":
                last = group.items.pop() if group.items else None
                key = last.text if isinstance(last, Word) else None
                at += 1
            elif char in _OPENING and len(stack) < DEEPEST:
                stack.append(Bracketed(char, key=key))
                group.items.append(stack[-1])
                key, at = None, at + 1
            elif char in "])}":
                _close(stack, char)
                at += 1
            else:
                words, at = self._quoted(at) if char in _QUOTES else self._bare(at, group.bracket)
                group.items += [word._replace(key=key) for word in words]
                key = None
        return root, at

    def _bare(self, at: int, bracket: str) -> tuple[list[Word], int]:
        pattern = {"[": self._list_item, "{": FORM.bare_in_object}.get(bracket, FORM.bare)
        match = pattern.match(self._text, at)
        if match is None:  # a bracket nested too deep
            return [], at + 1
        return [Word(match[0].strip(), quoted=False, whole=match.end() < len(self._text))], match.end()

    def _quoted(self, at: int) -> tuple[list[Word], int]:
        text, mark = self._text, self._text[at]
        limit = min(at + LONGEST_STRING, len(text))
        closers = self._closers[_QUOTES[mark]]
        place = bisect_right(closers, at)
        closer = closers[place] if place < len(closers) else limit
        end = closer if closer < limit else next((i for i in range(at + 1, limit) if text[i] in "]}\n"), limit)
        parts = re.split(rf",\s*{mark}", text[at + 1 : end])  # where a closing quote is missing before an element
        words = [Word(_unescaped(part), quoted=True) for part in parts]
        if closer < limit:
            return words, end + 1
        return [*words[:-1], words[-1]._replace(whole=end < len(text))], end


def read_literals(text: str, commas: bool = True) -> list[Bracketed]:
    """Return the literals of an answer: those at the start of a text, else the last ones that prose introduces.

    Literals belong together if only separators, bullets or "and" stand between them.
    """
    reader, at = Reader(text, commas), 0
    chosen: list[Bracketed] = []
    while match := FORM.start.search(text, at):
        start, run = match.start(), list[Bracketed]()
        if not start and text[0] == "(" and text[1:].lstrip()[:1] not in _QUOTES and text.rstrip()[-1] != ")":
            at = 1  # the bracket opens a name like "(G)I-DLE"
            continue
        at = start
        while True:
            group, at = reader.read(at)
            run.append(group)
            between = FORM.between.match(text, at)
            following = between.end() if between else at
            if not FORM.start.match(text, following):
                break
            at = following
        if start == 0:
            return run
        if _is_answer(run, text[max(0, start - 20) : start]):
            chosen = run
    return chosen


def _is_answer(run: list[Bracketed], before: str) -> bool:
    if before.rstrip().endswith((":", "=", "is", "be")):
        return True
    return any(has_empty_list(group) or any(word.quoted or word.key for word in group.words()) for group in run)


def has_empty_list(group: Bracketed) -> bool:
    """Return whether a literal holds an empty list, which means that there is no object."""
    inner = (item for item in group.items if isinstance(item, Bracketed))
    return (group.closed and not group.items) or any(map(has_empty_list, inner))


def _close(stack: list[Bracketed], char: str) -> None:
    """Close the group of a bracket, and the open groups inside it; a wrong bracket closes the last group."""
    owners = [index for index, group in enumerate(stack) if _OPENING[group.bracket] == char]
    for _ in range(len(stack) - (owners[-1] if owners else len(stack) - 1)):
        stack.pop().closed = True


def _unescaped(text: str) -> str:
    if "\\" not in text:
        return text
    plain = FORM.escape.sub(
        lambda m: chr(int(m[1] or m[2], 16)) if m[1] or m[2] else m[3] or ("\n" if m[0] == r"\n" else " "), text
    )
    return plain.encode("utf-16", "surrogatepass").decode("utf-16", "replace")  # half a surrogate pair is no character
