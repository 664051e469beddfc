"""Teaching facts to an encoder with a masked-LM head: first facts of other sources, then the challenge's.

The head is tied to the input embeddings and is trained with the top layers. Expanded objects get rows of their own in
the embeddings, which are trained too. All other rows and the lower layers are frozen. The result is an ordinary
BertForMaskedLM in safetensors.

The challenge's facts are learned once in whole and once per fold. A fold's head has seen none of the fold's subjects,
and answers for them when rules are tuned on the train split. So the tuned rules are valid for unseen subjects.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import cast
from zlib import crc32

from torch import Tensor
from transformers import BertForMaskedLM

from lmkbc.errors import InputError
from lmkbc.models.masked.backbone import Backbone
from lmkbc.models.masked.forward import masked
from lmkbc.models.masked.heads import Activations, Top, activations, assemble, fold_file
from lmkbc.models.masked.object_vectors import Entities
from lmkbc.names import folded_key
from lmkbc.progress import Report, silent
from lmkbc.train.cloze_training import soft_loss
from lmkbc.train.corpus import Corpus, split
from lmkbc.train.loop import Trained, train
from lmkbc.train.tasks import facts_of, open_encoder, record
from lmkbc.train.training import Training, TrainingPlan, checkpoint_of, write
from lmkbc.types import Fact

DROPOUT = 0.1
RATES = {"layers": 0.3, "rows": 0.1}
"""Shares of the peak rate: the head is new, but layers and vectors start from trained weights."""
PLAN = TrainingPlan(
    rate=1e-3, rates={name: 1e-3 * share for name, share in RATES.items()}, epochs=5, batch=256, patience=2
)
FOLDS = 3
SECOND_RATE = 0.6
"""Share of the first pass's rate in the second pass, which refines a head that can already answer."""
LEAST = 40
"""Least number of facts of an object of another relation: with fewer it has no row of its own."""


def teach(
    training: Training,
    plan: TrainingPlan,
    corpus: Corpus,
    *,
    expand: bool = True,
    top: int = 1,
    report: Report = silent,
) -> Trained:
    """Write a model that answers with objects, and a head for each fold. Return the result of the last pass.

    expand: whether objects get rows of their own. top: number of layers to train besides the head. A killed run can be
    resumed.
    """
    backbone = open_encoder(training, plan)
    others, challenge = facts_of(training, plan, corpus)
    entities = answers(backbone, others, challenge, expand=expand)
    learner = Top(cast(BertForMaskedLM, backbone.model), entities, top)
    trained = Trained((), (), 0)
    if others:
        some, apart = split(others, training.apart, plan.seed)
        prompts = prepare(backbone, some, entities, top, clozes=1, report=report)
        some_known = any(entities.numbers(apart))
        held_out = prepare(backbone, apart, entities, top, clozes=1, report=report) if some_known else None
        checkpoint = checkpoint_of(training.out, "others")
        trained = train_top(learner, prompts, plan, held_out=held_out, checkpoint=checkpoint, report=report)
    folds: list[Top] = []
    if challenge:
        *folds, learner = (copy.deepcopy(learner) for _ in range(FOLDS + 1))
        second = replace(plan, rate=SECOND_RATE * plan.rate)
        prompts = prepare(backbone, challenge, entities, top, report=report)
        for fold, head in enumerate((*folds, learner)):  # the last head leaves no subject out
            trained = train_top(
                head,
                prompts,
                second,
                numbers=outside(prompts, challenge, fold),
                checkpoint=checkpoint_of(training.out, f"fold-{fold}"),
                report=lambda step, done, total, fold=fold: report(f"fold {fold}: {step}", done, total),  # type: ignore[misc]
            )
    files = dict(fold_file(fold, head) for fold, head in enumerate(folds))
    model = assemble(backbone, learner, entities)
    write(training.out, model, backbone.tokenizer, entities, record(training, plan, corpus, trained), files)
    return trained


def answers(backbone: Backbone, others: Sequence[Fact], challenge: Sequence[Fact], *, expand: bool) -> Entities:
    """Return the objects that the head may answer: all of the challenge's relations, frequent ones of others.

    They come with the fold of each of the challenge's subjects.
    """
    relations = sorted({fact.relation for fact in challenge})
    size = int(backbone.model.config.vocab_size)
    entities = Entities.of(
        [*others, *challenge], backbone.tokenizer, size, expand=expand, always=relations, least=LEAST if others else 1
    )
    return replace(entities.some(), folds={folded_key(fact.subject): fold_of(fact.subject) for fact in challenge})


def fold_of(subject: str) -> int:
    """Return the fold of a subject, the same for all relations."""
    return crc32(folded_key(subject).encode()) % FOLDS


def outside(prompts: _CachedPrompts, facts: Sequence[Fact], fold: int) -> list[int]:
    """Return the numbers of the prompts whose subjects are in other folds."""
    return [number for number, fact in enumerate(prompts.facts) if fold_of(facts[fact].subject) != fold]


@dataclass(frozen=True, eq=False)
class _CachedPrompts:
    """Cached prompts, one for each cloze of each fact with a known object, and the numbers of their gold objects."""

    cached: Activations
    golds: list[list[int]]
    facts: list[int]


def prepare(
    backbone: Backbone,
    facts: Sequence[Fact],
    entities: Entities,
    top: int,
    clozes: int | None = None,
    report: Report = silent,
) -> _CachedPrompts:
    """Run the frozen layers on the first clozes (None: all) of the facts with known objects."""
    items = [
        (number, cloze, gold)
        for number, (fact, gold) in enumerate(zip(facts, entities.numbers(facts), strict=True))
        if gold
        for cloze in fact.clozes[:clozes]
    ]
    if not items:
        raise InputError("no fact has an object that the model can answer with: give more facts, or expand")
    ids = masked(backbone, [cloze for _, cloze, _ in items], [facts[n].subject for n, _, _ in items])
    cached = activations(cast(BertForMaskedLM, backbone.model), ids, backbone.mask_id, top, report)
    return _CachedPrompts(cached, [gold for _, _, gold in items], [number for number, _, _ in items])


def train_top(
    head: Top,
    prompts: _CachedPrompts,
    plan: TrainingPlan,
    *,
    numbers: Sequence[int] | None = None,
    held_out: _CachedPrompts | None = None,
    checkpoint: Path | None = None,
    report: Report = silent,
) -> Trained:
    """Train the head, in place, on cached prompts. Stop early by the loss on held-out ones.

    numbers: the prompts to use; None for all.
    """
    learnt = range(len(prompts.golds)) if numbers is None else numbers
    caches = [prompts.cached, *([held_out.cached] if held_out else [])]

    def loss(rows: Sequence[tuple[int, int, list[int]]]) -> Tensor:
        cached, dropout = caches[rows[0][0]], DROPOUT if head.training else 0.0
        return soft_loss(head(cached, [number for _, number, _ in rows], dropout), [gold for *_, gold in rows])

    return train(
        head,
        loss,
        [(0, number, prompts.golds[number]) for number in learnt],
        plan,
        name="masked-LM head",
        about=(prompts.cached.lengths.tolist(), prompts.cached.masks.tolist()),
        held_out=[(1, number, gold) for number, gold in enumerate(held_out.golds)] if held_out else (),
        checkpoint=checkpoint,
        report=report,
    )
