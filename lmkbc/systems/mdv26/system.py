"""What madalinmdv alone does (LM-KBC 2026): a group of numbers counts if enough ways of asking are in it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

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


COMPONENTS = {SupportedBall.name: SupportedBall}
