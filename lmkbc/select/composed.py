"""Rules around other rules: an abstention threshold, a fallback, and verification scores that count."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Literal, cast

import numpy as np
from msgspec import structs

from lmkbc.errors import InputError
from lmkbc.select.ranking import Floats, Mask, Ranking
from lmkbc.select.rule import CUT, BatchSelector, Range, Rule
from lmkbc.types import Candidate, CandidateSet, Prediction

Evidence = Literal["nothing", "lead", "draws", "existence"]


@dataclass(frozen=True, kw_only=True)
class AbstentionThreshold(BatchSelector, Rule):
    """Answer nothing where the evidence for it is at least `threshold`, else as `inner` does.

    evidence: "nothing" is the score of the proposal to answer nothing, "lead" its share of the sum with the best
    candidate's score, "draws" the share of draws that abstained, "existence" one minus the existence probability.
    source: the only source whose evidence counts; one that says nothing is no evidence (MAVE, LM-KBC 2026, asks a
    source whether there is an object at all). Around `source-filter`, which leaves it out, such a source only denies.
    """

    name: ClassVar[str] = "abstention-threshold"
    search: ClassVar[Mapping[str, Range]] = {"threshold": CUT}
    inner: Rule
    threshold: float
    evidence: Evidence = "nothing"
    source: str = ""

    def __post_init__(self) -> None:
        """Raise InputError if one source is asked for the share of draws, which is of all sources."""
        if self.source and self.evidence == "draws":
            raise InputError(
                "evidence of rule abstention-threshold is 'draws', of all sources: with a source, use 'nothing'"
            )

    def strength(self, ranking: Ranking) -> Floats:
        """Return the evidence for answering nothing, in [0, 1], (n,)."""
        if self.evidence == "draws":
            return ranking.abstained
        if self.evidence == "existence":
            return self._nil(ranking, "nil_probability") if self.source else ranking.nil_probability
        nothing, best = ranking.nothing, ranking.best
        if self.source:
            nothing = self._nil(ranking, "nothing")
            best = ranking.by_model.get(self.source, np.zeros(ranking.scores.shape)).max(axis=1, initial=0.0)
        if self.evidence == "nothing":
            return nothing
        total = nothing + best
        return np.divide(nothing, total, out=np.zeros_like(total), where=total > 0)

    def _nil(self, ranking: Ranking, kind: str) -> Floats:
        """Return the source's own score of a kind, (n,); 0 where it gives none."""
        return cast(Floats, np.maximum(ranking.nil.get(f"{self.source}:{kind}", np.zeros(len(ranking.ranked))), 0.0))

    def open(self, ranking: Ranking) -> Mask:
        """Return which queries get an answer, (n,)."""
        return self.strength(ranking) < self.threshold

    def select_all(self, sets: Sequence[CandidateSet]) -> list[Prediction]:
        """Select nothing, or what the inner rule selects, of each query."""
        opened = self.open(Ranking.of(sets))
        kept = self.inner.select_all(sets)
        return [
            made if made.failed or is_open else Prediction(made.query)
            for made, is_open in zip(kept, opened, strict=True)
        ]


@dataclass(frozen=True, kw_only=True)
class Fallback(Rule):
    """Select as `first` does, and where it keeps nothing, as `then` does.

    With abstention thresholds around `then`, an abstention is reversed if several signals agree that it is one too many
    (CS2, LM-KBC 2026: few draws for nothing, a probable object, and a leading candidate).
    """

    name: ClassVar[str] = "fallback"
    first: Rule
    then: Rule

    def select(self, candidates: CandidateSet) -> Prediction:
        """Return what the first rule selects, else what the second does. An unanswered query stays failed."""
        kept = self.first.select(candidates)
        return kept if kept.failed or kept.objects else self.then.select(candidates)


Combine = Literal["veto", "product", "mean", "replace"]


@dataclass(frozen=True, kw_only=True)
class Verified(Rule):
    """Let verification scores count, then select as `inner` does; without this rule they count nothing.

    combine: a "veto" drops what has a verification score below `min` (fact probing, Alivanistos et al. 2022); else the
    score becomes its "product" or "mean" with it, or is "replace"d by it. A candidate without one stays as it is.
    """

    name: ClassVar[str] = "verified"
    inner: Rule
    combine: Combine = "veto"
    min: float = 0.5

    def select(self, candidates: CandidateSet) -> Prediction:
        """Return what the inner rule selects of the candidates as verification leaves them."""
        return self.inner.select(with_verification(candidates, self.combine, self.min))


def with_verification(candidates: CandidateSet, combine: Combine, bound: float = 0.5) -> CandidateSet:
    """Return the set with each object's score changed by its verification score, best first; bound: of a veto."""
    kept = [
        one
        for one in candidates.candidates
        if combine != "veto" or one.verification is None or one.verification >= bound
    ]
    scored = [
        one if one.verification is None else structs.replace(one, score=_score(one, one.verification, combine))
        for one in kept
    ]
    return replace(candidates, candidates=tuple(sorted(scored, key=lambda candidate: -candidate.score)))


def _score(candidate: Candidate, verification: float, combine: Combine) -> float:
    """Return a candidate's score, combined with its verification score."""
    score = candidate.score
    return {
        "veto": score,
        "product": score * verification,
        "mean": (score + verification) / 2,
        "replace": verification,
    }[combine]
