"""OptiPrompt: manual cloze, soft prompts and fine-tuning, each on a model and on its random controls.

Zhong, Friedman and Chen, Factual Probing Is [MASK], NAACL 2021. What a control with random weights answers was learned
from the train facts: such test facts are easy, and only on the hard rest does a score speak of what a model knew.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import fsum
from pathlib import Path

import msgspec

from lmkbc.errors import InputError, did_you_mean
from lmkbc.files import jsonl
from lmkbc.names import folded_key
from lmkbc.probe.kamel import dataset as kamel
from lmkbc.probe.kamel.dataset import LAMA, Kamel
from lmkbc.probe.lama.dataset import RelationFacts, type_of
from lmkbc.probe.lama.dataset import read as read_trex
from lmkbc.train.corpus import phrases

PUBLISHED: Mapping[str, Mapping[str, float]] = {
    "majority": {"all": 22.0, "1-1": 1.8, "N-1": 23.9, "N-M": 22.0, "UHN": 23.8},
    "naive Bayes": {"all": 24.6, "1-1": 0.3, "N-1": 28.6, "N-M": 21.8},
    "manual": {"all": 31.1, "1-1": 68.0, "N-1": 32.4, "N-M": 24.7, "UHN": 21.8, "easy": 41.5, "hard": 24.3},
    "soft-5": {"all": 47.6, "1-1": 49.6, "N-1": 53.1, "N-M": 39.4, "UHN": 37.5},
    "soft-10": {"all": 48.1, "1-1": 60.7, "N-1": 53.2, "N-M": 39.2, "UHN": 37.9},
    "soft-manual": {"all": 48.6, "1-1": 59.6, "N-1": 54.1, "N-M": 40.1, "UHN": 38.4, "easy": 75.6, "hard": 33.0},
    "soft, common tokens": {"all": 50.8},
    "finetune, common tokens": {"all": 51.9},
    "random soft, common tokens": {"all": 19.9},
    "random finetune, common tokens": {"all": 19.8},
}
"""Row -> column -> P@1 in percent on T-REx with BERT-base-cased (their tables 2 and 6). Random weights were reported on
the facts whose objects are tokens of all models that they compare."""

MODELS = ("pretrained", "random", "embeddings")
METHODS = ("manual", "soft-5", "soft-10", "soft-manual", "finetune")
EASY = ("naive-bayes", "random finetune", "embeddings finetune")
"""The controls whose right answers make a fact easy, as in the paper."""

_LOG = logging.getLogger(__name__)
Pair = tuple[str, str]
Answers = Mapping[str, Sequence[str]]
"""Row of the table -> what it answers to each test fact."""


@dataclass(frozen=True, slots=True)
class Lesson:
    """One relation: its cloze with {subject} and {mask}, its type (1-1, N-1, N-M, or ""), and (subject, object) pairs.

    train: to learn; dev: to stop early by; test: to be tested on.
    """

    name: str
    type: str
    cloze: str
    train: tuple[Pair, ...]
    dev: tuple[Pair, ...]
    test: tuple[Pair, ...]


class _Fact(msgspec.Struct):
    sub_label: str
    obj_label: str


def read(source: Path, train: Path | None, properties: Collection[str] | None, *, lama: bool = False) -> list[Lesson]:
    """LAMA's directory with the facts to learn in `train`, or KAMEL. properties: None is all; lama: of KAMEL, LAMA's.

    InputError when LAMA's facts come without any to learn, and for a property that is not there.
    """
    if not (source / "relations.jsonl").is_file():
        facts = kamel.read(source, properties=properties if properties or not lama else LAMA)
        for name in properties or ():
            facts.of(name, "test")
        return of_kamel(facts)
    if train is None:
        raise InputError(f"{source} has facts to be tested on only: name those to learn with --train")
    return of_trex(read_trex(source, properties), train)


def of_kamel(benchmark: Kamel, split: str = "test") -> list[Lesson]:
    """KAMEL's facts with a single object: its train split to learn, dev to stop by, another to be tested on.

    InputError for a property without a cloze.
    """

    def pairs(name: str, part: str) -> tuple[Pair, ...]:
        single = (fact for fact in benchmark.of(name, part) if len(fact.objects) == 1)
        return tuple(dict.fromkeys((fact.subject, fact.objects[0].shown) for fact in single))

    for name in benchmark.properties:
        if name not in phrases():
            raise InputError(f"there is no cloze for {name}: {did_you_mean(name, phrases())}")
    return [
        Lesson(
            name,
            type_of(name, benchmark.of(name, split)),
            f"{{subject}} {phrases()[name]} {{mask}}.",
            train=pairs(name, "train"),
            dev=pairs(name, "dev"),
            test=pairs(name, split),
        )
        for name in benchmark.properties
    ]


def of_trex(relations: Iterable[RelationFacts], train: Path) -> list[Lesson]:
    """LAMA's facts to be tested on, and the published train and dev facts: train/P36/{train,dev}.jsonl."""

    def pairs(name: str, part: str) -> tuple[Pair, ...]:
        rows = jsonl.read_jsonl(train / name / f"{part}.jsonl", _Fact)
        return tuple((row.sub_label, row.obj_label) for row in rows)

    return [
        Lesson(
            relation.name,
            relation.type,
            relation.cloze,
            pairs(relation.name, "train"),
            pairs(relation.name, "dev"),
            relation.facts,
        )
        for relation in relations
    ]


