"""Rules around other rules: an abstention threshold, a fallback, the use of verification scores, and rules for sources.

A source is a model, or one of its wordings, files or tables.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, combinations
from statistics import fmean
from typing import ClassVar, Literal

import numpy as np
from msgspec import structs

from lmkbc.errors import InputError
from lmkbc.select.ranking import Floats, Mask, Ranking
from lmkbc.select.rule import BatchSelector, MaskRule, Range, Real, Rule, kept_of
from lmkbc.types import Candidate, CandidateSet, Nil, Prediction, Proposal

Evidence = Literal["nothing", "lead", "draws", "existence"]


@dataclass(frozen=True, kw_only=True)
class AbstentionThreshold(BatchSelector, Rule):
    """Answer nothing if the evidence for it is at least `threshold`; else select as `inner` does.

    evidence: "nothing" is the score of NIL. "lead" is its share of the sum with the best candidate's score. The
    value "draws" is the share of draws that abstained, and "existence" is one minus the existence probability.
    """

    name: ClassVar[str] = "abstention-threshold"
    search: ClassVar[Mapping[str, Range]] = {"threshold": Real(1e-6, 2.0, log=True)}  # above 1 every query is answered
    inner: Rule
    threshold: float
    evidence: Evidence = "nothing"

    def strength(self, ranking: Ranking) -> Floats:
        """Return the evidence for an empty answer, in [0, 1], (n,)."""
        if self.evidence == "draws":
            return ranking.abstained
        if self.evidence == "existence":
            return ranking.nil_probability
        if self.evidence == "nothing":
            return ranking.nothing
        total = ranking.nothing + ranking.best
        return np.divide(ranking.nothing, total, out=np.zeros_like(total), where=total > 0)

    def open(self, ranking: Ranking) -> Mask:
        """Return which queries get an answer, (n,)."""
        return self.strength(ranking) < self.threshold

    def keep(self, ranking: Ranking) -> Mask | None:
        """Return what the inner rule keeps of queries that get an answer, (n, m); None if it makes other objects."""
        inner = self.inner.keep(ranking)
        return None if inner is None else inner & self.open(ranking)[:, None]

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


Combine = Literal["veto", "product", "mean"]
LEAST = 0.5
"""Lowest verification score that passes a veto."""


@dataclass(frozen=True, kw_only=True)
class Verified(Rule):
    """Change scores by verification scores, then select as `inner` does. Only this rule uses verification scores.

    combine: "veto" drops candidates with a verification score below `LEAST` (fact probing, Alivanistos et al. 2022).
    "product" multiplies the two scores. "mean" is their mean. Candidates without a verification score stay as they are.
    """

    name: ClassVar[str] = "verified"
    inner: Rule
    combine: Combine = "veto"

    @property
    def reads_verification(self) -> bool:
        """Return True."""
        return True

    def select(self, candidates: CandidateSet) -> Prediction:
        """Return the selection of the inner rule from the verified candidates."""
        return self.inner.select(with_verification(candidates, self.combine))


def with_verification(candidates: CandidateSet, combine: Combine) -> CandidateSet:
    """Return the set with scores changed by verification scores, best first."""
    made: list[Candidate] = []
    for one in candidates.candidates:
        if one.verification is None or (combine == "veto" and one.verification >= LEAST):
            made.append(one)
        elif combine != "veto":
            mean = (one.score + one.verification) / 2
            made.append(structs.replace(one, score=mean if combine == "mean" else one.score * one.verification))
    return replace(candidates, candidates=tuple(sorted(made, key=lambda candidate: -candidate.score)))


def sources(candidates: CandidateSet) -> list[str]:
    """Return the sources that propose objects, NIL, or a NIL probability; in order."""
    given = [candidate.by_model for candidate in candidates.candidates]
    given += [nil.by_model for nil in (*candidates.nothing, *candidates.nil_probabilities)]
    return sorted({source for by_model in given for source, _ in by_model})


def of_source(candidates: CandidateSet, source: str) -> CandidateSet:
    """Return the proposals of one source, with its own scores, best first."""
    objects = sorted(_scored_by(candidates.candidates, source), key=lambda candidate: -candidate.score)
    return replace(
        candidates,
        candidates=tuple(objects),
        nothing=tuple(_scored_by(candidates.nothing, source)),
        nil_probabilities=tuple(_scored_by(candidates.nil_probabilities, source)),
    )


def _scored_by(proposals: Sequence[Proposal], source: str) -> Iterator[Proposal]:
    """Yield the proposals of a source, with its own scores."""
    for proposal in proposals:
        if (share := dict(proposal.by_model).get(source)) is not None:
            yield structs.replace(proposal, score=share, by_model=((source, share),))


@dataclass(frozen=True, kw_only=True)
class SourceFilter(MaskRule):
    """Select as `inner` does from the proposals of each `source`, weighed alike (Biester et al. 2023: which wordings).

    The score of a candidate is the mean over those of these sources that propose objects or NIL for the query.
    Candidates that only other sources propose are left out, and so are the other sources' scores of NIL.
    """

    name: ClassVar[str] = "source-filter"
    inner: MaskRule
    source: tuple[str, ...]

    REMOVED: ClassVar[Mapping[str, str]] = {"sources": "write it as source"}

    def __post_init__(self) -> None:
        """Raise InputError if there is no source."""
        if not self.source:
            raise InputError("source of rule source-filter is empty: name at least one source")

    def shares(self, ranking: Ranking) -> tuple[Floats, Floats]:
        """Return the scores of candidates, (n, m), -1 for those left out, and of NIL, (n,)."""
        nowhere, absent = np.full(ranking.scores.shape, -1.0), np.full(len(ranking.ranked), -1.0)
        given = np.array([ranking.by_model.get(source, nowhere) for source in self.source])
        nil = np.array([ranking.nil.get(f"{source}:nothing", absent) for source in self.source])
        present = np.maximum((nil >= 0).sum(axis=0), 1)
        scores = np.maximum(given, 0.0).sum(axis=0) / present[:, None]
        return np.where((given >= 0).any(axis=0), scores, -1.0), np.maximum(nil, 0.0).sum(axis=0) / present

    def keep(self, ranking: Ranking) -> Mask:
        """Return which candidates the inner rule keeps when they are ordered by the sources' scores, (n, m)."""
        scores, nothing = self.shares(ranking)
        return kept_of(self.inner, replace(ranking, nothing=nothing), scores)


