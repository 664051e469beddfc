"""Tables of all relations with one set of gradient-boosted trees: fitted on train rows, and used to score queries.

Stacking (Wolpert 1992): the trees learn from signals that were computed out of fold. They are fitted by scikit-learn,
stored as plain arrays without pickle, and evaluated with numpy.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace

import numpy as np
import numpy.typing as npt
from scipy import sparse
from sklearn.feature_extraction.text import HashingVectorizer

from lmkbc.edition import Edition
from lmkbc.generate.baselines import ClosedSet, ranked
from lmkbc.generate.embedded.features import Links, OtherSources, Pairs, RelationTable
from lmkbc.generate.embedded.signals import Texts
from lmkbc.progress import Report, silent
from lmkbc.relation import Relation
from lmkbc.select.ranking import Floats, Ints, Mask
from lmkbc.types import CandidateSet, Example, Query

BOOST = "boost (trees)"
"""Name of the step in progress reports."""
ITERATIONS = 120
RATE = 0.06
LEAVES = 12
LEAST_ROWS = 30
L2 = 5.0


@dataclass(frozen=True, eq=False)
class Trees:
    """t trees of up to n nodes, as padded arrays (t, n). A leaf's children are the leaf itself.

    baseline: (1,) log-odds before the first tree; each tree adds to them (Friedman 2001).
    """

    baseline: Floats
    feature: Ints
    threshold: Floats
    left: Ints
    right: Ints
    value: Floats
    depth: Ints

    @classmethod
    def fit(
        cls, features: npt.NDArray[np.float32], right: npt.NDArray[np.bool_], seed: int, report: Report = silent
    ) -> Trees:
        """Learn the probability that each pair is right.

        If all outcomes are equal, the result is their smoothed share.
        """
        from sklearn.ensemble import HistGradientBoostingClassifier

        share = (float(right.sum()) + 0.5) / (len(right) + 1)
        if not 0 < right.sum() < len(right):
            return cls(np.array([np.log(share / (1 - share))]), *_packed([]))
        grown = itertools.count()

        def score(*_: object) -> float:
            """Report progress after each tree. The score rises with each call, so that fitting does not stop early."""
            report(BOOST, done := next(grown), ITERATIONS)
            return float(done)

        report(BOOST, 0, ITERATIONS)
        model = HistGradientBoostingClassifier(
            max_iter=ITERATIONS,
            learning_rate=RATE,
            max_leaf_nodes=LEAVES,
            min_samples_leaf=LEAST_ROWS,
            l2_regularization=L2,
            early_stopping=True,
            scoring=score,
            validation_fraction=None,
            n_iter_no_change=ITERATIONS,
            random_state=seed,
        ).fit(features, right)
        # scikit-learn has no public access to these trees; a test compares the result with predict_proba
        return cls(np.ravel(model._baseline_prediction), *_packed([tree.nodes for (tree,) in model._predictors]))

    def probabilities(self, features: npt.NDArray[np.float32]) -> Floats:
        """Return the probability that each pair is right: features (pairs, f) -> (pairs,), in (0, 1)."""
        rows = np.arange(len(features))
        odds = np.full(len(features), self.baseline[0])
        for tree in range(len(self.feature)):
            node = np.zeros(len(features), dtype=np.int64)
            for _ in range(self.depth[tree]):
                lower = features[rows, self.feature[tree, node]] <= self.threshold[tree, node]
                node = np.where(lower, self.left[tree, node], self.right[tree, node])
            odds += self.value[tree, node]
        return np.asarray(1 / (1 + np.exp(-odds)))

    def arrays(self) -> dict[str, npt.NDArray[np.generic]]:
        """Return the fields by name, for storage."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    @classmethod
    def of(cls, arrays: Mapping[str, npt.NDArray[np.generic]]) -> Trees:
        """Return the trees from their `arrays`."""
        return cls(**{field.name: arrays[field.name] for field in fields(cls)})  # type: ignore[arg-type]


def _packed(trees: list[npt.NDArray[np.void]]) -> tuple[Ints, Floats, Ints, Ints, Floats, Ints]:
    shape = (len(trees), max(map(len, trees), default=1))
    feature = np.zeros(shape, dtype=np.int64)
    threshold, value = np.zeros(shape), np.zeros(shape)
    left = np.tile(np.arange(shape[1]), (shape[0], 1))
    right = left.copy()
    for tree, nodes in enumerate(trees):
        inner = np.flatnonzero(nodes["is_leaf"] == 0)
        feature[tree, inner] = nodes["feature_idx"][inner]
        threshold[tree, inner] = nodes["num_threshold"][inner]
        left[tree, inner], right[tree, inner] = nodes["left"][inner], nodes["right"][inner]
        value[tree, : len(nodes)] = nodes["value"]
    depth = np.array([nodes["depth"].max() for nodes in trees], dtype=np.int64)
    return feature, threshold, left, right, value, depth


Embed = Callable[[Sequence[str]], Floats]
Read = Callable[[Sequence[Query]], Floats]
FOLDS = 5
ROUNDS = 2
RARE = 1e-6
SIGNALS = "signals (folds)"
"""Name of the step in progress reports."""

_WORDS = HashingVectorizer(n_features=1 << 12, alternate_sign=False, norm=None, binary=True)
_GRAMS = HashingVectorizer(analyzer="char_wb", ngram_range=(2, 5), n_features=1 << 18, alternate_sign=False, norm=None)


