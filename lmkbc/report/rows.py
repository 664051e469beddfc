"""Every row of a run for a page: gold, kept and dropped objects with scores, sources and links; replies and errors.

The rows are also counted, in memory of a fixed size: errors, sizes of answers, and candidates by score. Candidates of a
relation whose scores agree in three digits are counted together.

Texts of models are cut to bounds, with a mark, and are never interpreted as markup.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from itertools import islice, repeat
from pathlib import Path
from typing import Any

import msgspec

from lmkbc.edition import Edition
from lmkbc.files.jsonl import read_jsonl
from lmkbc.generate.recorded_rows import EXISTENCE, CandidateRow, RecordedRow, each_row
from lmkbc.names import name_key
from lmkbc.report.levels import ScoreCounts
from lmkbc.report.links import Trace, Tracer
from lmkbc.run import submission
from lmkbc.run.saved import MissingRow, SavedRun
from lmkbc.scoring.table import WRONG, RowScore
from lmkbc.types import Example, Pair, Query, State

FAILED = "[the call failed]"
"""Text in place of a reply that did not come."""
EMPTIED, UNANSWERED, DRAW = "dropped", "failed", "draws: "
"""Marks of a row: all named objects were left out; no readable answer; beginning of the marks of draws."""
LONGEST_TEXT = 300
"""Characters of a name that are shown."""
LONGEST_REPLY = 4000
MOST_REPLIES, MOST_LOST = 20, 100


class Error(StrEnum):
    """A kind of error. A row may have several."""

    MISSED = "missed: never proposed"
    DROPPED = "missed: proposed, not kept"
    LINK = "wrong link"
    WRONG = "wrong object kept"
    ABSTAINED = "wrong abstention"
    INVENTED = "answered, where gold is empty"
    LONG = "over-long list"
    PARSE = "not parsed, or failed"


@dataclass(frozen=True, slots=True)
class Shown:
    """An object that was kept or dropped. score: None if unknown.

    trace: explanation of its link, or of its absence. due: for a wrong object, the missed gold id that its name may
    mean.
    """

    text: str
    id: str
    score: float | None
    source: str
    right: bool
    verification: float | None = None
    trace: Trace | None = None
    due: str = ""


@dataclass(frozen=True, slots=True)
class Row:
    """Row of a query. gold: each object's names, its id (or ""), and whether a kept object matches it.

    left_out: number of dropped objects that are not in the row. lost: named objects that a rule left out, each with the
    rule. marks: these rules, "link" if a name has no id, `EMPTIED`, `UNANSWERED`, and `DRAW` with the state of a draw
    without an answer. prompts: what was asked, each with its origin. unreadable: whether it has no answer at all.
    """

    pair: Pair
    subject_id: str
    score: RowScore
    gold: tuple[tuple[str, str, bool], ...]
    kept: tuple[Shown, ...]
    dropped: tuple[Shown, ...]
    errors: tuple[Error, ...]
    nothing: float | None = None
    reason: str = ""
    replies: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    left_out: int = 0
    lost: tuple[tuple[str, str], ...] = ()
    marks: tuple[str, ...] = ()
    prompts: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    unreadable: bool = False


@dataclass(frozen=True, slots=True)
class RecordedQuery:
    """Data about a query in a run's directory and in files of replies."""

    candidates: tuple[CandidateRow, ...] = ()
    nothing: float | None = None
    unparsed: bool = False
    reason: str = ""
    replies: tuple[tuple[str, str], ...] = ()
    traces: tuple[Trace | None, ...] = ()
    lost: tuple[tuple[str, str], ...] = ()
    prompts: tuple[tuple[str, str], ...] = ()

    @classmethod
    def of(cls, parts: Iterable[bytes]) -> RecordedQuery:
        """Return the union of parts, each encoded as msgpack: replies and prompts add up, other fields replace."""
        fields: dict[str, Any] = {"replies": [], "prompts": []}
        for part in map(msgspec.msgpack.decode, parts):
            more = {name: [*fields[name], *part.pop(name, ())][:MOST_REPLIES] for name in ("replies", "prompts")}
            fields |= part | more
        return msgspec.convert(fields, cls)


def cut(text: str, most: int) -> str:
    """Return a text cut to `most` characters. A mark at the end states the full length."""
    return text if len(text) <= most else f"{text[:most]} … [cut: {len(text):,} characters in all]"


