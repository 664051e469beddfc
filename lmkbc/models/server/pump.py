"""Many items at a time are asked of a server; each answer is handed on as it comes."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import TypeVar

from lmkbc.models.server.session import Session

Item = TypeVar("Item")
Answer = TypeVar("Answer")


def pumped(
    session: Session,
    items: Sequence[Item],
    answer: Callable[[Item], Awaitable[Answer]],
    before: Callable[[], Awaitable[object]] | None = None,
) -> Iterator[Answer]:
    """Yield the answer to each item; see `Session.answers`."""
    return session.answers(items, answer, before)
