"""Pooling: many sources' candidates of one query, merged into one scored list, best first.

A source is one draw of one generator. Only draws that answered or abstained are counted; a failed one is no source at
all, and never a source for nothing, and one whose objects were all dropped is a source that names none. The score is
the mean over the sources, 0 for those that do not name the object: of sampled answers, whose scores are all 1, it is
the share of votes.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import chain
from typing import Any, Literal, NamedTuple

from lmkbc.edition import Edition
from lmkbc.errors import check_known
from lmkbc.names import folded_key
from lmkbc.scoring.matchers import number
from lmkbc.types import Candidate, CandidateSet, Nil, Proposal, Source, State

ByModel = tuple[tuple[str, float], ...]
_Ballot = tuple[int, Proposal]
"""The group that proposes something, and what that is."""
REMEMBERED = 1 << 16
"""Names whose key is remembered: closed lists have the same ones for query after query."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pooling:
    """Settings for merging sources, as a recipe's plain data.

    per: whether every draw counts alike or every model does, whatever its number of draws.
    of: what shares are of: the draws that came to an answer, or all that the model replied to, whatever came of them; a
    model none of whose replies is an answer then is a source of its own, which names nothing.
    ties: of candidates with equal scores and as many sources, which comes first: by "name", or the one that was named
    "first". weights: model -> weight, 1 where not given. train_sides: whether train's rows of the other side count, in
    relations that are symmetric or have an inverse (see `lmkbc.select.mutual.TrainSides`).
    """

    per: Literal["draw", "model"] = "model"
    of: Literal["answers", "replies"] = "answers"
    ties: Literal["name", "first"] = "name"
    weights: Mapping[str, float] = field(default_factory=dict)
    train_sides: bool = False

    def __post_init__(self) -> None:
        """Raise ValueError for a weight that makes no sense."""
        for model, weight in self.weights.items():
            if not 0 <= weight < math.inf:
                raise ValueError(f"weight of {model!r} is {weight}: give a number of at least 0")


class Pool:
    """Merges the sources of an edition's queries.

    Objects merge by QID once linked, numbers by value, else by the edition's normalisation; the commonest spelling
    stays. A proposal to answer nothing is scored like an object. What sources say of whether there is an object at all
    stays apart: the mean of the sources' nil_probabilities.
    """

    def __init__(self, edition: Edition, how: Pooling | None = None) -> None:
        self.how = how or Pooling()
        self._ids = edition.target == "id"
        self._normal = edition.metric.scorer.key
        self._key = lru_cache(REMEMBERED)(self._key_of)

    def merge(self, groups: Sequence[Sequence[CandidateSet]]) -> list[CandidateSet]:
        """Return one set per query. Each group is one generator's sets, all groups in the same order of queries."""
        return list(self.merged(groups, distinct([model_of(group) for group in groups])))

    def merged(self, groups: Sequence[Sequence[CandidateSet]], models: Sequence[str]) -> Iterator[CandidateSet]:
        """Return one set per query of some groups whose models are known. InputError for a weight of none of them."""
        for name in self.how.weights:
            check_known(name, models, f"pool weighs {name!r}, which no generator is called")
        weights = [self.how.weights.get(model, 1.0) for model in models]
        return (self._pooled(sets, weights, models) for sets in zip(*groups, strict=True))

    def _pooled(self, sets: Sequence[CandidateSet], weights: Sequence[float], models: Sequence[str]) -> CandidateSet:
        ballots: dict[Hashable, list[_Ballot[Candidate]]] = {}
        key = self._key
        for group, item in enumerate(sets):
            for candidate in item.candidates:
                ballots.setdefault(key(candidate.id, candidate.text), []).append((group, candidate))
        silent = [(group, nil) for group, item in enumerate(sets) for nil in item.nothing]
        sources = [sum(map(self._counts, item.draws)) for item in sets]
        if self.how.of == "replies" and not all(item.failed for item in sets):
            mute = (group for group, item in enumerate(sets) if sources[group] and item.failed)
            silent += [(group, Nil(0.0, (Source(models[group]),))) for group in mute]
        cast = _Cast(sources, self._shares(sources, weights), models)
        alone = _alone(cast)
        pooled = [alone(*its[0]) if len(its) == 1 else _merged(its, cast) for its in ballots.values()]
        pooled.sort(key=_best_first if self.how.ties == "name" else _by_score)
        nothing: tuple[Nil, ...] = ()
        if silent:
            score, by_model = _scored(silent, cast)
            nothing = (Nil(score, _sources_of(silent), by_model),)
        nil_probabilities = [(group, nil) for group, item in enumerate(sets) for nil in item.nil_probabilities]
        draws = tuple(state for item in sets for state in item.draws)
        dropped = tuple(dict.fromkeys(loss for item in sets for loss in item.dropped))
        return CandidateSet(
            sets[0].query,
            tuple(pooled),
            draws,
            dropped,
            nothing,
            _mean_nil_probability(nil_probabilities, weights, models),
            sum(item.tokens for item in sets),
        )

    def _counts(self, state: State) -> bool:
        """Return whether a draw is one that shares are of."""
        return state is not State.MISSING if self.how.of == "replies" else state.is_answer

    def _key_of(self, id_: str | None, text: str) -> Hashable:
        """Return the key under which a candidate is the same as another."""
        if (value := number(id_ or text)) is not None:
            return "number", value
        if self._ids:
            return ("id", id_) if id_ else ("name", folded_key(text))
        return "name", self._normal(text) or text

    def _shares(self, sources: Sequence[int], weights: Sequence[float]) -> list[float]:
        """Return what one source of each group counts; those of all groups that spoke sum to 1."""
        each = [
            0.0 if not count else weight / count if self.how.per == "model" else weight
            for count, weight in zip(sources, weights, strict=True)
        ]
        total = math.fsum(share * count for share, count in zip(each, sources, strict=True))
        return [share / total if total else 0.0 for share in each]


