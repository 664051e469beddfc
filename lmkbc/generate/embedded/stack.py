"""The stack: signals of a relation's candidates to one calibrated probability each, by gradient-boosted trees."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from lmkbc.generate.embedded.links import Links
from lmkbc.generate.embedded.signals import STRINGS, VECTORS, Fit, Floats, Texts
from lmkbc.generate.prior import ClosedSet
from lmkbc.types import Edition, Example, Query, Relation

Ints = npt.NDArray[np.int64]
POOL = 12
FOLDS = 5
ROUNDS = 2


@dataclass(frozen=True, eq=False)
class Pairs:
    queries: Ints
    candidates: Ints
    features: npt.NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class Table:
    name: str
    closed: ClosedSet
    rows: Ints
    train: Texts
    candidates: Texts
    entities: Ints
    queries: list[Query]


def pairs(table: Table, links: Links, local: Ints, rows: Ints, queries: Sequence[Query], asked: Texts) -> Pairs:
    hits = table.closed.hits[local].astype(float)
    known = table.closed.sources[local].any(axis=0)
    columns = np.flatnonzero(known | (np.arange(len(known)) == 0))
    hits = hits[:, columns]
    fit = Fit(table.train[local], hits, table.candidates[columns[1:] - 1])
    signals = STRINGS if asked.vectors is None else {**STRINGS, **VECTORS}
    scores = {name: signal(fit, asked) for name, signal in signals.items()}
    m, c = len(queries), len(columns)
    linked = links.signals(table.name, rows, links.of_queries(queries), table.entities[columns])
    pooled = np.zeros((m, c), dtype=bool)
    features = []
    for name, s in {**scores, **linked}.items():
        s = s.copy()
        empty = s[:, 0].copy()
        s[:, 0] = -np.inf
        order = np.argsort(-s, axis=1, kind="stable")
        rank = np.empty_like(order)
        np.put_along_axis(rank, order, np.arange(c)[None, :].repeat(m, 0), axis=1)
        top = np.take_along_axis(s, order[:, :1], axis=1)
        pooled |= (rank < POOL) & ((s > 0) | (name in scores))
        s[:, 0] = empty
        rank[:, 0] = 0
        features += [s, rank.astype(float), s / (np.abs(top) + 1e-6)]
        if name in ("naive_bayes", "kernel_ridge", "neighbours", "ridge", "prior"):
            features.append(np.repeat(empty[:, None], c, 1))
        if name in linked:
            features.append(np.repeat(top, c, 1))
    pooled[:, 0] = hits[:, 0].any()
    n = hits[:, 1:].sum(1)
    lengths = np.array([len(q.subject) for q in queries], dtype=float)
    tokens = np.array([len(q.subject.split()) for q in queries], dtype=float)
    z = np.zeros((m, c))
    features += [
        z + (np.arange(c) == 0),
        z + n.mean(),
        z + hits[:, 0].mean(),
        z + c,
        z + len(local),
        z + (n[n > 0].mean() if (n > 0).any() else 0),
        z + (hits.sum(0) == 0).mean(),
        z + lengths[:, None],
        z + tokens[:, None],
        z + hits.sum(0),
        z + np.sort(hits[:, 1:].mean(0))[::-1][:1].sum(),
    ]
    q, k = np.nonzero(pooled)
    return Pairs(q, columns[k], np.stack([f[q, k] for f in features], axis=1).astype(np.float32))
