from __future__ import annotations

import json
import re
import time
from dataclasses import replace
from io import StringIO
from typing import Any

import pytest
from rich.console import Console
from rich.progress import Progress, TaskID
from space import MINI

from lmkbc.cli import terminal
from lmkbc.edition import Published


def test_a_step_whose_loss_changes_stays_one_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    console = Console(file=StringIO(), force_terminal=True)
    monkeypatch.setattr(terminal, "errors", lambda: console)
    added: list[str] = []
    add = Progress.add_task

    def noted(bar: Progress, description: str, **given: Any) -> int:
        added.append(description)
        return add(bar, description, **given)

    monkeypatch.setattr(Progress, "add_task", noted)
    with terminal.progress() as report:
        for done in range(3):
            report(f"fine-tuning, loss {3 - done}.000", done, 3)
        report("relations (of 2)", 1, 2)
    assert added == ["fine-tuning, loss 3.000", "relations"]


def test_on_a_terminal_a_step_shows_count_and_what_is_counted_and_its_clock_starts_again_with_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    console = Console(file=(written := StringIO()), force_terminal=True, width=120)
    monkeypatch.setattr(terminal, "errors", lambda: console)
    bars: list[Progress] = []
    reset = Progress.reset

    def noted(bar: Progress, task: TaskID, **given: Any) -> None:
        bars.append(bar)
        reset(bar, task, **given)

    monkeypatch.setattr(Progress, "reset", noted)
    with terminal.progress() as report:
        for done in range(4):
            report("tune\x1b[2J[red] (relations x folds)", done, 3)
        assert not bars
        report("tune\x1b[2J[red] (relations x folds)", 1, 3)
        (bar,) = bars
        assert [(task.completed, task.finished) for task in bar.tasks] == [(1, False)]
        bar.refresh()
    shown = written.getvalue()
    assert "1/3" in shown
    assert "relations x folds" in shown
    assert "tune\N{REPLACEMENT CHARACTER}[2J[red]" in shown


def test_without_a_terminal_lines_stand_on_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stderr", written := StringIO())
    monkeypatch.setattr("lmkbc.progress.PERIOD", 0.01)
    with terminal.progress() as report:
        report("tune (relations x folds)", 12, 126)
        deadline = time.monotonic() + 60
        while "\n" not in written.getvalue() and time.monotonic() < deadline:
            time.sleep(0.01)
    assert re.match(r"tune: 12/126 relations x folds, 0 s so far\n", written.getvalue())


def test_the_best_published_score_stands_beside_ones_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stderr", written := StringIO())
    edition = replace(
        MINI,
        published=(Published("A", "val", 0.2), Published("B", "val", 0.3), Published("C", "test", 0.9)),
    )
    terminal.note_published(edition, "dev")
    terminal.note_published(edition, "train")
    assert written.getvalue() == "best published on dev: B, F1 0.300\n"


def test_a_score_by_an_earlier_scorer_is_named_with_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stderr", written := StringIO())
    published = (Published("A", "val", 0.2), Published("B", "val", 0.3, profile="older"))
    edition = replace(MINI, published=published, profiles={"older": MINI.metric})
    terminal.note_published(edition, "val")
    terminal.note_published(edition, "val", "older")
    own = "best published on val by the official scorer: A, F1 0.200"
    older = "best published on val by older: B, F1 0.300"
    assert written.getvalue().splitlines() == [own, older, older, own]


def test_a_piped_table_is_plain_text_whatever_the_environment_says(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("FORCE_COLOR", "TTY_COMPATIBLE"):
        monkeypatch.setenv(name, "1")
    terminal.show_table(["relation", "F1"], [["borders", 0.5]], title="scores")
    assert [line.rstrip() for line in capsys.readouterr().out.splitlines()] == [
        "scores",
        "relation     F1",
        "borders   0.500",
    ]


def test_json_on_the_screen_means_the_same_and_cannot_steer_it(capsys: pytest.CaptureFixture[str]) -> None:
    value = {"a\x9b": ["\x1b[2J\x7f", "b\u202ec\u2066", "Ärger 日本"]}
    terminal.show_json(value)
    shown = capsys.readouterr().out
    assert json.loads(shown) == value
    assert all(char.isprintable() or char == "\n" for char in shown)
    assert "Ärger 日本" in shown
