"""OptiPrompt: manual cloze, soft prompts and fine-tuning, each on a model and on its random controls.

Zhong, Friedman and Chen, Factual Probing Is [MASK], NAACL 2021. A control with random weights can only answer what it
learned from the train facts. Test facts that it answers are easy. Only the score on the other, hard facts shows what a
model knew before.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import fsum
from operator import eq
from pathlib import Path

from lmkbc.errors import InputError
from lmkbc.groups import grouped
from lmkbc.names import folded_key
from lmkbc.probe.kamel.dataset import LAMA, SPLITS
from lmkbc.probe.lama.dataset import Pair, RelationFacts, is_lama, kamel_clozes, pairs_of, read_kamel
from lmkbc.probe.lama.dataset import read as read_trex

PUBLISHED: Mapping[str, Mapping[str, float]] = {
    "majority": {"all": 22.0, "1-1": 1.8, "N-1": 23.9, "N-M": 22.0, "UHN": 23.8},
    "naive Bayes": {"all": 24.6, "1-1": 0.3, "N-1": 28.6, "N-M": 21.8},
    "manual": {"all": 31.1, "1-1": 68.0, "N-1": 32.4, "N-M": 24.7, "UHN": 21.8, "easy": 41.5, "hard": 24.3},
    "LPAQA": {"all": 34.1, "1-1": 65.0, "N-1": 35.9, "N-M": 27.9, "UHN": 28.7, "easy": 47.0, "hard": 25.6},
    "AutoPrompt": {"all": 42.2, "1-1": 58.0, "N-1": 46.5, "N-M": 34.0, "UHN": 31.3, "easy": 68.2, "hard": 26.7},
    "soft-5": {"all": 47.6, "1-1": 49.6, "N-1": 53.1, "N-M": 39.4, "UHN": 37.5},
    "soft-10": {"all": 48.1, "1-1": 60.7, "N-1": 53.2, "N-M": 39.2, "UHN": 37.9},
    "soft-manual": {"all": 48.6, "1-1": 59.6, "N-1": 54.1, "N-M": 40.1, "UHN": 38.4, "easy": 75.6, "hard": 33.0},
}
"""Row -> column -> P@1 in percent on T-REx with BERT-base-cased (their table 2)."""

PUBLISHED_MODELS: Mapping[str, Mapping[str, float]] = {
    "BERT-base": {"pretrained soft": 50.8, "random soft": 19.9, "pretrained finetune": 51.9, "random finetune": 19.8},
    "BERT-large": {"pretrained soft": 52.7, "random soft": 19.3, "pretrained finetune": 54.9, "random finetune": 19.6},
    "RoBERTa-large": {
        "pretrained soft": 47.8,
        "random soft": 19.6,
        "pretrained finetune": 52.3,
        "random finetune": 21.4,
    },
    "ALBERT-xxlarge": {
        "pretrained soft": 44.6,
        "random soft": 16.9,
        "pretrained finetune": 52.8,
        "random finetune": 21.1,
    },
}
"""Model -> row -> P@1 in percent on facts of T-REx whose objects are tokens of all models (their table 6)."""

PUBLISHED_RELATIONS: Mapping[str, tuple[float, float]] = {
    "P19": (21.1, 20.6),
    "P36": (62.1, 61.3),
    "P47": (13.7, 22.2),
    "P103": (72.2, 86.8),
    "P136": (0.8, 63.6),
    "P176": (85.5, 87.3),
    "P530": (2.8, 3.3),
    "P1376": (73.8, 56.7),
}
"""Relation -> P@1 in percent of the manual cloze, and of OptiPrompt from it, with BERT-base-cased on T-REx."""

MODELS = ("pretrained", "random", "embeddings")
METHODS = ("manual", "soft-5", "soft-10", "soft-manual", "finetune")
EASY = ("naive-bayes", "random finetune", "embeddings finetune")
"""The controls whose right answers make a fact easy, as in the paper."""

_LOG = logging.getLogger(__name__)
Answers = Mapping[str, Sequence[str]]
"""Row of the table, or relation -> answers to the test facts."""


def read(
    source: Path, train: Path | None, properties: Collection[str] | None, *, lama: bool = False
) -> list[RelationFacts]:
    """Read LAMA's directory with train/P36/{train,dev}.jsonl for learning and early stopping, or KAMEL.

    properties: None for all. lama: whether to read only LAMA's properties from KAMEL. InputError for LAMA's facts
    without train facts, and for a missing property.
    """
    if not is_lama(source):
        return read_kamel(source, properties, LAMA if lama else None, kamel_clozes(), SPLITS)
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
    relations: Iterable[RelationFacts], known: Callable[[str], bool], *, least: int, most: int
) -> list[RelationFacts]:
    """Return the facts that can be learned and tested: the object is one word of the model, and is in a train fact.

    No train or dev fact has a test subject, in any spelling. Relations that are left out are logged. least: fewest
    train facts of a relation; it also needs a dev fact and a fifth as many test facts. most: most facts of each kind.
    """
    apart = [_apart(relation) for relation in relations]
    named = {object_ for relation in apart for _, object_ in relation.train if known(object_)}

    def kept(pairs: Sequence[Pair]) -> tuple[Pair, ...]:
        return tuple(pair for pair in pairs if pair[1] in named)[:most]

    cut = [replace(one, train=kept(one.train), dev=kept(one.dev), facts=kept(one.facts)) for one in apart]
    enough = [one for one in cut if len(one.train) >= least and one.dev and len(one.facts) >= max(least // 5, 1)]
    if left := [one.name for one in apart if one.name not in {kept.name for kept in enough}]:
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


@dataclass(frozen=True, slots=True)
class MethodScore:
    """P@1 in [0, 1] of one row: mean over relations, by type, on LAMA-UHN's facts, and on easy and hard facts.

    None if there are no such facts.
    """

    overall: float | None
    types: Mapping[str, float | None]
    uhn: float | None
    easy: float | None
    hard: float | None


def hits(relations: Sequence[RelationFacts], answers: Mapping[str, Answers], row: str) -> dict[str, list[bool]]:
    """Return relation -> whether a row of the table answers each test fact."""
    return {
        relation.name: [
            given == gold for given, (_, gold) in zip(answers[relation.name][row], relation.facts, strict=True)
        ]
        for relation in relations
    }


def easy_facts(relations: Sequence[RelationFacts], answers: Mapping[str, Answers]) -> dict[str, list[bool]]:
    """Return relation -> whether a control answers each test fact."""
    controls = [hits(relations, answers, row) for row in EASY if row in next(iter(answers.values()))]
    return {
        relation.name: [any(own[relation.name][n] for own in controls) for n in range(len(relation.facts))]
        for relation in relations
    }


def table(
    relations: Sequence[RelationFacts], answers: Mapping[str, Answers], unhelped: Collection[tuple[str, str]] = ()
) -> dict[str, MethodScore]:
    """Return row -> scores, from the answers of each relation.

    unhelped: (relation, subject) of LAMA-UHN's facts.
    """
    facts = [(relation, n) for relation in relations for n in range(len(relation.facts))]
    easy = easy_facts(relations, answers)
    kinds = sorted({relation.type for relation in relations} - {""})

    def over(own: Mapping[str, Sequence[bool]], kept: Iterable[tuple[RelationFacts, int]]) -> float | None:
        shares = grouped((relation.name, own[relation.name][n]) for relation, n in kept)
        return fsum(sum(part) / len(part) for part in shares.values()) / len(shares) if shares else None

    def score(own: Mapping[str, Sequence[bool]]) -> MethodScore:
        return MethodScore(
            over(own, facts),
            {kind: over(own, [fact for fact in facts if fact[0].type == kind]) for kind in kinds},
            over(own, [(relation, n) for relation, n in facts if (relation.name, relation.facts[n][0]) in unhelped]),
            over(own, [(relation, n) for relation, n in facts if easy[relation.name][n]]),
            over(own, [(relation, n) for relation, n in facts if not easy[relation.name][n]]),
        )

    return {row: score(hits(relations, answers, row)) for row in rows_of(answers)}


def rows_of(answers: Mapping[str, Answers]) -> list[str]:
    """Return the rows with answers."""
    return list(next(iter(answers.values())))


def majority_shares(relations: Sequence[RelationFacts], answers: Mapping[str, Answers]) -> dict[str, float]:
    """Return row -> share of its answers that are their relation's most frequent train object, mean over relations.

    "gold objects": the same share of the test facts.
    """
    own: dict[str, Answers] = {"gold objects": {one.name: [object_ for _, object_ in one.facts] for one in relations}}
    for row in rows_of(answers):
        own[row] = {one.name: answers[one.name][row] for one in relations}

    def share(given: Answers) -> float:
        top = own["majority"]
        parts = [sum(map(eq, names, top[name])) / len(names) for name, names in given.items()]
        return fsum(parts) / len(parts)

    return {row: share(given) for row, given in own.items() if row != "majority"}
