"""The training loop of all kinds of training: AdamW, linear schedule with warm-up, early stopping, resume.

The order of an epoch follows from the seed and the epoch's number. The noise of a step follows from the seed and the
step's number. So a run that was killed and resumed ends with the same bytes as one that was not. Its checkpoint is one
safetensors file, replaced atomically, with the counters as JSON in its header.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar
from zlib import crc32

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor, nn

from lmkbc.errors import InputError, LmkbcError
from lmkbc.files.atomic import write_bytes
from lmkbc.files.checksum import sha256
from lmkbc.models.hardware import multiplies_bf16
from lmkbc.progress import Report, silent
from lmkbc.train.training import TrainingPlan

Example = TypeVar("Example")
COUNTERS = ("done", "losses", "running", "held_out")
"""Counts in a checkpoint."""
MOMENTS = ("exp_avg", "exp_avg_sq", "step")
"""AdamW's state of a parameter."""


@dataclass(frozen=True, slots=True)
class Trained:
    """Result of a training: mean loss of each epoch, held-out losses (if any), and number of steps.

    The first held-out loss is from before training.
    """

    losses: tuple[float, ...]
    held_out: tuple[float, ...]
    steps: int


def half_precision(device: torch.device) -> AbstractContextManager[object]:
    """Return a context that computes in bf16 if the hardware multiplies it natively, else in fp32.

    Weights stay in fp32.
    """
    return torch.autocast(device.type, dtype=torch.bfloat16) if multiplies_bf16(device) else nullcontext()


def mean(loss: Callable[[Sequence[Example]], Tensor], rows: Sequence[Example], batch: int) -> float:
    """Return the mean loss over rows, in batches, without gradients."""
    with torch.inference_mode():
        parts = (rows[start : start + batch] for start in range(0, len(rows), batch))
        return sum(float(loss(part)) * len(part) for part in parts) / len(rows)


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
    run = _Run(model, plan, per_epoch * plan.epochs)
    identity = run.fingerprint(examples, about) if checkpoint else ""
    if checkpoint and checkpoint.exists():
        run.load(checkpoint, identity)

    def judge() -> None:
        model.train(mode=False)
        run.note(mean(loss, held_out, held_out_batch or plan.batch))

    if held_out and not run.held_out:
        judge()
    while run.done < run.steps and not run.stale:
        epoch, at = divmod(run.done, per_epoch)
        order = torch.randperm(
            len(examples), generator=torch.Generator().manual_seed(plan.seed * 9973 + epoch)
        ).tolist()
        model.train()
        batch = [examples[number] for number in order[at * plan.batch : (at + 1) * plan.batch]]
        run.step(lambda batch=batch: loss(batch))  # type: ignore[misc]
        report(f"{name} (steps, loss {sum(run.running) / len(run.running):.3f})", run.done, run.steps)
        ended = at + 1 == per_epoch
        if ended:
            run.losses.append(sum(run.running) / len(run.running))
            run.running.clear()
            if held_out:
                judge()
        if checkpoint and (ended or (plan.every and run.done % plan.every == 0)):
            run.save(checkpoint, identity)
    run.copy(run.best)
    model.train(mode=False)
    return Trained(tuple(run.losses), tuple(run.held_out), run.done)