class _Cast(NamedTuple):
    """Groups of a query's sources: how many sources each has, the share that each source counts, and its model."""

    sources: Sequence[int]
    shares: Sequence[float]
    models: Sequence[str]


def _alone(cast: _Cast) -> Callable[[int, Candidate], Candidate]:
    """Return what makes a candidate of a lone ballot as `_merged` does: of nearly all candidates, so a short way."""
    shares, models, counts = cast.shares, cast.models, [max(count, 1) for count in cast.sources]

    def merged(group: int, only: Candidate) -> Candidate:
        own = 0.0 if only.score < 0 else only.score
        score, mean = shares[group] * own, own / counts[group]
        return Candidate(
            only.text,
            1.0 if score > 1 else score,
            only.sources if len(only.sources) < 2 else _sorted(only.sources),
            only.id,
            ((models[group], 1.0 if mean > 1 else mean),),
            only.verification,
        )

    return merged


def _merged(ballots: list[_Ballot[Candidate]], cast: _Cast) -> Candidate:
    """Return one candidate for many: all sources, the commonest spelling (ties: the first in the alphabet), the id.

    Its verification score is the mean over the spellings and generators that were verified.
    """
    score, by_model = _scored(ballots, cast)
    spellings = Counter(candidate.text for _, candidate in ballots)
    text = min(spellings, key=lambda spelling: (-spellings[spelling], spelling))
    ids = {candidate.id for _, candidate in ballots if candidate.id}
    verifications = {(group, c.text): c.verification for group, c in ballots if c.verification is not None}
    verification = math.fsum(verifications.values()) / len(verifications) if verifications else None
    return Candidate(text, score, _sources_of(ballots), min(ids, default=None), by_model, verification)


def _scored(ballots: Sequence[_Ballot[Any]], cast: _Cast) -> tuple[float, ByModel]:
    """Return the mean score over all sources of what is proposed, and the mean over each model's sources."""
    best = _best(ballots)
    score = math.fsum([cast.shares[group] * own for (group, _), own in best.items()])
    return min(score, 1.0), _by_model(best, cast.sources, cast.models)


