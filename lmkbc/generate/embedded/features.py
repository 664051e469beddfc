"""Train rows of a relation, and the trees' features of a query and a candidate.

Features come from signals, from the scores of other generators, and from train's facts. Every train row links its
subject and its objects. Rows of all relations count: a river's countries tend to be neighbours, and a spouse plays in
the same band.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np
import numpy.typing as npt
from scipy import sparse

from lmkbc.edition import Edition
from lmkbc.generate.baselines import ClosedSet
from lmkbc.generate.embedded.signals import (
    Fit,
    Texts,
    scores,
    steady,
)
from lmkbc.names import name_key
from lmkbc.progress import Report, silent
from lmkbc.select.ranking import Floats, Ints
from lmkbc.types import Candidate, CandidateSet, Example, Generator, Query, Source

ASKING = "language models (answers)"
"""Name of the step in progress reports."""
UNKNOWN = -1.0
"""Score of an object that a source did not name; it is below all scores of named objects."""
Scores = dict[str, float]
"""Object -> score. Keys are QIDs, folded names, and "" for no object."""


class OtherSources:
    """Scores of generators, by name, for queries. Each query is asked once.

    failed: queries that some generator failed to answer.
    """

    def __init__(self, generators: Mapping[str, Generator], report: Report = silent) -> None:
        self._generators, self._report = generators, report
        self._scores: dict[str, dict[Query, Scores]] = {name: {} for name in generators}
        self.failed: set[Query] = set()

    def __bool__(self) -> bool:
        return bool(self._generators)

    def ask(self, *groups: Sequence[Query]) -> None:
        """Ask the sources about new queries.

        groups: of one relation each, whose prompts have a common prefix. They are asked one after the other, since the
        last digits of a local model's scores depend on the batch.
        """
        total, done = self.lacking([*chain.from_iterable(groups)]), 0
        for number, members in enumerate(groups, start=1):
            step = f"{ASKING[:-1]}, group {number} of {len(groups)})"
            if total:
                self._report(step, done, total)
            for name, generator in self._generators.items():
                known = self._scores[name]
                new = [query for query in members if query not in known and query not in self.failed]
                for answer in generator.generate(new) if new else ():
                    if answer.draws and answer.failed:
                        self.failed.add(answer.query)
                    else:
                        known[answer.query] = _scores(answer)
                    self._report(step, done := done + 1, total)

    def lacking(self, queries: Sequence[Query]) -> int:
        """Return the number of answers that are missing."""
        return sum(
            query not in known and query not in self.failed
            for known in self._scores.values()
            for query in dict.fromkeys(queries)
        )

    def forget(self, queries: Sequence[Query]) -> None:
        """Delete the scores of queries."""
        for known in self._scores.values():
            for query in queries:
                known.pop(query, None)
        self.failed.difference_update(queries)

    def scores(self, queries: Sequence[Query]) -> dict[str, list[Scores]]:
        """Return source -> its scores, by query. They are part of the key of a stored fit."""
        return {name: [known.get(query, {}) for query in queries] for name, known in self._scores.items()}

    def signals(self, queries: Sequence[Query], candidates: Sequence[Candidate]) -> dict[str, Floats]:
        """Return source -> its scores of a closed set, (m, c + 1); UNKNOWN if it gives none."""
        names = [(candidate.id or "", name_key(candidate.text)) for candidate in candidates]
        return {
            name: np.array([[_score(scores, *keys) for keys in names] for scores in rows])
            for name, rows in self.scores(queries).items()
        }


def _scores(answer: CandidateSet) -> Scores:
    """Return the mean, over the draws that answered, of each draw's best score; a draw without the object counts 0."""
    by_draw: defaultdict[str, defaultdict[tuple[Source, ...], float]] = defaultdict(lambda: defaultdict(float))
    for candidate in answer.candidates:
        for key in filter(None, (candidate.id, name_key(candidate.text))):
            by_draw[key][candidate.sources] = max(candidate.score, by_draw[key][candidate.sources])
    for nil in answer.nothing:
        by_draw[""][nil.sources] = nil.score
    draws = max(sum(state.is_answer for state in answer.draws), 1)
    return {key: sum(scores.values()) / draws for key, scores in by_draw.items()}


