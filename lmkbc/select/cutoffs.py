"""Cut-offs on the score: absolute, relative to the best, sticky, by number of models; and the best k."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal, cast

import numpy as np

from lmkbc.select.ranking import Floats, Ints, Mask, Ranking
from lmkbc.select.rule import Choice, PrefixRule, Range, Real, SweptRule, Whole


@dataclass(frozen=True, kw_only=True)
class _SweptPrefix(PrefixRule, SweptRule):
    """Rule that keeps the best candidates, as many as pass its swept parameter."""

    def wanted(self, ranking: Ranking) -> Ints:
        """Return how many candidates of each query pass, (n,)."""
        return cast(Ints, self.passing(ranking).sum(axis=1))


@dataclass(frozen=True, kw_only=True)
class Cutoff(_SweptPrefix):
    """Keep every candidate that scores at least `threshold`."""

    name: ClassVar[str] = "cutoff"
    swept: ClassVar[str] = "threshold"
    threshold: float

    def levels(self, ranking: Ranking) -> Floats:
        """Return the scores."""
        return ranking.scores


@dataclass(frozen=True, kw_only=True)
class Relative(_SweptPrefix):
    """Keep every candidate that scores at least `ratio` of the query's best, which has to score at least `threshold`.

    If the best score is 0 or below `threshold`, no candidate passes. Thus `threshold` decides whether to answer, and
    `ratio` how many objects to keep (thylinao1, LM-KBC 2026).
    """

    name: ClassVar[str] = "relative"
    search: ClassVar[Mapping[str, Range]] = {"ratio": Real(1e-3, 1.0, log=True)}
    swept: ClassVar[str] = "threshold"
    ratio: float
    threshold: float = 0.0

    REMOVED: ClassVar[Mapping[str, str]] = {
        "best": "write it as threshold",
        "min_score": "threshold says what the best candidate has to score, and ratio how near to it the others come",
    }

    def levels(self, ranking: Ranking) -> Floats:
        """Return the best score for candidates at or above the ratio, (n, m); -1 for the others, which none keeps."""
        near = ranking.scores >= (self.ratio * ranking.reference)[:, None]
        return np.where(near, ranking.best[:, None], -1.0)


@dataclass(frozen=True, kw_only=True)
class TopK(PrefixRule):
    """Keep the best `k` candidates, whatever their scores."""

    name: ClassVar[str] = "top-k"
    k: int

    def wanted(self, ranking: Ranking) -> Ints:
        """Return `k` for every query, (n,)."""
        return np.full(len(ranking.ranked), self.k, dtype=np.int64)


@dataclass(frozen=True, kw_only=True)
class Sticky(_SweptPrefix):
    """Keep candidates from the best on while they pass `threshold` or score close to it (Li T. et al. 2022).

    reference: "previous" compares a candidate with the kept one before it (their paper). "threshold" compares it with a
    relaxed threshold, ratio * threshold (their code).
    """

    name: ClassVar[str] = "sticky"
    search: ClassVar[Mapping[str, Range]] = {
        "ratio": Real(0.05, 1.0),
        "reference": Choice(("previous", "threshold")),
    }
    swept: ClassVar[str] = "threshold"
    threshold: float
    ratio: float
    reference: Literal["previous", "threshold"] = "previous"

    def levels(self, ranking: Ranking) -> Floats:
        """Return the highest threshold that keeps each candidate, at most the best score, (n, m)."""
        scores = ranking.scores
        if self.reference == "threshold":
            return np.where(scores < 0, -1.0, np.minimum(scores[:, :1], scores / max(self.ratio, 1e-12)))
        stuck = np.zeros(scores.shape, dtype=np.bool_)
        stuck[:, 1:] = (scores[:, 1:] >= self.ratio * scores[:, :-1]) & (scores[:, 1:] >= 0)
        return cast(Floats, np.minimum.accumulate(np.where(stuck, np.inf, scores), axis=1))


@dataclass(frozen=True, kw_only=True)
class Quorum(SweptRule):
    """Keep candidates that at least `models` distinct models propose and that score at least `threshold`.

    All draws of one model count as one model: they do not corroborate each other. Candidates with a verification score
    of at least `min_verification` need no corroboration. If `min_verification` is above 1, every candidate needs it.
    """

    name: ClassVar[str] = "quorum"
    search: ClassVar[Mapping[str, Range]] = {"models": Whole(1, 5)}
    swept: ClassVar[str] = "threshold"
    models: int
    threshold: float = 0.0
    min_verification: float = 2.0

    REMOVED: ClassVar[Mapping[str, str]] = {"min_score": "write it as threshold"}

    @property
    def reads_verification(self) -> bool:
        """Return whether a verification score can replace corroboration."""
        return self.min_verification <= 1

    @property
    def models_needed(self) -> int:
        """Return the number of models that must agree; 1 if a verification score can replace them."""
        return 1 if self.reads_verification else self.models

    def levels(self, ranking: Ranking) -> Floats:
        """Return the scores of corroborated or verified candidates, (n, m); -1 for the others."""
        agreed = ranking.models >= self.models
        if self.min_verification <= 1:
            agreed |= ranking.verifications >= self.min_verification
        return np.where(agreed, ranking.scores, -1.0)

    def keep(self, ranking: Ranking) -> Mask:
        """Return which candidates are corroborated or verified, and score enough, (n, m)."""
        return self.passing(ranking)
