"""Require support of a group of numbers, and end rounds with few new names (madalinmdv, LM-KBC 2026)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from lmkbc.ask.steps import Expand
from lmkbc.errors import refuse
from lmkbc.select.numeric import Ball
from lmkbc.select.ranking import Floats


@dataclass(frozen=True, kw_only=True)
class SupportedBall(Ball):
    """As `ball`, but nothing is answered if no vote has the given support."""

    name: ClassVar[str] = "mdv26/ball"
    support: float

    def points(self, values: Floats, weights: Floats) -> Sequence[float]:
        """Return the point of the ball, or nothing."""
        is_enough = max(self.supports(values, weights)) >= self.support - 1e-9
        return super().points(values, weights) if is_enough else ()


@dataclass(frozen=True, kw_only=True)
class ExpandUntil(Expand):
    """Further rounds, of which the first that names fewer new objects than `until_new` is the last."""

    until_new: int = 1

    def __post_init__(self) -> None:
        """Raise ValueError for a number without effect."""
        Expand.__post_init__(self)
        refuse((self.until_new < 1, "until_new is at least 1"))

    def least(self, turn: int) -> int:
        """Return the fewest new objects after which an answer is asked again."""
        return self.until_new if turn else 1


COMPONENTS = {SupportedBall.name: SupportedBall, "mdv26/expand": ExpandUntil}
