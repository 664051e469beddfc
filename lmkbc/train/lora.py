"""LoRA: a causal model learns to answer a recipe's prompts on the train split, through a few low-rank weights.

As LLM2KB (Nayak & Timmapathini 2023) does it: rank 4, alpha 16, dropout 0.05, learning rate 2e-5, constant after a
warm-up, 3 epochs, batches of 2, with or without retrieved context in the prompt. Their 4-bit weights and paged
optimiser, which save memory, are left out, and gradients are clipped at 1, not 0.3.
"""

from __future__ import annotations

import hashlib
import tempfile
import warnings
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from lmkbc.ask.context.passages import as_context, gathered
from lmkbc.ask.plan import Asking
from lmkbc.ask.prompts import compose
from lmkbc.errors import InputError
from lmkbc.files.atomic import (
    check_replaceable,
    same,
    with_record,
    write_directory,
)
from lmkbc.generate.causal import Causal
from lmkbc.models.base import LanguageModel
from lmkbc.models.causal.model import CausalModel
from lmkbc.models.causal.prefixes import Tokens, common
from lmkbc.pipeline import split_sha256
from lmkbc.progress import Report, silent
from lmkbc.recipe import Recipe
from lmkbc.run import Run
from lmkbc.train import MODEL
from lmkbc.train.held_out import HeldOut, alias_groups
from lmkbc.train.loop import Plan, Trained
from lmkbc.train.loop import train as fit
from lmkbc.types import Example


@dataclass(frozen=True, slots=True, kw_only=True)
class Lora:
    """How an adapter is trained. targets: names of the layers that get one; all linear layers where none is named.

    longest: tokens of prompt and answer; what is longer is left out. every: steps between checkpoints.
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

    def __post_init__(self) -> None:
        """ValueError for a value that makes no sense."""
        if self.rank < 1 or self.alpha < 1 or not 0 <= self.dropout < 1:
            raise ValueError("rank and alpha are at least 1, and dropout lies in [0, 1)")

    @property
    def plan(self) -> Plan:
        """The plan of the training loop."""
        return Constant(
            rate=self.rate,
            epochs=self.epochs,
            batch=self.batch,
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


def train(run: Run, recipe: Recipe, out: Path, lora: Lora | None = None, *, report: Report = silent) -> Trained:
    """Train on the edition's train split, with the prompts of the recipe's causal generator, and write the adapter.

    `lmkbc predict --model OUT` answers with it. A killed training goes on from its last checkpoint, beside `out`.
    """
    lora = lora or Lora()
    spec = _causal(recipe)
    check_replaceable(out, MODEL)
    source = spec.source(run)
    if same(out, Path(source)):
        raise InputError(f"{out} holds the model that is trained: name another directory for the adapter")
    peft = _peft()
    local = spec.local(run)
    model, base = local.model, local.identity
    rows = texts(run, spec, model, local.scorer)
    kept = [row for row in rows if len(row[0]) <= lora.longest]
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
        lambda numbers: loss(adapted, [kept[number] for number in numbers]),
        len(kept),
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
        "examples": len(kept),
        "held_out": len(run.train) - len(rows),
        "left_out": len(rows) - len(kept),
        "lora": asdict(lora),
        "losses": done.losses,
        "steps": done.steps,
    }
    write_directory(out, with_record(MODEL, _files(adapted), told_of), MODEL)
    checkpoint.unlink(missing_ok=True)
    return done


def texts(run: Run, spec: Causal, model: CausalModel, recall: Callable[[], LanguageModel]) -> list[tuple[Tokens, int]]:
    """Each train row as tokens of prompt and answer, and how many of them are the prompt's.

    Rows about a subject that any edition holds out are left out, of the worked examples too.
    recall: opens the model that is asked for context.
    """
    held_out = HeldOut.of(run.workspace, alias_groups(run.train))
    examples = [example for example in run.train if not held_out.names(example.query.subject)]
    asking, finder = spec.asking(run, examples), spec.provider(run, recall)
    queries = [example.query for example in examples]
    passages = gathered(finder, queries) if finder else {}
    rows: list[tuple[Tokens, int]] = []
    for example in examples:
        prompt = asking.prompt(example.query, as_context(passages.get(example.query, ())))
        text = prompt.text if prompt.form == "completion" else model.chat(prompt.messages())
        start, whole = model.encode([text, text + _answer(run, asking, example)])
        rows.append(((*whole, *_end(model)), common(start, whole)))
    return rows


def loss(model: Any, rows: Sequence[tuple[Tokens, int]]) -> Tensor:
    """Mean cross-entropy of the answers' tokens; the prompts' count for nothing."""
    device, width = next(model.parameters()).device, max(len(tokens) for tokens, _ in rows)
    ids = torch.tensor([[*tokens, *[0] * (width - len(tokens))] for tokens, _ in rows], device=device)
    keep = torch.tensor([[1] * len(tokens) + [0] * (width - len(tokens)) for tokens, _ in rows], device=device)
    golds = [[-100] * first + list(tokens[first:]) + [-100] * (width - len(tokens)) for tokens, first in rows]
    logits = model(input_ids=ids, attention_mask=keep, use_cache=False).logits[:, :-1]
    return cross_entropy(logits.flatten(0, 1).float(), torch.tensor(golds, device=device)[:, 1:].flatten())


def _answer(run: Run, asking: Asking, example: Example) -> str:
    """What the prompt's style holds a good answer to be, as it stands in worked examples."""
    style = asking.plan(example.query).style
    worked = compose(style, run.relations, example.query, (example,), edition=run.edition.name)
    if style.form == "chat":
        return worked.static[-1].content
    bare = compose(style, run.relations, example.query, (), edition=run.edition.name)
    block = worked.prefix.removeprefix(bare.prefix)
    return block.removeprefix(bare.suffix).rstrip("\n") + (style.stops[0] if style.form == "completion" else "")


def _end(model: CausalModel) -> Tokens:
    end = model.tokenizer.eos_token_id
    return (end,) if isinstance(end, int) else ()


def _causal(recipe: Recipe) -> Causal:
    for spec in recipe.generate:
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
