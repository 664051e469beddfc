"""Settings of training, each declared once, for the commands and for Python, and the directory of a trained model.

This module does not load torch. A field with a description is an option of the training commands. Checkpoints are
beside the directory.
"""

from __future__ import annotations

import re
import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from msgspec import Meta

from lmkbc.errors import InputError
from lmkbc.files.atomic import DirectoryKind, check_replaceable, with_record, write_directory
from lmkbc.files.writable import same

if TYPE_CHECKING:
    from lmkbc.masked.heads import Entities


TRAINING = {"group": "Training"}
"""Heading of the help of training commands."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingPlan:
    """Length and rates of a training.

    rate: peak learning rate. warm_up: share of all steps. decay: weight decay of matrices. rates: beginning of a
    parameter's name -> its own rate. patience: epochs without a better held-out loss before stopping (0: never stop
    early). every: steps between checkpoints (0: only after epochs). falls: whether the rate falls to zero after the
    warm-up.
    """

    rate: Annotated[float, Meta(description="Peak learning rate.", extra=TRAINING)]
    epochs: Annotated[int, Meta(ge=1, description="Passes over the examples.", extra=TRAINING)]
    batch: Annotated[int, Meta(ge=1, description="Examples per step.", extra=TRAINING)] = 64
    warm_up: float = 0.1
    decay: float = 0.0
    seed: Annotated[int, Meta(description="Seed of everything random.", extra=TRAINING)] = 0
    patience: int = 0
    every: int = 0
    rates: Mapping[str, float] = field(default_factory=dict)
    falls: bool = field(default=True, repr=False)

    def __post_init__(self) -> None:
        """Raise InputError for a plan that cannot train."""
        if not (self.rate > 0 and self.epochs >= 1 and self.batch >= 1 and 0 <= self.warm_up < 1):
            raise InputError(
                f"{self} cannot train: give a rate above 0, at least one epoch and one example per batch, and a "
                "warm-up from 0 to below 1"
            )

    def share(self, step: int, steps: int) -> float:
        """Return the share of the peak rate at a step: it rises linearly, then falls linearly if `falls` is set."""
        rising = max(round(self.warm_up * steps), 1)
        falling = (steps - step) / max(steps - rising, 1) if self.falls else 1.0
        return min((step + 1) / rising, falling, 1.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Training:
    """Model to train, its facts, and the directory for the result.

    apart: share of the facts for early stopping. device: None for a CUDA device if there is one.
    """

    backbone: Annotated[str, Meta(description="Masked LM or encoder: an id, or a directory.")]
    out: Annotated[
        Path, Meta(description="Directory for the trained model. An older model there is replaced at the end.")
    ]
    most: Annotated[int, Meta(ge=0, description="At most N KAMEL and silver facts per relation.")] = 1000
    relation: Annotated[str, Meta(description="Only this relation, by any of its names, or a property.")] = ""
    random: Annotated[
        Literal["all", "embeddings"] | None,
        Meta(description="Control: start from random weights, 'all' or 'embeddings'."),
    ] = None
    device: Annotated[str | None, Meta(description="cpu or cuda. Default: cuda if it is usable.")] = None
    offline: Annotated[bool, Meta(description="Open no network connection.")] = False
    apart: float = 0.1

    def __post_init__(self) -> None:
        """Raise InputError for a directory that cannot be written, or that holds anything except an older model."""
        check_out(self.out, self.backbone)


@dataclass(frozen=True, slots=True, kw_only=True)
class Masking:
    """Choice of the masked tokens: the object, or 15 % of all tokens at random.

    policy: "object", "object+N" with N tokens around it, or "random". apart: one example per masked token, with the
    rest of the object visible, as in the authors' code. Otherwise one example has all of them masked. nothing: word for
    "no object"; if it is empty, facts without an object are left out.
    """

    policy: str = "object"
    apart: bool = False
    nothing: str = ""

    def __post_init__(self) -> None:
        """Raise InputError for an unknown policy."""
        if not re.fullmatch(r"random|object(\+[0-9]+)?", self.policy):
            raise InputError(f"the mask policy is {self.policy!r}: use object, object+N (N tokens around it) or random")

    @property
    def window(self) -> int:
        """Return the number of tokens around the object that are masked too."""
        return int(self.policy.partition("+")[2] or 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Lora:
    """Settings of an adapter's training.

    targets: names of the layers with an adapter; empty for all linear layers. longest: most tokens of prompt and
    answer; longer examples are left out. every: steps between checkpoints. facts: facts per relation to learn in
    addition to the train split's. mixed: whether to learn three kinds of prompt from the train split, as in LLM2KB:
    with context, without it, and choices among hits.
    """

    rank: Annotated[int, Meta(ge=1, description="Rank of the adapter.", extra=TRAINING)] = 4
    alpha: Annotated[
        int, Meta(ge=1, description="Scale of the adapter (alpha; divided by the rank).", extra=TRAINING)
    ] = 16
    dropout: Annotated[float, Meta(ge=0, le=0.9, description="Dropout of the adapter.", extra=TRAINING)] = 0.05
    targets: tuple[str, ...] = ()
    rate: Annotated[float, Meta(description="Learning rate, constant after the warm-up.", extra=TRAINING)] = 2e-5
    epochs: Annotated[int, Meta(ge=1, description="Passes over the train split.", extra=TRAINING)] = 3
    batch: Annotated[int, Meta(ge=1, description="Rows per step.", extra=TRAINING)] = 2
    warm_up: float = 0.03
    longest: int = 4096
    seed: Annotated[int, Meta(description="Seed of everything random.", extra=TRAINING)] = 0
    every: int = 200
    facts: Annotated[int, Meta(ge=0, description="KAMEL and silver facts per relation to learn too. 0: none.")] = 1000
    mixed: Annotated[bool, Meta(description="Learn rows without context too, and the choice among search hits.")] = (
        False
    )

    @property
    def plan(self) -> TrainingPlan:
        """Return the plan for the training loop, in which one batch is one example."""
        return TrainingPlan(
            rate=self.rate,
            epochs=self.epochs,
            batch=1,
            warm_up=self.warm_up,
            seed=self.seed,
            every=self.every,
            falls=False,
        )


MODEL = DirectoryKind("a trained model", "training.json")


def check_out(out: Path, source: str) -> None:
    """Raise InputError if a trained model cannot be written to a directory. It must not be the model's source."""
    check_replaceable(out, MODEL)
    if same(out, Path(source)):
        raise InputError(f"{out} holds the model that is trained: name another directory")


