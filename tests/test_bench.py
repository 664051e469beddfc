"""Benchmarks that make their own data run to their end, at a small size: a change of the engine may not break them."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

import pytest

BENCH = Path(__file__).resolve().parent.parent / "eval" / "bench"
SMALL = {
    "audit.py": "--draws 20 --sizes 50 --facts 500",
    "growth.py": "--tokens 20000 --seeds 1",
    "queries.py": "--facts 500",
    "recipes.py": "",
}
"""Benchmark -> options that make it small."""


@pytest.mark.parametrize(("name", "options"), SMALL.items(), ids=SMALL)
def test_a_benchmark_runs(
    name: str, options: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.syspath_prepend(str(BENCH))
    monkeypatch.setattr(sys, "argv", [name, *options.split()])
    runpy.run_path(str(BENCH / name), run_name="__main__")
    assert len(capsys.readouterr().out.splitlines()) >= 1
