"""Baselines without a model: the class prior of a relation's train split, naive Bayes over words, and the empty answer.

The class prior is the closed set of a relation's train objects, each with the share of rows that have it. Every model
must beat it. It also proposes "no object", with the share of empty rows.

Naive Bayes scores P(o|r) times the product of P(w|o, r) over the words w of the subject, with add-one smoothing. It is
that of Zhong, Friedman and Chen (Factual Probing Is [MASK], NAACL 2021, section 5). The answer "no object" is one more
class. Other word counts use the same estimate, `log_posterior`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from msgspec import structs

from lmkbc.edition import Edition
from lmkbc.generate.spec import GeneratorSpec
from lmkbc.notes import Notes
from lmkbc.relation import Relation
from lmkbc.select.ranking import Floats, Mask
from lmkbc.session.run import Run
from lmkbc.types import Candidate, CandidateSet, Example, Generator, Nil, Query, Source, grouped

if TYPE_CHECKING:
    from scipy import sparse

_WORD = re.compile(r"\w+")


@dataclass(frozen=True, eq=False)
class ClosedSet:
    """The c objects in n train rows of one relation, merged over aliases, and the rows for which each is right.

    candidates: the first proposes no object; the others are ordered by normal form, which depends on no row.
    labels: their preferred names.
    hits: (n, c + 1), whether the edition's scorer matches a gold object of the row.
    sources: (n, c + 1), whether the candidate comes from the row; without such a row it is unknown.
    """

    candidates: tuple[Candidate, ...]
    labels: tuple[str, ...]
    hits: Mask
    sources: Mask

    @classmethod
    def of(cls, edition: Edition, relation: Relation, rows: Sequence[Example]) -> ClosedSet:
        """Return the merged objects of one relation's train rows; subjects of a symmetric relation are objects too."""
        scorer = edition.metric.scorer
        answered: dict[str, list[int]] = {}  # one entry per gold object
        named: dict[str, Counter[str]] = {}  # spelling -> how many gold objects have it, by their first spelling
        for index, row in enumerate(rows):
            for spellings in edition.gold(row):
                spelt = dict.fromkeys(map(scorer.key, spellings))
                for key in spelt:
                    answered.setdefault(key, []).append(index)
                    named.setdefault(key, Counter())[next(iter(spelt))] += 1
        candidates, labels = {"": Candidate("")}, {"": ""}
        origins: dict[str, set[int]] = {"": {index for index, row in enumerate(rows) if not row.objects}}
        for index, row in enumerate(rows):
            for candidate, label in _proposals(edition, relation, row, named):
                if key := scorer.key(edition.value(candidate)):
                    candidates.setdefault(key, candidate)
                    labels.setdefault(key, label)
                    origins.setdefault(key, set()).add(index)
        keys = sorted(candidates)
        hits = np.zeros((len(rows), len(keys)), dtype=bool)
        sources = np.zeros_like(hits)
        for column, key in enumerate(keys):
            right = answered.get(key, []) if key else sorted(origins[key])
            if key and relation.has_numbers():  # right within the scorer's tolerance
                right = [index for index, row in enumerate(rows) if _right(edition, candidates[key], row)]
            hits[right, column] = True
            sources[sorted(origins[key]), column] = True
        return cls(tuple(candidates[key] for key in keys), tuple(labels[key] for key in keys), hits, sources)

    def prior(self, rows: Mask) -> Floats:
        """Return the share of some rows, (n,), for which each candidate is right, (c + 1,); 0 if none has it."""
        shares = class_prior(self.hits[rows])
        shares[~self.sources[rows].any(axis=0)] = 0.0
        return shares


def class_prior(hits: Mask | Floats | sparse.csr_array) -> Floats:
    """Return the share of n rows for which each candidate is right, (n, c) -> (c,); 0 without rows."""
    return np.asarray(hits.mean(axis=0) if hits.shape[0] else np.zeros(hits.shape[1]))


