"""What `lmkbc train` does: from a corpus and a backbone to a directory that probing can load."""

from __future__ import annotations

import glob
import logging
import random
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import torch

from lmkbc.errors import InputError, OptionError, did_you_mean
from lmkbc.files.atomic import check_replaceable, same
from lmkbc.models.masked import vocabulary
from lmkbc.models.masked.backbone import Backbone, load
from lmkbc.models.masked.entities import Entities
from lmkbc.models.masked.soft_prompts import FILE as PROMPTS
from lmkbc.models.masked.soft_prompts import SoftPrompt, to_bytes
from lmkbc.models.masked.tensors import masked
from lmkbc.progress import Report, silent
from lmkbc.train import MODEL, soft_prompt
from lmkbc.train.controls import randomised
from lmkbc.train.corpus import Corpus, near, split
from lmkbc.train.finetune import finetune
from lmkbc.train.head import open_encoder, write
from lmkbc.train.loop import Plan, Trained
from lmkbc.train.losses import LOSSES
from lmkbc.train.mlm import Masking, train_mlm
from lmkbc.types import Fact

log = logging.getLogger(__name__)
CHECKPOINT = "checkpoint.safetensors"


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """The settings that all kinds of training share.

    backbone: directory or id. out: where the model goes. random: draw "all" its weights or the "embeddings" anew, as a
    control. most: other facts of one relation. apart: share of the facts to stop early by. relation: the only one whose
    facts are learned. device: a CUDA device where there is one, if None.
    """

    backbone: str
    out: Path
    plan: Plan
    random: str = ""
    most: int = 1000
    apart: float = 0.1
    relation: str = ""
    offline: bool = False
    device: str | None = None

    def __post_init__(self) -> None:
        """Refuse a place that could not be written to in the end, or that holds anything but an older model of ours."""
        check_replaceable(self.out, MODEL)
        if same(self.out, Path(self.backbone)):
            raise InputError(f"{self.out} holds the backbone that is trained: name another directory for the model")

    def open(self) -> Backbone:
        """Load the masked model to train: the backbone, or its control with weights drawn anew."""
        return self._control(load(self.backbone, offline=self.offline, device=self.device))

    def open_encoder(self) -> Backbone:
        """Load the encoder, or its control, with an untrained head."""
        backbone = open_encoder(self.backbone, self.plan.seed, offline=self.offline, device=self.device)
        return self._control(backbone)

    def facts(self, corpus: Corpus) -> tuple[list[Fact], list[Fact]]:
        """The other facts and the challenge's that are learned. InputError when there is none."""
        others, challenge = (
            [fact for fact in facts if not self.relation or fact.relation == self.relation]
            for facts in (near(corpus, self.most, self.plan.seed), corpus.challenge)
        )
        if not (others or challenge):
            if self.relation:
                raise InputError(f"no fact of relation {self.relation!r} is here: 'lmkbc relations list' names them")
            raise InputError("there is no fact to teach: give a train split, KAMEL or silver facts with --data")
        return others, challenge

    def _control(self, backbone: Backbone) -> Backbone:
        if self.random not in ("", "all", "embeddings"):
            raise OptionError("random", f"is {self.random!r}: draw 'all' weights anew, or the 'embeddings'")
        if not self.random:
            return backbone
        model = randomised(backbone.model, "all" if self.random == "all" else "embeddings", self.plan.seed)
        return Backbone(backbone.name, model, backbone.tokenizer)

    def stage(self, name: str = "all") -> Path:
        """The checkpoint of one stage of the training, beside the directory that the model goes to."""
        return self.out.with_name(f".{self.out.name}.{name}.{CHECKPOINT}")

    def done(self) -> None:
        """Remove the checkpoints of all stages: the model is written."""
        before = f".{self.out.name}."
        for path in self.out.parent.glob(f"{glob.escape(before)}*.{CHECKPOINT}"):
            if "." not in path.name.removeprefix(before).removesuffix(f".{CHECKPOINT}"):  # else of another model
                path.unlink()

    def record(self, corpus: Corpus, trained: Trained) -> dict[str, Any]:
        """What the model's directory says of its training."""
        return {
            "backbone": Path(self.backbone).name,
            "random": self.random,
            "seed": self.plan.seed,
            "proof": list(corpus.proof),
            "losses": trained.losses,
            "held_out_losses": trained.held_out,
            "steps": trained.steps,
        }


