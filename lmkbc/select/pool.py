"""Pooling: the candidates of many sources for one query, merged into one scored list, best first.

A source is one draw of one generator that gave an answer. A failed call is no source, and neither is a reply that
cannot be read. A reply whose objects were all dropped is a source without objects, and no evidence for NIL. Where
shares are of all replies, one that cannot be read is such a source, too. The score of an object is the mean over the
sources, 0 for sources that do not name it. For sampled answers with scores of 1 it is the share of votes.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache, partial
from itertools import chain
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple, Protocol

from msgspec import structs

from lmkbc.edition import Edition
from lmkbc.errors import check_known
from lmkbc.kinds.kind import kind_of
from lmkbc.names import as_qid, name_key, signed_words
from lmkbc.relation import Relation
from lmkbc.scoring.matchers import number
from lmkbc.settings import ReadBy
from lmkbc.types import Candidate, CandidateSet, Nil, Proposal, Source, State

if TYPE_CHECKING:
    from lmkbc.notes import Notes
    from lmkbc.session.run import Run

ByModel = tuple[tuple[str, float], ...]
_Ballot = tuple[int, Proposal]
"""Number of a group, and a proposal of it."""
_Ballots = dict[Hashable, list[_Ballot[Candidate]]]
"""Key by which candidates merge -> their ballots."""
SEVERAL = ReadBy("a pool of several generators", lambda _, recipe: len(recipe.generate) > 1)
REMEMBERED = 1 << 16
"""Names with a cached key: closed lists repeat the same names for each query."""


class Grouper(Protocol):
    """Gives one name to each object of a query, so that sources agree on it even if they name it differently."""

    def merged(self, sources: Sequence[Sequence[CandidateSet]]) -> list[list[CandidateSet]]:
        """Return the sets of all sources, each in the order of the queries, with one name for each object."""
        ...


@dataclass(frozen=True, kw_only=True)
class Pooling:
    """Settings for merging sources, as in a recipe.

    per: whether every draw has equal weight, or every model, whatever its number of draws.
    of: the draws to which shares refer: those that are "answers", or all "replies". With "replies", what cannot be read
    names nothing, and a model without any answer is a source without objects.
    ties: order of candidates with equal scores and equally many sources, by "name" or the one named "first".
    weights: model -> weight; 1 if not given.
    train_sides: whether train's rows of the other side count, for symmetric relations and those with an inverse (see
    `lmkbc.select.other_side.TrainSides`).
    """

    per: Annotated[Literal["draw", "model"], SEVERAL] = "model"
    of: Literal["answers", "replies"] = "answers"
    ties: Literal["name", "first"] = "name"
    weights: Annotated[Mapping[str, float], SEVERAL] = field(default_factory=dict)
    train_sides: bool = False

    def __post_init__(self) -> None:
        """Raise ValueError for a weight that is negative or not finite."""
        for model, weight in self.weights.items():
            if not 0 <= weight < math.inf:
                raise ValueError(f"weight of {model!r} is {weight}: give a number of at least 0")

    @property
    def asks(self) -> bool:
        """Return whether a model is asked which names are of one object."""
        return False

    def check(self, relations: Mapping[str, Relation]) -> None:
        """Raise InputError for a relation that does not exist. relations: all relations, by every name."""

    def open(self, run: Run, notes: Notes, *, replayed: bool = False) -> Grouper | None:  # noqa: ARG002
        """Return what groups names before sources are pooled; None by default, or if it lacks a model.

        replayed: whether recorded answers replace models. Raise InputError for something that the run lacks.
        """
        return None


class Pool:
    """Merges the sources of an edition's queries.

    Objects merge by QID once linked, numbers by value, others by the edition's normal form; the most frequent spelling
    stays. NIL is scored like an object. NIL probabilities stay apart: the set gets their mean.

    relations: relations, in the edition's spelling. Texts that are kept as written merge if they mean the same, as
    "Red." and "red" do, and "007" and "7" do not. A year is a vote for the only day in it that is named.
    """

    def __init__(
        self, edition: Edition, how: Pooling | None = None, relations: Mapping[str, Relation] | None = None
    ) -> None:
        self.how, self._relations = how or Pooling(), relations or {}
        self._ids = edition.target == "id"
        self._normal = edition.metric.scorer.key
        self._key = lru_cache(REMEMBERED)(self._key_of)

    def merge(self, groups: Sequence[Sequence[CandidateSet]]) -> list[CandidateSet]:
        """Return one set per query. groups: the sets of each generator, all in the same order of queries."""
        return list(self.merged(groups, distinct([model_of(group) for group in groups])))

    def merged(self, groups: Sequence[Sequence[CandidateSet]], models: Sequence[str]) -> Iterator[CandidateSet]:
        """Return one set per query of groups with known models. Raise InputError for a weight of an unknown model."""
        for name in self.how.weights:
            check_known(name, models, f"pool weighs {name!r}, which no generator is called")
        weights = [self.how.weights.get(model, 1.0) for model in models]
        return (self._pooled(sets, weights, models) for sets in zip(*groups, strict=True))

    def _pooled(self, sets: Sequence[CandidateSet], weights: Sequence[float], models: Sequence[str]) -> CandidateSet:
        ballots: _Ballots = {}
        relation = self._relations.get(sets[0].query.relation)
        key = partial(_meant, relation) if relation and relation.is_verbatim() else self._key
        for group, item in enumerate(sets):
            for candidate in item.candidates:
                ballots.setdefault(key(candidate.id, candidate.text), []).append((group, candidate))
        if relation and len(ballots) > 1:
            ballots = _voted(ballots, relation)
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
        """Return whether a draw counts as a source."""
        return state not in (State.MISSING, State.UNASKED, State.EMPTY) if self.how.of == "replies" else state.is_answer

    def _key_of(self, id_: str | None, text: str) -> Hashable:
        """Return the key by which candidates merge."""
        if (value := number(id_ or text)) is not None:
            return "number", value
        if self._ids:
            return ("id", id_) if id_ else ("name", name_key(text))
        return "name", self._normal(text) or text, signed_words(text)

    def _shares(self, sources: Sequence[int], weights: Sequence[float]) -> list[float]:
        """Return the weight of one source of each group; the weights of all sources that answered sum to 1."""
        each = [
            0.0 if not count else weight / count if self.how.per == "model" else weight
            for count, weight in zip(sources, weights, strict=True)
        ]
        total = math.fsum(share * count for share, count in zip(each, sources, strict=True))
        return [share / total if total else 0.0 for share in each]


class _Cast(NamedTuple):
    """Groups of a query's sources: the number of sources, the weight of each source, and the model."""

    sources: Sequence[int]
    shares: Sequence[float]
    models: Sequence[str]


