"""Pooling: many voices' candidates of one query, merged into one scored list, best first.

A voice is one draw of one generator. Only draws that answered or abstained are counted; a failed one is no voice at
all, and never a voice for nothing, and one whose objects were all dropped is a voice that names none. On sampled
answers, whose scores are all 1, "mean" is the share of votes.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any, Generic, Literal, NamedTuple

from lmkbc.edition import Edition
from lmkbc.errors import InputError, did_you_mean
from lmkbc.names import folded_key
from lmkbc.scoring.matchers import number
from lmkbc.types import Absence, Candidate, CandidateSet, Proposal, State, Voice

Method = Literal["mean", "vote", "union", "max", "count-max", "background"]
Per = Literal["draw", "model"]
Of = Literal["answers", "replies"]
ByModel = tuple[tuple[str, float], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Pooling:
    """How voices are merged, as a recipe's plain data. Scores are in [0, 1].

    method: "mean" score over voices, silence counting 0; "vote", the share of voices that name an object, whatever
    their score; "max" over voices; "union", the max over models of their mean; "count-max", the number of voices and
    then the best score (Ning & Celebi 2022); "background", the mean divided by the candidate's mean over all queries
    of the relation, so that what a model always says sinks, and rescaled so that the best keeps its score.
    per: whether every draw counts alike or every model does, whatever its number of draws.
    of: what shares are of: the draws that came to an answer, or all that the model replied to, whatever came of them.
    weights: model -> weight, 1 where not given. "union", "max" and "count-max" weigh nothing.
    """

    method: Method = "mean"
    per: Per = "model"
    of: Of = "answers"
    weights: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """ValueError for a weight that makes no sense."""
        for model, weight in self.weights.items():
            if not 0 <= weight < math.inf:
                raise ValueError(f"weight of {model!r} is {weight}: give a number of at least 0")


@dataclass(frozen=True, slots=True)
class Pool:
    """Merges the voices of an edition's queries.

    Objects merge by QID once linked, numbers by value, else by the edition's normalisation; the commonest spelling
    stays. A proposal to answer nothing is scored like an object. What voices say of whether there is an object at all
    stays apart: the mean of the voices' doubts.
    """

    edition: Edition
    how: Pooling = field(default_factory=Pooling)

    def merge(self, groups: Sequence[Sequence[CandidateSet]]) -> list[CandidateSet]:
        """One set per query. Each group is one generator's sets, all groups in the same order of queries."""
        models = _distinct([_model(group) for group in groups])
        for name in self.how.weights:
            if name not in models:
                raise InputError(f"pool weighs {name!r}, which no generator is called: {did_you_mean(name, models)}")
        weights = [self.how.weights.get(model, 1.0) for model in models]
        merged = [self._pooled(sets, weights, models) for sets in zip(*groups, strict=True)]
        return list(_against_background(merged, self._key)) if self.how.method == "background" else merged

    def _pooled(self, sets: Sequence[CandidateSet], weights: Sequence[float], models: Sequence[str]) -> CandidateSet:
        ballots: defaultdict[Hashable, list[_Ballot[Candidate]]] = defaultdict(list)
        for group, item in enumerate(sets):
            for candidate in item.candidates:
                ballots[self._key(candidate)].append(_Ballot(group, candidate))
        silent = [_Ballot(group, absence) for group, item in enumerate(sets) for absence in item.nothing]
        voices = [sum(map(self._counts, item.draws)) for item in sets]
        most = max([sum(voices), _count(silent), *map(_count, ballots.values())])
        shares = self._shares(voices, weights)
        pooled = [
            _merged(cast, self._score(cast, voices, shares, most), _by_model(cast, voices, models))
            for cast in ballots.values()
        ]
        pooled.sort(
            key=lambda candidate: (-candidate.score, -len(candidate.sources), candidate.text, candidate.id or "")
        )
        nothing: tuple[Absence, ...] = ()
        if silent:
            score = self._score(silent, voices, shares, most)
            nothing = (Absence(score, _voices_of(silent), _by_model(silent, voices, models)),)
        doubts = [_Ballot(group, doubt) for group, item in enumerate(sets) for doubt in item.doubts]
        draws = tuple(state for item in sets for state in item.draws)
        dropped = tuple(dict.fromkeys(loss for item in sets for loss in item.dropped))
        return CandidateSet(
            sets[0].query, tuple(pooled), draws, dropped, nothing, tuple(_mean_doubt(doubts, weights, models))
        )

    def _counts(self, state: State) -> bool:
        """Whether a draw is one that shares are of."""
        return state is not State.MISSING if self.how.of == "replies" else state.is_answer

    def _key(self, candidate: Candidate) -> Hashable:
        """Under what a candidate is the same as another."""
        if (value := number(candidate.id or candidate.text)) is not None:
            return "number", value
        if self.edition.target == "id":
            return ("id", candidate.id) if candidate.id else ("name", folded_key(candidate.text))
        return "name", self.edition.metric.scorer.key(candidate.text) or candidate.text

    def _shares(self, voices: Sequence[int], weights: Sequence[float]) -> list[float]:
        """What one voice of each group counts; those of all groups that spoke sum to 1."""
        each = [
            0.0 if not count else weight / count if self.how.per == "model" else weight
            for count, weight in zip(voices, weights, strict=True)
        ]
        total = math.fsum(share * count for share, count in zip(each, voices, strict=True))
        return [share / total if total else 0.0 for share in each]

    def _score(
        self, ballots: Sequence[_Ballot[Any]], voices: Sequence[int], shares: Sequence[float], most: int
    ) -> float:
        best = _best(ballots)
        if self.how.method == "max":
            score = max(best.values())
        elif self.how.method == "count-max":
            score = (_count(ballots) - 1 + min(max(best.values()), 1.0)) / most
        elif self.how.method == "union":
            score = max(mean for _, mean in _means(ballots, voices))
        else:
            score = math.fsum(
                shares[group] * (1.0 if self.how.method == "vote" else best[group, v]) for group, v in best
            )
        return min(max(score, 0.0), 1.0)


