"""From replies to candidates: what each draw says, how it failed if it did, and how sure the model was of it."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import replace

from lmkbc.answer.clean import Clean, shaped
from lmkbc.answer.elements import broken_off
from lmkbc.answer.line import answer_line, named
from lmkbc.answer.parse import LONGEST_ANSWER, Parsed, parse
from lmkbc.answer.verbatim import split, verbatim
from lmkbc.ask.frames import captured
from lmkbc.ask.style import PromptStyle
from lmkbc.models.base import CUT_OFF, WITHHELD, Reply, answer_of
from lmkbc.models.local.endings import list_end
from lmkbc.relation import Relation
from lmkbc.types import Candidate, CandidateSet, Nil, Query, Source, State, together

_PRECEDENCE = State.MISSING, State.CUT, State.ANSWERED, State.DROPPED, State.ABSTAINED, State.TRUNCATED
"""States by precedence: the first that any part has is the state of the whole."""

_QID = re.compile(r"\bQ[1-9]\d{0,11}\b")


def candidates(
    query: Query,
    relation: Relation,
    style: PromptStyle,
    replies: Sequence[Reply | None],
    name: str,
    *,
    clean: Clean = True,
) -> CandidateSet:
    """Return the set of one query. Each draw is a source; a draw without reply is missing, never empty.

    A draw that never came to its answer, as others did, names nothing. clean: whether names are brought into the
    relation's shape; else they stay as they were written.
    """
    told = [reply.text if reply and style.parse_as == "any" else None for reply in replies]
    unfinished = broken_off(told)
    return together(
        query,
        (
            CandidateSet(query, draws=(State.TRUNCATED,))
            if unfinished[draw]
            else _draw(query, reply, relation, style, Source(name, str(draw)), clean)
            for draw, reply in enumerate(replies)
        ),
    )


def broken(query: Query, relation: Relation, style: PromptStyle, reply: Reply | None) -> bool:
    """Return whether something was said that is no answer, though nobody withheld it."""
    said = reply is not None and reply.is_answer and reply.finish not in WITHHELD
    return said and _draw(query, reply, relation, style, Source("")).draws == (State.UNPARSED,)


def mends(query: Query, relation: Relation, style: PromptStyle, reply: Reply | None) -> bool:
    """Return whether a repair names objects: one that names none is a failed parse, as what it repairs."""
    (state,) = _draw(query, reply, relation, style, Source("")).draws
    return state.has_objects or state is State.DROPPED


def united(sets: Sequence[CandidateSet]) -> CandidateSet:
    """Return the sets of a query that was asked in several parts as one: what the parts of a draw say, its source says.

    A draw that lacks a part is missing, since it is asked again when the run is; else it answered where any part did.
    """
    if len(sets) == 1:
        return sets[0]
    by_draw = zip(*(one.draws for one in sets), strict=True)
    draws = tuple(next((state for state in _PRECEDENCE if state in states), State.UNPARSED) for states in by_draw)
    best: dict[tuple[str, Source], Candidate] = {}
    whole = together(sets[0].query, sets)
    for candidate in whole.candidates:
        (source,) = candidate.sources
        if draws[int(source.draw)].has_objects:
            key = candidate.text.casefold(), source
            best[key] = max(best.get(key, candidate), candidate, key=lambda one: one.score)
    spoken = [state is State.MISSING or state.has_objects for state in draws]
    silent = [one for one in whole.nothing if not spoken[int(one.sources[0].draw)]]
    return replace(whole, candidates=tuple(best.values()), draws=draws, nothing=tuple(dict.fromkeys(silent)))


def _draw(
    query: Query, reply: Reply | None, relation: Relation, style: PromptStyle, source: Source, clean: Clean = True
) -> CandidateSet:
    """Return what one draw comes to."""
    if reply is None or reply.failed:
        return CandidateSet(query, draws=(State.MISSING,))
    if reply.finish in WITHHELD:
        return CandidateSet(query, draws=(State.UNPARSED,))
    if (said := answer_of(reply.text)) is None:  # it ended while it thought
        return CandidateSet(query, draws=(State.TRUNCATED,))
    text = captured(said, style.answer) if style.answer else said
    cut = reply.finish in CUT_OFF and list_end(text) is None  # behind its list, nothing is lost
    if style.parse_as == "line":
        line = answer_line(said, style.mark)
        if line is None:
            return CandidateSet(query, draws=(State.TRUNCATED if reply.finish in CUT_OFF else State.UNPARSED,))
        text, cut = line.text, reply.finish in CUT_OFF and line.last
    if style.objects == "ids" and relation.kind != "number" and (ids := _QID.findall(f"{text}_" if cut else text)):
        # behind a cut, "_" keeps what may be the beginning of another id from being one
        found = tuple(Candidate(one, _sureness(one, reply), (source,), one) for one in dict.fromkeys(ids))
        return CandidateSet(query, found, (State.CUT if cut else State.ANSWERED,))
    parsed = _parsed(text, query, relation, style, clean)
    if parsed.state is State.ABSTAINED and not cut:
        return CandidateSet(query, draws=(parsed.state,), nothing=(Nil(1.0, (source,)),))
    objects = parsed.objects[: style.most or None]
    if cut and clean is True:
        objects = _whole(text, objects, relation, query.subject)
    if cut and not objects:
        return CandidateSet(query, draws=(State.TRUNCATED,))
    sieved = [(one, *shaped(one, relation, query.subject, clean)) for one in objects]
    kept = [(text, one) for one, texts, _ in sieved for text in texts]
    scores = {text.casefold(): Candidate(text, _sureness(item, reply), (source,)) for text, item in reversed(kept)}
    state = State.DROPPED if objects and not kept else State.CUT if cut else parsed.state
    dropped = (*parsed.dropped, *(loss for _, _, losses in sieved for loss in losses))
    return CandidateSet(query, tuple(scores.values())[::-1], (state,), dropped)


def _parsed(text: str, query: Query, relation: Relation, style: PromptStyle, clean: Clean) -> Parsed:
    """Return the objects of an answer, as the style has it read."""
    if style.parse_as == "split":
        return split(text[:LONGEST_ANSWER], style.listing, style.null)
    if clean is True:
        return parse(text, relation, query.subject, style.null)
    if style.parse_as == "line":
        return named(text, style.listing, relation, style.null)
    return verbatim(text, relation, query.subject, style.null)


def _whole(text: str, objects: Sequence[str], relation: Relation, subject: str) -> tuple[str, ...]:
    """Return of a text that was cut off, the objects that it names however it had gone on."""
    further = parse(text + ("0" if relation.kind == "number" else "zq"), relation, subject).objects
    return tuple(one for one in objects if one in further)


def _sureness(text: str, reply: Reply) -> float:
    """Return the geometric mean of the probabilities of the tokens that spell a text, 1 where that is not known."""
    pairs = reply.logprobs or []
    whole = "".join(token for token, _ in pairs)
    start = whole.find(text)
    if start < 0 or not text:
        return 1.0
    end, place = start + len(text), 0
    spelling: list[float] = []
    for token, logprob in pairs:
        if place < end and place + len(token) > start:
            spelling.append(logprob)
        place += len(token)
    return math.exp(min(math.fsum(spelling) / len(spelling), 0.0)) if spelling else 1.0
