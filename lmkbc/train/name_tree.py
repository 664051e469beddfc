"""A tree of names, which finds all of them in a text in one pass."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

_END = ""
"""Key that marks the end of a name in a tree of words; no word is empty."""


class NameTree:
    """Tree of the words of names, which finds all names in a text in one pass."""

    def __init__(self) -> None:
        self._root: dict[str, Any] = {}

    def add(self, words: Sequence[str]) -> None:
        """Add a name of at least one word."""
        node = self._root
        for word in words:
            node = node.setdefault(word, {})
        node[_END] = True

    def find(self, words: Sequence[str]) -> Iterator[tuple[int, int]]:
        """Yield (start, end) of each name in a text, counted in words; also for names inside longer ones."""
        for start, word in enumerate(words):
            if word not in self._root:
                continue
            node, end = self._root, start
            while end < len(words) and (node := node.get(words[end], {})):
                end += 1
                if _END in node:
                    yield start, end
