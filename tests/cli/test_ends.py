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


def test_a_dump_that_is_none_is_named_as_the_person_did(command: Command, tmp_path: Path) -> None:
    (tmp_path / "dump.json").write_text(json.dumps({"no": "entity"})[:-1])
    assert "dump.json, line 1: " in command.fails("link", "build", "index.sqlite", "--dump", "dump.json")
