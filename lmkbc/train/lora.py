"""LoRA: a causal model learns to answer a recipe's prompts, on the train split or on facts, through low-rank weights.

As LLM2KB (Nayak & Timmapathini 2023) does it: rank 4, alpha 16, dropout 0.05, learning rate 2e-5, constant after a
warm-up, 3 epochs, batches of 2, with or without retrieved context in the prompt. Their 4-bit weights and paged
optimiser, which save memory, are left out, and gradients are clipped at 1, not 0.3.
"""

from __future__ import annotations

import hashlib
import tempfile
import warnings
from dataclasses import asdict, dataclass, replace
from importlib import import_module
from pathlib import Path
from typing import Any

import torch

from lmkbc.errors import InputError
from lmkbc.files.atomic import (
    check_replaceable,
    same,
    with_record,
    write_directory,
)
from lmkbc.generate.causal import Causal
from lmkbc.progress import Report, silent
from lmkbc.recipe import Recipe
from lmkbc.run.base import Run
from lmkbc.selection import split_sha256
from lmkbc.train import MODEL
from lmkbc.train.corpus import Corpus
from lmkbc.train.lessons import alike, loss, of_facts, of_split
from lmkbc.train.loop import Plan, Trained
from lmkbc.train.loop import train as fit


@dataclass(frozen=True, slots=True, kw_only=True)
class Lora:
    """How an adapter is trained. targets: names of the layers that get one; all linear layers where none is named.

    longest: tokens of prompt and answer; what is longer is left out. every: steps between checkpoints. facts: of a
    corpus, how many of each relation are learnt besides the train split's.
    """

    rank: int = 4
    alpha: int = 16
    dropout: float = 0.05
    targets: tuple[str, ...] = ()
    rate: float = 2e-5
    epochs: int = 3
    batch: int = 2
    warm_up: float = 0.03
    longest: int = 4096
    seed: int = 0
    every: int = 200
    facts: int = 1000

    def __post_init__(self) -> None:
        """ValueError for a value that makes no sense."""
        if min(self.rank, self.alpha, self.batch) < 1 or not 0 <= self.dropout < 1:
            raise ValueError("rank, alpha and batch are at least 1, and dropout lies in [0, 1)")

    @property
    def plan(self) -> Plan:
        """The plan of the training loop, to which a batch is one example."""
        return Constant(
            rate=self.rate,
            epochs=self.epochs,
            batch=1,
            warm_up=self.warm_up,
            seed=self.seed,
            every=self.every,
        )


class Constant(Plan):
    """A plan whose rate stays at its peak once it is warm."""

    __slots__ = ()

    def share(self, step: int, steps: int) -> float:
        """The share of the peak rate at a step."""
        return min((step + 1) / max(round(self.warm_up * steps), 1), 1.0)


def train(
    run: Run,
    recipe: Recipe,
    out: Path,
    lora: Lora | None = None,
    *,
    corpus: Corpus | None = None,
    report: Report = silent,
) -> Trained:
    """Train on the edition's train split, with the prompts of the recipe's causal generator, and write the adapter.

    corpus: learn the facts of it in place of the train split alone, each the worked example of others.
    `lmkbc predict --model OUT` answers with it. A killed training goes on from its last checkpoint, beside `out`.
    """
    lora = lora or Lora()
    spec = _causal(recipe)
    check_replaceable(out, MODEL)
    source = spec.source(run)
    if same(out, Path(source)):
        raise InputError(f"{out} holds the model that is trained: name another directory for the adapter")
    peft = _peft()
    local = spec.local(replace(run, models={}))  # others of the run are asked as they were
    model, base = local.model, local.identity
    if corpus:
        proven: dict[str, Any] = {"proof": [*corpus.proof]}
        rows = of_facts(run, spec, model, corpus, lora.facts, lora.seed)
    else:
        rows = of_split(run, spec, model, local.scorer)
        proven = {"held_out": len(run.train) - len(rows)}
    kept = [row for row in rows if len(row.tokens) <= lora.longest]
    batches = alike(kept, lora.batch)
    torch.manual_seed(lora.seed)
    config = peft.LoraConfig(
        r=lora.rank,
        lora_alpha=lora.alpha,
        lora_dropout=lora.dropout,
        task_type="CAUSAL_LM",
        target_modules=list(lora.targets) or "all-linear",
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # peft asks transformers for what it renamed
        adapted: Any = peft.get_peft_model(model.model, config)
    adapted.train()
    digest = hashlib.sha256(repr((base, asdict(lora), kept)).encode()).hexdigest()
    checkpoint = out.with_name(f"{out.name}.{digest[:12]}.checkpoint")
    weights = {key: value for key, value in adapted.named_parameters() if value.requires_grad}
    done = fit(
        weights,
        lambda numbers: loss(model.model, [row for number in numbers for row in batches[number]]),
        len(batches),
        lora.plan,
        name="lora",
        checkpoint=checkpoint,
        report=report,
    )
    told_of = {
        "base": Path(local.name).name,
        "identity": base,
        "edition": run.edition.name,
        "system": recipe.name,
        "train_sha256": split_sha256(run, "train"),
        "examples": sum(row.answers for row in kept),
        **proven,
        "left_out": sum(row.answers for row in rows) - sum(row.answers for row in kept),
        "lora": asdict(lora),
        "losses": done.losses,
        "steps": done.steps,
    }
    write_directory(out, with_record(MODEL, _files(adapted), told_of), MODEL)
    checkpoint.unlink(missing_ok=True)
    return done


def _causal(recipe: Recipe) -> Causal:
    for spec in (one for table in recipe.generate for one in table.whole()):
        if isinstance(spec, Causal):
            return spec
    raise InputError(f"the recipe {recipe.name!r} has no 'causal' generator to train: name one that has, as llm2kb23")


def _files(adapted: Any) -> dict[str, bytes]:
    with tempfile.TemporaryDirectory() as folder:
        adapted.save_pretrained(folder, safe_serialization=True)
        names = "adapter_config.json", "adapter_model.safetensors"
        return {name: (Path(folder) / name).read_bytes() for name in names}


def _peft() -> Any:
    try:
        return import_module("peft")
    except ModuleNotFoundError:
        raise InputError("training an adapter needs peft: install lmkbc[lora]") from None
