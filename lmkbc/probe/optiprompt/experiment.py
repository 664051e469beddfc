"""OptiPrompt's experiment: manual cloze, soft prompts and fine-tuning, each on a model and on its random controls.

Zhong, Friedman and Chen, Factual Probing Is [MASK], NAACL 2021. A control with random weights can only answer what it
learned from the train facts. Test facts that it answers are easy. Only the score on the other, hard facts shows what a
model knew before. Finished relations are saved, so a killed run can be resumed.
"""

from __future__ import annotations

import copy
import hashlib
import logging
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import msgspec
import torch
from torch import Tensor

from lmkbc.errors import InputError, check_known, did_you_mean
from lmkbc.files.atomic import write_bytes
from lmkbc.files.jsonl import read_jsonl
from lmkbc.local.checkpoint import identity
from lmkbc.masked.backbone import Backbone
from lmkbc.masked.forward import masked
from lmkbc.masked.vocabulary import Words
from lmkbc.names import folded_key
from lmkbc.probe.kamel.kamel_data import LAMA, SPLITS
from lmkbc.probe.lama.lama_data import (
    Pair,
    RelationFacts,
    as_cloze,
    facts_of_kamel,
    is_lama,
    kamel_clozes,
    pairs_of,
    read_trex,
    unhelpful,
)
from lmkbc.probe.masked_answers import MaskedRanks
from lmkbc.progress import Report, silent
from lmkbc.train.cloze_training import cloze_logits, finetune, search_prompt, train_soft_prompt
from lmkbc.train.prompt_vectors import manual_prompt, mask_logits, random_prompt
from lmkbc.train.random_controls import LearnedControls, randomised
from lmkbc.train.training import TrainingPlan
from lmkbc.types import grouped

MODELS = ("pretrained", "random", "embeddings")
METHODS = ("manual", "soft-5", "soft-10", "soft-manual", "finetune")
_LOG = logging.getLogger(__name__)


def read_facts(
    source: Path, train: Path | None, properties: Collection[str] | None, *, lama: bool = False
) -> list[RelationFacts]:
    """Read LAMA's directory with train/P36/{train,dev}.jsonl for learning and early stopping, or KAMEL.

    properties: None for all. lama: whether to read only LAMA's properties from KAMEL. InputError for LAMA's facts
    without train facts, and for a missing property.
    """
    if not is_lama(source):
        return facts_of_kamel(source, properties, LAMA if lama else None, kamel_clozes(), SPLITS)
    if train is None:
        raise InputError(f"{source} has facts to be tested on only: name those to learn with --train")
    return [
        replace(
            relation,
            train=pairs_of(train / relation.name / "train.jsonl"),
            dev=pairs_of(train / relation.name / "dev.jsonl"),
        )
        for relation in read_trex(source, properties)
    ]


