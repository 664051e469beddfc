"""Teaching an encoder facts: first those of other sources, then the challenge's, once whole and once per fold.

The head of a fold has seen none of its subjects. It answers for them when rules are tuned on the train split, so that
what tuning learns holds for subjects that no head has seen.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, cast
from zlib import crc32

import torch

from lmkbc.errors import InputError
from lmkbc.models.masked.activations import Activations
from lmkbc.models.masked.entities import Entities
from lmkbc.models.masked.heads import Top, assemble, fold_file
from lmkbc.names import folded_key
from lmkbc.progress import Report, silent
from lmkbc.train.corpus import Corpus, split
from lmkbc.train.head import Prompts, prepare, train_top, write
from lmkbc.train.loop import Plan, Trained
from lmkbc.train.tasks import Task
from lmkbc.types import Fact

if TYPE_CHECKING:
    from transformers import BertForMaskedLM

    from lmkbc.models.masked.backbone import Backbone

RATES = {"layers": 0.3, "rows": 0.1}
"""Shares of the peak rate: the head starts from nothing, layers and vectors from good weights."""
PLAN = Plan(rate=1e-3, rates={name: 1e-3 * share for name, share in RATES.items()}, epochs=5, batch=256, patience=2)
FOLDS = 3
SECOND_RATE = 0.6
"""Of the first pass's rate: the head has learned what an answer is, and now learns which."""
LEAST = 40
"""Facts that must name an object of another relation before it gets a row of its own."""


def teach(task: Task, corpus: Corpus, *, expand: bool = True, top: int = 1, report: Report = silent) -> Trained:
    """Write a model that answers with objects, by rows of their own if expand, and a head for each fold.

    top: how many layers learn beside the head. Returns how the last pass went. A killed run resumes.
    """
    backbone = task.open_encoder()
    others, challenge = task.facts(corpus)
    entities = answers(backbone, others, challenge, expand=expand)
    learner = Top(cast("BertForMaskedLM", backbone.model), entities, top)
    trained = Trained((), (), 0)
    if others:
        some, apart = split(others, task.apart, task.plan.seed)
        prompts = prepare(backbone, some, entities, top, clozes=1, report=report)
        held_out = None
        if any(entities.numbers(apart)):
            held_out = prepare(backbone, apart, entities, top, clozes=1, report=report)
        trained = train_top(
            learner, prompts, task.plan, held_out=held_out, checkpoint=task.stage("others"), report=report
        )
    folds: list[Top] = []
    if challenge:
        *folds, learner = (copy.deepcopy(learner) for _ in range(FOLDS + 1))
        plan = replace(task.plan, rate=SECOND_RATE * task.plan.rate)
        prompts = prepare(backbone, challenge, entities, top, report=report)
        for fold, head in enumerate((*folds, learner)):  # the last leaves no subject out
            trained = train_top(
                head,
                without(prompts, challenge, fold),
                plan,
                checkpoint=task.stage(f"fold-{fold}"),
                report=lambda step, done, total, fold=fold: report(f"fold {fold}: {step}", done, total),  # type: ignore[misc]
            )
    files = dict(fold_file(fold, head) for fold, head in enumerate(folds))
    model = assemble(backbone, learner, entities)
    write(task.out, model, backbone.tokenizer, entities, task.record(corpus, trained), files)
    task.done()
    return trained


def answers(backbone: Backbone, others: Sequence[Fact], challenge: Sequence[Fact], *, expand: bool) -> Entities:
    """What the head may answer: all objects of the challenge's relations, frequent ones of others; and folds."""
    relations = sorted({fact.relation for fact in challenge})
    size = int(backbone.model.config.vocab_size)
    entities = Entities.of(
        [*others, *challenge], backbone.tokenizer, size, expand=expand, always=relations, least=LEAST if others else 1
    )
    return replace(entities.some(), folds={folded_key(fact.subject): fold_of(fact.subject) for fact in challenge})


def fold_of(subject: str) -> int:
    """The fold of a subject, whatever the relation."""
    return crc32(folded_key(subject).encode()) % FOLDS


def without(prompts: Prompts, facts: Sequence[Fact], fold: int) -> Prompts:
    """The prompts whose subjects are not of the fold."""
    kept = [n for n, fact in enumerate(prompts.facts) if fold_of(facts[fact].subject) != fold]
    if not kept:
        raise InputError(f"all facts to train on are of fold {fold}: give a train split with more subjects")
    cached = prompts.cached
    chosen = torch.tensor(kept)
    part = Activations(cached.vectors, cached.starts[chosen], cached.lengths[chosen], cached.masks[chosen])
    return Prompts(part, [prompts.golds[n] for n in kept], [prompts.facts[n] for n in kept])