def recorded(run: SavedRun, edition: Edition, replies: Sequence[Path]) -> Iterator[tuple[Pair, dict[str, Any]]]:
    """Yield what a run's directory and completions files hold about a query, as fields of a `RecordedQuery`.

    A query may have several parts, which `RecordedQuery.of` joins.
    """
    own_files = (run.path / name for name in (submission.CANDIDATES, submission.MISSING, submission.REPLIES))
    candidates, missing, asked = ([path] if path.is_file() else [] for path in own_files)
    for path in candidates:
        for row in each_row(path, edition):
            yield (row.SubjectEntity, row.Relation), _candidates(row)
    for path in missing:
        for lost in read_jsonl(path, MissingRow) if path.stat().st_size else ():
            yield (lost.SubjectEntity, lost.Relation), {"unparsed": True, "reason": cut(lost.reason, 100)}
    for path in (*asked, *replies):
        for row in each_row(path, edition):
            if row.completions is not None:
                yield (row.SubjectEntity, row.Relation), {"replies": _replies(row)}


def _candidates(row: RecordedRow) -> dict[str, Any]:
    nothing = None
    objects = []
    for candidate in row.candidates or ():
        if candidate.object:
            objects.append(candidate)
        elif not (candidate.source or "").endswith(EXISTENCE):
            nothing = candidate.score
    lost = [(cut(text, LONGEST_TEXT), cut(rule, LONGEST_TEXT)) for text, rule in row.dropped_objects[:MOST_LOST]]
    return {"candidates": tuple(objects), "nothing": nothing, "unparsed": row.dropped, "lost": lost}


def _replies(row: RecordedRow) -> list[tuple[str, str]]:
    name = row.called or "model"
    texts = (FAILED if text is None else cut(text, LONGEST_REPLY) for text in row.completions or ())
    return [(cut(f"{name} #{number}", LONGEST_TEXT), text) for number, text in enumerate(islice(texts, MOST_REPLIES))]


def traced(tracer: Tracer, noted: Sequence[tuple[Query, RecordedQuery]]) -> Iterator[tuple[Query, RecordedQuery]]:
    """Yield queries with their recorded data, and with explanations of their candidates' links."""
    given = [(query, [(candidate.object, candidate.id) for candidate in note.candidates]) for query, note in noted]
    for (query, note), traces in zip(noted, tracer.traces(given), strict=True):
        yield query, replace(note, traces=tuple(traces))


def mentioned(rows: Iterable[Row]) -> set[str]:
    """Return all ids in rows."""
    objects = [one for row in rows for one in (*row.kept, *row.dropped)]
    others = (other for trace in {one.trace for one in objects if one.trace} for other, _ in trace.others)
    gold = (identifier for row in rows for _, identifier, _ in row.gold)
    return {one for one in (*(one.id for one in objects), *others, *gold) if one}


