"""Replies that a server is asked to hold to a schema: what is sent, for which relations, and a server that refuses."""

import json
from typing import Any

import pytest
from loopback import Loopback

import lmkbc

PROMPT = {"listing": "schema", "null": '{"objects": []}'}


def asked(server: Loopback, relation: str, **prompt: Any) -> list[str]:
    system = {
        "description": "Asks a server.",
        "generate": [{"component": "chat", "model": "m", "prompt": PROMPT | prompt, "shots": {"k": 2}}],
        "select": {"rule": "cutoff", "threshold": 0.5},
    }
    answer = lmkbc.ask("Peru", relation, edition="mini", system=system, base_url=server.url, fresh=True)
    return [one.object for one in answer.objects if one.kept]


@pytest.mark.parametrize(
    ("relation", "item", "most", "reply", "objects"),
    [
        ("country-borders", "string", None, '{"objects": ["Chile", "Bolivia"]}', ["Chile", "Bolivia"]),
        ("country-borders", "string", None, '{"objects": []}', []),
        ("place-of-death", "string", 1, '{"objects": ["Lima"]}', ["Lima"]),
        ("children", "number", 1, '{"objects": [3]}', ["3"]),
    ],
)
def test_the_schema_follows_from_the_relation(
    relation: str, item: str, most: int | None, reply: str, objects: list[str]
) -> None:
    with Loopback(lambda _: reply) as server:
        assert sorted(asked(server, relation)) == sorted(objects)
    (body,) = server.requests
    form = body["response_format"]["json_schema"]
    assert body["response_format"]["type"] == "json_schema"
    found = form["schema"]["properties"]["objects"]
    assert (form["strict"], found["items"], found.get("maxItems")) == (True, {"type": item}, most)
    shots = [json.loads(turn["content"]) for turn in body["messages"] if turn["role"] == "assistant"]
    assert len(shots) == 2
    assert all([*shot] == ["objects"] for shot in shots)
    kinds = {type(one) for shot in shots for one in shot["objects"]}
    assert kinds <= ({int} if item == "number" else {str})


def test_a_server_that_refuses_a_schema_is_asked_without() -> None:
    with Loopback(lambda _: '{"objects": ["Chile"]}', rejects=("response_format",)) as server:
        assert asked(server, "country-borders") == ["Chile"]
    assert ["response_format" in body for body in server.requests] == [True, False]


def test_an_answer_with_more_than_the_list_has_no_schema() -> None:
    with Loopback(lambda _: 'So: {"objects": ["Chile"]}') as server:
        asked(server, "country-borders", answer="So: {{ answer }}")
    assert "response_format" not in server.requests[0]
