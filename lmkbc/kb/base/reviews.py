"""Decisions of persons about the facts of a base: one file beside its tables, which outlives every build.

A line of `reviews.jsonl` is a decision about one object: right or wrong, by whom and when, perhaps with a source. It
names things by QID or by name, never by row. So it means the same in a base that another model built. Of two decisions
about one object, the later date counts, then the last given.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date as calendar
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import msgspec

from lmkbc.errors import OptionError
from lmkbc.files import atomic
from lmkbc.files.jsonl import decoded, numbered
from lmkbc.kinds.url import is_address
from lmkbc.names import QID, as_qid, name_key, shown, spelling

REVIEWS = "reviews.jsonl"
"""Name of the file of decisions in the directory of a base."""
PERSON = "review"
"""Source and model of a fact that a person gave."""
LONGEST = 5_000
"""Most characters of a quote, and of a name."""
_Text = Annotated[str, msgspec.Meta(min_length=1, max_length=LONGEST)]
_Qid = Annotated[str, msgspec.Meta(pattern=f"^{QID}$")]
REVIEWED = ("reviewed_by", "reviewed_on", "source", "quote")
"""Columns of facts that a decision fills; null for other facts."""


class Verdict(StrEnum):
    """Verdict of a person on an object."""

    RIGHT = "right"
    WRONG = "wrong"
    UNKNOWN = "unknown"


class Review(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A decision about an object of a subject.

    literal: of a number, a date or a place, as facts have it. reviewed_on: a day, as in 2026-11-22. source: address of
    a page, or the QID of an item that is a source. quote: what the source says; it is data, as all texts of others.
    """

    relation: _Text
    subject: _Text
    subject_id: _Qid | None = None
    object: _Text
    object_id: _Qid | None = None
    literal: _Text | None = None
    verdict: Verdict
    reviewed_by: _Text
    reviewed_on: Annotated[str, msgspec.Meta(pattern=r"^[0-9]{4}-[0-9]{2}-[0-9]{2}\Z")]
    source: Annotated[str, msgspec.Meta(pattern=rf"^(?:https?://\S{{1,2000}}|{QID})\Z")] | None = None
    quote: _Text | None = None

    def __post_init__(self) -> None:
        try:
            calendar.fromisoformat(self.reviewed_on)
        except ValueError as error:
            raise ValueError(f"reviewed_on is no day: {error}") from None
        if self.source and as_qid(self.source) is None and not is_address(self.source):
            raise ValueError(f"source {self.source!r} is no address of a page: write its other signs as %20 and so on")
        for name in ("subject", "object", "reviewed_by"):
            if not shown(getattr(self, name)):
                raise ValueError(f"{name} is blank")

    def is_about(self, subject: str, subject_id: str | None) -> bool:
        """Return whether the decision is about a subject."""
        return _same(self.subject_id, (self.subject,), subject_id, (subject,))

    def closest(self, subjects: Mapping[int, tuple[str, str | None]]) -> dict[int, tuple[str, str | None]]:
        """Return those of some subjects that have its QID, else its spelling, else all."""
        same_id = {row: one for row, one in subjects.items() if one[1] and one[1] == self.subject_id}
        spelt = {row: one for row, one in subjects.items() if spelling(one[0]) == spelling(self.subject)}
        return same_id or spelt or {**subjects}

    def is_of(self, row: Mapping[str, Any]) -> bool:
        """Return whether an object of the subject is the decided one. row: its columns of facts, or of a decision."""
        if self.literal is not None and row["literal"] is not None:
            return bool(self.literal == row["literal"])
        names = (row["object"], row.get("object_label"))
        return _same(self.object_id, (self.object,), row["object_id"], names)


def _same(qid: str | None, names: Iterable[str], other: str | None, others: Iterable[str | None]) -> bool:
    """Return whether two things are the same: by QID if both have one, else by a folded name."""
    if qid and other:
        return qid == other
    return not {*map(name_key, names)}.isdisjoint(map(name_key, filter(None, others)))


def distinct(subjects: Mapping[int, tuple[str, str | None]]) -> list[tuple[str, str | None]]:
    """Return name and QID of some subjects, each once. Rows with one QID are one subject."""
    return [*{qid or row: (name, qid) for row, (name, qid) in subjects.items()}.values()]


