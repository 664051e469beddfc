"""Prompts that exceed a server's context: told before they are sent, fitted where the recipe says so, no one's loss."""

import json
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from loopback import Body, Loopback, prompt_of
from opened import asks, generators, over_server, part
from space import MINI, RELATIONS, SPACE, TRAIN

from lmkbc.ask.builder import PromptBuilder
from lmkbc.generate.language_model import AnswerGenerator
from lmkbc.models.answers import Store
from lmkbc.models.server.address import Server
from lmkbc.models.server.refusal import too_long
from lmkbc.recipe import read_recipe
from lmkbc.testing import CandidateSet, Query, Run

BORDERS = "CountryBordersCountry"
ROOM = 400
ANSWER = 20


def tokens(text: str) -> int:
    """Count what the stand-in takes for tokens: three characters each."""
    return len(text) // 3


def size(body: Body) -> int:
    """Of a chat prompt: with what its template puts around each turn."""
    return tokens(prompt_of(body)) + 5 * len(body["messages"])


class Narrow(Loopback):
    """A server of so many tokens that refuses longer prompts, in the words of one kind of server."""

    def __init__(self, kind: str, room: int = ROOM) -> None:
        super().__init__(lambda _: '["Spain"]')
        self.kind, self.room = kind, room
        listed: Body = {"id": "stand-in", "object": "model", "owned_by": "llamacpp" if "llama" in kind else kind}
        if kind == "llama.cpp":
            listed["meta"] = {"n_ctx": room, "n_ctx_train": 8192}
        if kind == "old llama.cpp":
            listed["meta"] = {"n_ctx_train": 8192}
            self.tells["props"] = {"default_generation_settings": {"n_ctx": room}}
        if kind == "vllm":
            listed["max_model_len"] = room
        if kind != "silent":
            self.tells["models"] = {"object": "list", "data": [listed]}
        if kind in ("llama.cpp", "vllm"):
            self.tells["tokenize"] = lambda body: {"tokens": [0] * tokens(body["content"])}

    def reply(self, body: Body) -> tuple[int, Body]:
        prompt, asked = size(body), body["max_tokens"] if self.kind == "vllm" else 0
        if prompt + asked <= self.room:
            return super().reply(body)
        if "llama" in self.kind:
            said = (
                f"request ({prompt} tokens) exceeds the available context size ({self.room} tokens), try increasing it"
            )
            more = {"type": "exceed_context_size_error", "n_prompt_tokens": prompt, "n_ctx": self.room}
        else:
            said = (
                f"This model's maximum context length is {self.room} tokens. However, you requested more: max_tokens."
            )
            more = {"code": "context_length_exceeded"}
        return 400, {"error": {"message": said, **more}}


KINDS = ["llama.cpp", "old llama.cpp", "vllm", "silent"]
LONG = [Query("long " + "x" * 150 + str(place), BORDERS) for place in range(8)]
SHORT = [Query(f"land {place}", BORDERS) for place in range(40)]


@pytest.fixture
def chat(chat: Callable[..., AnswerGenerator]) -> Callable[..., AnswerGenerator]:
    """Opens generators that show four examples, or as many as fit."""

    def make(server: Loopback, fit: bool = False, **how: Any) -> AnswerGenerator:
        return chat(server, shots={"k": 4, "fit": fit}, sampling={"max_tokens": ANSWER}, **how)

    return make


Chat = Callable[..., AnswerGenerator]


def run(generator: AnswerGenerator, queries: list[Query]) -> dict[str, CandidateSet]:
    return {one.query.subject: one for one in generator.generate(queries)}


@pytest.fixture
def room() -> int:
    asking = PromptBuilder(MINI, RELATIONS, TRAIN, asks({"shots": {"k": 4}}))
    sizes = {query: size({"messages": asking.prompt(query).messages()}) for query in LONG + SHORT}
    most = max(sizes[query] for query in SHORT) + ANSWER + 10
    assert most < min(sizes[query] for query in LONG)
    return most


@pytest.mark.whole(but=["vllm", "silent"])
@pytest.mark.parametrize("kind", KINDS)
def test_prompts_that_are_too_long_are_told_first_and_keep_no_others_from_being_answered(
    chat: Chat, kind: str, room: int, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING, "lmkbc")
    with Narrow(kind, room) as server:
        generator = chat(server, limits=part("limits", concurrency=1))
        found = run(generator, LONG + SHORT)
    assert {one.query.subject for one in found.values() if one.failed} == {query.subject for query in LONG}
    assert len(server.requests) == 48  # none is asked for again
    assert any("8 prompts exceed the server's context: say fit = true" in remark for remark in generator.notes.remarks)
    if kind in ("llama.cpp", "vllm"):
        first = f"stand-in: 8 of 48 prompts leave no room for an answer in the server's context of {room} tokens"
        assert caplog.messages[0].startswith(first)


@pytest.mark.whole(but=["llama.cpp", "vllm"])
@pytest.mark.parametrize("kind", KINDS)
def test_examples_are_dropped_until_a_prompt_fits(chat: Chat, kind: str, room: int) -> None:
    with Narrow(kind, room) as server:
        generator = chat(server, fit=True)
        found = run(generator, LONG + SHORT)
        assert not any(one.failed for one in found.values())
        assert any("8 prompts were shown fewer examples" in remark for remark in generator.notes.remarks)
        asked = len(server.requests)
        if kind in ("llama.cpp", "vllm"):
            assert asked <= 48 + 2  # by its own count hardly a prompt is refused
        assert run(chat(server, fit=True, offline=True), LONG + SHORT) == found  # found again without the server
        assert run(chat(server, fit=True), LONG + SHORT) == found
        assert len(server.requests) <= asked + len(LONG)
    used = [body for body in server.requests if size(body) <= room and "long" in prompt_of(body)]
    assert {len(body["messages"]) for body in used} <= {1 + 2 * 2, 1 + 2 * 3}  # no more are left out than need be


