"""Chance on KMIR's questions: the expected token F1 of a guess without knowledge, computed exactly.

A question with options is guessed among its options, true or false among the two. A question without options is guessed
among names: all right answers of such questions in the file, or those for the same relation.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from lmkbc.groups import grouped
from lmkbc.probe.kmir.causal import options
from lmkbc.probe.kmir.files import Question
from lmkbc.probe.kmir.score import question_f1, tokens


class NamePool:
    """Names from which a guess is drawn uniformly."""

    def __init__(self, names: Iterable[str]) -> None:
        self.names = list(dict.fromkeys(names))
        bags = [_features(name) for name in self.names]
        self._lengths = np.array([len(bag) for bag in bags])
        self._known: dict[tuple[str, ...], float] = {}
        places = grouped((feature, place) for place, bag in enumerate(bags) for feature in bag)
        self._places = {feature: np.array(found) for feature, found in places.items()}

    def expected_f1(self, accepted: Sequence[str]) -> float:
        """Return the mean over names of the best token F1 with any accepted answer."""
        key = tuple(accepted)
        if key not in self._known:
            self._known[key] = self._expected(key)
        return self._known[key]

    def _expected(self, accepted: Sequence[str]) -> float:
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
class Chance:
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


def chance(questions: Iterable[Question], file: Sequence[Question]) -> Chance:
    """Return the expected scores of guesses on some questions.

    file: all questions, whose right answers are the names.
    """
    free = [question for question in file if not options(question)]
    every = NamePool(name for question in free for name in question.answer)
    names = grouped((question.relation, name) for question in free for name in question.answer)
    pools = {relation: NamePool(own) for relation, own in names.items()}
    commonest = _commonest(file)
    scores: dict[str, list[tuple[float, ...]]] = grouped(
        (
            question.type,
            (
                _expected_f1(question, every),
                _expected_f1(question, pools.get(question.relation, every)),
                question_f1([commonest[question.type, question.relation]], question.answer),
                float(bool(options(question))),
            ),
        )
        for question in questions
    )

    def column(place: int) -> dict[str, float]:
        return {kind: math.fsum(row[place] for row in rows) / len(rows) for kind, rows in scores.items()}

    return Chance(column(0), column(1), column(2), column(3), len(every.names))


def _expected_f1(question: Question, pool: NamePool) -> float:
    """Return the expected F1 of a random option, or of a random name if there are no options."""
    choices = options(question)
    if not choices:
        return pool.expected_f1(question.answer)
    return math.fsum(question_f1([choice], question.answer) for choice in choices) / len(choices)


def _commonest(file: Iterable[Question]) -> dict[tuple[str, str], str]:
    """Return the most frequent answer for each type and relation; on a tie, the first."""
    answers = grouped(((question.type, question.relation), name) for question in file for name in question.answer)
    return {key: Counter(names).most_common(1)[0][0] for key, names in answers.items()}
