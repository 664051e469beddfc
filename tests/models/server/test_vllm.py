"""vLLM: the name that it serves a model under, its context, its thoughts, and errors without a field `error`."""

from __future__ import annotations

from pathlib import Path

from loopback import Body, Loopback
from telling import Telling
from test_server_odd import Make, one, spain

from lmkbc.models.answers import Store
from lmkbc.models.base import Message, Prompt
from lmkbc.models.server.address import Server
from lmkbc.models.server.language_model import ServerModel
from lmkbc.models.server.limits import Limits
from lmkbc.models.server.served import as_served
from lmkbc.types import State


def card(length: int) -> Body:
    """What /models says."""
    return {"data": [{"id": "house-model", "owned_by": "vllm", "root": "org/Model-8B", "max_model_len": length}]}


def test_the_served_name_is_asked_for_and_recorded(chat: Make, tmp_path: Path) -> None:
    with Loopback(spain) as server:
        server.tells["models"] = card(8192)
        where = Server.of(server.url, "org/Model-8B", any_model=True)
        found = as_served(where, Limits(), Store(tmp_path / "names.sqlite"), {}, offline=False)
        assert found.model == "house-model"
        assert not one(chat(found, sampling={"max_tokens": 64})).failed
    assert server.requests[0].keys() == {"model", "messages", "max_tokens"}  # nothing that guides its decoding


def test_several_greedy_draws_are_asked_for_one_by_one(chat: Make) -> None:
    def edit(body: Body, answer: Body) -> tuple[int, str] | None:
        answer["choices"][0]["message"] |= {"reasoning_content": '["Peru"]', "reasoning": '["Peru"]'}
        return (400, f"n must be 1 when using greedy sampling, got {body['n']}.") if body.get("n", 1) > 1 else None

    with Loopback(spain, change=edit) as server:
        found = one(chat(server, sampling={"samples": 3, "temperature": 0.0, "max_tokens": 8}))
    assert (found.draws, {c.text for c in found.candidates}) == ((State.ANSWERED,) * 3, {"Spain"})
    assert server.served == 4


def test_candidates_are_ranked_by_an_echo(tmp_path: Path) -> None:
    with Telling("echo") as server:
        server.tells["models"] = card(512)
        model = ServerModel(Server.of(server.url, "house-model"), Store(tmp_path / "s.sqlite"), Limits(concurrency=2))
        prompt = Prompt((), (Message("user", "Chile borders"),), "completion")
        (scores,) = model.option_scores([prompt], [["Peru", "Spain"]])
    assert scores is not None
    assert all(score < 0 for score in scores)
