"""Train rows of a relation, and the trees' features of a query and a candidate."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from lmkbc.generate.embedded.links import Links
from lmkbc.generate.embedded.other_sources import OtherSources
from lmkbc.generate.embedded.signals import Fit, Texts, scores, steady
from lmkbc.generate.prior import ClosedSet
from lmkbc.select.ranking import Floats, Ints
from lmkbc.types import Query

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