def row_of(edition: Edition, example: Example, answer: Any, score: RowScore, note: RecordedQuery) -> Row:
    """Return the row of a scored query. answer: the objects that the run submits."""
    relation, scorer = example.query.relation, edition.metric.scorer
    gold = edition.gold_column(example)
    names = {other.id: other.name for other in example.objects if other.id}
    finds = {index for value in answer for index in scorer.matches(value, gold, relation)}

    goals = tuple(_goal(item, names, index in finds) for index, item in enumerate(gold))
    missed = {identifier: name for name, identifier, found in goals if identifier and not found}
    by_name = {name_key(name): identifier for identifier, name in missed.items()}

    def shown(text: str, value: str, row: CandidateRow | None = None, trace: Trace | None = None) -> Shown:
        right = bool(value) and bool(scorer.matches(value, gold, relation))
        others = trace.others if trace else ()
        meant = by_name.get(name_key(text)) or next((one for one, _ in others if one in missed), "")
        return Shown(
            cut(text, LONGEST_TEXT),
            cut(row.id or "", 40) if row else value if edition.target == "id" else "",
            row.score if row else None,
            cut(row.source or "", LONGEST_TEXT) if row else "",
            right,
            row.verification if row else None,
            trace,
            "" if right else meant,
        )

    pool: dict[str, tuple[str, CandidateRow, Trace | None]] = {}
    lost: list[Shown] = []
    for candidate, trace in zip(note.candidates, note.traces or repeat(None), strict=False):
        value = (candidate.id or "") if edition.target == "id" else candidate.object
        if value:
            pool.setdefault(scorer.key(value), (value, candidate, trace))
        else:
            lost.append(shown(candidate.object, "", candidate, trace))
    pooled, kept = bool(pool), []
    for value in () if answer is WRONG else answer:
        held = pool.pop(scorer.key(value), None)
        kept.append(shown(held[1].object, value, *held[1:]) if held else shown(names.get(value, value), value))
    dropped = [shown(candidate.object, value, candidate, trace) for value, candidate, trace in pool.values()]
    dropped += lost
    marks = {rule for _, rule in note.lost} | ({"link"} if lost else set())
    marks |= {EMPTIED} if marks and not pooled else set()
    marks |= {UNANSWERED, *(DRAW + state for state in note.reason.split(", "))} if note.reason else set()
    marks |= {DRAW + State.MISSING} if any(text == FAILED for _, text in note.replies) else set()
    errors = _errors(goals, kept, dropped, note, answered=answer is not WRONG)
    reason = note.reason or ("objects were named, and none could be kept" if note.unparsed else "")
    return Row(
        (example.query.subject, relation),
        example.query.subject_id or "",
        score,
        goals,
        tuple(kept),
        tuple(dropped),
        errors,
        note.nothing,
        reason,
        note.replies,
        lost=note.lost,
        marks=tuple(sorted(marks)),
        prompts=note.prompts,
        unreadable=answer is WRONG,
    )


def _goal(item: Any, names: Mapping[str, str], found: bool) -> tuple[str, str, bool]:
    if isinstance(item, str):
        return cut(names.get(item, item), LONGEST_TEXT), item if item in names else "", found
    return cut(" / ".join(item[:5]), LONGEST_TEXT), "", found


def _errors(
    gold: Sequence[tuple[str, str, bool]],
    kept: Sequence[Shown],
    dropped: Sequence[Shown],
    note: RecordedQuery,
    *,
    answered: bool,
) -> tuple[Error, ...]:
    """Return the kinds of errors of a row, each once."""
    missed = [name for name, _, found in gold if not found]
    proposed = sum(one.right for one in dropped)
    wrong = not all(one.right for one in kept)
    found = {
        Error.DROPPED: missed and proposed,
        Error.MISSED: len(missed) > proposed,
        Error.LINK: any(one.due for one in (*kept, *dropped)),
        Error.WRONG: wrong and gold,
        Error.ABSTAINED: gold and not kept and answered,
        Error.INVENTED: kept and not gold,
        Error.LONG: gold and wrong and len(kept) > len(gold),
        Error.PARSE: note.unparsed,
    }
    return tuple(error for error, there in found.items() if there)


@dataclass(slots=True)
class RowCounts:
    """Counts of all rows.

    confusion: queries by whether gold has objects, then by whether the answer has. sizes: (gold, kept) -> queries. Both
    leave out queries without a readable answer.
    gold: relation -> gold objects. scores: relation -> its scored candidates. marks: mark -> queries.
    """

    rows: int = 0
    confusion: list[list[int]] = field(default_factory=lambda: [[0, 0], [0, 0]])
    errors: Counter[Error] = field(default_factory=Counter)
    sizes: Counter[tuple[int, int]] = field(default_factory=Counter)
    gold: Counter[str] = field(default_factory=Counter)
    marks: Counter[str] = field(default_factory=Counter)
    scores: defaultdict[str, ScoreCounts] = field(default_factory=lambda: defaultdict(ScoreCounts))

    def add(self, row: Row) -> None:
        """Count a row."""
        relation, score = row.pair[1], row.score
        self.rows += 1
        if not row.unreadable:
            self.confusion[bool(score.gold)][bool(score.predicted)] += 1
            self.sizes[score.gold, score.predicted] += 1
        self.errors.update(row.errors)
        self.marks.update(row.marks)
        self.gold[relation] += score.gold
        for kept, objects in ((True, row.kept), (False, row.dropped)):
            for one in objects:
                if one.score is not None:
                    self.scores[relation].add(one.score, one.right, kept)
