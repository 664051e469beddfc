"""One recorded file: its rows by query, and what was found when they were asked for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

import msgspec

from lmkbc.errors import counted
from lmkbc.files.database import ByQuery
from lmkbc.generate.recorded_rows import RecordedRow
from lmkbc.models.base import CUT_OFF, WITHHELD, Reply
from lmkbc.names import shown, subject_key
from lmkbc.types import Pair, Query, State

EXAMPLES, LONGEST = 3, 60
"""Number of texts that are shown of those that cannot be read, and characters of each."""
_ROW = msgspec.msgpack.Decoder(RecordedRow)


def or_empty(state: State, reply: Reply | None) -> State:
    """Return the state of a draw; EMPTY if it could not be read because it has no text."""
    return State.EMPTY if state is State.UNPARSED and reply is not None and is_blank(reply) else state


def is_blank(reply: Reply) -> bool:
    """Return whether a reply that ended as usual has no text."""
    return not (shown(reply.text) or reply.failed or reply.finish in (*WITHHELD, *CUT_OFF))


class TextCounts:
    """Counts of a file's answers, and of its texts that cannot be read, by state; with examples."""

    def __init__(self) -> None:
        self.all, self.unread = 0, Counter[State]()
        self._examples: dict[str, None] = {}

    def count(self, states: Sequence[State], replies: Sequence[Reply | None]) -> None:
        """Count the draws of a query."""
        for state, reply in zip(map(or_empty, states, replies), replies, strict=False):
            self.all += 1
            if not state.is_answer:
                self.unread[state] += 1
                if reply is not None and state is not State.EMPTY and len(self._examples) < EXAMPLES:
                    self._examples[repr(reply.text[:LONGEST])] = None

    def __str__(self) -> str:
        """Return the counts as a sentence; what is not printable in texts is escaped."""
        empty = self.unread[State.EMPTY]
        others = (f"; {count:,} {state}" for state, count in sorted(self.unread.items()) if state != State.EMPTY)
        are = counted(empty, "is an empty string", "are empty strings")
        hint = f", {are}: --empty none counts them as 'there is none'" if empty else ""
        return (
            f"{self.unread.total():,} of {self.all:,} answers cannot be read{hint}{''.join(others)}"
            + f", such as {', '.join(self._examples)}; 'lmkbc report RUN --from FILE' shows all" * bool(self._examples)
        )


class RowsByQuery:
    """Rows of one file by query, the number of queries asked, and the number of these without rows.

    first: the first query asked of a relation in the file. respelled: query -> its row, if that spells the subject in
    another way. The rows are on disk, by the form of their subjects that spellings share.
    """

    def __init__(self, rows: Iterable[RecordedRow]) -> None:
        self._held = ByQuery()
        self.asked, self.missing = 0, 0
        self.first: Query | None = None
        self.relations = set[str]()
        self.respelled: dict[Pair, Pair] = {}
        self.texts = TextCounts()
        models: dict[str | None, None] = {}
        for row in rows:
            models[row.model] = None
            self.relations.add(row.Relation)
            self._held.add((subject_key(row.SubjectEntity), row.Relation), row.SubjectEntity, row)
        self.models = [model for model in models if model]

    def of(self, query: Query) -> list[RecordedRow]:
        """Return the rows of a query. Identifiers are compared only if both sides have one."""
        spelled = self._held.of((subject_key(query.subject), query.relation))
        other = query.subject if query.subject in spelled else [query.subject, *spelled][-1]
        if other != query.subject:
            self.respelled[query.subject, query.relation] = other, query.relation
        rows = map(_ROW.decode, spelled.get(other, ()))
        return [row for row in rows if not query.subject_id or row.SubjectEntityID in (None, "", query.subject_id)]

    def pairs(self) -> set[Pair]:
        """Return subject and relation of all rows."""
        return self._held.pairs()
