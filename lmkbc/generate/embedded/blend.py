"""The model of the stack: the mean log-odds of boosted trees and of logistic regression."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields

import numpy as np
import numpy.typing as npt

from lmkbc.generate.embedded.logistic import Logistic
from lmkbc.generate.embedded.trees import Trees
from lmkbc.progress import Report, silent
from lmkbc.select.ranking import Floats, Mask


@dataclass(frozen=True, eq=False)
class Blend:
    """Both models of the same pairs. Out of fold on train, their mean scores better than either alone."""

    trees: Trees
    logistic: Logistic

    @classmethod
    def fit(
        cls, features: npt.NDArray[np.float32], right: Mask, nothing: Mask, seed: int, report: Report = silent
    ) -> Blend:
        """Learn from p pairs: features (p, f), whether each is right (p,), and whether it has no object (p,)."""
        return cls(Trees.fit(features, right, seed, report), Logistic.fit(features, right, nothing))

    def probabilities(self, features: npt.NDArray[np.float32], nothing: Mask) -> Floats:
        """Return the probability that each pair is right: features (p, f), nothing (p,) -> (p,), in (0, 1)."""
        probabilities: Floats = 1 / (1 + np.exp(-self.log_odds(features, nothing)))
        return probabilities

    def log_odds(self, features: npt.NDArray[np.float32], nothing: Mask) -> Floats:
        """Return the mean log-odds of both models: features (p, f), nothing (p,) -> (p,)."""
        odds: Floats = (self.trees.log_odds(features) + self.logistic.log_odds(features, nothing)) / 2
        return odds

    def arrays(self) -> dict[str, npt.NDArray[np.generic]]:
        """Return the arrays of both models, by part and field, for storage."""
        return {
            f"{part.name}.{field.name}": getattr(getattr(self, part.name), field.name)
            for part in fields(self)
            for field in fields(getattr(self, part.name))
        }

    @classmethod
    def of(cls, arrays: Mapping[str, npt.NDArray[np.generic]]) -> Blend:
        """Return the models from their `arrays`."""
        parts = (
            kind(**{field.name: arrays[f"{name}.{field.name}"] for field in fields(kind)})  # type: ignore[arg-type]
            for name, kind in (("trees", Trees), ("logistic", Logistic))
        )
        return cls(*parts)  # type: ignore[arg-type]
