"""Rules around other rules: an abstention threshold, a fallback, and the use of verification scores."""

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
    """Answer nothing if the evidence for it is at least `threshold`; else select as `inner` does.

    MAVE (LM-KBC 2026) asks one source whether there is any object. If `inner` is a `source-filter` that excludes this
    source, it serves for abstention only.

    evidence: "nothing" is the score of NIL. "lead" is its share of the sum with the best candidate's score. The
    value "draws" is the share of draws that abstained, and "existence" is one minus the existence probability.
    source: the only source whose evidence counts, if given; a source without an answer gives no evidence.
    """

    name: ClassVar[str] = "abstention-threshold"
    search: ClassVar[Mapping[str, Range]] = {"threshold": CUT}
    inner: Rule
    threshold: float
    evidence: Evidence = "nothing"
    source: str = ""

    def __post_init__(self) -> None:
        """Raise InputError for evidence "draws" with a source, since that share is over all sources."""
        if self.source and self.evidence == "draws":
            raise InputError(
                "evidence of rule abstention-threshold is 'draws', of all sources: with a source, use 'nothing'"
            )

    def strength(self, ranking: Ranking) -> Floats:
        """Return the evidence for an empty answer, in [0, 1], (n,)."""
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
        """Return the source's score of a kind, (n,); 0 if it gives none."""
        return cast(Floats, np.maximum(ranking.nil.get(f"{self.source}:{kind}", np.zeros(len(ranking.ranked))), 0.0))

    def open(self, ranking: Ranking) -> Mask:
        """Return which queries get an answer, (n,)."""
        return self.strength(ranking) < self.threshold

    def select_all(self, sets: Sequence[CandidateSet]) -> list[Prediction]:
        """Select nothing, or what the inner rule selects, for each query."""
        opened = self.open(Ranking.of(sets))
        kept = self.inner.select_all(sets)
        return [
            made if made.failed or is_open else Prediction(made.query)
            for made, is_open in zip(kept, opened, strict=True)
        ]


@dataclass(frozen=True, kw_only=True)
class Fallback(Rule):
    """Select as `first` does; if it keeps nothing, select as `then` does.

    With abstention thresholds around `then`, an abstention is reversed if several signals contradict it. In CS2 (LM-KBC
    2026) these are few draws for nothing, a probable object, and a leading candidate.
    """

    name: ClassVar[str] = "fallback"
    first: Rule
    then: Rule

    def select(self, candidates: CandidateSet) -> Prediction:
        """Return the selection of the first rule, else of the second. An unanswered query stays failed."""
        kept = self.first.select(candidates)
        return kept if kept.failed or kept.objects else self.then.select(candidates)


Combine = Literal["veto", "product", "mean", "replace"]


@dataclass(frozen=True, kw_only=True)
class Verified(Rule):
    """Change scores by verification scores, then select as `inner` does. Only this rule uses verification scores.

    combine: "veto" drops candidates with a verification score below `min` (fact probing, Alivanistos et al. 2022).
    "product" and "mean" combine the two scores, and "replace" takes the verification score. Candidates without a
    verification score stay as they are.
    """

    name: ClassVar[str] = "verified"
    inner: Rule
    combine: Combine = "veto"
    min: float = 0.5

    def select(self, candidates: CandidateSet) -> Prediction:
        """Return the selection of the inner rule from the verified candidates."""
        return self.inner.select(with_verification(candidates, self.combine, self.min))


def with_verification(candidates: CandidateSet, combine: Combine, bound: float = 0.5) -> CandidateSet:
    """Return the set with scores changed by verification scores, best first. bound: lowest score that passes a veto."""
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
