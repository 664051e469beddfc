"""Studies in PostgreSQL: two processes finish one together, and a killed one loses no finished trial."""

import os
import signal
import subprocess
import sys
import time

import optuna
import pytest
from optuna.trial import TrialState
from postgres import Server, free_port, programs

from lmkbc.tune.studies import close_storage, open_storage

WORKER = """
import random, sys, time
import numpy as np
from lmkbc import Download, Edition, IdScorer, Metric
from lmkbc.tune.families import Task
from lmkbc.tune.outcomes import Outcomes
from lmkbc.tune.studies import Studies, close_storage, open_storage
from lmkbc.tune.tuning_set import TuningOptions
from lmkbc.types import Candidate, CandidateSet, Example, GoldObject, Query

url, trials, pause, seed = sys.argv[1], int(sys.argv[2]), float(sys.argv[3]), int(sys.argv[4])
splits = dict.fromkeys(("train", "val", "test"), Download("https://example.org", "0" * 64))
edition = Edition(name="t", folder="t", relations=("r",), splits=splits, column="ObjectEntitiesID", target="id",
                  metric=Metric(IdScorer(distinct=True), average="relation"))
rng = random.Random(0)
queries = [Query(f"s{i}", "r") for i in range(20)]
sets = [CandidateSet(q, tuple(Candidate(f"Q{j}", rng.random(), id=f"Q{j}") for j in range(5))) for q in queries]
examples = [Example(q, (GoldObject(("Q1",), "Q1"),)) for q in queries]

class Slow(Outcomes):
    def f1(self, rule):
        time.sleep(pause)
        return super().f1(rule)

task = Task("r", Slow(sets, examples, edition), nullable=True)
storage = open_storage(url)
print("ready", flush=True)
rows, inner = np.ones(20, dtype=bool), np.arange(20) % 2
options = TuningOptions(rules=("sticky",), trials=trials, seed=seed)
Studies(options, "shared", storage).search(task, rows, inner, patience=trials)
close_storage(storage)
"""


@pytest.fixture
def url(postgres: Server) -> str:
    """The cluster with its tables made and no study in it."""
    storage = open_storage(postgres.url)
    for study in optuna.get_all_study_summaries(storage):
        optuna.delete_study(study_name=study.study_name, storage=storage)
    close_storage(storage)
    return postgres.url


def worker(url: str, trials: int, pause: float = 0.0, seed: int = 0) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-c", WORKER, url, str(trials), str(pause), str(seed)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, env={**os.environ, "PYTHONPATH": os.getcwd()})


def states(url: str) -> list[TrialState]:
    storage = open_storage(url)
    try:
        if not optuna.get_all_study_summaries(storage):
            return []
        return [trial.state for trial in optuna.load_study(study_name="shared-r", storage=storage).get_trials()]
    finally:
        close_storage(storage)


def finish(process: subprocess.Popen[bytes]) -> None:
    with process:
        process.communicate(timeout=120)
    assert process.returncode == 0


def test_two_processes_finish_one_study_together(url: str) -> None:
    both = [worker(url, 12, 0.02, seed) for seed in (0, 1)]
    for process in both:
        finish(process)
    done = states(url).count(TrialState.COMPLETE)
    assert 12 <= done <= 13  # the one in flight when the other reaches the goal


@pytest.mark.kill
def test_a_killed_process_loses_no_finished_trial(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with worker(url, 1000, 0.05) as killed:
        deadline = time.monotonic() + 60
        while (before := states(url).count(TrialState.COMPLETE)) < 4 and time.monotonic() < deadline:
            time.sleep(0.1)
        killed.send_signal(signal.SIGKILL)
    kept = states(url).count(TrialState.COMPLETE)
    assert kept >= before >= 4
    monkeypatch.setattr(sys, "argv", ["", url, str(kept + 5), "0", "7"])
    for _ in range(2):  # in this process, which has the libraries; the second finds nothing to do
        exec(WORKER, {})
        assert states(url).count(TrialState.COMPLETE) == kept + 5


def test_a_dead_server_is_an_error_without_its_password() -> None:
    from lmkbc.errors import LmkbcError

    programs()
    with pytest.raises(LmkbcError, match="does not answer") as caught:
        open_storage(f"postgresql://someone:secret@127.0.0.1:{free_port()}/none")
    assert "secret" not in str(caught.value)