def _meant(relation: Relation, _: str | None, text: str) -> Hashable:
    return kind_of(relation).meaning(text, relation)


def _voted(
    ballots: Mapping[Hashable, list[_Ballot[Candidate]]], relation: Relation
) -> dict[Hashable, list[_Ballot[Candidate]]]:
    """Return ballots in which objects that are votes for another one have joined it."""
    made = {key: [*own] for key, own in ballots.items()}
    keys = {one.text: key for key, ((_, one), *_) in ballots.items() if not (one.id and as_qid(one.id))}
    for text, meant in kind_of(relation).votes([*keys]).items():
        id_ = made[keys[meant]][0][1].id
        made[keys[meant]] += [(at, structs.replace(given, text=meant, id=id_)) for at, given in made.pop(keys[text])]
    return made


def _alone(cast: _Cast) -> Callable[[int, Candidate], Candidate]:
    """Return a function that merges a single ballot as `_merged` does.

    Most candidates have one, so it is a fast path.
    """
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
    """Return one candidate for many ballots: all sources, the most frequent spelling (ties: alphabetical), the id.

    Its verification score is the mean over the verified spellings and generators.
    """
    score, by_model = _scored(ballots, cast)
    spellings = Counter(candidate.text for _, candidate in ballots)
    text = min(spellings, key=lambda spelling: (-spellings[spelling], spelling))
    ids = {candidate.id for _, candidate in ballots if candidate.id}
    verifications = {(group, c.text): c.verification for group, c in ballots if c.verification is not None}
    verification = math.fsum(verifications.values()) / len(verifications) if verifications else None
    return Candidate(text, score, _sources_of(ballots), min(ids, default=None), by_model, verification)


