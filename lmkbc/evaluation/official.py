"""Scores of predictions by the edition's official script, with counts of odd rows.

Predictions and gold are files, or rows in memory; both are read in parallel. A row is scored as soon as both sides have
it, and only its counts are kept. Memory therefore holds only rows that the other side does not have yet.
"""

from __future__ import annotations

import logging
from array import array
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence, Set
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import Any

import msgspec

from lmkbc.edition import Edition
from lmkbc.errors import InputError, counted, did_you_mean
from lmkbc.files.columns import Column, Rows, is_lone_none, log_lone_nones, namesakes, respelled
from lmkbc.files.fact_rows import field_of
from lmkbc.files.jsonl import no_collection
from lmkbc.files.splits import log_namesakes
from lmkbc.names import subject_key
from lmkbc.scoring.table import WRONG, Table, Tally
from lmkbc.session.subset import WHOLE, Subset
from lmkbc.types import Pair

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Evaluation:
    """Official table, and the numbers of rows that were missing, unknown, repeated or malformed.

    repeated: rows that answer a query again, except where the gold file repeats the query as often. unreadable: queries
    that count as wrong because the run has no readable answer. unknown_relation: sentence about the first row of a
    relation that the gold has not; "" without any.
    """

    table: Table
    missing: int
    unknown: int
    repeated: int
    malformed: int
    unreadable: int = 0
    unknown_relation: str = ""

    @property
    def remarks(self) -> str:
        """Return one line about the odd rows, or an empty string."""
        counts = {name: getattr(self, name) for name in ("missing", "unknown", "repeated", "malformed")}
        return ", ".join(f"{count} {name}" for name, count in counts.items() if count)


def evaluate(
    predictions: Path | Rows,
    gold: Path | Rows,
    edition: Edition,
    *,
    strict: bool = False,
    rows: bool = False,
    subset: Subset = WHOLE,
    unreadable: Set[Pair] = frozenset(),
) -> Evaluation:
    """Score a file, or rows in memory.

    Odd rows are treated as in the official script, or refused if strict. subset: the gold queries that count.
    unreadable: queries without a row that count as wrong. Raise InputError if two rows answer one query with different
    objects: the official script would keep the last.
    """
    answers = Column(predictions, edition, str) if isinstance(predictions, Path) else predictions
    truth = Column(gold, edition, str | list[str]) if isinstance(gold, Path) else gold
    if not subset.is_whole:
        answers.keeps = truth.keeps = _keeps(truth, subset)
    with no_collection():
        match = _Match(edition, answers, truth, rows)
        match.read()
        if again := match.repeated_keys():  # the second pass knows which rows have to wait
            match = _Match(edition, answers, truth, rows, again)
            match.read()
            namesakes(answers, match.answered_again, agree=True)
            log_namesakes(truth.path, [*match.queried_again] if edition.is_bundled else [])
        match.read_nothing_more(unreadable, strict=strict)
        if (first := match.no_gold.first) is not None:
            raise InputError(
                f"{truth.path}, row {_shown(first)}, {field_of(truth.path, edition.column)}: no list of objects; "
                "give a labelled split"
            )
        if not match.queries:
            named = f" of {subset.words}" if subset.words else ""
            raise InputError(f"{truth.path} has no query{named} that can be scored: give rows of a labelled split")
        _refuse(answers.path, edition, match, strict=strict)
        log_lone_nones(answers.path, match.lone_nones)
        if isinstance(answers, Column) and answers.respelled:
            names = ", ".join(f"{called!r} as {own}" for called, own in answers.respelled.items())
            log.warning(
                "%s: relations read by other names, %s; the official script finds none of these", answers.path, names
            )
        odd = (len(match.missing), len(match.unknown), match.repeated, match.malformed.count)
        table = match.tally.table()
        return Evaluation(
            table, *odd, match.unreadable_answers, _unknown_relation(answers, truth, table, match.unknown)
        )


def _keeps(gold: Rows, subset: Subset) -> Callable[[Any], bool]:
    """Return a function that tests whether a row belongs to the subset of the gold."""
    if all(part.limit is None for part in (subset, *subset.within)):
        return lambda row: subset.holds(row.Relation)
    rows = subset.rows(gold.rows(), lambda row: str(row.Relation))
    pairs = {(subject_key(row.SubjectEntity), row.Relation) for row in rows}
    return lambda row: (subject_key(row.SubjectEntity), row.Relation) in pairs


