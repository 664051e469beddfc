"""Ways to weigh pooled models in a calibration, which `pools.py` compares."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, ClassVar
from unittest import mock

import numpy as np
from sklearn.isotonic import IsotonicRegression

from lmkbc.select.calibration import OLDER, of_candidates
from lmkbc.select.expected_f1 import ExpectedF1
from lmkbc.select.ranking import Floats, Mask, Ranking
from lmkbc.select.rule import MaskRule, Rule, kept_of
from lmkbc.tune import families, nested
from lmkbc.tune.nested import shared_family
from lmkbc.tune.outcomes import Outcomes


@dataclass(frozen=True)
class Way:
    """A way to weigh pooled models. columns: evidence of a calibration for several models.

    simplest: whether to share the simplest family within one standard error, as with one model, and not the best. fit:
    replacement of the calibration.
    """

    columns: tuple[str, ...] = ()
    simplest: bool = False
    fit: Callable[..., Rule] = families.fit_expected_f1

    @contextmanager
    def taken(self, name: str) -> Iterator[None]:
        """Let tuning use this way within the block."""

        def informative(columns: Mapping[str, Floats], models: int) -> dict[str, Floats]:
            several = {one: one[one.rfind(":") :] for one in columns if ":" in one} | {one: one for one in OLDER}
            wanted = {*self.columns} if models > 1 else set()
            return {one: own for one, own in columns.items() if own.any() and several.get(one) in {None, *wanted}}

        def evidence(outcomes: Outcomes) -> dict[str, Floats]:
            return informative(of_candidates(outcomes.ranking), len(outcomes.ranking.by_model))

        def family(alike: Sequence[nested.Compared], *, simplest: bool) -> str:
            return shared_family(alike, simplest=simplest or self.simplest)

        evidence.__name__ = name  # the key under which outcomes cache it
        with (
            mock.patch.object(families, "informative", informative),
            mock.patch.object(families, "candidate_evidence", evidence),
            mock.patch.object(families, "fit_expected_f1", self.fit),
            mock.patch.object(nested, "shared_family", family),
        ):
            yield


@dataclass(frozen=True, kw_only=True, eq=False)
class Monotone(MaskRule):
    """Expected F1 under probabilities that rise with the score, in steps."""

    name: ClassVar[str] = "monotone"
    inner: ExpectedF1
    scores: Floats
    p: Floats

    def keep(self, ranking: Ranking) -> Mask:
        """Return the candidates that the inner rule keeps by the probabilities."""
        own = np.where(ranking.scores < 0, -1.0, np.interp(ranking.scores, self.scores, self.p))
        return kept_of(self.inner, replace(ranking, nothing=np.zeros(len(own))), own)


def monotone(outcomes: Outcomes, rows: Mask, _: Any, *, nullable: bool) -> Rule:
    """Fit an isotonic regression on the mean score of some queries."""
    chosen = (outcomes.ranking.scores >= 0) & rows[:, None]
    scores, right = outcomes.ranking.scores[chosen], np.minimum(outcomes.gains[chosen], 1)
    if not scores.size:
        return ExpectedF1(min=0 if nullable else 1)
    steps = IsotonicRegression(y_min=0.0, y_max=1.0).fit(scores, right)
    return Monotone(inner=ExpectedF1(min=0 if nullable else 1), scores=steps.X_thresholds_, p=steps.y_thresholds_)


EACH = (":said", ":score", ":nothing", ":nil_probability")
WAYS: Mapping[str, Way] = {
    "mean": Way(),
    "isotonic": Way(fit=monotone),
    "each model": Way(EACH),
    "and who agrees": Way((*EACH, ":agreed")),
    "before": Way((*EACH, *OLDER)),
    "simplest family": Way((*EACH, ":agreed"), simplest=True),
}
"""Ways by name, the simplest first."""