class _Run:
    """The optimiser over the trainable parameters of a model, and what a checkpoint keeps.

    done: number of steps done. losses: loss of each finished epoch. running: losses of the current epoch's steps.
    held_out: loss before training and after each epoch. best: parameters at the lowest held-out loss so far.
    """

    def __init__(self, model: nn.Module, plan: TrainingPlan, steps: int) -> None:
        self.parameters = {name: value for name, value in model.named_parameters() if value.requires_grad}
        self.plan, self.steps, self.done = plan, steps, 0
        self.losses, self.running, self.held_out = list[float](), list[float](), list[float]()
        self.best: dict[str, Tensor] = {}
        groups = [
            {"params": [value], "peak": self._peak(name), "weight_decay": plan.decay if value.ndim > 1 else 0.0}
            for name, value in self.parameters.items()
        ]
        self._optimiser = torch.optim.AdamW(groups, lr=plan.rate)

    def _peak(self, name: str) -> float:
        return next((rate for start, rate in self.plan.rates.items() if name.startswith(start)), self.plan.rate)

    def step(self, loss: Callable[[], Tensor]) -> None:
        """Update the parameters once. The noise of dropout and masks follows from the seed and the step's number."""
        torch.manual_seed(self.plan.seed * 1_000_003 + self.done)
        for group in self._optimiser.param_groups:
            group["lr"] = group["peak"] * self.plan.share(self.done, self.steps)
        with half_precision(next(iter(self.parameters.values())).device):
            value = loss()
        if not torch.isfinite(value):
            raise LmkbcError(f"the loss became {value.item()} at step {self.done}: train again with a lower rate")
        self._optimiser.zero_grad(set_to_none=True)
        value.backward()  # type: ignore[no-untyped-call]
        nn.utils.clip_grad_norm_(self.parameters.values(), 1.0)
        self._optimiser.step()
        self.running.append(float(value.item()))
        self.done += 1

    def note(self, loss: float) -> None:
        """Record a held-out loss, and keep the parameters if it is the lowest so far."""
        if loss < min(self.held_out, default=math.inf):
            self.best = {name: value.detach().clone() for name, value in self.parameters.items()}
        self.held_out.append(loss)

    @property
    def stale(self) -> bool:
        """Return whether the loss on held-out examples has not fallen for as many epochs as the plan allows."""
        lowest = self.held_out.index(min(self.held_out)) if self.held_out else 0
        return bool(self.plan.patience) and len(self.held_out) - 1 - lowest >= self.plan.patience

    def copy(self, values: Mapping[str, Tensor]) -> None:
        """Copy values into the parameters of the same names."""
        with torch.no_grad():
            for name, value in values.items():
                self.parameters[name].copy_(value)

    def fingerprint(self, examples: Sequence[object], about: object) -> str:
        """Return a digest that identifies this training before its first step, for its checkpoints."""
        start = {
            name: (
                tuple(value.shape),
                crc32(value.detach().cpu().contiguous().flatten().view(torch.uint8).numpy().tobytes()),
            )
            for name, value in self.parameters.items()
        }
        return sha256(repr((self.plan, [*examples], sorted(start.items()), about)).encode())

    def save(self, path: Path, identity: str) -> None:
        """Replace the checkpoint."""
        state = self._optimiser.state
        values = {name: {"value": value, **state.get(value, {})} for name, value in self.parameters.items()}
        tensors = {f"{key}/{name}": tensor for name, parts in values.items() for key, tensor in parts.items()}
        tensors |= {f"best/{name}": value for name, value in self.best.items()}
        counters = {name: getattr(self, name) for name in COUNTERS}
        about = {"run": identity, "counters": json.dumps(counters)}
        write_bytes(path, save({name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}, about))

    def load(self, path: Path, identity: str) -> None:
        """Go on from the checkpoint of a killed run. InputError if it is damaged, or belongs to another training."""
        try:
            with safe_open(path, framework="pt") as file:
                about = file.metadata() or {}
                tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 -- it is no mapping
        except SafetensorError as error:
            raise InputError(f"{path} is no checkpoint, or damaged ({error}): remove it to start anew") from None
        if about.get("run") != identity:
            raise InputError(f"{path} is of a training with other settings: remove it to start anew, or restore them")
        counters = json.loads(about["counters"])
        self.done, self.losses, self.running, self.held_out = (counters[name] for name in COUNTERS)
        parts = {
            key: {name: tensors[f"{key}/{name}"] for name in self.parameters if f"{key}/{name}" in tensors}
            for key in ("value", "best", *MOMENTS)
        }
        self.copy(parts["value"])
        self.best = parts["best"]
        for name in parts["step"]:
            parameter = self.parameters[name]
            self._optimiser.state[parameter] = {
                key: parts[key][name].to("cpu" if key == "step" else parameter.device) for key in MOMENTS
            }