class _Ballot(NamedTuple, Generic[Proposal]):
    """What is proposed, and the group that proposes it."""

    group: int
    proposal: Proposal


def _model(group: Sequence[CandidateSet]) -> str:
    """The model behind a generator's sets, the first that is heard."""
    voices = (
        voice
        for item in group
        for proposal in chain[Candidate | Absence](item.candidates, item.nothing, item.doubts)
        for voice in proposal.sources
    )
    return next(voices, Voice("")).model


def _distinct(models: Sequence[str]) -> list[str]:
    """Names that tell groups apart: the second group of a model is "model+2"."""
    seen: Counter[str] = Counter()
    names = []
    for model in models:
        seen[model] += 1
        names.append(model if seen[model] == 1 else f"{model}+{seen[model]}")
    return names


def _count(ballots: Sequence[_Ballot[Any]]) -> int:
    return len({(group, voice) for group, proposal in ballots for voice in proposal.sources or ("",)})


def _best(ballots: Sequence[_Ballot[Any]]) -> dict[tuple[int, tuple[Voice, ...]], float]:
    """What each voice makes of a candidate, which it may propose under several spellings: its highest score."""
    best: dict[tuple[int, tuple[Voice, ...]], float] = {}
    for group, proposal in ballots:
        voice = group, proposal.sources
        best[voice] = max(proposal.score, best.get(voice, 0.0))
    return best


def _means(ballots: Sequence[_Ballot[Any]], voices: Sequence[int]) -> list[tuple[int, float]]:
    """The mean score over a group's voices, silence counting 0, of each group that proposes a candidate."""
    totals: dict[int, float] = {}
    for (group, _), score in _best(ballots).items():
        totals[group] = totals.get(group, 0.0) + score
    return [(group, total / max(voices[group], 1)) for group, total in sorted(totals.items())]


def _by_model(ballots: Sequence[_Ballot[Any]], voices: Sequence[int], models: Sequence[str]) -> ByModel:
    return tuple(sorted((models[group], min(max(mean, 0.0), 1.0)) for group, mean in _means(ballots, voices)))


def _voices_of(ballots: Sequence[_Ballot[Any]]) -> tuple[Voice, ...]:
    return tuple(sorted({voice for _, proposal in ballots for voice in proposal.sources}))


def _mean_doubt(
    doubts: Sequence[_Ballot[Absence]], weights: Sequence[float], models: Sequence[str]
) -> Iterator[Absence]:
    """The mean of all doubts, if there are any, each model's counting its weight."""
    if doubts:
        total = math.fsum(weights[group] for group, _ in doubts)
        given = math.fsum(weights[group] * doubt.score for group, doubt in doubts)
        by_model = _by_model(doubts, [1] * len(models), models)
        yield Absence(min(max(given / total, 0.0), 1.0) if total else 0.0, _voices_of(doubts), by_model)


def _merged(ballots: Sequence[_Ballot[Candidate]], score: float, by_model: ByModel) -> Candidate:
    """One candidate for many: all voices, the commonest spelling (ties: the first in the alphabet), the id.

    Its truth is the mean over the spellings and generators that were verified.
    """
    spellings = Counter(candidate.text for _, candidate in ballots)
    text = min(spellings, key=lambda spelling: (-spellings[spelling], spelling))
    ids = sorted({candidate.id for _, candidate in ballots if candidate.id})
    truths = {(group, c.text): c.truth for group, c in ballots if c.truth is not None}
    truth = math.fsum(truths.values()) / len(truths) if truths else None
    return Candidate(text, score, _voices_of(ballots), ids[0] if ids else None, by_model, truth)


def _against_background(sets: Sequence[CandidateSet], key: Callable[[Candidate], Hashable]) -> Iterator[CandidateSet]:
    """Scores divided by the candidate's mean score over all queries of the relation, the best score kept."""
    queries = Counter(item.query.relation for item in sets)
    total: defaultdict[Hashable, float] = defaultdict(float)
    for item in sets:
        for candidate in item.candidates:
            total[item.query.relation, key(candidate)] += candidate.score / queries[item.query.relation]
    for item in sets:
        objects = [candidate for candidate in item.candidates if candidate.score > 0]
        lifted = [candidate.score / total[item.query.relation, key(candidate)] for candidate in objects]
        scale = max((candidate.score for candidate in objects), default=0.0) / max(lifted, default=1.0)
        scores = {id(candidate): min(lift * scale, 1.0) for candidate, lift in zip(objects, lifted, strict=True)}
        rescored = [replace(c, score=scores.get(id(c), c.score)) for c in item.candidates]
        rescored.sort(key=lambda candidate: -candidate.score)
        yield replace(item, candidates=tuple(rescored))
