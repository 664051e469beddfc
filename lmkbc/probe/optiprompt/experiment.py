"""OptiPrompt's experiment, relation by relation. Finished relations are saved, so a killed run can be resumed."""

from __future__ import annotations

import copy
import hashlib
import logging
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import msgspec
import torch
from torch import Tensor

from lmkbc.errors import InputError, check_known, did_you_mean
from lmkbc.files.atomic import write_bytes
from lmkbc.files.jsonl import read_jsonl
from lmkbc.models.local.checkpoint import identity
from lmkbc.models.masked.backbone import Backbone
from lmkbc.models.masked.forward import masked
from lmkbc.models.masked.soft_prompts import SoftPrompt, mask_logits
from lmkbc.models.masked.vocabulary import Words
from lmkbc.probe.lama.lama_data import Pair, RelationFacts, unhelpful
from lmkbc.probe.lama.ranks import MaskedRanks
from lmkbc.probe.optiprompt.optiprompt_data import METHODS, MODELS, Prompts, check_prompts
from lmkbc.progress import Report, silent
from lmkbc.train.cloze_training import cloze_logits, finetune, search_prompt, train_soft_prompt
from lmkbc.train.random_controls import LearnedControls, randomised
from lmkbc.train.training import TrainingPlan

_LOG = logging.getLogger(__name__)
BATCH = 256
"""Test facts per batch."""


