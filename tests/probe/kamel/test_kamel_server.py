"""KAMEL against a chat server: turns and texts, what is resumed, offline runs, limits, and what failed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from command import Command
from loopback import Body, Loopback

ROWS = 12


def town(body: Body) -> str:
    """The right answer to every question but those on land 3."""
    asked = body["messages"][-1]["content"] if "messages" in body else body["prompt"].rsplit("\n", 1)[-1]
    number = "".join(filter(str.isdigit, asked))
    return "no idea" if number == "3" else f"Town {number}"


@pytest.fixture
def run(tmp_path: Path, command: Command) -> Command:
    folder = tmp_path / "KAMEL" / "P36"
    folder.mkdir(parents=True)
    for split, name in (("train", "isle"), ("test", "land")):
        facts = [{"sub_label": f"{name} {row}", "obj_label": [f"town {row}"]} for row in range(ROWS)]
        (folder / f"{split}.jsonl").write_text("".join(json.dumps(fact) + "\n" for fact in facts))
    asked = ("--model", "m", "--json", "--store", tmp_path / "s.sqlite", "--base-url")
    return command.under("probe", "kamel", tmp_path / "KAMEL", *asked)


def f1(printed: str) -> Any:
    return json.loads(printed)["published"]["overall"]["f1"]


def test_a_chat_is_asked_once_and_then_answered_from_the_store(run: Command) -> None:
    with Loopback(town) as server:
        first, told = run.done(server.url, "--shots", 2)
        assert (f1(first), len(server.requests)) == (pytest.approx(1 - 1 / ROWS), ROWS)
        assert f"{ROWS} requests, 0 answers from the store" in told
        body = server.requests[0]
        assert [turn["role"] for turn in body["messages"]] == ["system", *["user", "assistant"] * 2, "user"]
        assert (body["temperature"], body["max_tokens"], "stop" in body) == (0, 100, False)
        assert (run.done(server.url, "--shots", 2)[0], len(server.requests)) == (first, ROWS)
    assert run.done(server.url, "--shots", 2, "--offline")[0] == first
    assert f"{ROWS} of {ROWS} prompts have no answer (offline)" in run.fails(
        server.url, "--shots", 1, "--offline", status=1
    )


def test_a_completion_server_gets_the_papers_text(run: Command) -> None:
    with Loopback(town) as server:
        assert f1(run.done(server.url, "--shots", 1, "--form", "completion")[0]) == pytest.approx(1 - 1 / ROWS)
        body = server.requests[0]
        assert body["stop"] == ["%"]
        solved, asked = body["prompt"].split("\n")
        assert solved.endswith("%")
        assert asked.endswith("?")


def test_what_a_limit_leaves_out_fails_and_is_asked_later(run: Command) -> None:
    with Loopback(town) as server:
        status, printed, told = run(server.url, "--concurrency", 1, "--max-tokens", 900)
        assert (status, printed) == (1, "")
        assert "prompts have no answer (--max-tokens 900 is reached)" in told
        before = len(server.requests)
        assert 0 < before < ROWS
        assert (f1(run.done(server.url)[0]), len(server.requests)) == (pytest.approx(1 - 1 / ROWS), ROWS)


def test_a_refusal_is_a_wrong_answer_and_a_failure_is_none(run: Command) -> None:
    def refuses(body: Body) -> str | Body:
        right = town(body)
        return {"refusal": "I will not."} if right == "Town 5" else right

    with Loopback(refuses, faults=["500", "reset", "broken-json"]) as server:
        printed, told = run.done(server.url)
        assert f1(printed) == pytest.approx(1 - 2 / ROWS)
        assert "1 prompt was refused" in told


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (("--form", "chatt"), "is not one of 'chat'"),
        (("--max-cost", "1"), "give --prices"),
        (("--prices", "1"), "give two numbers"),
    ],
)
def test_bad_input_is_one_sentence(run: Command, more: tuple[str, ...], message: str) -> None:
    told = run.fails("http://127.0.0.1:9/v1", *more)
    assert (message in told, told.count("\n")) == (True, 1)