def folds(train: Sequence[Example], count: int, seed: int) -> Ints:
    """Return the fold of each row, (n,). All rows of a subject are in one fold."""
    subjects = sorted({identity(row.query) for row in train})
    shuffled = np.random.default_rng(seed).permutation(len(subjects)) % count
    fold = dict(zip(subjects, shuffled.tolist(), strict=True))
    return np.array([fold[identity(row.query)] for row in train], dtype=np.int64)


def identity(query: Query) -> str:
    """Return the identity of a query's subject: the QID if there is one, else the name."""
    return query.subject_id or query.subject


class Stack:
    """Signals and links of some train rows; trees turn them into probabilities.

    embed: texts -> (n, d) vectors, d = 0 without an encoder.
    read: queries -> (n, s) states of a language model.
    sources: other generators, asked about train too.
    train_features: whether train's words, names and links are signals.
    """

    def __init__(
        self,
        edition: Edition,
        relations: Mapping[str, Relation],
        train: Sequence[Example],
        embed: Embed,
        read: Read | None = None,
        sources: OtherSources | None = None,
        *,
        train_features: bool = True,
    ) -> None:
        self._train, self._embed, self._read, self._train_features = train, embed, read, train_features
        self._sources = sources or OtherSources({})
        self._links = Links(edition, train) if train_features else None
        self._tables: dict[str, RelationTable] = {}
        for name in edition.relations:
            positions = np.array(
                [index for index, row in enumerate(train) if row.query.relation == name], dtype=np.int64
            )
            if len(positions):
                self._tables[name] = self._table(edition, relations[name], positions)

    def _table(self, edition: Edition, relation: Relation, positions: Ints) -> RelationTable:
        rows = [self._train[index] for index in positions]
        queries = [row.query for row in rows]
        closed = ClosedSet.of(edition, relation, rows)
        entities = self._links.of_candidates(closed.candidates) if self._links else np.zeros(0, dtype=np.int64)
        texts, labels = self._subjects(queries), self._texts(closed.labels)
        return RelationTable(queries[0].relation, queries, texts, positions, closed, labels, entities, self._sources)

    def _texts(self, texts: Sequence[str]) -> Texts:
        nothing = sparse.csr_array((len(texts), 0))
        words, grams = (
            sparse.csr_array(vectorizer.transform(texts)) if self._train_features else nothing
            for vectorizer in (_WORDS, _GRAMS)
        )
        return Texts(words, grams, self._embed(texts), np.zeros((len(texts), 0)))

    def _subjects(self, queries: Sequence[Query]) -> Texts:
        texts = self._texts([query.subject for query in queries])
        return texts if self._read is None else replace(texts, states=self._read(queries))

    def learn(self, seed: int, rounds: int = ROUNDS, report: Report = silent) -> Trees:
        """Fit the trees on the pairs of `rounds` splits into folds."""
        features, right = [], []
        total = rounds * FOLDS
        report(SIGNALS, 0, total)
        for repeat in range(rounds):
            fold = folds(self._train, FOLDS, seed * ROUNDS + repeat)
            for held_out in range(FOLDS):
                for pairs, hits in self._fold_pairs(fold == held_out):
                    features.append(pairs.features)
                    right.append(hits)
                report(SIGNALS, repeat * FOLDS + held_out + 1, total)
        if not features:
            return Trees.fit(np.zeros((0, 0), dtype=np.float32), np.zeros(0, dtype=bool), seed)
        return Trees.fit(np.concatenate(features), np.concatenate(right), seed, report)

    def _fold_pairs(self, held_out: Mask) -> Iterator[tuple[Pairs, Mask]]:
        within = np.flatnonzero(~held_out)
        for table in self._tables.values():
            held = np.flatnonzero(held_out[table.positions])
            rows = np.flatnonzero(~held_out[table.positions])
            if len(held) and len(rows):
                queries = [table.queries[index] for index in held]
                pairs = table.pairs(self._links, rows, within, queries, table.texts[held])
                yield pairs, table.closed.hits[held[pairs.queries], pairs.candidates]

    def candidates(self, trees: Trees, relation: str, queries: Sequence[Query]) -> list[CandidateSet]:
        """Score queries of a relation. If train has no rows of it, there are no candidates."""
        table = self._tables.get(relation)
        if table is None:
            return [CandidateSet(query) for query in queries]
        rows, everything = np.arange(len(table.queries)), np.arange(len(self._train))
        pairs = table.pairs(self._links, rows, everything, queries, self._subjects(queries))
        return list(_sets(table.closed, queries, pairs, trees.probabilities(pairs.features)))


def _sets(closed: ClosedSet, queries: Sequence[Query], pairs: Pairs, probabilities: Floats) -> Iterator[CandidateSet]:
    """Yield candidate sets. If train has no empty answer, "no object" gets the score RARE."""
    scores = np.zeros((len(queries), len(closed.candidates)))
    scores[:, 0] = RARE
    scores[pairs.queries, pairs.candidates] = np.round(probabilities, 6)
    frequent = np.argsort(-closed.hits.sum(axis=0), kind="stable")  # more frequent candidates first on a tie
    candidates = [closed.candidates[column] for column in frequent]
    for query, row in zip(queries, scores, strict=True):
        yield ranked(query, candidates, row[frequent], "embedded")