class _Done(msgspec.Struct):
    relation: str
    run: str
    answers: dict[str, list[str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Experiment:
    """Settings of an experiment. soft, finetune: plans of the two trainings. iterations: steps of AutoPrompt's search.

    prompts: further prompts, without training. seed: seed of random weights, vectors and searches. methods: "soft-7"
    has seven vectors, "autoprompt-5" five tokens. InputError for an unknown model or method.
    """

    soft: TrainingPlan
    finetune: TrainingPlan
    models: tuple[str, ...] = MODELS
    methods: tuple[str, ...] = METHODS
    iterations: int = 1000
    prompts: Prompts = field(default_factory=dict)
    seed: int = 0

    def __post_init__(self) -> None:
        """Raise InputError for an unknown model or method, before anything is run."""
        for given in self.models:
            check_known(given, MODELS, f"there is no model {given!r} to compare")
        for given in self.methods:
            if given not in METHODS and not re.fullmatch(r"(soft|autoprompt)-[1-9]\d*", given):
                raise InputError(f"there is no way {given!r} of asking: {did_you_mean(given, METHODS)}")


class ExperimentRunner:
    """Runner of a model and its controls. Their answers are words that are objects of the relations."""

    def __init__(self, backbone: Backbone, relations: Sequence[RelationFacts], how: Experiment) -> None:
        self._backbone, words = backbone, Words(backbone.tokenizer)
        pairs = (
            pair for relation in relations for part in (relation.train, relation.dev, relation.facts) for pair in part
        )
        tokens = {name: words.single(name) for _, name in pairs}
        self._names = sorted(tokens)
        self._number = {name: number for number, name in enumerate(self._names)}
        self._columns = torch.tensor([tokens[name] for name in self._names])
        check_prompts(how.prompts, relations)
        self._how, self._relations = how, relations
        self._models = {name: self._drawn(backbone, name) for name in how.models}
        self._identity = identity(backbone.name, backbone.model) or backbone.name

    def _drawn(self, backbone: Backbone, name: str) -> Backbone:
        """Return the model itself, or a control.

        A control is drawn once, so it is tested with the weights of its training.
        """
        if name == "pretrained":
            return backbone
        drawn = randomised(backbone.model, "all" if name == "random" else "embeddings", self._how.seed)
        return Backbone(name, drawn, backbone.tokenizer)

    def unhelped(self) -> set[tuple[str, str]]:
        """Return (relation, subject) of the test facts of LAMA-UHN, by this model's guesses from names."""
        ids = dict(zip(self._names, self._columns.tolist(), strict=True))
        kept = unhelpful(self._relations, MaskedRanks(self._backbone, self._names, ids).guesses(self._relations))
        return {(relation.name, subject) for relation in kept for subject, _ in relation.facts}

    def run(self, kept: Path | None = None, report: Report = silent) -> dict[str, dict[str, list[str]]]:
        """Return relation -> row -> answers to its test facts.

        kept: JSONL file of finished relations, which is extended.
        """
        done = {row.run: row for row in read_jsonl(kept, _Done)} if kept and kept.exists() else {}
        answers = {}
        for number, relation in enumerate(self._relations):
            report("relations", number, len(self._relations))
            key = hashlib.sha256(repr((self._identity, self._names, self._how, relation)).encode()).hexdigest()
            if key not in done:
                done[key] = _Done(relation.name, key, self.answers(relation, report))
                if kept:
                    write_bytes(kept, msgspec.json.Encoder().encode_lines(done.values()))
            answers[relation.name] = done[key].answers
        report("relations", len(self._relations), len(self._relations))
        return answers

    def answers(self, relation: RelationFacts, report: Report = silent) -> dict[str, list[str]]:
        """Return the answers of every row of the table to the test facts of one relation."""
        known = [(subject, relation.name, object_) for subject, object_ in (*relation.train, *relation.dev)]
        subjects = [subject for subject, _ in relation.facts]
        controls = LearnedControls(known)
        rows = {
            row: [answer(subject, relation.name) for subject in subjects]
            for row, answer in (("majority", controls.majority), ("naive-bayes", controls.naive_bayes))
        }
        for model, backbone in self._models.items():
            for method in (*self._how.methods, *self._how.prompts):

                def report_row(step: str, done: int, total: int | None, row: str = f"{model} {method}") -> None:
                    report(f"{relation.name} {row}: {step}", done, total)

                rows[f"{model} {method}"] = self._answered(relation, backbone, method, report_row)
        return rows

    def _answered(self, relation: RelationFacts, backbone: Backbone, method: str, report: Report) -> list[str]:
        subjects = [subject for subject, _ in relation.facts]
        if method == "finetune":
            return self._finetuned(relation, backbone, subjects, report)
        if method in self._how.prompts:
            return self._asked(relation, backbone, method)
        kind, _, length = method.partition("-")
        prompt = SoftPrompt.manual(backbone, relation.cloze)
        if kind == "autoprompt":
            prompt, tokens = search_prompt(
                backbone,
                int(length),
                self._taught(relation.train),
                self._columns,
                iterations=self._how.iterations,
                seed=self._how.seed,
                held_out=self._taught(relation.dev),
                report=report,
            )
            words = " ".join(backbone.tokenizer.convert_ids_to_tokens(tokens))
            _LOG.info("%s, %s, %s: [X] %s [Y] .", relation.name, backbone.name, method, words)
        elif kind == "soft":
            if length != "manual":
                prompt = SoftPrompt.random(backbone, int(length), self._how.seed)
            prompt, _ = train_soft_prompt(
                backbone,
                prompt,
                self._taught(relation.train),
                self._columns,
                self._how.soft,
                held_out=self._taught(relation.dev),
                report=report,
            )
        return self._best(subjects, lambda part: mask_logits(backbone, prompt, part, self._columns))

    def _asked(self, relation: RelationFacts, backbone: Backbone, name: str) -> list[str]:
        """Return the answers by several clozes.

        Sums of weighted logits rank in the same way as log-probabilities (LPAQA).
        """

        def logits(subjects: Sequence[str]) -> Tensor:
            parts = [
                weight * cloze_logits(backbone, masked(backbone, [cloze] * len(subjects), subjects), self._columns)
                for cloze, weight in self._how.prompts[name][relation.name]
            ]
            return torch.stack(parts).sum(0)

        return self._best([subject for subject, _ in relation.facts], logits)

    def _finetuned(
        self, relation: RelationFacts, backbone: Backbone, tested: Sequence[str], report: Report
    ) -> list[str]:
        own = Backbone(backbone.name, copy.deepcopy(backbone.model).requires_grad_(True), backbone.tokenizer)

        def prompts(subjects: Sequence[str]) -> list[list[int]]:
            return masked(own, [relation.cloze] * len(subjects), subjects)

        def learnt(pairs: Sequence[Pair]) -> list[tuple[list[int], list[int]]]:
            subjects, golds = zip(*self._taught(pairs), strict=True)
            return [*zip(prompts(subjects), golds, strict=True)]

        finetune(
            own,
            learnt(relation.train),
            self._columns,
            self._how.finetune,
            held_out=learnt(relation.dev),
            report=report,
        )
        return self._best(tested, lambda part: cloze_logits(own, prompts(part), self._columns))

    def _taught(self, pairs: Sequence[Pair]) -> list[tuple[str, list[int]]]:
        return [(subject, [self._number[object_]]) for subject, object_ in pairs]

    def _best(self, subjects: Sequence[str], logits: Callable[[Sequence[str]], Tensor]) -> list[str]:
        names: list[str] = []
        with torch.inference_mode():
            for start in range(0, len(subjects), BATCH):
                best = logits(subjects[start : start + BATCH]).argmax(-1).tolist()
                names += [self._names[number] for number in best]
        return names