def _apart(lesson: Lesson) -> Lesson:
    """The lesson without facts to learn or to stop by on subjects that it is tested on, however they are spelt."""
    tested = {folded_key(subject) for subject, _ in lesson.test}

    def others(pairs: Sequence[Pair]) -> tuple[Pair, ...]:
        return tuple(pair for pair in pairs if folded_key(pair[0]) not in tested)

    return replace(lesson, train=others(lesson.train), dev=others(lesson.dev))


def within(lessons: Iterable[Lesson], known: Callable[[str], bool], *, least: int, most: int) -> list[Lesson]:
    """The lessons, less objects that are no word of the model or that no train fact of any lesson names.

    Nor is a fact learned or stopped by whose subject is tested on. Lessons that are left out are told.

    least: facts to learn that a lesson must keep, beside one to stop by and a fifth as many to be tested on; most:
    facts of each kind.
    """
    lessons = [_apart(lesson) for lesson in lessons]
    named = {object_ for lesson in lessons for _, object_ in lesson.train if known(object_)}

    def kept(pairs: Sequence[Pair]) -> tuple[Pair, ...]:
        return tuple(pair for pair in pairs if pair[1] in named)[:most]

    kept_lessons = [
        replace(lesson, train=kept(lesson.train), dev=kept(lesson.dev), test=kept(lesson.test)) for lesson in lessons
    ]
    kept_lessons = [
        lesson
        for lesson in kept_lessons
        if len(lesson.train) >= least and lesson.dev and len(lesson.test) >= max(least // 5, 1)
    ]
    if left := [lesson.name for lesson in lessons if lesson.name not in {kept.name for kept in kept_lessons}]:
        _LOG.info("left out, with fewer than %d facts to learn or too few to test: %s", least, ", ".join(left))
    if not kept_lessons:
        raise InputError(
            f"no relation keeps {least} facts to learn whose object is one word of the model: "
            "lower --least, or name a model with a larger vocabulary"
        )
    return kept_lessons


@dataclass(frozen=True, slots=True)
class Line:
    """P@1 in [0, 1] of one row: mean over relations, by type, on LAMA-UHN's facts, and on easy and hard facts.

    None where there are no such facts.
    """

    overall: float | None
    types: Mapping[str, float | None]
    uhn: float | None
    easy: float | None
    hard: float | None


def table(
    lessons: Sequence[Lesson], answers: Mapping[str, Answers], unhelped: Collection[tuple[str, str]] = ()
) -> dict[str, Line]:
    """One line per row that answered, from the answers of each relation.

    unhelped: (relation, subject) of LAMA-UHN's facts.
    """
    names = list(next(iter(answers.values())))
    hits = {
        (row, lesson.name, n): given == gold
        for lesson in lessons
        for row in names
        for n, (given, (_, gold)) in enumerate(zip(answers[lesson.name][row], lesson.test, strict=True))
    }
    facts = [(lesson, n) for lesson in lessons for n in range(len(lesson.test))]
    easy = {(lesson.name, n): any(hits.get((row, lesson.name, n)) for row in EASY) for lesson, n in facts}
    kinds = sorted({lesson.type for lesson in lessons} - {""})

    def over(row: str, kept: Iterable[tuple[Lesson, int]]) -> float | None:
        shares = defaultdict[str, list[bool]](list)
        for lesson, n in kept:
            shares[lesson.name].append(hits[row, lesson.name, n])
        return fsum(sum(part) / len(part) for part in shares.values()) / len(shares) if shares else None

    return {
        row: Line(
            over(row, facts),
            {kind: over(row, [fact for fact in facts if fact[0].type == kind]) for kind in kinds},
            over(row, [(lesson, n) for lesson, n in facts if (lesson.name, lesson.test[n][0]) in unhelped]),
            over(row, [(lesson, n) for lesson, n in facts if easy[lesson.name, n]]),
            over(row, [(lesson, n) for lesson, n in facts if not easy[lesson.name, n]]),
        )
        for row in names
    }