def test_what_never_fits_is_refused_and_said(chat: Chat) -> None:
    with Narrow("llama.cpp", 10) as server:
        generator = chat(server, fit=True)
        found = run(generator, SHORT[:3])
    assert all(one.failed for one in found.values())
    said = "3 prompts exceed the server's context even without examples: have the server read more tokens"
    assert any(said in remark for remark in generator.notes.remarks)
    assert len(server.requests) >= 3  # the server has the last word


def test_what_is_in_the_store_is_not_counted_and_the_server_not_asked_for_it(chat: Chat, room: int) -> None:
    with Narrow("llama.cpp", room) as server:
        run(chat(server), SHORT)
        seen = len(server.headers)
        run(chat(server), SHORT)
        assert len(server.headers) == seen


@pytest.mark.parametrize(
    "tells",
    [
        {"models": {"data": "none"}},
        {"models": []},
        {"models": {"data": [{"id": 5}]}},
        {"models": {"data": [{"id": "a", "max_model_len": 5}, {"id": "b", "max_model_len": 6}]}},
        {"models": {"data": [{"id": "stand-in", "max_model_len": -5}]}},
        {"models": {"data": [{"id": "stand-in", "owned_by": "llamacpp"}]}, "props": {"x": 1}},
        {"models": {"data": [{"id": "stand-in", "max_model_len": 9000}]}, "tokenize": {"tokens": None}},
    ],
)
def test_a_server_that_tells_odd_things_of_itself_is_asked_all_the_same(chat: Chat, tells: Body) -> None:
    with Loopback(lambda _: '["Spain"]') as server:
        server.tells = tells
        assert not any(one.failed for one in run(chat(server), SHORT[:3]).values())


@pytest.mark.parametrize(
    ("body", "message", "expected"),
    [
        (
            {"type": "exceed_context_size_error", "n_prompt_tokens": 4031, "n_ctx": 2048},
            "request (4031 tokens) exceeds the available context size (2048 tokens), try increasing it",
            (4031, 2048),
        ),
        ({}, "request (4031 tokens) exceeds the available context size (2048 tokens)", (4031, 2048)),
        (
            {"code": "context_length_exceeded"},
            "This model's maximum context length is 4097 tokens. However, your messages resulted in 5000 tokens.",
            (5000, 4097),
        ),
        (
            {},
            "This model's maximum context length is 2048 tokens. However, you requested 2300 tokens (2100 in the "
            "messages, 200 in the completion).",
            (2100, 2048),
        ),
        (
            {"code": 400},
            "'max_tokens' is too large: 512. This model's maximum context length is 2048 tokens and your request has "
            "1800 input tokens (512 > 2048 - 1800).",
            (1800, 2048),
        ),
        (
            {},
            "The input (3000 tokens) is longer than the model's context length (2048 tokens).",
            (3000, 2048),
        ),
        ({"code": "context_length_exceeded", "n_ctx": "many", "n_prompt_tokens": -4}, "no", (None, None)),
        ({"code": 400}, "temperature is not supported", None),
    ],
)
def test_refusals_of_long_prompts_are_told_from_others(
    body: Body, message: str, expected: tuple[int | None, int | None] | None
) -> None:
    assert too_long(body, message) == expected


def test_a_beginning_that_we_gave_is_no_part_of_the_answer(tmp_path: Path) -> None:
    def repeats(body: Body) -> str:
        given = body["messages"][-1]
        assert given["role"] == "assistant"
        return given["content"] + ' ["Chile"]'

    tables: dict[str, Any] = {
        "prompt": {
            "form": "single",
            "block": "Subject: {{ subject }}\nRelation: {{ phrase }}\n==>",
            "component": "lix23/prompt",
        }
    }
    with Loopback(repeats) as server:
        where = Server.of(server.url, "stand-in")
        asking = PromptBuilder(MINI, RELATIONS, TRAIN, asks(tables | {"shots": {"k": 2}}))
        generator = over_server(asking, RELATIONS, where, Store(tmp_path / "store.sqlite"))
        (found,) = generator.generate(SHORT[:1])
    assert [one.text for one in found.candidates] == ["Chile"]


def rambles(body: Body) -> Body:
    """Go on after the list until the tokens are used up, unless a stop ends it, as llama.cpp does."""
    text = ' ["Chile"]\n\n' + "Subject: Peru\nRelation: borders\n==> []\n\n" * body["max_tokens"]
    for stop in body.get("stop", ()):
        if stop in text:
            return {"content": text.partition(stop)[0]}
    return {"content": text[: 4 * body["max_tokens"]], "finish_reason": "length"}


def test_what_a_model_goes_on_with_after_the_list_is_ended(tmp_path: Path) -> None:
    with Loopback(rambles) as server:
        run = Run(
            workspace=SPACE,
            edition=MINI,
            model="stand-in",
            servers={"base_url": server.url, "store": tmp_path / "s"},
        )
        ((_, generator),) = generators(run, read_recipe(SPACE, "lix23"))
        (found,) = generator.generate(SHORT[:1])
    assert [one.text for one in found.candidates] == ["Chile"]
    exported = b"".join(Store(tmp_path / "s").export())
    assert len(json.loads(exported)["answer"]["text"]) < 60
