"""Names of files that are not UTF-8, as old disks and zips have them: read, shown, and never a traceback."""

import json
import os
import shutil
from pathlib import Path

import pytest
from command import Command

ROOT = Path(__file__).resolve().parents[2]
GOLD = ROOT / "eval" / "mini" / "val.jsonl"
NAME = os.fsdecode(b"r\xe9ponses.jsonl")
MINI = ("--edition", "mini", "--split", "val")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder to work in, with answers under a name that is not UTF-8."""
    monkeypatch.chdir(tmp_path)
    rows = [json.loads(line) for line in GOLD.read_text(encoding="utf-8").splitlines()]
    kept = ({name: row[name] for name in ("SubjectEntity", "Relation")} for row in rows)
    lines = (json.dumps(row | {"completions": ["None"]}) + "\n" for row in kept)
    Path(NAME).write_text("".join(lines), encoding="utf-8")
    shutil.copy(GOLD, os.fsdecode(b"gold\xe9.jsonl"))
    return tmp_path


def test_a_run_of_such_answers_is_written_scored_and_listed(folder: Path, command: Command) -> None:
    command.done("predict", *MINI, "--from", NAME, "--out", "run")
    manifest = json.loads((folder / "run" / "manifest.json").read_text(encoding="utf-8"))
    assert "r\ufffdponses.jsonl" in manifest["inputs"]
    Path("run").rename(os.fsdecode(b"run\xe9"))
    assert "LM-KBC mini, val" in command.done("evaluate", os.fsdecode(b"run\xe9"))[0]
    assert "run\ufffd " in command.done("runs", ".")[0]
    command.done("report", os.fsdecode(b"run\xe9"), "--from", NAME, "--out", "page.html")
    command.done("tune", "--edition", "mini", "--from", NAME, "--trials", "0", "--no-write")


def test_such_a_name_is_shown_in_an_error(folder: Path, command: Command) -> None:
    told = command.fails("evaluate", NAME, *MINI)
    assert told.startswith("error: r\ufffdponses.jsonl holds completions")
    assert "no\ufffd does not exist" in command.fails("evaluate", os.fsdecode(b"no\xe9"), *MINI)
    assert folder.is_dir()


def test_results_get_no_such_name(folder: Path, command: Command) -> None:
    gold = os.fsdecode(b"gold\xe9.jsonl")
    assert command.fails("submit", gold, *MINI) == (
        "error: gold\ufffd.zip cannot be written, since its name is not UTF-8: name it otherwise\n"
    )
    command.done("submit", gold, *MINI, "--out", "o.zip")
    told = command.fails("predict", *MINI, "--from", NAME, "--out", os.fsdecode(b"o\xe9"))
    assert "o\ufffd cannot be written" in told
    assert (folder / "o.zip").is_file()