def _scored(ballots: Sequence[_Ballot[Any]], cast: _Cast) -> tuple[float, ByModel]:
    """Return the mean score of a proposal over all sources, and its mean over each model's sources."""
    best = _best(ballots)
    score = math.fsum([cast.shares[group] * own for (group, _), own in best.items()])
    return min(score, 1.0), _by_model(best, cast.sources, cast.models)


def _by_score(candidate: Candidate) -> tuple[float, int]:
    return -candidate.score, -len(candidate.sources)


def _best_first(candidate: Candidate) -> tuple[float, int, str, str]:
    return *_by_score(candidate), candidate.text, candidate.id or ""


def _best(ballots: Sequence[_Ballot[Any]]) -> dict[tuple[int, tuple[Source, ...]], float]:
    """Return each source's highest score for a candidate, which it may propose under several spellings."""
    best: dict[tuple[int, tuple[Source, ...]], float] = {}
    for group, proposal in ballots:
        source = group, proposal.sources
        best[source] = max(proposal.score, best.get(source, 0.0))
    return best


def _by_model(
    best: Mapping[tuple[int, tuple[Source, ...]], float], sources: Sequence[int], models: Sequence[str]
) -> ByModel:
    """Return each proposing model with its mean score over its sources; a source without the object counts 0."""
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
    """Return the mean of the NIL probabilities, weighted by model; () if there are none."""
    if not nils:
        return ()
    total = math.fsum(weights[group] for group, _ in nils)
    given = math.fsum(weights[group] * nil.score for group, nil in nils)
    by_model = _by_model(_best(nils), [1] * len(models), models)
    return (Nil(min(max(given / total, 0.0), 1.0) if total else 0.0, _sources_of(nils), by_model),)


def model_of(group: Sequence[CandidateSet]) -> str:
    """Return the model of a generator's sets: the first that occurs."""
    sources = (
        source
        for item in group
        for proposal in chain[Candidate | Nil](item.candidates, item.nothing, item.nil_probabilities)
        for source in proposal.sources
    )
    return next(sources, Source("")).model


def distinct(models: Sequence[str]) -> list[str]:
    """Return unique names for groups: the second group of a model is "model+2"."""
    seen: Counter[str] = Counter()
    names = []
    for model in models:
        seen[model] += 1
        names.append(model if seen[model] == 1 else f"{model}+{seen[model]}")
    return names


class Merging:
    """Pool of a run's blocks, in order.

    named: names of the generators that are known in advance, "" for the others. Blocks wait until the model of each
    generator is known.
    """

    def __init__(self, pool: Pool, named: Sequence[str] = ()) -> None:
        self._pool, self._models = pool, list(named)
        self._waiting: list[list[CandidateSet]] = []

    def add(self, groups: Sequence[Sequence[CandidateSet]], *, last: bool) -> list[CandidateSet]:
        """Return the sets that can be pooled now, from these and earlier groups; [] if a model is still unknown."""
        self._models = self._models or [""] * len(groups)
        self._waiting = self._waiting or [[] for _ in groups]
        for place, group in enumerate(groups):
            self._models[place] = self._models[place] or model_of(group)
            self._waiting[place] += group
        if not (last or all(self._models)):
            return []
        waiting, self._waiting = self._waiting, []
        return list(self._pool.merged(waiting, distinct(self._models)))
