"""How a long run says where it is: one callback, which terminals, log lines and tests each answer in their own way."""

from __future__ import annotations

from collections.abc import Callable

Report = Callable[[str, int, int | None], None]
"""Called with (step, done, total) as a run goes on: first with 0 done, where the total is known before the work."""


def silent(step: str, done: int, total: int | None) -> None:
    """Report nothing."""