def _score(scores: Scores, id_: str, name: str) -> float:
    return scores.get(id_, scores.get(name, UNKNOWN)) if id_ else scores.get(name, UNKNOWN)


class Links:
    """The entities of n train rows. An entity is a normal form of the edition's scorer; aliases are merged."""

    def __init__(self, edition: Edition, train: Sequence[Example]) -> None:
        self._edition = edition
        self._entities: dict[str, int] = {}
        objects, subjects = [], []
        for index, row in enumerate(train):
            for gold in row.objects:
                names = [edition.metric.scorer.key(name) for name in edition.accepted(gold)]
                if not names:
                    continue
                entity = self._entities.setdefault(names[0], len(self._entities))
                for name in names[1:]:
                    self._entities.setdefault(name, entity)
                objects.append((index, entity))
        for index, row in enumerate(train):
            subjects.append((index, self._entities.setdefault(self._key(row.query), len(self._entities))))
        self._objects = _incidence(objects, len(train), len(self._entities))
        self._subjects = _incidence(subjects, len(train), len(self._entities))
        self._relations = np.array([row.query.relation for row in train])

    def _key(self, query: Query) -> str:
        value = query.subject_id if self._edition.target == "id" and query.subject_id else query.subject
        return self._edition.metric.scorer.key(value)

    def of_queries(self, queries: Sequence[Query]) -> Ints:
        """Return the entity of each query's subject; -1 if train does not name it."""
        return np.array([self._entities.get(self._key(query), -1) for query in queries], dtype=np.int64)

    def of_candidates(self, candidates: Sequence[Candidate]) -> Ints:
        """Return the entity of each candidate; -1 for "no object"."""
        key = self._edition.metric.scorer.key
        return np.array([self._entities.get(key(self._edition.value(c)), -1) if c.text else -1 for c in candidates])

    def scores(self, relation: str, rows: Ints, subjects: Ints, candidates: Ints) -> dict[str, Floats]:
        """Return scores (m, c) of candidates for subjects, from the given train rows only.

        inverse: number of rows of the relation that state (candidate, relation, subject). together: number of rows of
        the relation with both. anywhere: number of rows of any relation with both. bridges: weighted number of entities
        that share rows with both.
        """
        same = rows[self._relations[rows] == relation]
        both = self._subjects + self._objects
        links = (both[rows].T @ both[rows]).tocsr()
        links.setdiag(0)
        links.eliminate_zeros()
        near = links.sign()
        known = np.flatnonzero(subjects >= 0)
        named = np.flatnonzero(candidates >= 0)
        pairs = {
            "inverse": self._objects[same].T @ self._subjects[same],
            "together": both[same].T @ both[same],
            "anywhere": links,
        }
        scores = {
            name: sparse.csr_array(m)[subjects[known]][:, candidates[named]].toarray() for name, m in pairs.items()
        }
        share = sparse.diags_array(1.0 / np.maximum(near.sum(axis=0), 1))
        scores["bridges"] = (near[subjects[known]] @ share @ near[:, candidates[named]]).toarray()
        return {name: _spread(counts, known, named, len(subjects), len(candidates)) for name, counts in scores.items()}


def _incidence(pairs: list[tuple[int, int]], rows: int, columns: int) -> sparse.csr_array:
    at = np.array(sorted(set(pairs)), dtype=np.int64).reshape(-1, 2)
    return sparse.csr_array((np.ones(len(at)), (at[:, 0], at[:, 1])), (rows, columns))


def _spread(counts: Floats, known: Ints, named: Ints, rows: int, columns: int) -> Floats:
    scores = np.zeros((rows, columns))
    scores[np.ix_(known, named)] = counts
    return scores


POOL = 12
COARSE = 5
"""Bits kept of a language model's scores: they are float32, and processors differ in the 18th bit."""
COARSE_FLOOR = -6
"""Exponent of the smallest step of these scores; else steps near 0 would be as small as the errors."""
ON_EMPTY = frozenset({"prior", "naive_bayes", "kernel_ridge", "neighbours", "ridge", "state_ridge", "state_neighbours"})