def _dispute(reviews: Sequence[Review]) -> str:
    """Return decisions that differ, the one that counts last, in one line."""
    each = (f"{one.object!r} is {one.verdict} says {one.reviewed_by} on {one.reviewed_on}" for one in reviews)
    counts = reviews[-1].reviewed_by
    return f"{reviews[0].relation} of {reviews[0].subject!r}: {', '.join(each)}; {counts} counts"


def _with_id(*reviews: Review) -> Review:
    """Return the last decision about an object, with the last QID of earlier ones that agree if it names none."""
    *earlier, last = reviews
    ids = [one.object_id for one in earlier if one.object_id and one.verdict is Verdict.RIGHT is last.verdict]
    return msgspec.structs.replace(last, object_id=ids[-1]) if ids and not last.object_id else last


def _by_object(reviews: Iterable[Review]) -> list[list[Review]]:
    """Return the decisions about each object of a subject, in order, the one that counts last."""
    groups = list[list[Review]]()
    for review in sorted(reviews, key=lambda one: one.reviewed_on):
        row = msgspec.structs.asdict(review)
        of_object = next((group for group in groups if group[0].is_of(row)), None)
        groups.append([review]) if of_object is None else of_object.append(review)
    return groups


class SubjectReviews:
    """Decisions of persons about one subject in one relation. one_object: whether a subject has at most one object.

    right: the right objects. If there is at most one, it is the one that was decided last, and no other object stays.
    """

    def __init__(self, reviews: Sequence[Review], *, one_object: bool) -> None:
        self._groups = _by_object(reviews)
        right = [group for group in self._groups if group[-1].verdict is Verdict.RIGHT]
        if one_object and right:
            place = {id(one): at for at, one in enumerate(reviews)}
            right = [max(right, key=lambda group: (group[-1].reviewed_on, place[id(group[-1])]))]
        self._last, self.right = ([_with_id(*group) for group in groups] for groups in (self._groups, right))
        self._is_alone = one_object and bool(right)

    def applied(self, facts: Sequence[dict[str, Any]]) -> tuple[list[dict[str, Any]], list[Review]]:
        """Return the facts that stay, and right objects that are no fact. facts: rows of the subject in a base.

        A fact without a QID takes that of its decision, unless another fact has it.
        """
        kept, lacking = list[dict[str, Any]](), [*self.right]
        linked = {row["object_id"] for row in facts}
        for row in facts:
            found = next((one for one in self._last if one.is_of(row)), None)
            if found in self.right:
                lacking = [one for one in lacking if one != found]
                taken = {}
                if found and found.object_id and row["object_id"] is None:
                    if found.object_id in linked:
                        continue
                    taken = {"object_id": found.object_id, "object_entity": None}
                    linked.add(found.object_id)
                kept.append({**row, **taken, "confidence": 1.0, "calibrated": True, **decided(found)})
            elif not self._is_alone and (found is None or found.verdict is Verdict.UNKNOWN):
                kept.append(row)
        return kept, lacking

    def disputes(self) -> Iterator[str]:
        """Yield the decisions of several persons that differ."""
        for group in self._groups:
            own = {one.reviewed_by: one for one in group if one.verdict is not Verdict.UNKNOWN}
            if len({one.verdict for one in own.values()}) > 1:
                yield _dispute(sorted(own.values(), key=group.index))
        if self._is_alone:
            others = [one for one in self._last if one.verdict is Verdict.RIGHT and one is not self.right[0]]
            if others := [one for one in others if one.reviewed_by != self.right[0].reviewed_by]:
                yield _dispute([*others, self.right[0]])


def decided(review: Review | None) -> dict[str, str]:
    """Return the columns of facts that a decision fills. A fact's own source and quote stay where it has none."""
    return {name: value for name in REVIEWED if (value := getattr(review, name, None)) is not None}


def keys_of(name: str, qid: str | None) -> list[str]:
    """Return the keys by which a thing is found: its QID, and its folded name."""
    return [*filter(None, (qid,)), f":{name_key(name)}"]


