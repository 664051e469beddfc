"""Ends of answers that a model continues: after a closed list, and in a loop."""

from __future__ import annotations

import re

LOOP = 24
"""Tokens that must repeat with one period, at least three times, to count as a loop.

No list of different names repeats like this. A small model in a loop hardly ever leaves it.
"""

PERIOD = 32
"""Tokens of the longest period that is searched."""

_CLOSING = {"[": "]", "(": ")", "{": "}"}
_QUOTES = {'"': '"', "'": "'", "`": "`", "“": "”", "‘": "’", "«": "»", "„": "“"}
_OPENS = re.compile(r"""\s*(?=[\[{]|\(\s*["'“‘])""")
_MARK = re.compile(r"""[\[\](){}]|(?<=[\[({,;:\s])["'`“‘«„]""")
_CLOSERS = {mark: re.compile(rf"(?<!\\){mark}(?=\s*[,;:\])}}]|[ \t]*\n)") for mark in set(_QUOTES.values())}


class Repeats:
    """Counts, for each period, how many tokens in a row equal the token one period before."""

    def __init__(self) -> None:
        self._tokens: list[int] = []
        self._runs = [0] * (PERIOD + 1)

    def take(self, token: int) -> bool:
        """Add a token, and return whether the tokens end in a loop."""
        for period, before in enumerate(reversed(self._tokens), start=1):
            self._runs[period] = self._runs[period] + 1 if before == token else 0
        self._tokens = [*self._tokens[1 - PERIOD :], token]
        return any(run + period >= max(LOOP, 3 * period) for period, run in enumerate(self._runs) if period)


def list_end(text: str) -> int | None:
    """Return the end of the list, tuple or object at the start of a text; None if it is open, or for other text.

    A string ends at a quote before a separator, a bracket or the end of the line, as in the parser. Errors that the
    parser repairs, such as mismatched brackets or a string without end, count as open.
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
