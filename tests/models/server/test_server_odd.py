"""Servers that are odd, hostile or half-broken: what they send ends no run, empties no row and betrays no key."""

import itertools
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from loopback import NAMES, Loopback, prompt_of
from opened import HASTY

from lmkbc import LmkbcError
from lmkbc.generate.language_model import AnswerGenerator
from lmkbc.testing import CandidateSet, Query

CANARY = "sk-canary-7f3a91c2"
BORDERS, CHILDREN = "CountryBordersCountry", "PersonHasNumberOfChildren"
Body = dict[str, Any]
Make = Callable[..., AnswerGenerator]


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", CANARY)


def one(generator: AnswerGenerator, *queries: Query) -> CandidateSet:
    (found,) = generator.generate(queries or [Query("land", BORDERS)])
    return found


def spain(_: Body) -> str:
    return '["Spain"]'


@pytest.mark.parametrize("where", ["model", "finish", "message", "cut"])
def test_a_key_that_the_server_echoes_anywhere_is_kept_nowhere(chat: Make, tmp_path: Path, where: str) -> None:
    def edit(_: Body, answer: Body) -> tuple[int, str] | None:
        answer["model"] = CANARY if where == "model" else answer["model"]
        answer["choices"][0]["finish_reason"] = CANARY if where == "finish" else "stop"
        texts = {"message": f"no {CANARY}", "cut": "x" * 189 + f" {CANARY}"}  # the latter across what is passed on
        return (400, texts[where]) if where in texts else None

    with Loopback(spain, change=edit) as server:
        generators = [chat(server), chat(server, any_model=True)]
        found: list[object] = []
        for generator in generators:
            try:
                found.append(one(generator))
            except LmkbcError as error:
                found.append(str(error))
    shown = repr([found, [generator.notes.remarks for generator in generators]])
    shown += "".join(path.read_bytes().decode("latin-1") for path in tmp_path.iterdir())
    assert "sk-canary" not in shown


def test_subjects_of_one_name_have_one_answer_now_and_ever_after(chat: Make) -> None:
    count = itertools.count()
    pair = [Query("Paris", BORDERS, "Q90"), Query("Paris", BORDERS, "Q830149")]
    with Loopback(lambda _: json.dumps([NAMES[next(count)]]), delay=0.05) as server:
        first, second = (list(chat(server).generate(pair)) for _ in range(2))
    assert server.served == 1
    assert [[c.text for c in one.candidates] for one in (*first, *second)] == [[NAMES[0]]] * 4


def test_no_request_asks_for_more_draws_than_servers_give(chat: Make) -> None:
    with Loopback(spain) as server:
        assert len(one(chat(server, sampling={"samples": 160})).draws) == 160
    assert [body["n"] for body in server.requests] == [128, 32]


def test_an_answer_that_was_taken_from_another_model_is_none_once_that_is_not_allowed(chat: Make) -> None:
    with Loopback(spain, faults=["wrong-model"]) as server:
        assert not one(chat(server, any_model=True)).failed
        assert not one(chat(server)).failed
        assert server.served == 2
        assert not one(chat(server, any_model=True)).failed
    assert server.served == 2


MURKY = "It depends on {subject} and on whom you ask, as it always has."
REPAIR = {"component": "llm2kb23/prompt", "repair": "No list: {{ answer }}\nWrite it like {{ list }}, or {{ null }}."}


def mending(said: str) -> Callable[[Body], str]:
    return lambda body: said if prompt_of(body).startswith("No list: ") else MURKY


def test_a_broken_answer_is_asked_for_as_a_list_once(chat: Make) -> None:
    with Loopback(mending('["Spain"]')) as server:
        found = [one(chat(server, prompt=REPAIR)) for _ in range(2)]
    assert server.served == 2
    assert prompt_of(server.requests[1]) == f'No list: {MURKY}\nWrite it like ["first name", "second name"], or [].'
    assert [[c.text for c in answered.candidates] for answered in found] == [["Spain"]] * 2


def test_a_repair_that_was_not_heard_is_asked_for_again_by_the_next_run(chat: Make) -> None:
    with Loopback(mending('["Spain"]'), faults=[None, "500"]) as server:
        assert one(chat(server, prompt=REPAIR, limits=replace(HASTY, total_wait=0.0))).failed
        assert [c.text for c in one(chat(server, prompt=REPAIR)).candidates] == ["Spain"]
    assert server.served == 3
