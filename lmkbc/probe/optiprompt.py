"""OptiPrompt: manual cloze, soft prompts and fine-tuning, each on a model and on its random controls.

Zhong, Friedman and Chen, Factual Probing Is [MASK], NAACL 2021. What a control with random weights answers was learned
from the train facts: such test facts are easy, and only on the hard rest does a score speak of what a model knew.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import fsum
from pathlib import Path

import msgspec

from lmkbc import data
from lmkbc.errors import InputError
from lmkbc.probe import kamel
from lmkbc.probe.kamel import LAMA, Kamel
from lmkbc.probe.lama import Asked
from lmkbc.probe.lama import read as read_trex
from lmkbc.train.facts import phrases

PUBLISHED: Mapping[str, tuple[float, float | None, float | None]] = {
    "majority": (22.0, None, None),
    "pretrained manual": (31.1, 41.5, 24.3),
    "pretrained soft-5": (47.6, None, None),
    "pretrained soft-10": (48.1, None, None),
    "pretrained soft-manual": (48.6, 75.6, 33.0),
}
"""Row -> P@1 in percent on T-REx with BERT-base-cased (their tables 2 and 6): all, easy, hard."""

MODELS = ("pretrained", "random", "embeddings")
METHODS = ("manual", "soft-5", "soft-10", "soft-manual", "finetune")
EASY = ("naive-bayes", "random finetune", "embeddings finetune")
"""The controls whose right answers make a fact easy, as in the paper."""

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

    InputError when LAMA's facts come without any to learn.
    """
    if not (source / "relations.jsonl").is_file():
        wanted = properties if properties or not lama else LAMA
        return of_kamel(kamel.read(source, properties=wanted))
    if train is None:
        raise InputError(f"{source} has facts to be tested on only: name those to learn with --train")
    return of_trex(read_trex(source, properties), train)


def of_kamel(benchmark: Kamel, split: str = "test") -> list[Lesson]:
    """KAMEL's facts with a single object: its train split to learn, dev to stop by, another to be tested on."""

    def pairs(name: str, part: str) -> tuple[Pair, ...]:
        single = (fact for fact in benchmark.of(name, part) if len(fact.objects) == 1)
        return tuple(dict.fromkeys((fact.subject, fact.objects[0].shown) for fact in single))

    return [
        Lesson(
            name, "", f"{{subject}} {phrases()[name]} {{mask}}.",
            train=pairs(name, "train"), dev=pairs(name, "dev"), test=pairs(name, split),
        )
        for name in benchmark.properties
        if name in phrases()
    ]  # fmt: skip


def of_trex(asked: Iterable[Asked], train: Path) -> list[Lesson]:
    """LAMA's facts to be tested on, and the published train and dev facts: train/P36/{train,dev}.jsonl."""

    def pairs(name: str, part: str) -> tuple[Pair, ...]:
        rows = data.read_jsonl(train / name / f"{part}.jsonl", _Fact)
        return tuple((row.sub_label, row.obj_label) for row in rows)

    return [
        Lesson(one.name, one.type, one.cloze, pairs(one.name, "train"), pairs(one.name, "dev"), one.facts)
        for one in asked
    ]


def within(lessons: Iterable[Lesson], known: Callable[[str], bool], *, least: int, most: int) -> list[Lesson]:
    """The lessons, less objects that are no word of the model or that no train fact of any lesson names.

    least: facts to learn that a lesson must keep, beside one to stop by and a fifth as many to be tested on; most:
    facts of each kind.
    """
    lessons = list(lessons)
    named = {object_ for lesson in lessons for _, object_ in lesson.train if known(object_)}

    def kept(pairs: Sequence[Pair]) -> tuple[Pair, ...]:
        return tuple(pair for pair in pairs if pair[1] in named)[:most]

    found = [replace(one, train=kept(one.train), dev=kept(one.dev), test=kept(one.test)) for one in lessons]
    found = [one for one in found if len(one.train) >= least and one.dev and len(one.test) >= max(least // 5, 1)]
    if not found:
        raise InputError(
            f"no relation keeps {least} facts to learn whose object is one word of the model: "
            "lower --least, or name a model with a larger vocabulary"
        )
    return found


@dataclass(frozen=True, slots=True)
class Line:
    """P@1 in [0, 1] of one row: mean over relations, by type, and on easy and hard facts; None where there are none."""

    overall: float | None
    types: Mapping[str, float | None]
    easy: float | None
    hard: float | None


def table(lessons: Sequence[Lesson], answers: Mapping[str, Answers]) -> dict[str, Line]:
    """One line per row that answered, from the answers of each relation."""
    names = list(next(iter(answers.values())))
    hits = {
        (row, one.name, n): given == gold
        for one in lessons
        for row in names
        for n, (given, (_, gold)) in enumerate(zip(answers[one.name][row], one.test, strict=True))
    }
    facts = [(one, n) for one in lessons for n in range(len(one.test))]
    easy = {(one.name, n): any(hits.get((row, one.name, n)) for row in EASY) for one, n in facts}
    kinds = sorted({one.type for one in lessons} - {""})

    def over(row: str, kept: Iterable[tuple[Lesson, int]]) -> float | None:
        shares = defaultdict[str, list[bool]](list)
        for one, n in kept:
            shares[one.name].append(hits[row, one.name, n])
        return fsum(sum(part) / len(part) for part in shares.values()) / len(shares) if shares else None

    return {
        row: Line(
            over(row, facts),
            {kind: over(row, [fact for fact in facts if fact[0].type == kind]) for kind in kinds},
            over(row, [(one, n) for one, n in facts if easy[one.name, n]]),
            over(row, [(one, n) for one, n in facts if not easy[one.name, n]]),
        )
        for row in names
    }
