"""Where context comes from, as a recipe says it.

A provider finds passages for queries. Where its text comes from decides whether a run is closed-book: "recall" asks the
model itself, "titles" and "passages" read text from outside it, which a closed-book recipe must not do.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextSettings:
    """Where context comes from, as a recipe's plain data.

    path: a JSONL file with "title" and "text" per line, which "titles" and "passages" read; "from" for the one that
    --from names. passages: how many are told of at most. words: how long a passage is, overlap: how many words it
    shares with the one before (both 0: as read).
    """

    provider: Literal["none", "titles", "passages", "recall"] = "none"
    path: str = ""
    passages: int = 1
    words: int = 300
    overlap: int = 50

    def __post_init__(self) -> None:
        """ValueError for a value that makes no sense."""
        if self.reads and not self.path:
            raise ValueError(f"{self.provider!r} lacks path: name a JSONL file of title and text")
        if self.passages < 1 or self.words < 0 or not 0 <= self.overlap <= max(self.words - 1, 0):
            raise ValueError("passages is at least 1, and overlap is below words")

    @property
    def reads(self) -> bool:
        """Whether it reads text from outside the model, which a closed-book recipe must not do."""
        return self.provider in ("titles", "passages")
