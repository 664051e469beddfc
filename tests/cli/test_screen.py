from __future__ import annotations

from io import StringIO

import pytest
from rich.console import Console
from rich.progress import Progress

from lmkbc.cli import screen


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
