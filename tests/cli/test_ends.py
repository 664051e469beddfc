"""How a run ends that was interrupted, has no reader or cannot write: with a sentence, and nothing half-written."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from command import Command
from loopback import Loopback
from opened import recipe_file

from lmkbc import cli

ROOT = Path(__file__).resolve().parents[2]


def test_a_run_that_waits_for_a_server_is_terminated_at_once(tmp_path: Path) -> None:
    recipe_file(tmp_path / "chat.toml", {"component": "chat", "model": "m"})
    with Loopback(delay=120) as server:
        words = ("predict", "-e", "mini", "--system", "chat.toml", "--base-url", server.url)
        command = [sys.executable, "-m", "lmkbc", *words]
        env = os.environ | {"PYTHONPATH": str(ROOT)}
        run = subprocess.Popen(command, cwd=tmp_path, env=env, stderr=subprocess.PIPE, text=True)
        while not server.served and run.poll() is None:
            time.sleep(0.05)
        run.terminate()
        _, told = run.communicate(timeout=100)
    assert (run.returncode, told.splitlines()[-1]) == (1, f"error: {cli.INTERRUPTED}; {cli.ANSWERS}")


def ended(*arguments: str, out: int) -> tuple[int, str]:
    done = subprocess.run(
        [sys.executable, "-m", "lmkbc", *arguments],
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        stdout=out,
        stderr=subprocess.PIPE,
        text=True,
        timeout=120,
        check=False,
    )
    return done.returncode, done.stderr


@pytest.mark.parametrize("arguments", [("relations", "list"), ("relations", "list", "--json")])
def test_a_reader_that_goes_away_is_no_failure(arguments: tuple[str, ...]) -> None:
    read, write = os.pipe()
    os.close(read)
    assert ended(*arguments, out=write) == (0, "")
    os.close(write)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full, a disk that is always full")
def test_a_full_disk_is_one_sentence() -> None:
    with Path("/dev/full").open("wb") as full:
        status, told = ended("relations", "list", out=full.fileno())
    assert (status, told.count("\n"), "No space left on device" in told) == (1, 1, True)


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("predict", "--edition", "mini", "--out", "taken"), "taken is a file: name a directory"),
        (("predict", "--edition", "mini", "--out", "taken/run"), "is no directory: name another place"),
        (
            ("submit", "rows.jsonl", "--edition", "mini", "--out", "folder"),
            "folder is a directory: name a file to write",
        ),
        (("link", "rows.jsonl", "--edition", "mini", "--offline", "--out", "folder"), "folder is a directory"),
        (("link", "build", "folder", "--edition", "mini"), "folder is a directory: name a file to write"),
        (("link", "--explain", "Rome", "--edition", "mini"), "both --explain TEXT and --relation NAME"),
        (("probe", "kamel", "KAMEL", "--model", "x", "--out", "folder"), "folder is a directory: name a file to write"),
        (("probe", "kamel", "absent", "--model", "x"), "absent does not exist: give KAMEL.tar.xz"),
        (("probe", "lama", "absent", "--model", "x"), "absent does not exist"),
        (("probe", "optiprompt", "absent", "--model", "x", "--kept", "folder"), "folder is a directory"),
        (("probe", "kmir", "build", "absent.tsv", "--out", "taken"), "taken is a file"),
        (("data", "fetch", "2023", "--data", "taken"), "taken is a file: name a directory"),
        (
            ("predict", "--edition", "mini", "--system", "rule.toml"),
            "rule.toml: select: unknown selection rule",
        ),
        (
            ("predict", "--edition", "mini", "--system", "kinds.toml"),
            "kinds.toml: a recipe: setting 'generate' is 'x': give a list of tables",
        ),
        (("relations", "check", "--workspace", "folder"), "folder is no workspace: it needs at least one of relations"),
    ],
)
def test_where_nothing_can_be_written_or_read_is_told_before_any_work(
    command: Command, tmp_path: Path, arguments: tuple[str, ...], told: str
) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "taken").write_text("kept")
    (tmp_path / "rows.jsonl").write_text("{}")
    recipe_file(tmp_path / "rule.toml", {"component": "prior"}, select={"rule": "topk"})
    (tmp_path / "kinds.toml").write_text('description = "x"\ngenerate = "x"\nselect = 1\n')
    before = sorted(path.name for path in tmp_path.iterdir())
    status, printed, error = command(*arguments)
    assert (status, printed, told in error, error.count("\n")) == (2, "", True, 1), error
    assert sorted(path.name for path in tmp_path.iterdir()) == before
    assert (tmp_path / "taken").read_text() == "kept"


def test_a_dump_that_is_none_is_named_as_the_person_did(command: Command, tmp_path: Path) -> None:
    (tmp_path / "dump.json").write_text(json.dumps({"no": "entity"})[:-1])
    assert "dump.json, line 1: " in command.fails("link", "build", "index.sqlite", "--dump", "dump.json")