def _proposals(
    edition: Edition, relation: Relation, row: Example, named: Mapping[str, Counter[str]]
) -> Iterator[tuple[Candidate, str]]:
    """Yield a row's objects, with preferred names, in the accepted spelling that most mentions of the object have.

    An object is mentioned where another's first spelling is one of its own. So a spelling does not win because other
    objects have it too: "Silia" is Chile in one language, and Syria in another.
    """
    key = edition.metric.scorer.key
    for gold in row.objects:
        if not (names := edition.accepted(gold)):
            continue
        own = set(map(key, names))
        widest = max(names, key=lambda name: sum(n for first, n in named.get(key(name), {}).items() if first in own))
        label = gold.name or widest
        yield Candidate(widest if edition.target == "string" else label, id=gold.id), label
    if relation.symmetric:
        yield Candidate(row.query.subject, id=row.query.subject_id), row.query.subject


def _right(edition: Edition, candidate: Candidate, row: Example) -> bool:
    scorer, value, relation = edition.metric.scorer, edition.value(candidate), row.query.relation
    golds = edition.gold(row)
    if scorer.matches(value, [(value,)], relation):  # this scorer takes alias lists
        return bool(scorer.matches(value, golds, relation))
    return bool(scorer.matches(value, [names[0] for names in golds], relation))


@dataclass(frozen=True, kw_only=True)
class Prior(GeneratorSpec):
    """The table of `ClassPrior`."""

    @property
    def learns(self) -> bool:
        """Return True."""
        return True

    def open(self, run: Run, notes: Notes) -> Generator:  # noqa: ARG002 -- it records nothing
        """Return the generator."""
        return ClassPrior(run.edition, run.relations, run.labelled)


class ClassPrior:
    """Proposes every object of the relation's train rows with the share of rows for which it is right.

    For a query in train, its own row is left out. Scores are shares of rows, in [0, 1].
    """

    def __init__(self, edition: Edition, relations: Mapping[str, Relation], train: Sequence[Example]) -> None:
        rows = grouped((example.query.relation, example) for example in train)
        self._closed = {name: ClosedSet.of(edition, relations[name], rows[name]) for name in edition.relations}
        self._rows = {name: [row.query for row in rows[name]] for name in edition.relations}
        self._known = frozenset(example.query for example in train)
        self._unseen: dict[str, CandidateSet] = {}

    def generate(self, queries: Sequence[Query]) -> Iterator[CandidateSet]:
        """Yield one candidate set per query, best first."""
        for query in dict.fromkeys(queries):
            closed, rows = self._closed[query.relation], self._rows[query.relation]
            if query in self._known:
                others = np.array([row != query for row in rows], dtype=bool)
                yield ranked(query, closed.candidates, closed.prior(others), "prior")
                continue
            if query.relation not in self._unseen:
                everyone = closed.prior(np.ones(len(rows), dtype=bool))
                self._unseen[query.relation] = ranked(query, closed.candidates, everyone, "prior")
            yield replace(self._unseen[query.relation], query=query)


def ranked(query: Query, candidates: Sequence[Candidate], scores: Floats, model: str) -> CandidateSet:
    """Return the possible candidates of a closed set, best first, with ties in order; the one without text is NIL."""
    source = (Source(model),)
    best = (column for column in np.argsort(-scores, kind="stable") if scores[column] > 0)
    return CandidateSet.proposing(
        query,
        (structs.replace(candidates[column], score=float(scores[column]), sources=source) for column in best),
    )


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
    return np.asarray(trust * (there - count * np.log(totals + size)) + np.log(prior))


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
        return np.asarray(shares / shares.sum())


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
            yield ranked(query, fitted.closed.candidates, fitted.posterior(query.subject, others), "naive-bayes")


@dataclass(frozen=True, kw_only=True)
class Nothing(GeneratorSpec):
    """The table of a generator that proposes no object for any query."""

    def open(self, run: Run, notes: Notes) -> Generator:  # noqa: ARG002 -- it uses and records nothing
        """Return the table itself."""
        return self

    def generate(self, queries: Sequence[Query]) -> Iterator[CandidateSet]:
        """Yield one set per query that only proposes NIL."""
        for query in dict.fromkeys(queries):
            yield CandidateSet(query, nothing=(Nil(1.0, (Source("nothing"),)),))
