"""A conversation, the same for every back end: which replies are followed by what, and what then counts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from opened import asks

from lmkbc.ask.plan import Asking
from lmkbc.generate.conversation import Conversation
from lmkbc.models.base import Prompt, Reply
from lmkbc.types import Notes, Passage, Query, State
from lmkbc.workspace import Workspace

SPACE = Workspace()
EDITION = SPACE.edition("mini")
RELATIONS = {name: SPACE.relation(name) for name in EDITION.relations}
QUERY = Query("Peru", "CountryBordersCountry")
MURKY = "It depends on whom you ask, as it always has."
STYLE = {"form": "chat", "again": "It is said: {context} And now?", "repair": "Mend {answer} as {list}"}


class Telling:
    """Knows something of named subjects, but cannot tell what of one."""

    def find(self, queries: Sequence[Query]) -> list[tuple[Passage, ...] | None]:
        assert all(query.subject for query in queries)
        return [None if query.subject == "lost" else (Passage("", "It has coasts."),) for query in queries]


def conversation(notes: Notes | None = None, **style: Any) -> tuple[Conversation, Prompt]:
    """One that has begun about the query, and its prompt."""
    asking = Asking(EDITION, RELATIONS, SPACE.examples(EDITION, "train"), asks({"prompt": STYLE | style}))
    talk = Conversation(asking, RELATIONS, "m", Telling(), notes or Notes())
    talk.begin([QUERY, Query(" ", QUERY.relation), Query("lost", QUERY.relation)])
    (prompt,) = talk.prompts(QUERY)
    return talk, prompt


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
def test_a_draw_that_says_nothing_or_is_withheld_is_left_alone(silent: Reply | None) -> None:
    talk, prompt = conversation()
    for turn in talk.turns:
        assert list(talk.following(turn, QUERY, prompt, [silent, Reply(MURKY), silent])) == [1]


def test_the_second_turn_goes_on_with_the_answer_and_what_was_found() -> None:
    talk, prompt = conversation()
    second, _ = talk.turns
    after = talk.following(second, QUERY, prompt, [Reply('["Chile"]')])[0]
    *before, answer, turn = after.messages()
    assert before == prompt.messages()
    assert answer == {"role": "assistant", "content": '["Chile"]'}
    assert turn == {"role": "user", "content": "It is said: It has coasts. And now?"}
    assert second.counts(QUERY, None)  # a lost second answer is a lost answer


def test_what_is_no_list_is_asked_for_as_one_and_a_repair_without_objects_does_not_count() -> None:
    talk, prompt = conversation()
    _, repair = talk.turns
    after = talk.following(repair, QUERY, prompt, [Reply('["Chile"]'), Reply(MURKY), Reply("[]")])
    assert [MURKY in one.text for one in after.values()] == [True]
    assert list(after) == [1]
    assert [repair.counts(QUERY, one) for one in (Reply('["Chile"]'), Reply("[]"), Reply(MURKY), None)] == [
        True,
        False,
        False,
        False,
    ]


def test_without_either_in_its_style_nothing_follows() -> None:
    talk, prompt = conversation(again="", repair="")
    assert not any(talk.following(turn, QUERY, prompt, [Reply(MURKY)]) for turn in talk.turns)


@pytest.mark.parametrize("subject", [" ", "lost"])
def test_what_cannot_be_asked_about_is_missing_and_not_empty(subject: str) -> None:
    notes = Notes()
    talk, _ = conversation(notes)
    query = Query(subject, QUERY.relation)
    assert talk.prompts(query) == []
    assert talk.candidates(query, []).draws == (State.MISSING,)
    assert set(notes.passages) == {QUERY}