def mlm(task: Task, corpus: Corpus, masking: Masking, *, expand: bool = False, report: Report = silent) -> Trained:
    """All weights of a masked LM on verbalised facts, or on sentences where the corpus has them.

    expand: every object of the facts becomes one token first, and so does the word for none.
    """
    backbone = task.open()
    facts, others = _split(task, corpus)
    if expand:
        names = {name for fact in (*facts, *others) for name in fact.objects} | {masking.nothing} - {""}
        backbone = vocabulary.expand(backbone, names, "frequency", vocabulary.piece_counts(backbone, names))
    parts: tuple[Sequence[Fact | str], Sequence[Fact | str]] = facts, others
    if corpus.sentences:
        size = round(task.apart * len(corpus.sentences))
        drawn = random.Random(task.plan.seed).sample(corpus.sentences, len(corpus.sentences))
        parts = drawn[size:], drawn[:size]
    trained = train_mlm(backbone, *parts, task.plan, masking, checkpoint=task.stage(), report=report)
    write(task.out, backbone.model, backbone.tokenizer, None, task.record(corpus, trained))
    task.done()
    return trained


def finetuned(task: Task, corpus: Corpus, report: Report = silent) -> Trained:
    """All weights of a masked LM on answering the first cloze with objects of one token."""
    backbone = task.open()
    facts, others = _split(task, corpus)
    entities = Entities.of([*facts, *others], backbone.tokenizer, _size(backbone), expand=False).some()
    columns = torch.tensor(entities.rows)
    trained = finetune(
        backbone,
        *_answered(backbone, facts, entities),
        columns,
        task.plan,
        held_out=_answered(backbone, others, entities),
        checkpoint=task.stage(),
        report=report,
    )
    write(task.out, backbone.model, backbone.tokenizer, entities, task.record(corpus, trained))
    task.done()
    return trained


def soft_prompts(
    task: Task, corpus: Corpus, length: int = 0, *, loss: str = "likelihood", report: Report = silent
) -> Mapping[str, tuple[float, float]]:
    """One soft prompt per relation: from its first cloze, or `length` random vectors. loss: see `LOSSES`.

    Returns P@1 on the held-out part before and after, by relation. The prompts lie beside the model in its directory.
    """
    if loss not in LOSSES:
        raise OptionError("loss", f"is {loss!r}: {did_you_mean(loss, LOSSES)}")
    backbone = task.open()
    trained, scores = dict[str, SoftPrompt](), dict[str, tuple[float, float]]()
    without = []
    for name, facts in sorted(_by_relation(task.facts(corpus)).items()):
        entities = Entities.of(facts, backbone.tokenizer, _size(backbone), expand=False)
        columns = torch.tensor(entities.rows)
        some, others = (
            [(fact.subject, gold) for fact, gold in zip(part, entities.numbers(part), strict=True) if gold]
            for part in split(facts, task.apart, task.plan.seed)
        )
        if len(entities.names) == 1 or not some or not others:
            without.append(name)
            continue
        start = (
            SoftPrompt.random(backbone, length, task.plan.seed)
            if length
            else SoftPrompt.manual(backbone, facts[0].clozes[0])
        )
        held_out = [subject for subject, _ in others], [gold for _, gold in others]
        trained[name], _ = soft_prompt.train_soft_prompt(
            backbone,
            start,
            [subject for subject, _ in some],
            [gold for _, gold in some],
            columns,
            task.plan,
            held_out=held_out,
            criterion=LOSSES[loss],
            checkpoint=task.stage(name),
            report=lambda step, done, total, name=name: report(f"{name}: {step}", done, total),  # type: ignore[misc]
        )
        before, after = (
            soft_prompt.precision(backbone, prompt, *held_out, columns) for prompt in (start, trained[name])
        )
        scores[name] = before, after
    if not trained:
        raise InputError("no relation has objects of one token to train on and to test: give more facts")
    if without:
        log.warning("no soft prompt for %s: too few facts with an object of one token", ", ".join(without))
    prompts = {PROMPTS: to_bytes(trained, Path(task.backbone).name)}
    write(task.out, backbone.model, backbone.tokenizer, None, task.record(corpus, Trained((), (), 0)), prompts)
    task.done()
    return scores


def _size(backbone: Backbone) -> int:
    return int(backbone.model.config.vocab_size)


def _split(task: Task, corpus: Corpus) -> tuple[list[Fact], list[Fact]]:
    others, challenge = task.facts(corpus)
    return split([*others, *challenge], task.apart, task.plan.seed)


def _by_relation(parts: Iterable[Sequence[Fact]]) -> Mapping[str, list[Fact]]:
    grouped = defaultdict[str, list[Fact]](list)
    for fact in chain.from_iterable(parts):
        grouped[fact.relation].append(fact)
    return grouped


def _answered(backbone: Backbone, facts: Sequence[Fact], entities: Entities) -> tuple[list[list[int]], list[list[int]]]:
    known = [(fact, gold) for fact, gold in zip(facts, entities.numbers(facts), strict=True) if gold]
    prompts = masked(backbone, [fact.clozes[0] for fact, _ in known], [fact.subject for fact, _ in known])
    return prompts, [gold for _, gold in known]
