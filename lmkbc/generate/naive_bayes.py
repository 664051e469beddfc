"""Naive Bayes over the words of subjects' names: how far surface cues of train rows alone go.

P(o|r) times the product of P(w|o, r) over the words w of the subject, add-one smoothing (Zhong, Friedman and Chen,
Factual Probing Is [MASK], NAACL 2021, section 5). "No object" is one more class.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from lmkbc.edition import Edition
from lmkbc.generate.prior import (
    ClosedSet,
    Floats,
    Mask,
    ranked,
)
from lmkbc.generate.spec import GeneratorSpec
from lmkbc.relation import Relation
from lmkbc.run import Run
from lmkbc.types import CandidateSet, Example, Generator, Notes, Query

_WORD = re.compile(r"\w+")


def words(name: str) -> list[str]:
    """The words of a name, in lower case."""
    return _WORD.findall(name.lower())


class _Fitted:
    """One relation's closed set and the word counts of its n train subjects, (n, words)."""

    def __init__(self, edition: Edition, relation: Relation, rows: Sequence[Example]) -> None:
        self.closed = ClosedSet.of(edition, relation, rows)
        self.subjects = [row.query.subject for row in rows]
        self._hits = self.closed.hits.astype(np.float64)
        vocabulary = sorted({word for subject in self.subjects for word in words(subject)})
        self._places = {word: place for place, word in enumerate(vocabulary)}
        self._words = np.zeros((len(rows), len(vocabulary)))
        for row, subject in zip(self._words, self.subjects, strict=True):
            for word in words(subject):
                row[self._places[word]] += 1

    def posterior(self, subject: str, others: Mask) -> Floats:
        """A distribution over the candidates, (c + 1,), from the rows in `others`; 0 for what no row answers."""
        hits = self._hits[others]
        rows = hits.sum(axis=0)
        possible = (rows > 0) & self.closed.sources[others].any(axis=0)
        if not possible.any():
            return np.zeros(len(rows))
        counts = self._words[others]
        tokens = hits.T @ counts.sum(axis=1)  # words seen with each candidate
        asked = [self._places[word] for word in words(subject) if word in self._places]
        logs = np.log(np.maximum(rows, 1e-300) / len(hits))
        logs += np.log(counts[:, asked].T @ hits + 1.0).sum(axis=0) - len(asked) * np.log(tokens + len(self._places))
        shares = np.where(possible, np.exp(logs - logs[possible].max()), 0.0)
        scores: Floats = shares / shares.sum()
        return scores


@dataclass(frozen=True, kw_only=True)
class NaiveBayesSpec(GeneratorSpec):
    """The table of `NaiveBayes`."""

    def open(self, run: Run, notes: Notes) -> Generator:  # noqa: ARG002 -- it has nothing to note
        """The generator."""
        return NaiveBayes(run.edition, run.relations, run.train)


class NaiveBayes:
    """Proposes a relation's train objects with their posterior given the words of the subject's name.

    A query that train answers is not its own evidence: rows of its subject are left out. Scores sum to 1.
    """

    def __init__(self, edition: Edition, relations: Mapping[str, Relation], train: Sequence[Example]) -> None:
        rows: dict[str, list[Example]] = {name: [] for name in edition.relations}
        for example in train:
            rows[example.query.relation].append(example)
        self._fitted = {name: _Fitted(edition, relations[name], rows[name]) for name in rows}

    def generate(self, queries: Sequence[Query]) -> Iterator[CandidateSet]:
        """Yield one candidate set per query, best first."""
        for query in dict.fromkeys(queries):
            fitted = self._fitted[query.relation]
            others = np.array([subject != query.subject for subject in fitted.subjects], dtype=bool)
            scores = fitted.posterior(query.subject, others)
            yield ranked(query, fitted.closed.candidates, scores, "naive-bayes")