@dataclass(frozen=True, eq=False)
class Pairs:
    """p pairs of a query and a candidate, as indices into both, with their features (p, f)."""

    queries: Ints
    candidates: Ints
    features: npt.NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class RelationTable:
    """The n train rows of a relation: their queries, features and positions in train, and the c + 1 candidates."""

    relation: str
    queries: list[Query]
    texts: Texts
    positions: Ints
    closed: ClosedSet
    labels: Texts
    entities: Ints
    sources: OtherSources

    def pairs(self, links: Links | None, rows: Ints, within: Ints, queries: Sequence[Query], texts: Texts) -> Pairs:
        """Return pairs of each query and the candidates that some signal ranks high.

        rows: rows of the table to learn from. within: train rows of all relations that links may use. A candidate is
        excluded if all its source rows are outside `rows`; else the trees would learn that candidates without any
        signal are right.
        """
        known = np.flatnonzero(self.closed.sources[rows][:, 1:].any(axis=0)) + 1
        frequent = known[np.argsort(-self.closed.hits[np.ix_(rows, known)].sum(axis=0), kind="stable")]
        columns = np.concatenate([[0], frequent])
        hits = self.closed.hits[np.ix_(rows, columns)].astype(np.float64)
        fitted = scores(Fit(self.texts[rows], hits, self.labels[columns[1:]]), texts)
        linked = {}
        if links is not None:
            linked = links.scores(self.relation, within, links.of_queries(queries), self.entities[columns])
        given = self.sources.signals(queries, [self.closed.candidates[column] for column in columns])
        pooled, features = np.zeros((len(queries), len(columns)), dtype=bool), []
        for name, exact in (fitted | linked | given).items():
            signal = (
                steady(exact, COARSE, COARSE_FLOOR) if name in given or name.startswith("state_") else steady(exact)
            )
            seen, top = _views(signal, name in ON_EMPTY or name in given)
            features += seen
            pooled |= top if name in fitted else top & (signal > 0)
        pooled[:, 0] = hits[:, 0].any()
        features += _context(hits)
        features += _lengths(queries) if links is not None else []
        query, column = np.nonzero(pooled)
        cells = [np.broadcast_to(feature, pooled.shape)[query, column] for feature in features]
        return Pairs(query, columns[column], np.stack(cells, axis=1).astype(np.float32))


def _views(signal: Floats, on_empty: bool) -> tuple[list[Floats], npt.NDArray[np.bool_]]:
    """Return a signal's scores (m, c + 1) as several features, and which candidates it ranks among the first POOL."""
    objects = signal.copy()
    objects[:, 0] = -np.inf
    order = np.argsort(-objects, axis=1, kind="stable")
    rank = np.argsort(order, axis=1, kind="stable")
    best = np.take_along_axis(signal, order[:, :1], axis=1)
    share = signal / (np.abs(best) + 1e-6)
    return [signal, rank.astype(np.float64), share, signal[:, :1] if on_empty else best], rank < POOL


def _context(hits: Floats) -> list[Floats]:
    """Return features of the whole relation or of a candidate, each broadcastable to (m, c + 1)."""
    counts = hits[:, 1:].sum(axis=1)
    shares = hits.mean(axis=0)
    relation = [
        counts.mean(),
        counts[counts > 0].mean() if counts.any() else 0.0,
        shares[0],
        shares[1:].max(initial=0.0),
        hits.shape[1],
        hits.shape[0],
    ]
    return [
        *(np.array([[value]]) for value in relation),
        (np.arange(hits.shape[1]) == 0)[None, :].astype(np.float64),
        hits.sum(axis=0)[None, :],
    ]


def _lengths(queries: Sequence[Query]) -> list[Floats]:
    """Return the lengths of subjects' names in characters and in words, (m, 1) each."""
    subjects = [query.subject for query in queries]
    return [
        np.array([[len(subject)] for subject in subjects], dtype=np.float64),
        np.array([[len(subject.split())] for subject in subjects], dtype=np.float64),
    ]
