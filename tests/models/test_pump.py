"""The pump: bounded, in the order of the answers, and nothing of it goes on once it has ended."""

from __future__ import annotations

import asyncio
from itertools import islice
from types import SimpleNamespace
from typing import Any

import pytest

from lmkbc.models.server.pump import pumped


class Session(SimpleNamespace):
    """As much of a session as the pump knows."""

    def __init__(self, concurrency: int) -> None:
        super().__init__(limits=SimpleNamespace(concurrency=concurrency), closed=0)

    async def close(self) -> None:
        self.closed += 1


class Asked:
    """Answers with the item once it is let; counts who is in flight."""

    def __init__(self, held: frozenset[int] = frozenset()) -> None:
        self.held, self.most, self.ended = held, 0, list[int]()
        self._flying = 0

    async def __call__(self, item: int) -> int:
        self._flying += 1
        self.most = max(self.most, self._flying)
        try:
            await (asyncio.Event().wait() if item in self.held else asyncio.sleep(0))
            return item
        finally:
            self._flying -= 1
            self.ended.append(item)


@pytest.mark.parametrize("concurrency", [1, 3, 50])
def test_every_item_is_answered_once_and_no_more_are_in_flight_than_may_be(concurrency: int) -> None:
    session: Any = Session(concurrency)
    asked = Asked()
    assert sorted(pumped(session, range(20), asked)) == [*range(20)]
    assert asked.most == min(concurrency, 20)
    assert session.closed == 1


def test_an_item_that_takes_long_holds_up_no_other() -> None:
    session: Any = Session(2)
    asked = Asked(held=frozenset({0}))
    answers = pumped(session, range(5), asked)
    assert [*islice(answers, 4)] == [1, 2, 3, 4]
    assert session.closed == 0
    answers.close()  # type: ignore[attr-defined]
    assert asked.ended == [1, 2, 3, 4, 0]
    assert session.closed == 1


@pytest.mark.parametrize("stage", ["before", "answer"])
def test_an_error_is_raised_where_answers_are_read_and_the_rest_is_ended(stage: str) -> None:
    session: Any = Session(2)
    asked = Asked(held=frozenset({0}))

    async def before() -> None:
        if stage == "before":
            raise ValueError(stage)

    async def answer(item: int) -> int:
        if item == 1:
            raise ValueError("answer")
        return await asked(item)

    with pytest.raises(ValueError, match=stage):
        list(pumped(session, range(3), answer, before))
    assert asked.ended == ([0] if stage == "answer" else [])
    assert session.closed == 1


def test_nothing_to_ask() -> None:
    session: Any = Session(2)
    assert list(pumped(session, [], Asked())) == []
    assert session.closed == 1
