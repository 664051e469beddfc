"""The end of an answer after which the model goes on: behind its list, or where it only repeats itself."""

from __future__ import annotations

import re

LOOP = 24
"""Tokens that repeat with one period, three times at least, before an answer counts as one that goes round in circles.

No list of different names does; a small model that has come there hardly ever finds out of it.
"""

PERIOD = 32
"""Tokens of the longest period that is looked for."""

_CLOSING = {"[": "]", "(": ")", "{": "}"}
_QUOTES = {'"': '"', "'": "'", "`": "`", "“": "”", "‘": "’", "«": "»", "„": "“"}
_OPENS = re.compile(r"""\s*(?=[\[{]|\(\s*["'“‘])""")
_MARK = re.compile(r"""[\[\](){}]|(?<=[\[({,;:\s])["'`“‘«„]""")
_CLOSERS = {mark: re.compile(rf"(?<!\\){mark}(?=\s*[,;:\])}}]|[ \t]*\n)") for mark in set(_QUOTES.values())}


class Repeats:
    """Counts, for each period, how many tokens in a row are those of a period before."""

    def __init__(self) -> None:
        self._tokens: list[int] = []
        self._runs = [0] * (PERIOD + 1)

    def take(self, token: int) -> bool:
        """Add a token. Whether the tokens so far end in a loop; what comes after does not change that."""
        for period, before in enumerate(reversed(self._tokens), start=1):
            self._runs[period] = self._runs[period] + 1 if before == token else 0
        self._tokens = [*self._tokens[1 - PERIOD :], token]
        return any(run + period >= max(LOOP, 3 * period) for period, run in enumerate(self._runs) if period)


def list_end(text: str) -> int | None:
    """Return the end of the list, tuple or object that a text starts with; None while it is open, or for another text.

    A string ends at a quote that a separator, a bracket or the end of the line follows, as the parser has it; but what
    the parser repairs, such as brackets that do not match or a string without end, is taken for open.
    """
    if not (opening := _OPENS.match(text)):
        return None
    open_brackets: list[str] = []
    at = opening.end()
    while mark := _MARK.search(text, at):
        char, at = mark[0], mark.end()
        if char in _CLOSING:
            open_brackets.append(_CLOSING[char])
        elif char in _QUOTES:
            closer = _CLOSERS[_QUOTES[char]].search(text, at)
            if closer is None:
                return None
            at = closer.end()
        elif open_brackets.pop() != char:
            return None
        if not open_brackets:
            return at
    return None
