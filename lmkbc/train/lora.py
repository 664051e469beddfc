"""LoRA: a causal model learns to answer a recipe's prompts, on the train split or on facts, through low-rank weights.

The defaults follow LLM2KB (Nayak & Timmapathini 2023): rank 4, alpha 16, dropout 0.05, 3 epochs, batches of 2. The
learning rate is 2e-5, constant after a warm-up. There are three kinds of prompt: with retrieved context, without it,
and choices among the entities that a name may mean. Two things differ. Their 4-bit weights and paged optimiser, which
save memory, are left out. Gradients are clipped at 1, not 0.3.
"""

from __future__ import annotations

import warnings
from dataclasses import asdict, replace
from itertools import chain
from pathlib import Path
from typing import Any

import torch

from lmkbc.errors import InputError, OptionError
from lmkbc.generate.access import local_model, source
from lmkbc.generate.language_model import LanguageModelSpec
from lmkbc.models.local.checkpoint import library_of_adapters
from lmkbc.notes import Notes
from lmkbc.progress import Report, silent
from lmkbc.recipe import Recipe
from lmkbc.run.base import Run
from lmkbc.selection import split_sha256
from lmkbc.train.corpus import Corpus
from lmkbc.train.directory import check_out, checkpoint_of, finish, saved
from lmkbc.train.examples import alike, loss, of_facts, of_split
from lmkbc.train.loop import Trained
from lmkbc.train.loop import train as fit
from lmkbc.train.settings import Lora


def train(
    run: Run,
    recipe: Recipe,
    out: Path,
    lora: Lora,
    *,
    corpus: Corpus | None = None,
    report: Report = silent,
) -> Trained:
    """Train an adapter with the prompts of the recipe's causal generator, and write it to `out`.

    corpus: facts to learn, each a worked example for others; default: the edition's train split. `lmkbc predict --model
    OUT` uses the adapter. A training that was killed resumes from its last checkpoint, beside `out`.
    """
    spec = _causal(recipe)
    check_out(out, source(spec, run))
    if corpus and lora.mixed:
        raise OptionError("mixed", "is of the train split alone: leave it out, or --facts")
    peft = library_of_adapters("training an adapter")
    local = local_model(spec, replace(run, models={}), Notes())  # a model of its own: training changes it
    model, base = local.model, local.identity
    if corpus:
        proven: dict[str, Any] = {"proof": [*corpus.proof]}
        rows = of_facts(run, spec, model, corpus, lora.facts, lora.seed)
    else:
        rows = of_split(run, spec, model, lambda: local, mixed=lora.mixed)
        proven = {"held_out": len(run.train) - len(rows)}
    kept = [row for row in rows if len(row.tokens) <= lora.longest]
    torch.manual_seed(lora.seed)
    config = peft.LoraConfig(
        r=lora.rank,
        lora_alpha=lora.alpha,
        lora_dropout=lora.dropout,
        task_type="CAUSAL_LM",
        target_modules=list(lora.targets) or "all-linear",
    )
    with warnings.catch_warnings(action="ignore", category=FutureWarning):  # peft uses a name that transformers changed
        adapted: Any = peft.get_peft_model(model.model, config)
    done = fit(
        adapted,
        lambda batches: loss(model.model, [*chain.from_iterable(batches)]),
        alike(kept, lora.batch),
        lora.plan,
        name="lora",
        about=(base, lora),
        checkpoint=checkpoint_of(out),
        report=report,
    )
    about = {
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
    files = saved(adapted)
    finish(out, {name: files[name] for name in ("adapter_config.json", "adapter_model.safetensors")}, about)
    return done


def _causal(recipe: Recipe) -> LanguageModelSpec:
    for spec in (one for table in recipe.generate for one in table.whole()):
        if isinstance(spec, LanguageModelSpec) and spec.component == "causal":
            return spec
    raise InputError(f"the recipe {recipe.name!r} has no 'causal' generator to train: name one that has, as llm2kb23")
