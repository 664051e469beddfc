from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch
from torch import nn

from lmkbc.errors import InputError, LmkbcError
from lmkbc.train.checkpoint import Checkpoint, load, save
from lmkbc.train.loop import Plan, train

SCRIPT = Path(__file__).with_name("resume_run.py")


def start(checkpoint: Path, out: Path, delay: float) -> subprocess.Popen[bytes]:
    root = str(SCRIPT.parents[2])
    return subprocess.Popen(
        [sys.executable, str(SCRIPT), str(checkpoint), str(out), str(delay)],
        env={**os.environ, "PYTHONPATH": root, "OMP_NUM_THREADS": "1"},
    )


def test_killed_and_resumed_ends_with_the_same_bytes(tmp_path: Path) -> None:
    assert start(tmp_path / "whole", tmp_path / "whole.safetensors", 0).wait(60) == 0
    checkpoint = tmp_path / "checkpoint"
    run = start(checkpoint, tmp_path / "never.safetensors", 0.3)
    deadline = time.monotonic() + 60
    while not checkpoint.exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    run.send_signal(signal.SIGKILL)
    run.wait(60)
    assert checkpoint.exists()
    assert not (tmp_path / "never.safetensors").exists()
    assert start(checkpoint, tmp_path / "resumed.safetensors", 0).wait(60) == 0
    assert (tmp_path / "resumed.safetensors").read_bytes() == (tmp_path / "whole.safetensors").read_bytes()
    finished = checkpoint.read_bytes()
    assert start(checkpoint, tmp_path / "again.safetensors", 0).wait(60) == 0  # killed before its outcome was kept
    assert (tmp_path / "again.safetensors").read_bytes() == (tmp_path / "whole.safetensors").read_bytes()
    assert checkpoint.read_bytes() == finished


def test_a_checkpoint_gives_back_what_it_was_given(tmp_path: Path) -> None:
    state = Checkpoint(
        7, [0.1], [0.3, 0.2], [0.5], {"a/b": torch.ones(2)}, {"a/b": torch.zeros(2)}, {"a/b/step": torch.tensor(7.0)}
    )
    save(tmp_path / "c", state, "run")
    found = load(tmp_path / "c", "run")
    assert found is not None
    assert (found.step, found.losses, found.held_out, found.running) == (7, [0.1], [0.3, 0.2], [0.5])
    assert torch.equal(found.best["a/b"], torch.ones(2))
    assert torch.equal(found.moments["a/b/step"], torch.tensor(7.0))
    assert (tmp_path / "c").read_bytes()[8:9] == b"{"  # safetensors begins with its JSON header, a pickle does not


def test_another_trainings_checkpoint_is_refused(tmp_path: Path) -> None:
    save(tmp_path / "c", Checkpoint(), "one")
    with pytest.raises(InputError, match="other settings"):
        load(tmp_path / "c", "two")


@pytest.mark.parametrize("content", [b"", b"junk", b"\x80\x04N."])
def test_a_broken_checkpoint_is_named(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "c").write_bytes(content)
    with pytest.raises(InputError, match="no checkpoint"):
        load(tmp_path / "c", "run")


def test_no_checkpoint_is_a_fresh_start(tmp_path: Path) -> None:
    assert load(tmp_path / "none", "run") is None


def test_a_loss_that_is_no_number_stops_the_run() -> None:
    weight = nn.Parameter(torch.ones(1))
    with pytest.raises(LmkbcError, match="lower rate"):
        train({"w": weight}, lambda _: (weight * float("nan")).sum(), 4, Plan(rate=1.0, epochs=1, batch=2))


@pytest.mark.parametrize("change", ["examples", "start"])
def test_another_start_or_other_examples_do_not_go_on_from_a_checkpoint(tmp_path: Path, change: str) -> None:
    def run(first: float, about: object) -> None:
        weight = nn.Parameter(torch.full((2,), first))
        plan = Plan(rate=1e-2, epochs=1, batch=2)
        train({"w": weight}, lambda _: weight.square().sum(), 4, plan, about=about, checkpoint=tmp_path / "c")

    run(1.0, ["a", "b"])
    run(1.0, ["a", "b"])  # the same one is taken up
    with pytest.raises(InputError, match="other settings"):
        run(*((1.0, ["a", "c"]) if change == "examples" else (2.0, ["a", "b"])))
