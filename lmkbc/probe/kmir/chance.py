"""Chance on KMIR's questions: the expected token F1 of a guess without knowledge, computed exactly.

A question with options is guessed among its options, true or false among the two. A question without options is guessed
among names: all right answers of such questions in the file, or those for the same relation.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from statistics import fmean
from typing import Any

import numpy as np

from lmkbc.groups import grouped
from lmkbc.probe.benchmark import Sheet, percent
from lmkbc.probe.kmir.files import TYPES, Question
from lmkbc.probe.kmir.score import PUBLISHED, KmirTable, question_f1, tokens


class _NamePool:
    """Names from which a guess is drawn uniformly."""

    def __init__(self, names: Iterable[str]) -> None:
        self.names = list(dict.fromkeys(names))
        bags = [_features(name) for name in self.names]
        self._lengths = np.array([len(bag) for bag in bags])
        self.expected_f1 = cache(self._expected)
        places = grouped((feature, place) for place, bag in enumerate(bags) for feature in bag)
        self._places = {feature: np.array(found) for feature, found in places.items()}

    def _expected(self, accepted: tuple[str, ...]) -> float:
        """Return the mean over names of the best token F1 with any accepted answer."""
        best = np.zeros(len(self.names))
        for answer in accepted:
            bag = _features(answer)
            shared = [self._places[feature] for feature in bag if feature in self._places]
            if shared:
                found, common = np.unique(np.concatenate(shared), return_counts=True)
                best[found] = np.maximum(best[found], 2 * common / (self._lengths[found] + len(bag)))
        return float(best.mean())


def _features(name: str) -> list[tuple[str, int]]:
    """Return each token with its number among equal tokens, so that bags can be intersected as sets.

    A name without tokens has one empty token, so two such names are equal.
    """
    seen = Counter[str]()
    features = []
    for token in tokens(name) or [""]:
        features.append((token, seen[token]))
        seen[token] += 1
    return features


@dataclass(frozen=True, slots=True)
class _Chance:
    """Expected token F1 by question type.

    name: a guess among all names. relation: a guess among the names of the question's relation. commonest: always the
    most frequent answer of the question's type and relation. choices: share of questions with options. names: number of
    names.
    """

    name: Mapping[str, float]
    relation: Mapping[str, float]
    commonest: Mapping[str, float]
    choices: Mapping[str, float]
    names: int


def chance(questions: Iterable[Question], file: Sequence[Question]) -> _Chance:
    """Return the expected scores of guesses on some questions.

    file: all questions, whose right answers are the names.
    """
    free = [question for question in file if not question.choices]
    every = _NamePool(name for question in free for name in question.answer)
    names = grouped((question.relation, name) for question in free for name in question.answer)
    pools = {relation: _NamePool(own) for relation, own in names.items()}
    commonest = _commonest(file)
    scores: dict[str, list[tuple[float, ...]]] = grouped(
        (
            question.type,
            (
                _expected_f1(question, every),
                _expected_f1(question, pools.get(question.relation, every)),
                question_f1([commonest[question.type, question.relation]], question.answer),
                float(bool(question.choices)),
            ),
        )
        for question in questions
    )

    def column(place: int) -> dict[str, float]:
        return {kind: fmean(row[place] for row in rows) for kind, rows in scores.items()}

    return _Chance(column(0), column(1), column(2), column(3), len(every.names))


def _expected_f1(question: Question, pool: _NamePool) -> float:
    """Return the expected F1 of a random option, or of a random name if there are no options."""
    choices = question.choices
    if not choices:
        return pool.expected_f1(tuple(question.answer))
    return fmean(question_f1([choice], question.answer) for choice in choices)


def _commonest(file: Iterable[Question]) -> dict[tuple[str, str], str]:
    """Return the most frequent answer for each type and relation; on a tie, the first."""
    answers = grouped(((question.type, question.relation), name) for question in file for name in question.answer)
    return {key: Counter(names).most_common(1)[0][0] for key, names in answers.items()}


def by_chance(table: KmirTable, found: _Chance) -> Sheet:
    """Return the table of the expected scores of guesses without knowledge, beside the answers' scores."""
    shares = {
        "these answers": table.types,
        "random: any name, or option": found.name,
        "random: a name of its relation, or option": found.relation,
        "the commonest answer of its type and relation": found.commonest,
        "questions that leave a choice %": found.choices,
    }
    rows: list[list[Any]] = [[name, *percent(*map(own.get, TYPES))] for name, own in shares.items()]
    rows.insert(-1, ["paper: random", *PUBLISHED["random"]])
    return Sheet(["F1 %", *TYPES], rows, "chance", f"F1 that guesses expect; a random name is one of {found.names:,}")
