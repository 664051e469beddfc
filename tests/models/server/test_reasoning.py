"""Models that think before they answer: fields that they refuse, and thoughts, which are paid for and never read."""

import math
from pathlib import Path
from typing import Any

import pytest
from loopback import Body, Loopback, Reasoning
from opened import HASTY
from test_server_odd import BORDERS, Make, one, spain

from lmkbc.models.answers import Store
from lmkbc.models.plain_questions import paragraphs, texts, word_log_probabilities
from lmkbc.models.server.address import Server
from lmkbc.models.server.server_model import ServerModel
from lmkbc.testing import Notes, Query, State

LINE = {"parse_as": "line", "listing": "comma", "block": "{{ subject }}:", "answer": "Perhaps {{ answer }}"}
THOUGHT = '<think>Perhaps ["Peru"], Q419.</think>'
SAMPLING = {"temperature": 0.0, "max_tokens": 64, "logprobs": True, "extra": {"reasoning_effort": "low"}}


def thinking(**fields: Any) -> Any:
    """A server's change: the message of each answer gets these fields."""

    def edit(_: Body, answer: Body) -> None:
        choice = answer["choices"][0]
        choice["finish_reason"] = fields.get("finish", "stop")
        choice["message"] |= {name: value for name, value in fields.items() if name != "finish"}

    return edit


def test_refused_fields_are_found_out_once_for_a_model(chat: Make) -> None:
    with Reasoning(spain, delay=0.01) as server:
        generator = chat(server, sampling=SAMPLING)
        found = list(generator.generate([Query(f"land {place}", BORDERS) for place in range(20)]))
        first = len(server.requests)
        again = list(generator.generate([Query("another", BORDERS)]))
    assert not any(one.failed for one in (*found, *again))
    assert first <= 20 + 2 + HASTY.concurrency  # each refusal once, but for those that were in flight
    assert len(server.requests) == first + 1
    last = server.requests[-1]
    assert last.keys() == {"model", "messages", "max_completion_tokens", "reasoning_effort"}
    assert (last["max_completion_tokens"], last["reasoning_effort"]) == (64, "low")
    told = "the server takes no logprobs and max_tokens and temperature: asked with max_completion_tokens, and without"
    assert any(told in remark for remark in generator.notes.remarks)


def test_a_refusal_that_stays_without_the_field_that_it_names_is_one_sentence(chat: Make) -> None:
    said = "Unrecognized request argument supplied: reasoning_effort"
    with Loopback(spain, change=lambda _, __: (400, said)) as server:
        generator = chat(server, sampling=SAMPLING)
        assert one(generator).draws == (State.MISSING,)
    assert server.served == 2
    assert any(f"(400: {said})" in remark for remark in generator.notes.remarks)


def test_a_value_that_is_out_of_range_is_not_dropped(chat: Make) -> None:
    with Loopback(spain, change=lambda _, __: (400, "temperature: must be between 0 and 1")) as server:
        assert one(chat(server, sampling={"temperature": 1.5, "seed": 1})).draws == (State.MISSING,)
    assert server.served == 1


def test_of_two_samplers_that_exclude_each_other_the_first_stays(chat: Make) -> None:
    def edit(body: Body, _: Body) -> tuple[int, str] | None:
        said = "`temperature` and `top_p` cannot both be specified for this model. Please use only one."
        return (400, said) if {"temperature", "top_p"} <= body.keys() else None

    with Loopback(spain, change=edit) as server:
        assert not one(chat(server, sampling={"temperature": 0.5, "top_p": 0.9})).failed
    assert ("temperature" in server.requests[-1], "top_p" in server.requests[-1]) == (True, False)


@pytest.mark.parametrize(
    "fields",
    [
        {"reasoning_content": '["Peru"]', "content": '["Spain"]'},
        {"reasoning": '["Peru"]', "content": '\n["Spain"]'},
        {"content": f'{THOUGHT}\n["Spain"]'},
        {"content": 'Perhaps ["Peru"].</think>["Spain"]'},  # the template opened the thought
    ],
)
def test_what_a_model_thought_is_not_its_answer(chat: Make, fields: Body) -> None:
    with Loopback(change=thinking(**fields)) as server:
        assert [c.text for c in one(chat(server)).candidates] == ["Spain"]


@pytest.mark.parametrize("style", [{}, LINE, {"component": "bl23-gpt-ids/prompt"}])
@pytest.mark.parametrize("text", ['<think>Perhaps ["Peru"], Q419', "<think>None"])
def test_a_thought_without_an_end_is_a_truncated_draw(chat: Make, style: Body, text: str) -> None:
    with Loopback(change=thinking(content=text, finish="length")) as server:
        found = one(chat(server, prompt=style))
        assert (found.draws, found.candidates, found.nothing) == ((State.TRUNCATED,), (), ())
        one(chat(server, prompt=style))
    assert server.served == 2  # what says nothing is not kept


def test_ids_of_a_thought_are_no_objects(chat: Make) -> None:
    with Loopback(change=thinking(content=f"{THOUGHT} Q29")) as server:
        assert [c.text for c in one(chat(server, prompt={"component": "bl23-gpt-ids/prompt"})).candidates] == ["Q29"]


@pytest.mark.parametrize(
    ("usage", "counted"),
    [
        ({"completion_tokens": 90, "total_tokens": 100, "completion_tokens_details": {"reasoning_tokens": 80}}, 90),
        ({"completion_tokens": 10, "total_tokens": 100}, 90),  # thinking is in the total alone
        ({"completion_tokens": 10, "total_tokens": 0}, 10),
    ],
)
def test_tokens_of_thinking_are_counted(chat: Make, usage: Body, counted: int) -> None:
    def edit(_: Body, answer: Body) -> None:
        answer["usage"] = {"prompt_tokens": 10, **usage}

    with Loopback(spain, change=edit) as server:
        generator = chat(server)
        one(generator)
    assert generator.notes.usage["spent_completion_tokens"] == counted


def test_short_questions_leave_thoughts_out(tmp_path: Path) -> None:
    with Loopback(lambda _: f"{THOUGHT}\nYes, it does.\nMore.") as server:
        model = ServerModel(Server.of(server.url, "m"), Store(tmp_path / "s.sqlite"), HASTY, notes=Notes())
        assert texts(model, ["Is it?"], 8) == [["Yes, it does."]]
        assert paragraphs(model, ["Is it?"]) == ["Yes, it does.\nMore."]


def test_the_first_word_is_the_first_behind_a_thought(tmp_path: Path) -> None:
    def told(token: str, **likely: float) -> Body:
        top = [{"token": name, "logprob": math.log(p)} for name, p in likely.items()]
        return {"token": token, "logprob": -0.1, "top_logprobs": top}

    def edit(_: Body, answer: Body) -> None:
        tokens = [told("<think>", No=0.9), told("No", No=0.9), told("</think>", No=0.9), told(" Yes", Yes=0.8, No=0.2)]
        answer["choices"][0]["logprobs"] = {"content": tokens}

    with Loopback(lambda _: "<think>No</think> Yes", change=edit) as server:
        model = ServerModel(Server.of(server.url, "m"), Store(tmp_path / "s.sqlite"), HASTY, notes=Notes())
        (found,) = word_log_probabilities(model, ["Is it?"], ["Yes", "No"])
    assert [math.exp(one) for one in found] == pytest.approx([0.8, 0.2])
