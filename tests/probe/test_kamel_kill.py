"""A run of KAMEL that is killed for real, and goes on: as a user runs it, in a process of its own."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import pytest
import tiny_causal

from lmkbc.cli import main

ROOT = Path(__file__).resolve().parents[2]
QUERIES = 320


def benchmark(root: Path) -> Path:
    folder = root / "KAMEL" / "P36"
    folder.mkdir(parents=True)
    for split, rows in (("train", 20), ("dev", QUERIES)):
        facts = [{"sub_label": f"{split} land {row}", "obj_label": [f"town {row}"]} for row in range(rows)]
        (folder / f"{split}.jsonl").write_text("".join(json.dumps(fact) + "\n" for fact in facts))
    return root / "KAMEL"


def answers(store: Path) -> int:
    """How many answers are committed."""
    if not store.exists():
        return 0
    try:
        with sqlite3.connect(f"file:{store}?mode=ro", uri=True) as db:
            return int(db.execute("SELECT count(*) FROM answers").fetchone()[0])
    except sqlite3.OperationalError:  # not made yet
        return 0


def test_a_run_killed_with_sigkill_goes_on_and_ends_with_the_same_bytes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    source, model, store = benchmark(tmp_path), tmp_path / "model", tmp_path / "store.sqlite"
    tiny_causal.model("gpt2", seed=1).save_pretrained(model)
    tiny_causal.tokenizer().save_pretrained(model)
    command = ["probe", "kamel", source, "--model", model, "--split", "dev", "--shots", "1", "--fixed", "--json"]

    def asked(store: Path, out: str) -> list[str]:
        return ["lmkbc", *map(str, [*command, "--store", store, "--out", tmp_path / out])]

    def printed(store: Path, out: str) -> str:
        monkeypatch.setattr(sys, "argv", asked(store, out))
        with pytest.raises(SystemExit) as stopped:
            main()
        assert not stopped.value.code
        return capsys.readouterr().out

    killed = subprocess.Popen(
        [sys.executable, "-m", *asked(store, "killed")],
        env={**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}, stdout=subprocess.DEVNULL,
    )  # fmt: skip
    deadline = time.monotonic() + 100
    while answers(store) < QUERIES // 20 and time.monotonic() < deadline:
        time.sleep(0.02)
    killed.send_signal(signal.SIGKILL)
    killed.wait(60)
    kept = answers(store)
    assert QUERIES // 20 <= kept < QUERIES
    assert not (tmp_path / "killed").exists()
    assert printed(store, "resumed") == printed(tmp_path / "other.sqlite", "whole")
    assert (tmp_path / "resumed").read_bytes() == (tmp_path / "whole").read_bytes()
    assert answers(store) == QUERIES
