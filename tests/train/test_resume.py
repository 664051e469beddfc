from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from safetensors.torch import save as to_bytes
from torch import nn

from lmkbc.errors import InputError, LmkbcError
from lmkbc.models.masked.backbone import Backbone
from lmkbc.train.checkpoint import Checkpoint, load, save
from lmkbc.train.loop import train
from lmkbc.train.mlm import train_mlm
from lmkbc.train.settings import Masking, TrainingPlan
from lmkbc.types import Fact


class CutError(Exception):
    """Ends a training as a kill would, were it not in this process; `tests/attack` kills for real."""


def trained(backbone: Backbone, facts: list[Fact], checkpoint: Path, cut: int = -1) -> bytes:
    """The weights of a training that is cut after so many steps, or not at all."""

    def report(step: str, done: int, total: int | None) -> None:
        if done == cut:
            raise CutError

    plan = TrainingPlan(rate=1e-2, epochs=5, batch=3, every=2, patience=100)
    train_mlm(backbone, facts[:6], facts[6:], plan, Masking(), checkpoint=checkpoint, report=report)
    return to_bytes({name: value.contiguous().clone() for name, value in backbone.model.state_dict().items()})


@pytest.mark.parametrize("cut", [2, 5, 10])
def test_cut_short_and_resumed_ends_with_the_same_bytes(
    another: Callable[[int], Backbone], facts: list[Fact], tmp_path: Path, cut: int
) -> None:
    whole, checkpoint = trained(another(0), facts, tmp_path / "whole"), tmp_path / "checkpoint"
    with pytest.raises(CutError):
        trained(another(0), facts, checkpoint, cut)
    assert checkpoint.exists() == (cut > 2)
    assert trained(another(0), facts, checkpoint) == whole
    finished = checkpoint.read_bytes()
    assert trained(another(0), facts, checkpoint) == whole  # cut before its outcome was kept
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


def test_another_trainings_checkpoint_is_refused(tmp_path: Path) -> None:
    save(tmp_path / "c", Checkpoint(), "one")
    with pytest.raises(InputError, match="other settings"):
        load(tmp_path / "c", "two")


def test_a_checkpoint_that_lost_a_bit_is_named(tmp_path: Path) -> None:
    state = Checkpoint(
        7, [0.1], values={"a": torch.ones(3)}, moments={"a/exp_avg": torch.zeros(3, dtype=torch.float16)}
    )
    save(tmp_path / "c", state, "run")
    whole = (tmp_path / "c").read_bytes()
    for place in range(len(whole)):
        damaged = bytearray(whole)
        damaged[place] ^= 1 << place % 8
        (tmp_path / "c").write_bytes(damaged)
        with pytest.raises(InputError, match="remove it to start anew"):
            load(tmp_path / "c", "run")


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
        train(
            nn.ParameterDict({"w": weight}),
            lambda _: (weight * float("nan")).sum(),
            [1],
            TrainingPlan(rate=1.0, epochs=1, batch=2),
        )


@pytest.mark.parametrize("change", ["examples", "start"])
def test_another_start_or_other_examples_do_not_go_on_from_a_checkpoint(tmp_path: Path, change: str) -> None:
    def run(first: float, examples: list[str]) -> None:
        weight = nn.Parameter(torch.full((2,), first))
        plan = TrainingPlan(rate=1e-2, epochs=1, batch=2)
        model = nn.ParameterDict({"w": weight})
        train(model, lambda _: weight.square().sum(), examples, plan, checkpoint=tmp_path / "c")

    run(1.0, ["a", "b"])
    run(1.0, ["a", "b"])  # the same one is taken up
    with pytest.raises(InputError, match="other settings"):
        run(*((1.0, ["a", "c"]) if change == "examples" else (2.0, ["a", "b"])))
