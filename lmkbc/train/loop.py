"""The training loop of all kinds of training: AdamW, linear schedule with warm-up, early stopping, resume.

The order of an epoch follows from the seed and the epoch's number. The noise of a step follows from the seed and the
step's number. So a run that was killed and resumed ends with the same bytes as one that was not.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar
from zlib import crc32

import torch
from torch import Tensor, nn

from lmkbc.errors import InputError, LmkbcError
from lmkbc.models.hardware import half_precision
from lmkbc.progress import Report, silent
from lmkbc.train.checkpoint import Checkpoint, load, save
from lmkbc.train.losses import mean
from lmkbc.train.settings import TrainingPlan

Parameters = Mapping[str, nn.Parameter]
Example = TypeVar("Example")


@dataclass(frozen=True, slots=True)
class Trained:
    """Result of a training: mean loss of each epoch, held-out losses (if any), and number of steps.

    The first held-out loss is from before training.
    """

    losses: tuple[float, ...]
    held_out: tuple[float, ...]
    steps: int


def train(
    model: nn.Module,
    loss: Callable[[Sequence[Example]], Tensor],
    examples: Sequence[Example],
    plan: TrainingPlan,
    *,
    name: str = "train",
    about: object = None,
    held_out: Sequence[Example] = (),
    held_out_batch: int = 0,
    checkpoint: Path | None = None,
    report: Report = silent,
) -> Trained:
    """Fit the trainable parameters of a model to examples, in place.

    loss: function that returns the mean loss of a batch. held_out: examples for early stopping. The parameters with the
    lowest loss on them are kept, the initial ones included. held_out_batch: batch size for them; 0 for the plan's. The
    model uses dropout in training steps only, and is left in evaluation mode.

    checkpoint: file from which a killed run resumes. A finished run also resumes from it, without a step. The caller
    removes it after it has saved the result. Only the same training can resume: same plan, initial parameters,
    examples, and `about`. about: whatever else the loss depends on. LmkbcError if the loss is not finite.
    """
    if not examples:
        raise InputError("there is nothing to train on: no example is left")
    per_epoch = -(-len(examples) // plan.batch)
    parameters = {key: value for key, value in model.named_parameters() if value.requires_grad}
    run = _Run(parameters, plan, per_epoch * plan.epochs)
    identity = run.fingerprint(examples, about) if checkpoint else ""
    state = (load(checkpoint, identity) if checkpoint else None) or Checkpoint()
    run.restore(state)

    def judge() -> None:
        model.train(mode=False)
        state.note(mean(loss, held_out, held_out_batch or plan.batch), parameters)

    if held_out and not state.held_out:
        judge()
    while state.step < run.steps and not _stale(state, plan):
        epoch, at = divmod(state.step, per_epoch)
        order = torch.randperm(
            len(examples), generator=torch.Generator().manual_seed(plan.seed * 9973 + epoch)
        ).tolist()
        model.train()
        batch = [examples[number] for number in order[at * plan.batch : (at + 1) * plan.batch]]
        state.running.append(run.step(lambda batch=batch: loss(batch), state.step))  # type: ignore[misc]
        state.step += 1
        report(f"{name}, loss {sum(state.running) / len(state.running):.3f}", state.step, run.steps)
        ended = at + 1 == per_epoch
        if ended:
            state.losses.append(sum(state.running) / len(state.running))
            state.running.clear()
            if held_out:
                judge()
        if checkpoint and (ended or (plan.every and state.step % plan.every == 0)):
            save(checkpoint, run.snapshot(state), identity)
    _copy(state.best, parameters)
    model.train(mode=False)
    return Trained(tuple(state.losses), tuple(state.held_out), state.step)


def _stale(state: Checkpoint, plan: TrainingPlan) -> bool:
    lowest = state.held_out.index(min(state.held_out)) if state.held_out else 0
    return bool(plan.patience) and len(state.held_out) - 1 - lowest >= plan.patience


def _copy(values: Mapping[str, Tensor], parameters: Parameters) -> None:
    with torch.no_grad():
        for name, value in values.items():
            parameters[name].copy_(value)


def _checksum(value: Tensor) -> int:
    return crc32(value.detach().cpu().contiguous().flatten().view(torch.uint8).numpy().tobytes())


class _Run:
    """The optimiser over named parameters."""

    def __init__(self, parameters: Parameters, plan: TrainingPlan, steps: int) -> None:
        self.parameters, self.plan, self.steps = parameters, plan, steps
        groups = [
            {"params": [value], "peak": self._peak(name), "weight_decay": plan.decay if value.ndim > 1 else 0.0}
            for name, value in parameters.items()
        ]
        self._optimiser = torch.optim.AdamW(groups, lr=plan.rate)
        self._device = next(iter(parameters.values())).device

    def _peak(self, name: str) -> float:
        return next((rate for start, rate in self.plan.rates.items() if name.startswith(start)), self.plan.rate)

    def step(self, loss: Callable[[], Tensor], number: int) -> float:
        """Update the parameters once, and return the loss.

        The noise of dropout and masks follows from the seed and the step's number.
        """
        torch.manual_seed(self.plan.seed * 1_000_003 + number)
        for group in self._optimiser.param_groups:
            group["lr"] = group["peak"] * self.plan.share(number, self.steps)
        with half_precision(self._device):
            value = loss()
        if not torch.isfinite(value):
            raise LmkbcError(f"the loss became {value.item()} at step {number}: train again with a lower rate")
        self._optimiser.zero_grad(set_to_none=True)
        value.backward()  # type: ignore[no-untyped-call]
        nn.utils.clip_grad_norm_(self.parameters.values(), 1.0)
        self._optimiser.step()
        return float(value.item())

    def fingerprint(self, examples: Sequence[object], about: object) -> str:
        """Return a text that identifies this training before its first step, for its checkpoints."""
        start = {name: (tuple(value.shape), _checksum(value)) for name, value in self.parameters.items()}
        return repr((self.plan, [*examples], sorted(start.items()), about))

    def snapshot(self, state: Checkpoint) -> Checkpoint:
        """Return the state with parameters and moments."""
        state.values = {name: value.detach().clone() for name, value in self.parameters.items()}
        state.moments = {
            f"{name}/{key}": self._optimiser.state[value][key]
            for name, value in self.parameters.items()
            for key in ("exp_avg", "exp_avg_sq", "step")
            if value in self._optimiser.state
        }
        return state

    def restore(self, state: Checkpoint) -> None:
        """Copy parameters and moments from a state that has them."""
        _copy(state.values, self.parameters)
        for name, value in self.parameters.items():
            if f"{name}/step" in state.moments:
                self._optimiser.state[value] = {
                    key: state.moments[f"{name}/{key}"].to(value.device if key != "step" else "cpu")
                    for key in ("exp_avg", "exp_avg_sq", "step")
                }
