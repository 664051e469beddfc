"""A conversation, the same for every back end: which replies are followed by what, and what then counts."""

from collections.abc import Sequence
from typing import Any

import pytest
from opened import asks
from space import MINI, RELATIONS, TRAIN

from lmkbc.ask.builder import PromptBuilder
from lmkbc.generate.conversation import Conversation
from lmkbc.models.base import Response, next_requests
from lmkbc.testing import CandidateSet, Notes, Passage, Query, Reply, State

QUERY = Query("Peru", "CountryBordersCountry")
MURKY = "It depends on whom you ask, as it always has."
REPAIRED = {"component": "llm2kb23/prompt", "repair": "Mend {{ answer }} as {{ list }}"}
FOLLOWED = {"component": "llmke23/prompt", "follow_up": "It is said: {{ context }} And now?"}


class Telling:
    """Knows something of every subject."""

    def find(self, queries: Sequence[Query]) -> list[tuple[Passage, ...]]:
        return [(Passage("", "It has coasts."),) for _ in queries]


def conversation(draws: int, style: dict[str, str]) -> Conversation:
    """One that has begun about the query."""
    tables = {"prompt": style, "sampling": {"samples": draws}}
    made = Conversation(PromptBuilder(MINI, RELATIONS, TRAIN, asks(tables)), RELATIONS, "m", Telling(), Notes())
    made.begin([QUERY])
    return made


def held(dialogue: Any, *rounds: Sequence[Reply | None]) -> tuple[list[list[Any]], CandidateSet | None]:
    """Return what is asked, round after round, and the result. A round's replies are one request's or one to each."""
    requests, result = next_requests(dialogue)
    asked = [requests]
    for replies in rounds:
        several = len(requests) > 1
        said = [[reply] for reply in replies] if several else [replies]
        requests, result = next_requests(
            dialogue, [Response(one.prompt, its) for one, its in zip(requests, said, strict=True)]
        )
        asked.append(requests)
    return asked, result


@pytest.mark.parametrize("style", [REPAIRED, FOLLOWED], ids=["repaired", "followed"])
@pytest.mark.parametrize(
    "silent",
    [
        None,
        Reply(""),
        Reply("\u200b"),
        Reply("<think>Chile</think> "),
        Reply("<think>Chile", "length"),
        Reply('["Chile"]', "error"),
        Reply(MURKY, "refusal"),
        Reply(MURKY, "content_filter"),
    ],
)
def test_a_draw_that_says_nothing_or_is_withheld_is_left_alone(silent: Reply | None, style: dict[str, str]) -> None:
    dialogue = conversation(3, style).dialogue(QUERY)
    asked, _ = held(dialogue, [silent, Reply(MURKY), silent], [Reply(MURKY)])
    assert [[one.draws for one in requests] for requests in asked] == [[(0, 1, 2)], [(1,)], []]


def test_a_lost_second_answer_is_a_lost_answer() -> None:
    _, result = held(conversation(1, FOLLOWED).dialogue(QUERY), [Reply('["Chile"]')], [None])
    assert (result and result.draws) == (State.MISSING,)


def test_what_is_no_list_is_asked_for_as_one_and_a_repair_without_objects_does_not_count() -> None:
    repairs = [Reply('["Chile"]'), Reply("[]"), Reply(MURKY), None]
    dialogue = conversation(6, REPAIRED).dialogue(QUERY)
    asked, result = held(dialogue, [Reply('["Bolivia"]'), *[Reply(MURKY)] * 4, Reply("[]")], repairs)
    assert [one.draws for one in asked[1]] == [(1,), (2,), (3,), (4,)]
    assert all(MURKY in one.prompt.text for one in asked[1])
    assert result is not None
    unread = State.UNPARSED
    assert result.draws == (State.ANSWERED, State.ANSWERED, unread, unread, unread, State.ABSTAINED)
