"""Checkpoints that survive a kill: one safetensors file, with the counters as JSON in its header, replaced at once.

The header holds a digest of all the rest, so that no damage is trained on.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save as to_bytes
from torch import Tensor

from lmkbc.errors import InputError
from lmkbc.files.atomic import write_bytes

COUNTERS = ("step", "losses", "held_out", "running")


@dataclass(slots=True)
class Checkpoint:
    """A run between two steps. step: how many were taken. losses: of whole epochs; running: of this one's steps.

    held_out: loss before training and after each epoch; best: the parameters where it was lowest so far.
    values: parameters by name; moments: of AdamW, by parameter and kind.
    """

    step: int = 0
    losses: list[float] = field(default_factory=list)
    held_out: list[float] = field(default_factory=list)
    running: list[float] = field(default_factory=list)
    best: dict[str, Tensor] = field(default_factory=dict)
    values: dict[str, Tensor] = field(default_factory=dict)
    moments: dict[str, Tensor] = field(default_factory=dict)

    def note(self, loss: float, parameters: Mapping[str, Tensor]) -> None:
        """Keep the parameters when the held-out loss is the lowest so far."""
        if loss < min(self.held_out, default=math.inf):
            self.best = {name: value.detach().clone() for name, value in parameters.items()}
        self.held_out.append(loss)


def save(path: Path, state: Checkpoint, run: str) -> None:
    """Replace the file. run: what the training is, so that another one does not resume from it."""
    tensors = {
        f"{part}/{name}": tensor.detach().cpu().contiguous()
        for part in ("best", "values", "moments")
        for name, tensor in getattr(state, part).items()
    }
    header: dict[str, Any] = {name: getattr(state, name) for name in COUNTERS} | {"run": _digest(run)}
    written = json.dumps(header)
    write_bytes(path, to_bytes(tensors, metadata={"state": written, "sha256": _checksum(written, tensors)}))


def load(path: Path, run: str) -> Checkpoint | None:
    """The state that a killed run left, or None. InputError when it is broken, or another training's."""
    if not path.exists():
        return None
    try:
        with safe_open(path, framework="pt") as file:
            metadata = file.metadata() or {}
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        if metadata["sha256"] != _checksum(metadata["state"], tensors):
            raise ValueError("its content is not what was written")
        header = json.loads(metadata["state"])
    except (SafetensorError, KeyError, ValueError, OSError) as error:
        raise InputError(f"{path} is no checkpoint ({error}); remove it to start anew") from error
    if header["run"] != _digest(run):
        raise InputError(f"{path} is of a training with other settings: remove it to start anew, or restore them")
    state = Checkpoint(**{name: header[name] for name in COUNTERS})
    for name, tensor in tensors.items():
        part, _, key = name.partition("/")
        getattr(state, part)[key] = tensor
    return state


def _checksum(header: str, tensors: Mapping[str, Tensor]) -> str:
    """SHA-256 of the header and of each tensor with its name, type and shape."""
    whole = hashlib.sha256(header.encode())
    for name, tensor in sorted(tensors.items()):
        whole.update(repr((name, str(tensor.dtype), tuple(tensor.shape))).encode())
        whole.update(tensor.flatten().view(torch.uint8).numpy().data)
    return whole.hexdigest()


def _digest(run: str) -> str:
    return hashlib.sha256(run.encode()).hexdigest()
