"""Checkpoints that survive a kill: a checksum and one safetensors file, with the counters as JSON in its header.

A file is replaced atomically. A damaged file is never used for training.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from safetensors.torch import load as from_bytes
from safetensors.torch import save as to_bytes
from torch import Tensor

from lmkbc.errors import InputError
from lmkbc.files.atomic import write_bytes
from lmkbc.files.checksum import sha256, signed, unsigned

COUNTERS = ("step", "losses", "held_out", "running")
TENSORS = ("best", "values", "moments")


@dataclass(slots=True)
class Checkpoint:
    """State of a training between two steps.

    step: number of steps done. losses: loss of each finished epoch. running: losses of the current epoch's steps.
    held_out: loss before training and after each epoch. best: parameters at the lowest held-out loss so far. values:
    parameters by name. moments: AdamW's moments, by parameter and kind.
    """

    step: int = 0
    losses: list[float] = field(default_factory=list)
    held_out: list[float] = field(default_factory=list)
    running: list[float] = field(default_factory=list)
    best: dict[str, Tensor] = field(default_factory=dict)
    values: dict[str, Tensor] = field(default_factory=dict)
    moments: dict[str, Tensor] = field(default_factory=dict)

    def note(self, loss: float, parameters: Mapping[str, Tensor]) -> None:
        """Record a held-out loss, and keep the parameters if it is the lowest so far."""
        if loss < min(self.held_out, default=math.inf):
            self.best = {name: value.detach().clone() for name, value in parameters.items()}
        self.held_out.append(loss)


def save(path: Path, state: Checkpoint, run: str) -> None:
    """Replace the file. run: description of the training; another training cannot resume from the file."""
    tensors = {
        f"{part}/{name}": tensor.detach().cpu().contiguous()
        for part in TENSORS
        for name, tensor in getattr(state, part).items()
    }
    counters = {name: getattr(state, name) for name in COUNTERS} | {"run": sha256(run.encode())}
    write_bytes(path, signed(path.name, to_bytes(tensors, metadata={"state": json.dumps(counters)})))


def load(path: Path, run: str) -> Checkpoint | None:
    """Return the state of a killed run, or None. InputError if it is damaged, or belongs to another training."""
    if not path.exists():
        return None
    content = unsigned(path.name, path.read_bytes())
    if content is None:
        raise InputError(f"{path} is no checkpoint, or damaged: remove it to start anew")
    header = json.loads(content[8 : 8 + int.from_bytes(content[:8], "little")])
    counters = json.loads(header["__metadata__"]["state"])
    if counters.pop("run") != sha256(run.encode()):
        raise InputError(f"{path} is of a training with other settings: remove it to start anew, or restore them")
    state = Checkpoint(**counters)
    for name, tensor in from_bytes(content).items():
        part, _, key = name.partition("/")
        getattr(state, part)[key] = tensor
    return state
