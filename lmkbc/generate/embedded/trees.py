"""Gradient-boosted trees as plain arrays: fitted by scikit-learn, stored without pickle, evaluated with numpy."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass, fields

import numpy as np
import numpy.typing as npt

from lmkbc.progress import Report, silent
from lmkbc.select.ranking import Floats, Ints

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
        probabilities: Floats = 1 / (1 + np.exp(-odds))
        return probabilities

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
