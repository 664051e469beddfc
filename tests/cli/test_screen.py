import json
import logging
import re
import time
from dataclasses import replace
from io import StringIO

import pytest
from rich.console import Console
from rich.progress import Progress
from space import MINI

from lmkbc import Published
from lmkbc.commands import terminal
from lmkbc.progress import ExpectedStep


def shown(monkeypatch: pytest.MonkeyPatch) -> tuple[StringIO, list[Progress]]:
    """Return what bars write on a terminal, and the bars."""
    console = Console(file=(written := StringIO()), force_terminal=True, width=120)
    monkeypatch.setattr(terminal, "errors", lambda: console)
    bars: list[Progress] = []
    enter = Progress.__enter__
    monkeypatch.setattr(Progress, "__enter__", lambda bar: (bars.append(bar), enter(bar))[1])
    return written, bars


def test_on_a_terminal_each_step_has_a_bar_with_its_number_count_and_unit(monkeypatch: pytest.MonkeyPatch) -> None:
    written, bars = shown(monkeypatch)
    with terminal.progress() as report:
        for done in range(3):
            report(f"fine-tuning (steps, loss {3 - done}.000)", done, 3)  # stays one bar
        for step in ("fine-tuning", "tune\x1b[2J[red] (relations x folds)", "link (queries)"):
            report(ExpectedStep(step), 0, 4)
        for done in range(4):
            report("tune\x1b[2J[red] (relations x folds)", done, 3)
        (bar,) = bars
        assert [(task.completed, task.finished) for task in bar.tasks] == [(2, False), (3, True)]
        report("tune\x1b[2J[red] (relations x folds)", 1, 3)  # it begins again
        assert [(task.completed, task.finished) for task in bar.tasks] == [(2, False), (1, False)]
        report("lines (of 2)", 1, None)
        assert [task.fields["number"] for task in bar.tasks] == ["", "step 2 of 3", "step 3 of 4"]
        bar.refresh()
    for words in ("1/3", "relations x folds", "tune\N{REPLACEMENT CHARACTER}[2J[red]"):
        assert words in written.getvalue()


def test_equal_messages_are_said_once_and_counted_at_the_end(capsys: pytest.CaptureFixture[str]) -> None:
    log = logging.getLogger("lmkbc.models")
    with terminal.shown_logs():
        for name in "ababa":
            log.warning("%s takes no n", name)
        log.info("done")
    told = capsys.readouterr().err.splitlines()
    assert told == ["a takes no n", "b takes no n", "done", "3 times: a takes no n", "2 times: b takes no n"]


def test_without_a_terminal_lines_stand_on_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stderr", written := StringIO())
    monkeypatch.setattr(terminal, "PERIOD", 0.01)
    with terminal.progress() as report:
        report("tune (relations x folds)", 12, 126)
        deadline = time.monotonic() + 60
        while "\n" not in written.getvalue() and time.monotonic() < deadline:
            time.sleep(0.01)
    assert re.match(r"tune: 12/126 relations x folds, 0 s\n", written.getvalue())


@pytest.mark.parametrize(
    ("done", "total", "seconds", "line"),
    [
        (12, 105, 4, "tune: 12/105 folds, 3.0/s, 0:00:31 left, 4 s"),
        (1, 3, 300, "tune: 1/3 folds, 300.0 s each, 0:10:00 left, 300 s"),
        (3, 3, 300, "tune: 3/3 folds, 100.0 s each, 300 s"),
        (32, 11_630, 40, "tune: 32/11630 folds, 1.2 s each, 4:01:38 left, 40 s"),
        (20_000, None, 10, "tune: 20000 folds, 2000.0/s, 10 s"),
    ],
)
def test_a_line_has_count_rate_and_time(done: int, total: int | None, seconds: float, line: str) -> None:
    now = [1000.0]
    bar = Progress(get_time=lambda: now[0], disable=True)
    task = bar.add_task("tune", total=total, unit="folds")
    bar.update(task, completed=1e-6)
    now[0] += seconds
    bar.update(task, completed=done)
    assert terminal._line(bar.tasks[task]) == line


def test_what_was_there_at_once_does_not_count_for_the_rate(monkeypatch: pytest.MonkeyPatch) -> None:
    _, bars = shown(monkeypatch)
    now = [1000.0]
    make = Progress.__init__
    monkeypatch.setattr(
        Progress, "__init__", lambda bar, *given, **named: make(bar, *given, **named, get_time=lambda: now[0])
    )
    with terminal.progress() as report:
        report("ask (answers)", 0, 100)
        report("ask (answers)", 40, 100)  # kept ones
        now[0] += 40
        for done in range(41, 61):  # a group at a time
            report("ask (answers)", done, 100)
        assert "2.0 s each, 0:01:20 left" in terminal._line(bars[0].tasks[0])
        now[0] += 25  # the next group is on its way
        report("ask (answers, 8 waiting)", 60, 100)
        assert "2.0 s each, 0:00:55 left" in terminal._line(bars[0].tasks[0])
        now[0] += 75  # nothing comes, so the time that is left grows
        assert "2.0 s each, 0:01:40 left" in terminal._line(bars[0].tasks[0])


OWN = "best published on val by the official scorer: A, F1 0.200"
OLDER = "best published on val by older: B, F1 0.300"
PUBLISHED = Published("A", "val", 0.2), Published("B", "val", 0.3), Published("C", "test", 0.9)


@pytest.mark.parametrize(
    ("profiles", "split", "profile", "lines"),
    [
        ((), "dev", "", ["best published on dev: B, F1 0.300"]),
        ((), "train", "", []),
        (("older",), "val", "", [OWN, OLDER]),
        (("older",), "val", "older", [OLDER, OWN]),
    ],
)
def test_the_best_published_score_stands_beside_ones_own_with_its_scorer(
    capsys: pytest.CaptureFixture[str], profiles: tuple[str, ...], split: str, profile: str, lines: list[str]
) -> None:
    published = tuple(replace(one, profile=(*profiles, "")[0]) if one.system == "B" else one for one in PUBLISHED)
    edition = replace(MINI, published=published, profiles=dict.fromkeys(profiles, MINI.metric))
    terminal.note_published(edition, split, profile)
    assert capsys.readouterr().err.splitlines() == lines


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


def test_a_narrow_terminal_shows_name_count_and_time_left_of_each_step(monkeypatch: pytest.MonkeyPatch) -> None:
    """What matters least is left out first, and figures are cut last; a wide one shows all."""
    figures = "queries, 18 answers, 4 waiting, 3 retried, 55 tokens/s, cost 0.0123"
    for width, there, absent in ((80, "queries, 18 answers, 4 waiting, 3 retr", "━"), (200, "cost 0.0123", "…")):
        console = Console(file=(written := StringIO()), force_terminal=True, width=width, legacy_windows=False)
        monkeypatch.setattr(terminal, "errors", lambda console=console: console)
        with terminal.progress() as report:
            report(ExpectedStep("figures"), 0, 4)
            for name in ("chat", "link"):
                report(f"{name} ({figures})", 0, 110)
            time.sleep(1.05)
            for name in ("chat", "link"):
                report(f"{name} ({figures})", 2, 110)
        lines = [line for line in re.split(r"[\r\n]+", re.sub(r"\x1b\[[0-9;?]*\w", "", written.getvalue())) if line]
        last = lines[-2:]
        assert [line.lstrip("step 12of3").split()[0] for line in last] == ["chat", "link"], lines
        for line in last:
            assert len(line) <= width
            assert re.search(r"2/110 .* 0:0\d:\d\d left", line)
            assert there in line
            assert absent not in line
