"""Benchmarks run to their end at a small size: a change of the engine may not break them unseen."""

import importlib
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from checkout import DATA, ROOT
from small import small_edition

from lmkbc import MatchingScorer, Metric, Workspace
from lmkbc.testing import Candidate, Example, GoldObject, Query
from lmkbc.tune.outcomes import Outcomes
from tests.candidates import candidate_set

BENCH = ROOT / "eval" / "bench"
NAMES = sorted(path.stem for path in BENCH.glob("*.py") if not path.stem.startswith("_"))
OFFICIAL = ("ablation", "few", "linking", "promises", "recorded", "replay", "samples", "tuning")
"""Those that have nothing to measure without the official data."""


SUITE = ("accelerator", "documents", "figures", "hardware", "scoring")
"""Those that the suite runs, in less than a second each; `make attack` runs them all."""


@pytest.fixture(params=[pytest.param(name, marks=() if name in SUITE else pytest.mark.whole) for name in NAMES])
def main(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Callable[[Sequence[str]], None]:
    """The main function of a benchmark, imported: deep-learning libraries take longer than a small run."""
    if request.param in OFFICIAL:
        if not Path(DATA, "lmkbc2023").is_dir():
            pytest.skip("official data absent: set LMKBC_DATA to the directory that holds lmkbc2022/, lmkbc2023/, ...")
        monkeypatch.setenv("LMKBC_DATA", DATA)
    monkeypatch.setattr(sys, "argv", [f"python -m eval.bench {request.param}", "--small"])
    return importlib.import_module(f"eval.bench.{request.param}").main


def test_a_small_run_ends(main: Callable[[Sequence[str]], None], capsys: pytest.CaptureFixture[str]) -> None:
    main(["--small"])
    assert capsys.readouterr().out


def test_a_published_rule_reads_draws_where_it_read_wordings() -> None:
    from eval.bench.pools import of_draws

    rule = of_draws(Workspace(), "mave26").select.rule("stock-exchange")
    assert rule.to_table()["inner"] == {"rule": "cutoff", "threshold": pytest.approx(2 / 5)}
    rule = of_draws(Workspace(), "mdv26").select.rule("capacity")
    assert rule.to_table()["then"] == {"rule": "top-k", "k": 1}


def test_the_command_lists_every_benchmark_and_runs_it() -> None:
    def said(*words: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "eval.bench", *words]
        return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)

    listed = [line.split(maxsplit=1) for line in said().stdout.splitlines()[1:]]
    assert [name for name, _ in listed] == NAMES
    assert "no benchmark 'nothing'" in said("nothing").stderr
    assert said("figures", "--help").stdout.startswith("usage: python -m eval.bench figures ")


def test_what_gold_could_choose_bounds_what_a_system_gains() -> None:
    from eval.bench.losses import losses

    edition = small_edition(["knows"], metric=Metric(MatchingScorer(frozenset()), average="relation"))
    some, none = Query("Eve", "knows"), Query("Fay", "knows")
    found = [Candidate("Cy", 0.9), Candidate("Ada", 0.5), Candidate("Di", 0.1)]
    gold = tuple(GoldObject((name,), name) for name in ("Ada", "Bo"))
    sets = [candidate_set(some, found), candidate_set(none, found[:1])]
    outcomes = Outcomes(sets, [Example(some, gold), Example(none, ())], edition)  # all that is proposed is kept
    each = {"pool": (2 / 3, 1), "order": (1 / 2, 1), "none": (2 / 5, 1), "F1": (2 / 5, 0)}
    assert losses(outcomes) == {column: pytest.approx(sum(pair) / 2) for column, pair in each.items()}


def test_a_run_that_cannot_be_counted_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("LMKBC_DATA", "XDG_CACHE_HOME"):
        monkeypatch.setenv(name, str(tmp_path))
    counted = importlib.import_module("eval.bench.house").loaded("--edition 2023 --split val --system prior")
    assert counted.startswith("not counted, since the run failed: the val split of edition 2023 is not in ")
