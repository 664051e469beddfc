"""All requests share how many of them run at a time."""

import asyncio
from itertools import islice

import pytest

from lmkbc.http import pooled


class Asked:
    """Answers with the item once it is let; counts who is in flight."""

    def __init__(self, held: frozenset[int] = frozenset()) -> None:
        self.held, self.most, self.ended, self.closed = held, 0, list[int](), 0
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

    async def close(self) -> None:
        self.closed += 1


@pytest.mark.parametrize("items", [0, 20])
@pytest.mark.parametrize("workers", [1, 3, 50])
def test_every_item_is_answered_once_and_no_more_are_in_flight_than_may_be(workers: int, items: int) -> None:
    asked = Asked()
    assert sorted(pooled(range(items), asked, workers, close=asked.close)) == [*range(items)]
    assert asked.most == min(workers, items)
    assert asked.closed == 1


def test_an_item_that_takes_long_holds_up_no_other() -> None:
    asked = Asked(held=frozenset({0}))
    answers = pooled(range(5), asked, 2, close=asked.close)
    assert [*islice(answers, 4)] == [1, 2, 3, 4]
    assert asked.closed == 0
    answers.close()
    assert asked.ended == [1, 2, 3, 4, 0]
    assert asked.closed == 1


@pytest.mark.parametrize("stage", ["before", "answer"])
def test_an_error_is_raised_where_answers_are_read_and_the_rest_is_ended(stage: str) -> None:
    asked = Asked(held=frozenset({0}))

    async def before() -> None:
        if stage == "before":
            raise ValueError(stage)

    async def answer(item: int) -> int:
        if item == 1:
            raise ValueError("answer")
        return await asked(item)

    with pytest.raises(ValueError, match=stage):
        list(pooled(range(3), answer, 2, before=before, close=asked.close))
    assert asked.ended == ([0] if stage == "answer" else [])
    assert asked.closed == 1
