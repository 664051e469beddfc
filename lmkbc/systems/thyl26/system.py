"""Count only the first names of a draw (thylinao1, LM-KBC 2026)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lmkbc.ask.style import PromptStyle
from lmkbc.errors import refuse


@dataclass(frozen=True, kw_only=True)
class FirstNamesStyle(PromptStyle):
    """A prompt whose answers are read up to a number of names.

    most: maximum number of names of a draw that count, from the first; 0 for all.
    """

    most: int = 0

    def __post_init__(self) -> None:
        """Raise ValueError for a number that makes no sense."""
        PromptStyle.__post_init__(self)
        refuse((self.most < 0, f"most is {self.most}: give a number of names, or 0 for all"))

    def counted(self, objects: Sequence[str]) -> Sequence[str]:
        """Return the first objects."""
        return objects[: self.most or None]

    def most_objects(self, tokens: int) -> int:
        """Return the most objects of a draw."""
        return self.most or super().most_objects(tokens)


COMPONENTS = {"thyl26/prompt": FirstNamesStyle}