class RelationReviews:
    """The decisions about a relation, found by subject."""

    def __init__(self, rows: Iterable[Review]) -> None:
        self.rows, self._index = [*rows], defaultdict[str, list[int]](list)
        for at, row in enumerate(self.rows):
            for key in keys_of(row.subject, row.subject_id):
                self._index[key].append(at)

    def places(self, subject: str, subject_id: str | None) -> list[int]:
        """Return the places of the decisions about a subject, in order."""
        places = {at for key in keys_of(subject, subject_id) for at in self._index.get(key, ())}
        return [at for at in sorted(places) if self.rows[at].is_about(subject, subject_id)]

    def about(self, subject: str, subject_id: str | None) -> list[Review]:
        """Return the decisions about a subject, in order."""
        return [self.rows[at] for at in self.places(subject, subject_id)]


class Reviews:
    """The decisions about a base, in the order in which they were given."""

    def __init__(self, rows: Iterable[Review] = ()) -> None:
        self.rows = [*rows]

    @classmethod
    def read(cls, path: Path) -> Reviews:
        """Read the decisions of a base, or of such a file; none if a base has no file. InputError names a bad line."""
        if path.is_dir():
            path /= REVIEWS
            if not path.is_file():
                return cls()
        decoder = msgspec.json.Decoder(Review)
        return cls(row for number, line in numbered(path) for row in decoded(path, line, decoder, number))

    @classmethod
    def taken(cls, path: Path) -> Reviews:
        """Read the decisions that another base is to take over. OptionError for a directory that is no base."""
        if path.is_dir() and not any((path / name).is_file() for name in (REVIEWS, "manifest.json")):
            raise OptionError("reviews", f"{path} is no knowledge base: name one, or its file {REVIEWS}")
        return cls.read(path)

    def of(self, relation: str) -> RelationReviews:
        """Return the decisions about a relation."""
        return RelationReviews(row for row in self.rows if row.relation == relation)

    def added(self, reviews: Iterable[Review], undated: Iterable[Review] = ()) -> Reviews:
        """Return these decisions and further ones. Of one person about one object, the later one stays.

        undated: further ones whose day is only that of the command, so that the same ones of an earlier day stay.
        """
        own, loose = dict[int, Review](), {id(one) for one in undated}
        index = defaultdict[tuple[str, ...], dict[int, Review]](dict)
        for review in (*self.rows, *reviews):
            keys = [(review.relation, review.reviewed_by, key) for key in keys_of(review.subject, review.subject_id)]
            row, near = msgspec.structs.asdict(review), {at: one for key in keys for at, one in index[key].items()}
            about = (one for at, one in near.items() if at in own and one.is_about(review.subject, review.subject_id))
            after = review
            if there := next((one for one in about if one.is_of(row)), None):
                day, after = there.reviewed_on if id(review) in loose else review.reviewed_on, _with_id(there, review)
                if there.reviewed_on > day or msgspec.structs.replace(after, reviewed_on=day) == there:
                    continue
                del own[id(there)]
            own[id(after)] = after
            for key in keys:
                index[key][id(after)] = after
        return Reviews(own.values())

    def disputes(self, one_object: Mapping[str, bool]) -> list[str]:
        """Return the decisions of several persons that differ. one_object: relation -> whether it has one object."""
        found = dict[str, None]()
        for relation, is_single in one_object.items():
            about = self.of(relation)
            for one in about.rows:
                own = SubjectReviews(about.about(one.subject, one.subject_id), one_object=is_single)
                found |= dict.fromkeys(own.disputes())
        return [*found]

    def into(self, base: Path, undated: Iterable[Review] = ()) -> tuple[Reviews, int]:
        """Add these decisions to those of a base, and return all, and how many are new. undated: as in `added`.

        Its file is written only if it changes.
        """
        before = Reviews.read(base)
        after, there = before.added(self.rows, undated), {*before.rows}
        if after.rows != before.rows:
            after.write(base)
        return after, sum(one not in there for one in after.rows)

    def write(self, base: Path) -> None:
        """Write the decisions into the directory of a base. The file appears whole, or stays as it was."""
        atomic.write_bytes(base / REVIEWS, b"".join(msgspec.json.encode(row) + b"\n" for row in self.rows))
