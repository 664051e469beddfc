"""Naive Bayes over the words of subjects' names: a baseline from surface cues of train rows.

The score is P(o|r) times the product of P(w|o, r) over the words w of the subject, with add-one smoothing. The baseline
is that of Zhong, Friedman and Chen (Factual Probing Is [MASK], NAACL 2021, section 5). The answer "no object" is one
more class. Other word counts use the same estimate, `log_posterior`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from lmkbc.edition import Edition
from lmkbc.generate.prior import ClosedSet, class_prior, ranked
from lmkbc.generate.spec import GeneratorSpec
from lmkbc.groups import grouped
from lmkbc.notes import Notes
from lmkbc.relation import Relation
from lmkbc.run.base import Run
from lmkbc.select.ranking import Floats, Mask
from lmkbc.types import CandidateSet, Example, Generator, Query

if TYPE_CHECKING:
    from scipy import sparse

_WORD = re.compile(r"\w+")


def log_posterior(
    prior: Floats,
    seen: Floats,
    totals: Floats,
    counted: sparse.csr_array | None = None,
    *,
    pseudo: Floats | float = 1.0,
    size: float,
    trust: float = 1.0,
) -> Floats:
    """Return log P(o) + trust * sum of log P(w|o) over words, for m queries and c candidates, (m, c).

    prior: P(o), (c,), above 0.
    seen: count of each of k words with each candidate, (k, c).
    totals: count of all words with each candidate, (c,).
    counted: count of each word in each query, (m, k); None for one query with each word once. P(w|o) is (seen + pseudo)
    / (totals + size).
    pseudo: 1, or the words' background among `size` words, (k, 1) (m-estimate; Cestnik, ECAI 1990).
    """
    logs = np.log(seen + pseudo)
    if counted is None:  # added word by word like a sparse product, so that the order of candidates has no influence
        there, count = sum(logs, np.zeros((1, len(totals)))), np.full((1, 1), float(len(logs)))
    else:
        there, count = counted @ logs, counted.sum(axis=1)[:, None]
    scores: Floats = trust * (there - count * np.log(totals + size)) + np.log(prior)
    return scores


def words(name: str) -> list[str]:
    """Return the words of a name, in lower case."""
    return _WORD.findall(name.lower())


class _Fitted:
    """Closed set of a relation, and the word counts of its n train subjects, (n, words)."""

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
        """Return a distribution over the candidates, (c + 1,), from the rows in `others`; 0 if no such row has it."""
        hits = self._hits[others]
        prior = class_prior(hits)
        possible = (prior > 0) & self.closed.sources[others].any(axis=0)
        if not possible.any():
            return np.zeros(len(prior))
        counts = self._words[others]
        places = [self._places[word] for word in words(subject) if word in self._places]
        (logs,) = log_posterior(
            np.maximum(prior, 1e-300),
            counts[:, places].T @ hits,
            hits.T @ counts.sum(axis=1),
            size=len(self._places),
        )
        shares = np.where(possible, np.exp(logs - logs[possible].max()), 0.0)
        scores: Floats = shares / shares.sum()
        return scores


@dataclass(frozen=True, kw_only=True)
class NaiveBayesSpec(GeneratorSpec):
    """The table of `NaiveBayes`."""

    @property
    def learns(self) -> bool:
        """Return True."""
        return True

    def open(self, run: Run, notes: Notes) -> Generator:  # noqa: ARG002 -- it records nothing
        """Return the generator."""
        return NaiveBayes(run.edition, run.relations, run.labelled)


class NaiveBayes:
    """Proposes a relation's train objects with their posterior given the words of the subject's name.

    For a query in train, the rows of its subject are left out. Scores sum to 1.
    """

    def __init__(self, edition: Edition, relations: Mapping[str, Relation], train: Sequence[Example]) -> None:
        rows = grouped((example.query.relation, example) for example in train)
        self._fitted = {name: _Fitted(edition, relations[name], rows[name]) for name in edition.relations}

    def generate(self, queries: Sequence[Query]) -> Iterator[CandidateSet]:
        """Yield one candidate set per query, best first."""
        for query in dict.fromkeys(queries):
            fitted = self._fitted[query.relation]
            others = np.array([subject != query.subject for subject in fitted.subjects], dtype=bool)
            scores = fitted.posterior(query.subject, others)
            yield ranked(query, fitted.closed.candidates, scores, "naive-bayes")
