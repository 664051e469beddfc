from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from safetensors.torch import save as to_bytes
from torch import nn

from lmkbc.errors import InputError, LmkbcError
from lmkbc.models.masked.backbone import Backbone
from lmkbc.train.clozes import train_mlm
from lmkbc.train.loop import train
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
    (tmp_path / "c").write_bytes(b"\x80\x04N.")
    with pytest.raises(InputError, match="no checkpoint"):
        run(1.0, ["a", "b"])