@dataclass(slots=True)
class _Odd:
    """Number of rows that are odd in the same way, and the first such row."""

    count: int = 0
    first: Pair | None = None

    def note(self, pair: Pair) -> None:
        self.count += 1
        self.first = self.first or pair


class _Waiting:
    """Rows that wait for the other file.

    A row is stored as position and JSON in one bytes object, which takes a tenth of the memory of Python objects.
    """

    def __init__(self) -> None:
        self._rows: defaultdict[str, dict[str, bytes]] = defaultdict(dict)  # by relation, then subject

    def __contains__(self, pair: Pair) -> bool:
        return pair[0] in self._rows[pair[1]]

    def put(self, pair: Pair, place: int, value: Any) -> None:
        """Store a row. A row of the same pair is replaced and keeps its position."""
        rows = self._rows[pair[1]]
        first = rows.get(pair[0], b"")[:8] or place.to_bytes(8, "big")
        rows[pair[0]] = first + msgspec.json.encode(value, enc_hook=str)

    def take(self, pair: Pair) -> tuple[int, Any]:
        """Remove a row, and return its position and value. Raise KeyError if there is none."""
        row = self._rows[pair[1]].pop(pair[0])
        return int.from_bytes(row[:8]), msgspec.json.decode(memoryview(row)[8:])

    def pairs(self) -> list[Pair]:
        """Return all waiting pairs, by position."""
        rows = [(row[:8], (subject, name)) for name, held in self._rows.items() for subject, row in held.items()]
        return [pair for _, pair in sorted(rows)]


class _Match:
    """Matches gold rows with answers while two files are read.

    repeating: hashes of the pairs that a file holds twice. All rows of these pairs wait for the end of the files.
    """

    def __init__(
        self,
        edition: Edition,
        answers: Rows,
        gold: Rows,
        rows: bool,
        repeating: frozenset[int] = frozenset(),
    ) -> None:
        self.tally = Tally(edition.metric, rows)
        self._answers, self._gold = answers, gold
        self.queries = self.unreadable_answers = self.lone_nones = 0
        self.answered_again: Counter[Pair] = Counter()
        self.queried_again: Counter[Pair] = Counter()
        self.malformed, self.unreadable, self.no_gold = _Odd(), _Odd(), _Odd()
        self.missing: list[Pair] = []
        self._repeating = repeating
        self.unknown: list[Pair] = []
        self._waiting_gold, self._waiting_answers = _Waiting(), _Waiting()
        self._keys = {"both": array("q"), "gold": array("q"), "answers": array("q")}

    @property
    def repeated(self) -> int:
        """Return the number of rows that answer a query more often than the gold asks it."""
        return sum((self.answered_again - self.queried_again).values())

    def read(self) -> None:
        """Read both files and score each row as soon as both sides have it."""
        answers, gold = self._answers, self._gold
        both, repeating = self._keys["both"].append, self._repeating
        for place, (answer, true) in enumerate(zip_longest(answers.rows(), gold.rows())):
            if answer and true and answer.SubjectEntity == true.SubjectEntity and answer.Relation == true.Relation:
                pair = (answer.SubjectEntity, answer.Relation)
                key = hash(pair)
                both(key)
                if key not in repeating:
                    self.queries += 1
                    self._check(pair, answer.objects, answers.loose)
                    self._score(place, pair, answer.objects, true.objects, gold.loose)
                    continue
            elif true:
                self._keys["gold"].append(hash((true.SubjectEntity, true.Relation)))
            if true:
                self._take_gold(place, (true.SubjectEntity, true.Relation), true.objects)
            if answer:
                self._keys["answers"].append(hash((answer.SubjectEntity, answer.Relation)))
                self._take_answer(place, (answer.SubjectEntity, answer.Relation), answer.objects, answers.loose)

    def repeated_keys(self) -> frozenset[int]:
        """Return the hashes of the pairs that one of the files holds twice."""
        again: set[int] = set()
        for side in ("gold", "answers"):
            keys = self._keys["both"] + self._keys[side]
            if len(set(keys)) < len(keys):
                again.update(key for key, count in Counter(keys).items() if count > 1)
        return frozenset(again)

    def read_nothing_more(self, unreadable: Set[Pair], *, strict: bool) -> None:
        """Score the rows that waited for the end of the files.

        unreadable: queries that count as wrong if they have no row. strict: whether only a row with the exact subject
        answers a query, and a query that is unreadable has no row.
        """
        gold_pairs, answers = self._waiting_gold.pairs(), self._waiting_answers
        spelled: dict[Pair, Pair] = {}
        if not strict:
            lacking = (pair for pair in gold_pairs if pair not in answers)
            spelled = respelled(
                self._answers.path, lacking, (pair for pair in answers.pairs() if pair not in self._waiting_gold)
            )
        for pair in gold_pairs:
            place, gold = self._waiting_gold.take(pair)
            if (row := spelled.get(pair, pair)) in answers:
                _, answer = answers.take(row)
                self._check(pair, answer, hash(pair) in self._repeating)
            elif pair in unreadable and not strict:
                answer = WRONG
                self.unreadable_answers += 1
            else:
                answer = ()
                self.missing.append(pair)
            self._score(place, pair, answer, gold)
        self.unknown = self._waiting_answers.pairs()
        for pair in filter(lambda pair: hash(pair) in self._repeating, self.unknown):
            self._check(pair, self._waiting_answers.take(pair)[1], True)

    def _take_gold(self, place: int, pair: Pair, value: Any) -> None:
        if pair in self._waiting_gold:
            self.queried_again[pair] += 1
        else:
            self.queries += 1
        if pair in self._waiting_answers and hash(pair) not in self._repeating:
            self._score(place, pair, self._waiting_answers.take(pair)[1], value)
        else:
            self._waiting_gold.put(pair, place, value)

    def _take_answer(self, place: int, pair: Pair, value: Any, loose: bool) -> None:
        if hash(pair) in self._repeating:
            if pair in self._waiting_answers:
                self.answered_again[pair] += 1
            self._waiting_answers.put(pair, place, value)
            return
        self._check(pair, value, loose)
        if pair in self._waiting_gold:
            where, gold = self._waiting_gold.take(pair)
            self._score(where, pair, value, gold)
        else:
            self._waiting_answers.put(pair, place, value)

    def _check(self, pair: Pair, value: Any, loose: bool) -> None:
        self.lone_nones += is_lone_none(value)
        if loose and not (isinstance(value, list) and all(isinstance(item, str) for item in value)):
            self.malformed.note(pair)

    def _score(self, place: int, pair: Pair, answer: Any, gold: Any, loose: bool = True) -> None:
        if loose and not isinstance(gold, list):
            self.no_gold.note(pair)
            return
        try:
            self.tally.add(place, *pair, answer, gold)
        except (TypeError, AttributeError, RecursionError):
            self.unreadable.note(pair)


