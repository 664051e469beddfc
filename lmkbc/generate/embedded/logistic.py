"""Logistic regression on the features of pairs: a second opinion beside the trees, which errs on other pairs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from lmkbc.select.ranking import Floats, Mask

INVERSE_PENALTY = 0.01
"""C of scikit-learn's regression."""
CLIP = 5.0
"""Standard deviations from the mean beyond which a feature says no more."""


@dataclass(frozen=True, eq=False)
class Logistic:
    """Two regressions: row 0 of each array is for pairs with an object, row 1 for pairs with "no object".

    centre, scale: (2, f) mean and standard deviation of each feature in train.
    weights: (2, f). bias: (2,), log-odds of a pair with average features.
    """

    centre: Floats
    scale: Floats
    weights: Floats
    bias: Floats

    @classmethod
    def fit(cls, features: npt.NDArray[np.float32], right: Mask, nothing: Mask) -> Logistic:
        """Learn from p pairs: features (p, f), whether each is right (p,), and whether it has no object (p,).

        If all outcomes of a row are equal, its weights are 0 and its bias is the log-odds of their smoothed share.
        """
        rows = [_regression(features[part].astype(np.float64), right[part]) for part in (~nothing, nothing)]
        return cls(*(np.stack(values) for values in zip(*rows, strict=True)))

    def log_odds(self, features: npt.NDArray[np.float32], nothing: Mask) -> Floats:
        """Return the log-odds that each pair is right: features (p, f), nothing (p,) -> (p,)."""
        row = nothing.astype(np.int64)
        standard = np.clip((features - self.centre[row]) / self.scale[row], -CLIP, CLIP)
        odds: Floats = (standard * self.weights[row]).sum(axis=1) + self.bias[row]
        return odds


def smoothed_log_odds(right: Mask) -> float:
    """Return the log-odds of the share of right pairs, with half a right and half a wrong pair added."""
    return float(np.log((right.sum() + 0.5) / (len(right) - right.sum() + 0.5)))


def _regression(features: Floats, right: Mask) -> tuple[Floats, Floats, Floats, Floats]:
    """Return centre, scale and weights, (f,) each, and the bias, ()."""
    from sklearn.linear_model import LogisticRegression

    width = features.shape[1] or 1  # without any pair, one weight of 0 serves for features of any width
    if not 0 < right.sum() < len(right):
        return np.zeros(width), np.ones(width), np.zeros(width), np.array(smoothed_log_odds(right))
    centre, scale = features.mean(axis=0), features.std(axis=0)
    scale = np.where(scale > 0, scale, 1.0)
    standard = np.clip((features - centre) / scale, -CLIP, CLIP)
    # this solver's steps end at the same weights on every processor, up to rounding
    model = LogisticRegression(C=INVERSE_PENALTY, solver="newton-cholesky", tol=1e-8, max_iter=100)
    model.fit(standard, right)
    return centre, scale, model.coef_[0], model.intercept_[0]