def _by_score(candidate: Candidate) -> tuple[float, int]:
    return -candidate.score, -len(candidate.sources)


def _best_first(candidate: Candidate) -> tuple[float, int, str, str]:
    return *_by_score(candidate), candidate.text, candidate.id or ""


def _best(ballots: Sequence[_Ballot[Any]]) -> dict[tuple[int, tuple[Source, ...]], float]:
    """Return what each source makes of a candidate, which it may propose under several spellings: its highest score."""
    best: dict[tuple[int, tuple[Source, ...]], float] = {}
    for group, proposal in ballots:
        source = group, proposal.sources
        best[source] = max(proposal.score, best.get(source, 0.0))
    return best


def _by_model(
    best: Mapping[tuple[int, tuple[Source, ...]], float], sources: Sequence[int], models: Sequence[str]
) -> ByModel:
    """Return each proposing model with its mean score over its sources, silence counting 0."""
    totals: dict[int, float] = {}
    for (group, _), score in best.items():
        totals[group] = totals.get(group, 0.0) + score
    return tuple(
        sorted((models[group], min(total / max(sources[group], 1), 1.0)) for group, total in sorted(totals.items()))
    )


def _sources_of(ballots: Sequence[_Ballot[Any]]) -> tuple[Source, ...]:
    first = ballots[0][1].sources
    if all(proposal.sources == first for _, proposal in ballots):
        return _sorted(first)
    return tuple(sorted({source for _, proposal in ballots for source in proposal.sources}))


def _sorted(sources: tuple[Source, ...]) -> tuple[Source, ...]:
    return sources if len(sources) < 2 else tuple(sorted(set(sources)))


def _mean_nil_probability(
    nils: Sequence[_Ballot[Nil]], weights: Sequence[float], models: Sequence[str]
) -> tuple[Nil, ...]:
    """Return the mean of all NIL probabilities, each model's counting its weight, or nothing if there are none."""
    if not nils:
        return ()
    total = math.fsum(weights[group] for group, _ in nils)
    given = math.fsum(weights[group] * nil.score for group, nil in nils)
    by_model = _by_model(_best(nils), [1] * len(models), models)
    return (Nil(min(max(given / total, 0.0), 1.0) if total else 0.0, _sources_of(nils), by_model),)


def model_of(group: Sequence[CandidateSet]) -> str:
    """Return the model behind a generator's sets, the first that is heard."""
    sources = (
        source
        for item in group
        for proposal in chain[Candidate | Nil](item.candidates, item.nothing, item.nil_probabilities)
        for source in proposal.sources
    )
    return next(sources, Source("")).model


def distinct(models: Sequence[str]) -> list[str]:
    """Return names that tell groups apart: the second group of a model is "model+2"."""
    seen: Counter[str] = Counter()
    names = []
    for model in models:
        seen[model] += 1
        names.append(model if seen[model] == 1 else f"{model}+{seen[model]}")
    return names


class Merging:
    """A pool of a run's blocks, one after the other.

    named: what generators are called that say so before they speak, "" for the others. Blocks wait until it is known
    which model each generator is.
    """

    def __init__(self, pool: Pool, named: Sequence[str] = ()) -> None:
        self._pool, self._models = pool, list(named)
        self._waiting: list[list[CandidateSet]] = []

    def add(self, groups: Sequence[Sequence[CandidateSet]], *, last: bool) -> list[CandidateSet]:
        """Return the sets that are pooled by now: of these groups and those before, or none yet."""
        self._models = self._models or [""] * len(groups)
        self._waiting = self._waiting or [[] for _ in groups]
        for place, group in enumerate(groups):
            self._models[place] = self._models[place] or model_of(group)
            self._waiting[place] += group
        if not (last or all(self._models)):
            return []
        waiting, self._waiting = self._waiting, []
        return list(self._pool.merged(waiting, distinct(self._models)))
