"""Who proposes something, and how files name it."""

from __future__ import annotations

from typing import NamedTuple
from urllib.parse import unquote

_ESCAPED_DRAW = str.maketrans({"%": "%25", ";": "%3B"})
_ESCAPED = _ESCAPED_DRAW | str.maketrans({"#": "%23"})


class Voice(NamedTuple):
    """Who proposes a candidate: a model, and which of its draws, clozes or sources; "" where it has but one.

    Its text, "MODEL#DRAW", stands in files alone, where several are joined by "; ": what would be taken for either
    sign is escaped there as in a URL.
    """

    model: str
    draw: str = ""

    def __str__(self) -> str:
        """The voice as a file names it; `read` is the way back."""
        model = self.model.translate(_ESCAPED)
        return f"{model}#{self.draw.translate(_ESCAPED_DRAW)}" if self.draw else model

    @classmethod
    def read(cls, text: str) -> Voice:
        """The voice that a file names."""
        model, _, draw = text.partition("#")
        return cls(unquote(model, errors="surrogateescape"), unquote(draw, errors="surrogateescape"))
