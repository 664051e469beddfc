"""The loop over the store: look up, ask the rest, commit."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from calls import CALL

from lmkbc.models.answers import KeptAnswers, KeptOptions, Scored, Store
from lmkbc.testing import Reply

CALLS = [replace(CALL, draw=draw) for draw in range(6)]


def asked_or_kept(store: Store | None, ask: Any, calls: Any = CALLS) -> dict[int, Any]:
    answers = KeptAnswers(store, calls, Reply, lambda reply: reply.is_answer)
    found = dict(answers.stored)
    for batch in ask(answers.missing):
        found |= answers.keep(batch)
    assert answers.found == [found[place] for place in range(len(calls))]
    return found


@pytest.mark.parametrize("keeps", [True, False])
def test_only_what_is_lacking_is_asked_and_only_answers_are_kept(tmp_path: Path, keeps: bool) -> None:
    store = Store(tmp_path / "s.sqlite") if keeps else None
    asked: list[list[int]] = []
    fresh = {1: Reply("one"), 2: None, 3: Reply(""), 4: Reply("four")}

    def ask(missing: list[int]) -> Iterator[Mapping[int, Reply | None]]:
        asked.append(missing)
        for start in range(0, len(missing), 2):
            yield {place: fresh.get(place, Reply("new")) for place in missing[start : start + 2]}

    if store:
        store.put([(CALLS[0], {"text": "stored"}), (CALLS[5], {"text": ""})])  # the latter is no answer
    found = asked_or_kept(store, ask)
    assert found == {0: Reply("stored" if keeps else "new"), 5: Reply("new"), **fresh}
    assert asked == [[*range(1, 6)] if keeps else [*range(6)]]
    assert asked_or_kept(store, ask) == found
    assert asked[1:] == [[2, 3] if keeps else [*range(6)]]


def test_an_answer_of_another_worker_that_came_first_is_the_answer(tmp_path: Path) -> None:
    store, other = Store(tmp_path / "s.sqlite"), Store(tmp_path / "s.sqlite")

    def ask(missing: list[int]) -> Iterator[Mapping[int, Reply]]:
        for place in missing:
            other.put([(CALLS[place], {"text": "theirs"})])
            yield {place: Reply("ours")}

    assert asked_or_kept(store, ask, CALLS[:2]) == {0: Reply("theirs"), 1: Reply("theirs")}


def test_what_was_asked_before_a_stop_is_kept(tmp_path: Path) -> None:
    store = Store(tmp_path / "s.sqlite")

    def ask(missing: list[int]) -> Iterator[Mapping[int, Reply]]:
        yield {missing[0]: Reply("x")}
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        asked_or_kept(store, ask)
    assert Store(tmp_path / "s.sqlite").get(CALLS[0], Reply) == Reply("x")


def test_a_list_that_grew_is_asked_for_its_new_options_alone(tmp_path: Path) -> None:
    store, other = Store(tmp_path / "s.sqlite"), Store(tmp_path / "s.sqlite")

    def listed(*options: str) -> KeptOptions:
        return KeptOptions(store, [replace(CALL, sampling={"options": [*options]})])

    first = listed("a", "b")
    assert [[*call.sampling["options"]] for call in first.asked.values()] == [["a", "b"]]
    assert first.rows() == [None]
    first.keep({0: Scored({"a": -1.0, "b": None}, prompt_tokens=3)})
    again = listed("b", "a", "a")
    assert (again.asked, again.rows()) == ({}, [[-math.inf, -1.0, -1.0]])
    grown = listed("a", "c", "d")
    assert [[*call.sampling["options"]] for call in grown.asked.values()] == [["c", "d"]]
    KeptOptions(other, [replace(CALL, sampling={"options": ["e"]})]).keep({0: Scored({"e": -5.0})})
    grown.keep({0: Scored({"c": -3.0, "d": -4.0}, prompt_tokens=2)})
    assert grown.rows() == [[-1.0, -3.0, -4.0]]
    assert listed("e", "d", "c", "b", "a").rows() == [[-5.0, -4.0, -3.0, -math.inf, -1.0]]
    assert listed().rows() == [[]]
    assert [row["prompt_tokens"] for row in store.stats()] == [5]
    assert KeptOptions(store, [replace(CALL, sampling={"words": ["a"]})]).rows() == [None]  # of a plain prompt
