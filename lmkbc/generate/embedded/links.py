"""Evidence from train's facts about a subject and a candidate: the entities that share a row with them.

Every train row links its subject and its objects. Rows of all relations count: a river's countries tend to be
neighbours, and a spouse plays in the same band.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy import sparse

from lmkbc.edition import Edition
from lmkbc.select.ranking import Floats, Ints
from lmkbc.types import Candidate, Example, Query


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
            key = self._key(row.query)
            subjects.append((index, self._entities.setdefault(key, len(self._entities))))
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