def _refuse(path: Path, edition: Edition, match: _Match, *, strict: bool) -> None:
    """Raise InputError for rows that are not scored.

    If strict, these are all odd rows; else only those on which the official script stops.
    """
    missing, unknown, malformed = match.missing, match.unknown, match.malformed
    if strict and (missing or unknown or match.repeated or malformed.count):
        odd = [*missing[:1], *unknown[:1], *([malformed.first] if malformed.first else ())]
        example = f", first {_shown(odd[0])}" if odd else ""
        raise InputError(
            f"{path}: {len(missing)} missing, {len(unknown)} unknown, {match.repeated} repeated and "
            f"{malformed.count} malformed rows{example}; mend the file or drop --strict"
        )
    if missing and edition.metric.missing == "refuse":
        raise InputError(
            f"{path} lacks {len(missing)} of {match.queries} queries, first {_shown(missing[0])}; the official "
            f"script of edition {edition.name} stops there: add these rows"
        )
    if match.unreadable.first is not None:
        raise InputError(
            f"{path}, row {_shown(match.unreadable.first)}, {field_of(path, edition.column)}: not a list of strings, "
            f"and the official script of edition {edition.name} stops there; write each object as one string"
        )


def _unknown_relation(answers: Rows, gold: Rows, table: Table, unknown: Sequence[Pair]) -> str:
    """Return a sentence with the place of the first row of a relation that the gold has not; "" without any."""
    lacking = Counter(name for _, name in unknown if name not in table.relations)
    if not lacking:
        return ""
    place, name = next((place, row.Relation) for place, row in answers.numbered() if row.Relation in lacking)
    rows = counted(lacking.total(), "row of such a relation is", "rows of such relations are")
    return (
        f"{answers.path}, {place}, {field_of(answers.path, 'Relation')}: {name!r} is no relation of {gold.path}; "
        f"{did_you_mean(name, table.relations)} {rows} not scored"
    )


def _shown(pair: Pair) -> str:
    return f"({pair[0]!r}, {pair[1]!r})"
