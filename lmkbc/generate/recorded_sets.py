"""Recorded rows as candidate sets: scored objects, an earlier run's pooled objects, and the draws of completions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from msgspec import structs

from lmkbc.answer.clean import Clean, shaped
from lmkbc.generate.recorded_rows import EXISTENCE, CandidateRow, RecordedRow, is_linked
from lmkbc.models.base import Reply
from lmkbc.relation import Relation
from lmkbc.types import Candidate, CandidateSet, Dropped, Nil, Query, Source, State


def parts_of(rows: Sequence[RecordedRow]) -> list[list[Reply | None]]:
    """Return part -> draw -> reply of all rows of a query, with the draws of all rows in order.

    If a row has fewer parts than others, empty replies fill its missing parts.
    """
    each = [row.replies for row in rows if row.completions]
    parts: list[list[Reply | None]] = [[] for _ in range(max(map(len, each)))]
    for replies in each:
        for place, draws in enumerate(parts):
            draws.extend(replies[place] if place < len(replies) else [one and Reply("") for one in replies[0]])
    return parts


def with_verification(found: CandidateSet, scores: Mapping[str, float]) -> CandidateSet:
    """Return the set with the verification scores of its objects."""
    if not scores:
        return found
    judged = (structs.replace(one, verification=scores.get(one.text)) for one in found.candidates)
    return replace(found, candidates=tuple(judged))


def scored(query: Query, row: RecordedRow, model: str, relation: Relation, *, clean: Clean) -> CandidateSet:
    """Return the scored objects of a row, each once per source with its best score, and a state for each source.

    An object with an id is not cleaned, except a number, which is its own id.
    """
    best: dict[tuple[str, Source], Candidate] = {}
    nothing: dict[Source, Nil] = {}
    dropped: list[Dropped] = []
    for given in row.candidates or ():
        source = Source(model, given.source or "")
        if not given.object:
            nothing[source] = max(nothing.get(source, Nil(-1.0)), Nil(given.score, (source,)), key=_score)
            continue
        known = given.id if is_linked(given, relation) else None
        texts: tuple[str, ...] = (given.object,)
        if not known:
            texts, losses = shaped(given.object, relation, row.SubjectEntity, clean)
            dropped += losses
        for text in texts:
            key = known or text.casefold(), source
            if key not in best or best[key].score < given.score:
                best[key] = Candidate(text, given.score, (source,), known, verification=given.verification)
    state = State.ANSWERED if best else State.DROPPED if dropped else State.ABSTAINED
    sources = 1 if state is State.ABSTAINED else max(len({source for _, source in best} | set(nothing)), 1)
    silence = tuple(nothing.values()) or ((Nil(1.0, (Source(model),)),) if state is State.ABSTAINED else ())
    return CandidateSet(query, tuple(best.values()), (state,) * sources, tuple(dropped), silence)


def pooled(query: Query, row: RecordedRow, model: str, _: Relation) -> CandidateSet:
    """Return the candidates of an earlier run unchanged, with one score for all sources, and the sources' names."""
    proposals = row.candidates or ()
    objects = tuple(
        Candidate(
            proposal.object, proposal.score, _sources(proposal, model), proposal.id, verification=proposal.verification
        )
        for proposal in proposals
        if proposal.object
    )
    nils = [proposal for proposal in proposals if not proposal.object]
    nil_probabilities = [proposal for proposal in nils if _is_nil_probability(proposal)]
    return CandidateSet(
        query,
        objects,
        (State.ANSWERED if objects else row.silence,),
        nothing=tuple(
            Nil(proposal.score, _sources(proposal, model)) for proposal in nils if proposal not in nil_probabilities
        ),
        nil_probabilities=tuple(Nil(proposal.score, _sources(proposal, model)) for proposal in nil_probabilities),
    )


def _is_nil_probability(row: CandidateRow) -> bool:
    """Return whether a row without an object holds a NIL probability."""
    return bool(row.source) and all(source.endswith(EXISTENCE) for source in str(row.source).split("; "))


def _sources(row: CandidateRow, model: str) -> tuple[Source, ...]:
    """Return the sources that a pooled row names."""
    if not row.source:
        return (Source(model),)
    return tuple(Source.read(text.removesuffix(EXISTENCE)) for text in row.source.split("; "))


def _score(nil: Nil) -> float:
    return nil.score
