"""What became of a run over a server: its draws counted, its tokens, and what a person should know of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from lmkbc.ask.schema import keeps_schema
from lmkbc.models.answers import Store
from lmkbc.models.base import WITHHELD, Reply
from lmkbc.models.server.session import Session
from lmkbc.relation import Relation
from lmkbc.types import CandidateSet, Query, State

PRUNE = "'lmkbc store prune --model NAME' drops what was kept of a model, to have it asked again"
"""What a person can do about answers that are of no use."""


class Tally:
    """What became of all draws."""

    def __init__(self) -> None:
        self.states: Counter[State] = Counter()
        self.withheld = self.shapeless = self.unread = 0
        self.blank: Counter[str] = Counter()
        self.unanswered: list[Query] = []

    def count(self, candidates: CandidateSet, replies: Sequence[Reply], schema_of: Relation | None) -> None:
        """Count one query's draws. schema_of: the relation whose schema was asked for."""
        self.states.update(candidates.draws)
        withheld = sum(reply.finish in WITHHELD for reply in replies)
        blank = [reply.finish for reply in replies if not reply.is_answer and not reply.failed]
        self.withheld += withheld
        self.blank.update(blank)
        unread = sum(state in (State.UNPARSED, State.TRUNCATED) for state in candidates.draws)
        self.unread += max(unread - withheld - len(blank), 0)
        if schema_of is not None:
            self.shapeless += sum(not keeps_schema(reply.text, schema_of.kind) for reply in replies)
        if State.MISSING in candidates.draws:
            self.unanswered.append(candidates.query)


def usage(session: Session, before: Mapping[str, Any]) -> dict[str, Any]:
    """Tokens of all answers, stored ones included, with those of sessions before, and what the run asked and spent."""
    counts = {
        "prompt_tokens": session.tokens[0],
        "completion_tokens": session.tokens[1],
        "from_store": session.replayed,
    }
    return {name: before.get(name, 0) + count for name, count in counts.items()} | session.budget.spent


def remarks(session: Session, tally: Tally, store: Store) -> Iterator[str]:
    """What a person should know about a run, in sentences."""
    yield session.account
    if tally.withheld:
        yield (
            f"{tally.withheld} draws were refused by the model or a content filter: they count as no answer, and are "
            f"kept; {PRUNE}"
        )
    if cut := tally.states[State.CUT]:
        yield f"{cut} draws were cut off within their lists: what they had come to the end of counts"
    if tally.unread:
        yield f"{tally.unread} draws hold no answer that can be read: they are kept; {PRUNE}"
    if tally.blank:
        ends = ", ".join(f"{count} ended with {end!r}" for end, count in sorted(tally.blank.items()))
        yield f"{tally.blank.total()} draws say nothing ({ends}): they are not kept, so that the next run asks again"
    if session.dropped:
        yield f"{session.dropped} rows of {store.place} were no answers: dropped, and asked for again"
    yield from store.remarks
    if tally.shapeless:
        yield f"{tally.shapeless} answers do not keep the JSON schema: they were read as plain text"
    if refused := sorted(session.offers.refused):
        yield f"the server takes no {' and '.join(refused)}: asked without"
    elif not session.offers.several:
        yield "the server ignores n: each draw was asked for alone"
    if session.shortened:
        yield f"{session.shortened} prompts were shown fewer examples, to fit the server's context"
    if session.too_long:
        yield (
            f"{session.too_long} prompts exceed the server's context: say fit = true in the recipe's table shots, so "
            "that they are shown fewer examples, or have the server read more tokens"
        )
    if tally.unanswered:
        first = tally.unanswered[0]
        lack = "its context is missing" if first.subject.strip() else "no subject"
        yield (
            f"{len(tally.unanswered)} queries lack answers ({session.why(lack)}), first "
            f"({first.subject!r}, {first.relation!r}); run again to go on from {store.place}"
        )
