"""The training loop that every kind of training shares: AdamW, linear schedule with warm-up, early stopping, resume.

Nothing random outlives a step: the order of an epoch and the noise of a step follow from the seed and their number, so
a run that was killed and resumed ends with the same bytes as one that was not.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from zlib import crc32

import torch
from torch import Tensor, nn

from lmkbc.errors import InputError, LmkbcError
from lmkbc.models.precision import half_precision
from lmkbc.progress import Report, silent
from lmkbc.train.checkpoint import Checkpoint, load, save

Parameters = Mapping[str, nn.Parameter]
Loss = Callable[[Sequence[int]], Tensor]


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """How long and how fast. rate: peak learning rate. warm_up: share of all steps. decay: weight decay, of matrices.

    rates: beginning of a parameter's name -> its own rate. patience: epochs without a better held-out loss before
    stopping (0: never stop early). every: steps between checkpoints (0: only after epochs).
    """

    rate: float
    epochs: int
    batch: int = 64
    warm_up: float = 0.1
    decay: float = 0.0
    seed: int = 0
    patience: int = 0
    every: int = 0
    rates: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """InputError for settings that make no sense."""
        if not (self.rate > 0 and self.epochs >= 1 and self.batch >= 1 and 0 <= self.warm_up < 1):
            raise InputError(
                f"rate {self.rate}, epochs {self.epochs}, batch {self.batch} and warm-up {self.warm_up} cannot train: "
                "give a positive rate, at least one epoch and one fact per batch, and a warm-up below 1"
            )

    def share(self, step: int, steps: int) -> float:
        """The share of the peak rate at a step: up in a line, then down to zero."""
        rising = max(round(self.warm_up * steps), 1)
        return min((step + 1) / rising, (steps - step) / max(steps - rising, 1), 1.0)


@dataclass(frozen=True, slots=True)
class Trained:
    """What training came to: mean loss of each epoch, held-out loss after each (if any), and steps taken."""

    losses: tuple[float, ...]
    held_out: tuple[float, ...]
    steps: int


def train(
    parameters: Parameters,
    loss: Loss,
    count: int,
    plan: Plan,
    *,
    name: str = "train",
    about: object = None,
    held_out: Callable[[], float] | None = None,
    checkpoint: Path | None = None,
    report: Report = silent,
) -> Trained:
    """Fit the parameters, in place, to `count` examples. loss: of a batch of example numbers.

    about: what the examples are; a checkpoint is taken up by the same training alone: plan, start and examples.
    held_out: loss on what is not trained on; the parameters end as they were when it was lowest, the start included.
    checkpoint: file that a killed run resumes from, and a finished one too, without a step; whoever names it removes it
    once the outcome is kept. LmkbcError when the loss is no number.
    """
    if not count:
        raise InputError("there is nothing to train on: no example is left")
    run = _Run(parameters, plan, -(-count // plan.batch) * plan.epochs)
    identity = run.fingerprint(count, about) if checkpoint else ""
    state = (load(checkpoint, identity) if checkpoint else None) or Checkpoint()
    run.restore(state)
    if held_out and not state.held_out:
        state.note(held_out(), parameters)
    per_epoch = -(-count // plan.batch)
    while state.step < run.steps and not _stale(state, plan):
        epoch, at = divmod(state.step, per_epoch)
        order = torch.randperm(count, generator=torch.Generator().manual_seed(plan.seed * 9973 + epoch)).tolist()
        value = run.step(loss, order[at * plan.batch : (at + 1) * plan.batch], state.step)
        state.step += 1
        state.running.append(value)
        report(f"{name}, loss {sum(state.running) / len(state.running):.3f}", state.step, run.steps)
        ended = at + 1 == per_epoch
        if ended:
            state.losses.append(sum(state.running) / len(state.running))
            state.running.clear()
            if held_out:
                state.note(held_out(), parameters)
        if checkpoint and (ended or (plan.every and state.step % plan.every == 0)):
            save(checkpoint, run.snapshot(state), identity)
    _copy(state.best, parameters)
    return Trained(tuple(state.losses), tuple(state.held_out), state.step)


def train_model(
    model: nn.Module,
    loss: Loss,
    count: int,
    plan: Plan,
    *,
    name: str,
    about: object = None,
    held_out: Callable[[], float] | None = None,
    checkpoint: Path | None = None,
    report: Report = silent,
) -> Trained:
    """`train` for all weights of a model, which learns with dropout, and is judged and left without it."""

    def judged(value: Callable[[], float]) -> float:
        model.train(mode=False)
        lost = value()
        model.train()
        return lost

    model.train()
    trained = train(
        dict(model.named_parameters()),
        loss,
        count,
        plan,
        name=name,
        about=about,
        held_out=partial(judged, held_out) if held_out else None,
        checkpoint=checkpoint,
        report=report,
    )
    model.train(mode=False)
    return trained


def _stale(state: Checkpoint, plan: Plan) -> bool:
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

    def __init__(self, parameters: Parameters, plan: Plan, steps: int) -> None:
        self.parameters, self.plan, self.steps = parameters, plan, steps
        groups = [
            {"params": [value], "peak": self._peak(name), "weight_decay": plan.decay if value.ndim > 1 else 0.0}
            for name, value in parameters.items()
        ]
        self._optimiser = torch.optim.AdamW(groups, lr=plan.rate)
        self._device = next(iter(parameters.values())).device

    def _peak(self, name: str) -> float:
        return next((rate for start, rate in self.plan.rates.items() if name.startswith(start)), self.plan.rate)

    def step(self, loss: Loss, batch: Sequence[int], number: int) -> float:
        """One update. The noise of dropout and masks follows from the seed and the step's number."""
        torch.manual_seed(self.plan.seed * 1_000_003 + number)
        for group in self._optimiser.param_groups:
            group["lr"] = group["peak"] * self.plan.share(number, self.steps)
        with half_precision(self._device):
            value = loss(batch)
        if not torch.isfinite(value):
            raise LmkbcError(f"the loss became {value.item()} at step {number}: train again with a lower rate")
        self._optimiser.zero_grad(set_to_none=True)
        value.backward()  # type: ignore[no-untyped-call]
        nn.utils.clip_grad_norm_(self.parameters.values(), 1.0)
        self._optimiser.step()
        return float(value.item())

    def fingerprint(self, count: int, about: object) -> str:
        """What a checkpoint must have in common with this run, before its first step."""
        start = {name: (tuple(value.shape), _checksum(value)) for name, value in self.parameters.items()}
        return repr((self.plan, count, sorted(start.items()), about))

    def snapshot(self, state: Checkpoint) -> Checkpoint:
        """The state with parameters and moments."""
        state.values = {name: value.detach().clone() for name, value in self.parameters.items()}
        state.moments = {
            f"{name}/{key}": self._optimiser.state[value][key]
            for name, value in self.parameters.items()
            for key in ("exp_avg", "exp_avg_sq", "step")
            if value in self._optimiser.state
        }
        return state

    def restore(self, state: Checkpoint) -> None:
        """Parameters and moments from a state that has them."""
        _copy(state.values, self.parameters)
        for name, value in self.parameters.items():
            if f"{name}/step" in state.moments:
                self._optimiser.state[value] = {
                    key: state.moments[f"{name}/{key}"].to(value.device if key != "step" else "cpu")
                    for key in ("exp_avg", "exp_avg_sq", "step")
                }