def checkpoint_of(out: Path, stage: str = "all") -> Path:
    """Return the checkpoint of a training's stage. It is in a directory beside that of the model."""
    return out.with_name(f".{out.name}.checkpoints") / f"{stage}.safetensors"


def write(
    out: Path,
    model: Any,
    tokenizer: Any,
    entities: Entities | None,
    facts: Mapping[str, Any],
    more: Mapping[str, bytes] | None = None,
) -> None:
    """Write a model in a standard format, its objects and its training record, and remove the checkpoints.

    more: other files, by name. An older model in the directory is replaced. InputError if the directory holds anything
    else.
    """
    from lmkbc.masked.heads import FILE

    objects = {} if entities is None else {FILE: entities.to_json()}
    finish(out, {**saved(model, tokenizer), **objects, **(more or {})}, facts)


def saved(*parts: Any) -> dict[str, bytes]:
    """Return name -> content of the files that a model (and its tokenizer) saves."""
    from lmkbc.models.loading import quiet

    with tempfile.TemporaryDirectory() as folder, quiet():
        for part in parts:
            part.save_pretrained(folder)
        return {path.name: path.read_bytes() for path in sorted(Path(folder).iterdir())}


def finish(out: Path, files: Mapping[str, bytes], facts: Mapping[str, Any]) -> None:
    """Write the files of a trained model with their record, and remove the checkpoints of all stages."""
    write_directory(out, with_record(MODEL, files, facts), MODEL)
    shutil.rmtree(checkpoint_of(out).parent, ignore_errors=True)
