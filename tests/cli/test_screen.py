from __future__ import annotations

import json
from dataclasses import replace
from io import StringIO

import pytest
from rich.console import Console
from rich.progress import Progress

from lmkbc.cli import screen
from lmkbc.types import Published
from lmkbc.workspace import Workspace


def test_a_step_whose_loss_changes_stays_one_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(screen, "ERR", Console(file=StringIO(), force_terminal=True))
    added: list[str] = []
    add = Progress.add_task

    def noted(bar: Progress, description: str, **given: int) -> int:
        added.append(description)
        return add(bar, description, **given)

    monkeypatch.setattr(Progress, "add_task", noted)
    with screen.progress() as report:
        for done in range(3):
            report(f"fine-tuning, loss {3 - done}.000", done, 3)
        report("relations", 1, 2)
    assert added == ["fine-tuning, loss 3.000", "relations"]


def test_the_best_published_score_stands_beside_ones_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(screen, "ERR", Console(file=(told := StringIO()), soft_wrap=True))
    edition = replace(
        Workspace().edition("mini"),
        published=(Published("A", "val", 0.2), Published("B", "val", 0.3), Published("C", "test", 0.9)),
    )
    screen.note_published(edition, "dev")
    screen.note_published(edition, "train")
    assert told.getvalue() == "best published on dev: B, F1 0.300\n"


def test_json_on_the_screen_means_the_same_and_cannot_steer_it(capsys: pytest.CaptureFixture[str]) -> None:
    value = {"a\x9b": ["\x1b[2J\x7f", "b\u202ec\u2066", "Ärger 日本"]}
    screen.show_json(value)
    shown = capsys.readouterr().out
    assert json.loads(shown) == value
    assert all(char.isprintable() or char == "\n" for char in shown)
    assert "Ärger 日本" in shown
