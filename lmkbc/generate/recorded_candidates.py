"""Candidates of recorded rows with scores: those of a model or a script, and those that an earlier run has pooled."""

from __future__ import annotations

from lmkbc.answer.clean import Clean, shaped
from lmkbc.generate.recorded_rows import EXISTENCE, CandidateRow, RecordedRow
from lmkbc.relation import Relation
from lmkbc.scoring.matchers import number
from lmkbc.types import Candidate, CandidateSet, Dropped, Nil, Query, Source, State


def is_linked(given: CandidateRow, relation: Relation) -> bool:
    """Return whether a candidate's id identifies its object; for a number, only if the id is a number."""
    return bool(given.id) and (not relation.has_numbers() or number(given.id) is not None)


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
            nothing[source] = max(
                nothing.get(source, Nil(-1.0)), Nil(given.score, (source,)), key=lambda nil: nil.score
            )
            continue
        known = given.id if is_linked(given, relation) else None
        texts, losses = ((given.object,), ()) if known else shaped(given.object, relation, row.SubjectEntity, clean)
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
    nil_probabilities = [
        proposal
        for proposal in nils
        if proposal.source and all(source.endswith(EXISTENCE) for source in proposal.source.split("; "))
    ]
    return CandidateSet(
        query,
        objects,
        (State.ANSWERED if objects else row.silence,),
        tuple(Dropped(*lost) for lost in row.dropped_objects),
        nothing=tuple(
            Nil(proposal.score, _sources(proposal, model)) for proposal in nils if proposal not in nil_probabilities
        ),
        nil_probabilities=tuple(Nil(proposal.score, _sources(proposal, model)) for proposal in nil_probabilities),
    )


def _sources(row: CandidateRow, model: str) -> tuple[Source, ...]:
    """Return the sources that a pooled row names."""
    if not row.source:
        return (Source(model),)
    return tuple(Source.read(text.removesuffix(EXISTENCE)) for text in row.source.split("; "))
