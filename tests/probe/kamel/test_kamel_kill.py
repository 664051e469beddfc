"""A KAMEL run that is killed for real goes on with the same command, and ends as if it had not been killed."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest
import tiny_causal
from command import Command

from lmkbc.models.local.model import CausalModel

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
    for name in ("P36", "P47"):
        folder = root / "KAMEL" / name
        folder.mkdir(parents=True)
        for split in ("train", "test"):
            rows = [{"sub_label": f"{split} {n}", "obj_label": [f"{name} {n % 5}"]} for n in range(QUERIES)]
            (folder / f"{split}.jsonl").write_text("\n".join(map(json.dumps, rows)))
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
