"""A server that does not answer: it is said soon, with the setting that helps, and a run that starts so ends early."""

import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from command import Command
from loopback import FAULTS, Fault, Loopback, Sent, response, status
from opened import recipe_of
from space import SPACE

from lmkbc.plan import Plan
from lmkbc.run.pipeline import Steps
from lmkbc.testing import Run

CHAT = """
description = "A chat."
[[generate]]
component = "chat"
model = "m"
limits = { total_wait = 12.8 }

[select]
rule = "cutoff"
threshold = 0.1
"""
STALLED = {
    "no byte": lambda _: Sent(b"", "hang"),
    "headers alone": lambda _: response(b"", length=5000, end="hang"),
    "a byte now and then": FAULTS["drip"],
}
ASKED = "predict --edition mini --split val --limit 6 --system chat.toml --store s.sqlite --out run --concurrency 2"


def run_of(tmp_path: Path) -> str:
    (tmp_path / "chat.toml").write_text(CHAT)
    return ASKED


@pytest.mark.whole(but=["no byte"])
@pytest.mark.parametrize("fault", STALLED.values(), ids=STALLED)
def test_a_run_whose_first_calls_are_all_late_ends_early_and_goes_on_later(
    fault: Fault, command: Command, tmp_path: Path
) -> None:
    words = run_of(tmp_path).split()
    with Loopback(lambda _: '["Peru"]', fault=fault) as server:
        asked = command.under(*words, "--base-url", server.url)
        said = asked.fails("--timeout", 0.6, status=1)
        assert server.served == 4  # two calls at a time, each twice; none has waited for its third attempt
        assert f"{server.url}: 2 calls without an answer, the longest for 0 s; each attempt ends after 0.6 s" in said
        assert "no answer yet, trying up to 6 times: no whole answer within 0.6 s (--timeout SECONDS or" in said
        assert said.count("no answer yet") == 1
        assert "answered none of 4 calls within 0.6 s each" in said.splitlines()[-1]
        assert "nothing is lost, and the same command goes on" in said.splitlines()[-1]
        server.fault = None
        asked.done("--timeout", 60)
        assert server.served == 10


def test_a_slow_server_is_waited_for_and_named_meanwhile(command: Command, tmp_path: Path) -> None:
    words = run_of(tmp_path).split()
    with Loopback(lambda _: '["Peru"]', delay=0.8) as server:
        _, said = command.done(*words, "--base-url", server.url, "--timeout", 1.2)
    assert "2 calls without an answer" in said
    assert "trying" not in said


def test_a_server_that_is_merely_slow_is_not_named_by_a_share_of_the_timeout(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lmkbc.models.server.limits.LONG", 5.0)
    words = run_of(tmp_path).split()
    with Loopback(lambda _: '["Peru"]', delay=1) as server:
        _, said = command.done(*words, "--base-url", server.url, "--timeout", 5.5, "--concurrency", 8)
    assert "without an answer" not in said


def faults(some: Callable[[int], Fault | None]) -> Fault:
    """Return a fault that depends on the number of the request, from 0."""
    numbers = itertools.count()

    def fault(good: bytes) -> Sent:
        chosen = some(next(numbers))
        return chosen(good) if chosen else Sent(response(b"").raw.replace(b": 0", b": %d" % len(good)) + good)

    return fault


@pytest.mark.parametrize(
    ("bad", "answered"),
    [
        pytest.param(lambda number: STALLED["no byte"] if number >= 3 else None, 3, id="stalls after three"),
        pytest.param(lambda number: STALLED["no byte"] if number % 2 else None, 3, id="half of them stall"),
        pytest.param(lambda number: status(500) if number % 2 else None, 3, id="half of them are errors"),
        pytest.param(lambda _: FAULTS["reset"], 0, id="all are broken off"),
    ],
)
def test_answered_failed_and_waiting_are_shown_apart_and_a_failure_is_no_progress(
    bad: Callable[[int], Fault | None], answered: int, tmp_path: Path
) -> None:
    table = {"component": "chat", "model": "m", "limits": {"total_wait": 0.0, "concurrency": 2, "timeout": 0.2}}
    seen: list[tuple[str, int]] = []
    with Loopback(lambda _: '["Peru"]', fault=faults(bad)) as server:
        servers = {"base_url": server.url, "store": tmp_path / "s.sqlite"}
        run = Run(workspace=SPACE, edition=SPACE.edition("mini"), servers=servers)
        steps = Steps(Plan.of(run, recipe_of(table)), lambda step, done, _: seen.append((step, done)))
        queries = [query for query in SPACE.queries(run.edition, "val") if query.relation == "CountryBordersCountry"][
            :6
        ]
        found: list[Any] = [one for block in steps.over(queries) for one in block.sets]
    assert sum(not one.failed for one in found) == answered
    chat = [(step, done) for step, done in seen if step.startswith("chat")]
    name = f"{answered} answers, {6 - answered} failed" if answered else "6 failed"
    assert f"chat (queries, {name}" in chat[-1][0]
    assert chat[-1][1] == answered
    assert any(", 2 waiting" in step for step, _ in chat)


def test_retries_are_in_the_progress_line(tmp_path: Path) -> None:
    table = {"component": "chat", "model": "m", "limits": {"concurrency": 1, "total_wait": 2.0}}
    seen: list[str] = []
    fault = faults(lambda number: status(500) if number < 2 else None)  # two attempts fail, and the third is answered
    with Loopback(lambda _: '["Peru"]', fault=fault) as server:
        servers = {"base_url": server.url, "store": tmp_path / "s.sqlite"}
        run = Run(workspace=SPACE, edition=SPACE.edition("mini"), servers=servers)
        steps = Steps(Plan.of(run, recipe_of(table)), lambda step, *_: seen.append(step))
        queries = [query for query in SPACE.queries(run.edition, "val") if query.relation == "CountryBordersCountry"]
        assert [one.failed for block in steps.over(queries[:2]) for one in block.sets] == [False, False]
    assert any(step == "chat (queries, 1 waiting, 1 retried)" for step in seen)
    assert any("2 answers, 2 retried" in step for step in seen)