@dataclass(frozen=True, kw_only=True)
class Agreement(BatchSelector, Rule):
    """Select as `inner` does from several sources, weighed by their agreement; from one, as `then` does.

    No label is read. The weight of a source is the square of its mean agreement with each other one (see `agreement`),
    so what others seldom confirm counts little. Of two sources there is no telling which is better: they weigh alike.
    Selections depend on all queries of the run.
    """

    name: ClassVar[str] = "agreement"
    reads_others: ClassVar[bool] = True
    inner: Rule
    then: Rule

    REMOVED: ClassVar[Mapping[str, str]] = {"alone": "write it as then"}

    def read(self, sets: Sequence[CandidateSet], every: Sequence[CandidateSet]) -> Sequence[CandidateSet]:
        """Return the sets with the weighted mean of the scores that each query's sources give."""
        weights = {source: mean**2 for source, mean in agreement(every).items()}
        return [_weighed(found, weights) for found in sets]

    def select_all(self, sets: Sequence[CandidateSet]) -> list[Prediction]:
        """Return the selection of one of the two rules for each query."""
        several = len({source for found in sets for source in sources(found)}) > 1
        return (self.inner if several else self.then).select_all(sets)


def agreement(sets: Iterable[CandidateSet]) -> dict[str, float]:
    """Return the mean agreement of each source with each other one, over the queries that both answer.

    Two answers agree by the F1 of their scores: twice the sum of the lower scores, over the sum of both. NIL counts
    like an object.
    """
    pairs: dict[str, dict[str, list[float]]] = {}
    for found in sets:
        given: dict[str, dict[int, float]] = {}
        for place, proposal in enumerate(chain[Candidate | Nil](found.candidates, found.nothing)):
            for source, score in proposal.by_model:
                given.setdefault(source, {})[place] = score
        for one, other in combinations(given, 2):
            mine, theirs = given[one], given[other]
            if both := math.fsum((*mine.values(), *theirs.values())):
                same = 2 * math.fsum(min(score, theirs.get(place, 0.0)) for place, score in mine.items())
                pairs.setdefault(one, {}).setdefault(other, []).append(same / both)
                pairs.setdefault(other, {}).setdefault(one, []).append(same / both)
    return {one: fmean(map(fmean, others.values())) for one, others in sorted(pairs.items())}


def _weighed(found: CandidateSet, weights: Mapping[str, float]) -> CandidateSet:
    """Return a set with the weighted mean score of each proposal, best first."""
    total = math.fsum(weights.get(source, 0.0) for source in sources(found))
    if not total:
        return found
    candidates = sorted((_rescored(one, weights, total) for one in found.candidates), key=lambda one: -one.score)
    nothing = tuple(_rescored(nil, weights, total) for nil in found.nothing)
    return replace(found, candidates=tuple(candidates), nothing=nothing)


def _rescored(proposal: Proposal, weights: Mapping[str, float], total: float) -> Proposal:
    score = math.fsum(weights.get(source, 0.0) * score for source, score in proposal.by_model) / total
    return structs.replace(proposal, score=min(score, 1.0))
