"""From replies to candidates: the objects and the state of each draw, with the model's probability of each object."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from lmkbc.answer.clean import Clean, shaped
from lmkbc.answer.elements import broken_off
from lmkbc.answer.formats import answer_line
from lmkbc.ask.style import PromptStyle
from lmkbc.ask.templates import ANSWER, HELD, outline
from lmkbc.generate.guard import guarded
from lmkbc.models.base import CUT_OFF, NOTHING, WITHHELD, Reply
from lmkbc.models.endings import list_end
from lmkbc.models.thoughts import MOST_READ, answer_of, thinks_aloud
from lmkbc.names import LONGEST, shown
from lmkbc.relation import Relation
from lmkbc.types import Candidate, CandidateSet, Dropped, Nil, Query, Source, State, together

_PRECEDENCE = State.MISSING, State.CUT, State.ANSWERED, State.DROPPED, State.ABSTAINED, State.TRUNCATED, State.UNPARSED
"""States by precedence: the whole has the first state that any part has; only empty parts make it empty."""

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
    """Return the candidate set of one query. Each draw is a source; a draw without reply is missing, never empty.

    If other draws mark their answers, a long draw without a mark names nothing (see `broken_off`). clean: whether to
    bring names into the relation's shape; else they stay as written.
    """
    unfinished = broken_off([reply.text if reply and style.parse_as == "any" else None for reply in replies])
    return together(
        query,
        (
            CandidateSet(query, draws=(State.TRUNCATED,))
            if unfinished[draw]
            else _draw(query, reply, relation, style, Source(name, str(draw)), clean)
            for draw, reply in enumerate(replies)
        ),
    )


def state_of(query: Query, relation: Relation, style: PromptStyle, reply: Reply | None) -> State:
    """Return how one reply is read."""
    (state,) = _draw(query, reply, relation, style, Source("")).draws
    return state


def united(sets: Sequence[CandidateSet]) -> CandidateSet:
    """Return the sets of a query that was asked in several parts as one set; the parts of a draw become one source.

    A draw without a reply to one part is missing, since a resumed run asks it again. Otherwise it is answered if any
    part is.
    """
    if len(sets) == 1:
        return sets[0]
    by_draw = zip(*(one.draws for one in sets), strict=True)
    draws = tuple(next((state for state in _PRECEDENCE if state in states), State.EMPTY) for states in by_draw)
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
    """Return the candidate set of one draw, with a note on what of it is not read."""
    if reply is None or reply.failed:
        return CandidateSet(query, draws=(State.MISSING,))
    found = guarded(
        partial(_read, query, reply, relation, style, source, clean),
        reply.text,
        partial(unread, query),
    )
    if (beyond := len(reply.text) - 2 * MOST_READ) > 0:
        note = Dropped(reply.text[MOST_READ:][:LONGEST], f"not read: the middle, {beyond:,} characters")
        found = replace(found, dropped=(*found.dropped, note))
    return found


def unread(query: Query, text: str, fault: str) -> CandidateSet:
    """Return the candidate set of a text that the reader cannot read, which is no empty answer."""
    return CandidateSet(query, draws=(State.UNPARSED,), dropped=(Dropped(text[:LONGEST], fault),))


def _read(
    query: Query, reply: Reply, relation: Relation, style: PromptStyle, source: Source, clean: Clean
) -> CandidateSet:
    """Return the candidate set of one draw that was not lost."""
    if reply.finish in WITHHELD:
        return CandidateSet(query, draws=(State.UNPARSED,))
    if reply.finish == NOTHING:
        return CandidateSet(query, draws=(State.ABSTAINED,), nothing=(Nil(_sureness("", reply), (source,)),))
    if (answer := answer_of(reply.text)) is None:  # it was cut off within its reasoning
        return CandidateSet(query, draws=(State.TRUNCATED,))
    text = captured(answer, style.answer) if style.answer else answer
    # ended by a closing tag, a control token, a further turn or a line's end
    ended = not shown(reply.text).endswith(answer[-20:]) or reply.text.endswith("\n")
    open_ended = reply.finish in CUT_OFF and not ended
    cut = open_ended and list_end(text) is None  # text behind a list or a turn is no loss
    if cut and thinks_aloud(text):
        return CandidateSet(query, draws=(State.TRUNCATED,))
    if style.parse_as == "line":
        line = answer_line(answer, style.mark)
        if line is None:
            return CandidateSet(query, draws=(State.TRUNCATED if reply.finish in CUT_OFF else State.UNPARSED,))
        text, cut = line.text, open_ended and line.last
    if style.writes_ids and relation.has_entities() and (ids := _QID.findall(f"{text}_" if cut else text)):
        # if the text is cut, the last id may be incomplete: "_" behind it prevents a match
        found = tuple(Candidate(qid, _sureness(qid, reply), (source,), qid) for qid in dict.fromkeys(ids))
        return CandidateSet(query, found, (State.CUT if cut else State.ANSWERED,))
    parsed = style.format.read(text, relation, query.subject, style.null, clean=clean, parse_as=style.parse_as, cut=cut)
    if parsed.state is State.ABSTAINED and not cut:
        return CandidateSet(query, draws=(parsed.state,), nothing=(Nil(_sureness("", reply), (source,)),))
    objects = style.counted(parsed.objects)
    if cut and not objects:
        return CandidateSet(query, draws=(State.TRUNCATED,))
    sieved = [(name, *shaped(name, relation, query.subject, clean)) for name in objects]
    kept = [(text, name) for name, texts, _ in sieved for text in texts]
    scores = {text.casefold(): Candidate(text, _sureness(name, reply), (source,)) for text, name in reversed(kept)}
    state = State.DROPPED if objects and not kept else State.CUT if cut else parsed.state
    dropped = tuple(loss for _, _, losses in sieved for loss in losses)
    return CandidateSet(query, tuple(scores.values())[::-1], (state,), dropped)


def captured(text: str, template: str) -> str:
    """Return the part of a text at the place of the answer in a template; the whole text if it does not match.

    Only literal text is searched, so that the time is linear for every template and text.
    """
    before, _, after = outline(template).partition(ANSWER)
    lead, tail = before.split(HELD)[-1].strip(), after.partition(HELD)[0].strip()
    start = text.find(lead)
    if start < 0:
        return text
    rest = text[start + len(lead) :].rstrip()
    if not tail:
        return rest
    whole, ended, _ = rest.partition(f"{tail}\n")
    return whole if ended else rest.removesuffix(tail)


def _sureness(text: str, reply: Reply) -> float:
    """Return the reply's score, else the geometric mean of the probabilities of a text's tokens; 1 if unknown."""
    if reply.score is not None:
        return reply.score
    pairs = reply.logprobs or []
    start = "".join(token for token, _ in pairs).find(text)
    if start < 0 or not text:
        return 1.0
    end, place = start + len(text), 0
    spelling: list[float] = []
    for token, logprob in pairs:
        if place < end and place + len(token) > start:
            spelling.append(logprob)
        place += len(token)
    return math.exp(min(math.fsum(spelling) / len(spelling), 0.0)) if spelling else 1.0
