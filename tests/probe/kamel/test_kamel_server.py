"""KAMEL against a chat server: turns and texts, what is resumed, offline runs, limits, and what failed."""

import itertools
import json
import os
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import tiny_causal
from command import Command
from loopback import Body, Loopback
from rows import jsonl

from lmkbc.local.model import CausalModel

ROWS = 12


def town(body: Body) -> str:
    """The right answer to every question but those on land 3."""
    asked = body["messages"][-1]["content"] if "messages" in body else body["prompt"].rsplit("\n", 1)[-1]
    number = "".join(filter(str.isdigit, asked))
    return "no idea" if number == "3" else f"Town {number}"


@pytest.fixture
def run(tmp_path: Path, command: Command) -> Command:
    for split, name in (("train", "isle"), ("test", "land")):
        facts = [{"sub_label": f"{name} {row}", "obj_label": [f"town {row}"]} for row in range(ROWS)]
        jsonl(tmp_path / "KAMEL" / "P36" / f"{split}.jsonl", facts)
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
    assert f"{ROWS} of {ROWS} prompts have no answer (--offline sends no request" in run.fails(
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


def test_a_refusal_is_a_wrong_answer_and_a_failure_is_none(run: Command) -> None:
    def refuses(body: Body) -> str | Body:
        right = town(body)
        return {"refusal": "I will not."} if right == "Town 5" else right

    with Loopback(refuses, faults=["500", "reset", "broken-json"]) as server:
        printed, told = run.done(server.url)
        assert f1(printed) == pytest.approx(1 - 2 / ROWS)
        assert "1 prompt was refused" in told


QUERIES, KEPT = 8, 5
KILLED = """
import os, signal, sys
from lmkbc.cli import main
from lmkbc.models.answers import Store
put, left = Store.put, int(sys.argv.pop(1))
def kept(self, answers):
    global left
    given = list(answers)
    known = put(self, given)
    left -= len(given)
    if given and not left:
        os.kill(os.getpid(), signal.SIGKILL)
    return known
Store.put = kept
main()
"""


def capitals(root: Path) -> Path:
    for name, split in itertools.product(("P36", "P47"), ("train", "test")):
        rows = [{"sub_label": f"{split} {n}", "obj_label": [f"{name} {n % 5}"]} for n in range(QUERIES)]
        jsonl(root / "KAMEL" / name / f"{split}.jsonl", rows)
    return root / "KAMEL"


def stored(path: Path) -> dict[str, str]:
    """Prompt -> answer."""
    query = "SELECT prompts.prompt, answers.answer FROM answers JOIN prompts ON answers.prompt = prompts.digest"
    with sqlite3.connect(path) as opened:
        rows = dict(opened.execute(query))
    opened.close()
    return rows


@pytest.mark.kill
@pytest.mark.whole
def test_a_killed_run_asks_only_for_the_rest(command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tiny_causal.save(tmp_path / "model")
    source, asked = capitals(tmp_path), list[str]()
    complete = CausalModel.complete

    def counted(self, prompts, how):  # type: ignore[no-untyped-def]
        asked.extend(prompts)
        return complete(self, prompts, how)

    monkeypatch.setattr(CausalModel, "complete", counted)

    def words(name: str) -> list[str]:
        given = ["probe", "kamel", source, "--model", tmp_path / "model", "--shots", 2, "--random", "--offline"]
        return [str(one) for one in (*given, "--store", tmp_path / name, "--out", tmp_path / f"{name}.jsonl")]

    def run(name: str) -> bytes:
        assert command(*words(name))[0] == 0
        return (tmp_path / f"{name}.jsonl").read_bytes()

    undisturbed = run("whole.sqlite")
    assert len(asked) == len(set(asked)) == 2 * QUERIES
    killed = subprocess.run(
        [sys.executable, "-c", KILLED, str(KEPT), *words("killed.sqlite")], env=dict(os.environ), check=False
    )
    assert killed.returncode == -signal.SIGKILL
    assert not (tmp_path / "killed.sqlite.jsonl").exists()
    before = stored(tmp_path / "killed.sqlite")
    assert len(before) == KEPT
    asked.clear()
    assert run("killed.sqlite") == undisturbed
    assert len(asked) == 2 * QUERIES - KEPT
    assert not {json.dumps(prompt) for prompt in asked} & set(before)
    asked.clear()
    assert run("killed.sqlite") == undisturbed
    assert not asked