def learnable(
    relations: Iterable[RelationFacts], is_word: Callable[[str], bool], *, least: int, most: int
) -> list[RelationFacts]:
    """Return the facts that can be learned and tested: the object is one word of the model, and is in a train fact.

    No train or dev fact has a test subject, in any spelling. Relations that are left out are logged. least: fewest
    train facts of a relation; it also needs a dev fact and a fifth as many test facts. most: most facts of each kind.
    """
    apart = [_apart(relation) for relation in relations]
    named = {object_ for relation in apart for _, object_ in relation.train if is_word(object_)}

    def kept(pairs: Sequence[Pair]) -> tuple[Pair, ...]:
        return tuple(pair for pair in pairs if pair[1] in named)[:most]

    cut = [
        replace(relation, train=kept(relation.train), dev=kept(relation.dev), facts=kept(relation.facts))
        for relation in apart
    ]
    enough = [
        relation
        for relation in cut
        if len(relation.train) >= least and relation.dev and len(relation.facts) >= max(least // 5, 1)
    ]
    if left := [relation.name for relation in apart if relation.name not in {kept.name for kept in enough}]:
        _LOG.info("left out, with fewer than %d facts to learn or too few to test: %s", least, ", ".join(left))
    if not enough:
        raise InputError(
            f"no relation keeps {least} facts to learn whose object is one word of the model: "
            "lower --least, or name a model with a larger vocabulary"
        )
    return enough


def _apart(relation: RelationFacts) -> RelationFacts:
    """Return the relation without train and dev facts about its test subjects."""
    tested = {folded_key(subject) for subject, _ in relation.facts}

    def others(pairs: Sequence[Pair]) -> tuple[Pair, ...]:
        return tuple(pair for pair in pairs if folded_key(pair[0]) not in tested)

    return replace(relation, train=others(relation.train), dev=others(relation.dev))


WeightedClozes = tuple[tuple[str, float], ...]
"""Clozes of a relation, each with its weight."""
Prompts = Mapping[str, Mapping[str, WeightedClozes]]
"""Name of a collection -> relation -> its clozes."""


class _Row(msgspec.Struct):
    template: str
    relation: str = ""
    weight: float = 1.0


def read_prompts(given: Sequence[str]) -> dict[str, dict[str, WeightedClozes]]:
    """Read collections of prompts, each given as NAME=PLACE. InputError for a wrong name or prompt.

    PLACE: a JSONL file of {"relation", "template", "weight"}, or a directory with one such file per relation, whose
    name is the relation. A template holds [X] and [Y]. Without weights, all count the same.
    """
    collections: dict[str, dict[str, WeightedClozes]] = {}
    for text in given:
        name, _, place = text.partition("=")
        if not name or not place:
            raise InputError(f"--prompts is {text!r}: give NAME=FILE, a name and its prompts as JSONL")
        if name in collections or name in METHODS:
            raise InputError(f"--prompts names {name!r}, which is another way of asking: give it another name")
        collections[name] = {relation: tuple(clozes) for relation, clozes in grouped(_clozes(Path(place))).items()}
    return collections


def _clozes(place: Path) -> Iterator[tuple[str, tuple[str, float]]]:
    for file in sorted(place.glob("*.jsonl")) if place.is_dir() else [place]:
        for row in read_jsonl(file, _Row):
            relation = row.relation or (file.stem if place.is_dir() else "")
            if not relation or row.weight < 0:
                raise InputError(f"{file}: template {row.template!r} needs a relation, and a weight of 0 or more")
            yield relation, (as_cloze(row.template, f"{file}: {relation}"), row.weight)


def check_prompts(prompts: Prompts, relations: Sequence[RelationFacts]) -> None:
    """Raise InputError for a collection without a prompt for a relation."""
    for name, collection in prompts.items():
        if lacking := [relation.name for relation in relations if relation.name not in collection]:
            raise InputError(
                f"the prompts of {name} ask nothing about {', '.join(lacking)}: name other relations with --properties"
            )


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
        facts = [(subject, relation.name, object_) for subject, object_ in (*relation.train, *relation.dev)]
        subjects = [subject for subject, _ in relation.facts]
        controls = LearnedControls(facts)
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
        if method == "finetune":
            return self._finetuned(relation, backbone, report)
        if method in self._how.prompts:
            return self._asked(relation, backbone, method)
        kind, _, length = method.partition("-")
        prompt = manual_prompt(backbone, relation.cloze)
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
                prompt = random_prompt(backbone, int(length), self._how.seed)
            prompt, _ = train_soft_prompt(
                backbone,
                prompt,
                self._taught(relation.train),
                self._columns,
                self._how.soft,
                held_out=self._taught(relation.dev),
                report=report,
            )
        return self._best(relation, lambda part: mask_logits(backbone, prompt, part, self._columns))

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

        return self._best(relation, logits)

    def _finetuned(self, relation: RelationFacts, backbone: Backbone, report: Report) -> list[str]:
        tuned = Backbone(backbone.name, copy.deepcopy(backbone.model).requires_grad_(True), backbone.tokenizer)

        def prompts(subjects: Sequence[str]) -> list[list[int]]:
            return masked(tuned, [relation.cloze] * len(subjects), subjects)

        def learnt(pairs: Sequence[Pair]) -> list[tuple[list[int], list[int]]]:
            subjects, golds = zip(*self._taught(pairs), strict=True)
            return [*zip(prompts(subjects), golds, strict=True)]

        finetune(
            tuned,
            learnt(relation.train),
            self._columns,
            self._how.finetune,
            held_out=learnt(relation.dev),
            report=report,
        )
        return self._best(relation, lambda part: cloze_logits(tuned, prompts(part), self._columns))

    def _taught(self, pairs: Sequence[Pair]) -> list[tuple[str, list[int]]]:
        return [(subject, [self._number[object_]]) for subject, object_ in pairs]

    def _best(self, relation: RelationFacts, logits: Callable[[Sequence[str]], Tensor]) -> list[str]:
        """Return the best word for each test fact. logits: function from subjects to logits of the words."""
        subjects, names = [subject for subject, _ in relation.facts], list[str]()
        with torch.inference_mode():
            for start in range(0, len(subjects), BATCH):
                best = logits(subjects[start : start + BATCH]).argmax(-1).tolist()
                names += [self._names[number] for number in best]
        return names
