"""All requests share: which addresses are good, how long to wait, how much to read, how many at a time."""

import asyncio
import math
from itertools import islice

import pytest
from hypothesis import given
from hypothesis import strategies as st
from opened import part

from lmkbc.http import CallError, Pace, pooled, retry_after


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("7", 7.0),
        ("0.5", 0.5),
        ("-3", 0.0),
        ("nan", None),
        ("inf", None),
        ("soon", None),
        ("", None),
        (None, None),
        ("Wed, 21 Oct 2015 07:28:00 GMT", 0.0),
        ("Wed, 21 Oct 99999 07:28:00 GMT", None),
    ],
)
def test_seconds_that_are_named(value: str | None, seconds: float | None) -> None:
    assert retry_after(value) == seconds


def test_a_date_to_come() -> None:
    assert (retry_after("Wed, 21 Oct 2099 07:28:00 GMT") or 0) > 1e9


@given(
    st.text(max_size=40) | st.from_regex(r"[A-Z][a-z]{2}, [0-9]{1,9} (Jan|Feb) [0-9]{1,9} [0-9:]{5,12} [+-][0-9]{1,12}")
)
def test_what_is_found_is_finite_or_none(value: str) -> None:
    found = retry_after(value)
    assert found is None or 0 <= found < math.inf


FAILURES = {
    "one that passes": ([CallError("busy", transient=True)], 2),
    "one that stays": ([CallError("wrong", transient=False)], 1),
    "too many": ([CallError("busy", transient=True)] * 9, 6),
    "a wait that is too long": ([CallError("busy", transient=True, wait=1e6)], 1),
    "another error": ([ValueError("ours")], 1),
}


@pytest.mark.parametrize(("failures", "attempts"), FAILURES.values(), ids=FAILURES)
def test_what_passes_is_asked_again(failures: list[Exception], attempts: int) -> None:
    left, asked = iter(failures), list[int]()

    async def request() -> str:
        asked.append(1)
        if error := next(left, None):
            raise error
        return "answer"

    pace = Pace(part("limits", total_wait=0.1))
    if attempts > len(failures):
        assert asyncio.run(pace.retrying(request)) == "answer"
    else:
        with pytest.raises(type(failures[0])):
            asyncio.run(pace.retrying(request))
    assert len(asked) == attempts


def test_who_waits_is_told_once(caplog: pytest.LogCaptureFixture) -> None:
    async def request() -> str:
        raise CallError("no route")

    caplog.set_level("INFO", logger="lmkbc")
    pace = Pace(part("limits", total_wait=0.1))
    for _ in range(2):
        with pytest.raises(CallError):
            asyncio.run(pace.retrying(request))
    assert caplog.messages == ["no answer yet, trying up to 6 times: no route"]


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
