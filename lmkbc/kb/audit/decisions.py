"""From labels to decisions: what a person says of facts becomes part of a base."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from getpass import getuser
from pathlib import Path
from typing import NamedTuple

import msgspec

from lmkbc.errors import InputError, counted, did_you_mean
from lmkbc.files.splits import check_one_meaning
from lmkbc.files.writable import writing_alone
from lmkbc.kb.audit.labels_file import Label, LabelRow, checked, read_labels
from lmkbc.kb.base.knowledge import Knowledge
from lmkbc.kb.base.manifest import About, relation_names
from lmkbc.kb.base.reviews import RelationReviews, Review, Reviews, Verdict, distinct
from lmkbc.kinds.kind import kind_of
from lmkbc.names import as_qid, name_key
from lmkbc.words import names_nothing

COLUMNS = {"reviewed_by": "reviewer", "reviewed_on": "date"}
"""Field of a decision -> its column in a file of labels."""
OF_VALUE = {"object": "value", "object_id": "value_id"}
"""The same for the right object in place of a wrong one."""


@dataclass(frozen=True)
class ReviewedBase:
    """The decisions about a base. added: those that it did not have before.

    counts: verdict -> number of decisions. disputes: those of several persons that differ. unasked: decisions about
    subjects that the base does not ask in their relation; they are kept, and change nothing until it does. ambiguous:
    decisions without a QID about a name that several subjects have by now; they are kept, and change nothing.
    """

    directory: Path
    added: int
    counts: Mapping[str, int]
    disputes: Sequence[str]
    unasked: Sequence[Review]
    ambiguous: Sequence[Review] = ()

    def sentences(self, most: int = 20) -> Iterator[str]:
        """Yield the result in words. most: disputes to name."""
        every, counts = counted(sum(self.counts.values()), "decision"), sorted(self.counts.items())
        each = ", ".join(f"{number} {verdict}" for verdict, number in counts)
        yield f"{self.directory}: {every}, {self.added} of them new{each and f': {each}'}"
        for dispute in self.disputes[:most]:
            yield f"reviewers differ, and the later date counts, then the last given: {dispute}"
        if len(self.disputes) > most:
            yield f"reviewers differ about {len(self.disputes) - most} more"
        for first in self.unasked[:1]:
            yield (
                f"{counted(len(self.unasked), 'decision')} about subjects that the base does not ask, first "
                f"{first.relation} of {first.subject!r}: kept until it asks them, as after 'lmkbc build --add'"
            )
        for first in self.ambiguous[:1]:
            yield (
                f"{counted(len(self.ambiguous), 'decision')} without subject_id, whose subject's name several subjects "
                f"have, first {first.relation} of {first.subject!r}: without effect; decide again with the subject_id"
            )


def decide(path: Path, file: Path | None, reviewer: str | None) -> ReviewedBase:
    """Make the labels of a file decisions about a base, and return all its decisions.

    reviewer: person of labels that name none; None for the login. The day of labels without one is today. InputError
    for a file without a decision, and, with file, row and field, for what cannot be one.
    """
    base, today = Knowledge(path, as_built=True), datetime.now(UTC).astimezone().date().isoformat()
    by = reviewer or getuser()
    given = _identified(decisions(file, base.relations, by, today), base) if file is not None else []
    if file is not None and not given:
        raise InputError(f"{file} decides nothing: fill in its column label (right, wrong, unknown)")
    with writing_alone(path):
        undated = [one.review for one in given if not one.is_dated]
        after, added = Reviews(one.review for one in given).into(path, undated)
    found = Knowledge(path)
    disputes = after.disputes({name: about.one_object for name, about in found.relations.items()})
    counts = Counter(one.verdict.value for one in after.rows)
    idle = found.idle()
    unasked, ambiguous = ([one for one, several in idle if bool(several) == shared] for shared in (False, True))
    return ReviewedBase(path, added, counts, disputes, unasked, ambiguous)


class Decision(NamedTuple):
    """A decision of a file of labels. place: file and line. is_dated: whether the file says its day."""

    place: str
    review: Review
    is_dated: bool


def _identified(given: Iterable[Decision], base: Knowledge) -> list[Decision]:
    """Return decisions with the QIDs of their subjects. InputError for a name that several subjects have."""
    left = [*given]
    for relation in base.relations:
        places = [at for at, one in enumerate(left) if one.review.relation == relation]
        reviews = RelationReviews(left[at].review for at in places)
        for at, subjects in zip(places, base.subjects_of(reviews, relation), strict=True):
            review, meant = left[at].review, distinct(subjects)
            if len(meant) > 1:
                ids = " or ".join(sorted(qid for _, qid in meant if qid))
                todo = f"give the subject_id, {ids}" if ids else "none of them has a QID, so build with a QID for each"
                name = f"{left[at].place}, field subject: {review.subject!r}"
                raise InputError(f"{name} is the name of {len(meant)} subjects of this base: {todo}")
            qid = review.subject_id or next((qid for _, qid in meant), None)
            left[at] = left[at]._replace(review=msgspec.structs.replace(review, subject_id=qid))
    return left


def decisions(path: Path, relations: Mapping[str, About], reviewer: str, today: str) -> Iterator[Decision]:
    """Yield the decisions of a file of labels."""
    names = relation_names(relations)
    for label in read_labels(path):
        place, row, verdict = label
        has_value, has_object = bool(row.value or row.value_id), bool(row.object or row.object_id)
        if verdict is None and not has_value:
            continue
        if not (own := names.own(row.relation)):
            sentence = f"{place}, field relation: {row.relation!r} is no relation of this base"
            raise InputError(f"{sentence}: {did_you_mean(row.relation, relations)}")
        row = msgspec.structs.replace(row, relation=own)
        if verdict is Verdict.RIGHT and has_object and has_value and _is_its_id(row):
            row, has_value = msgspec.structs.replace(row, object_id=row.value_id, value=None, value_id=None), False
        _check(label, has_value=has_value, has_object=has_object)
        about = relations[row.relation]
        if has_value and not row.value_id:
            _check_name(f"{place}, field value", row.value)
        elif verdict is Verdict.RIGHT and not (row.base or has_value or row.object_id):
            _check_name(f"{place}, field object", row.object)
        if has_object:
            cited = {} if has_value else _cited(row)
            wrong = _object(f"{place}, field object", about, row.object, row.object_id, row.literal)
            yield _decision(place, row, verdict or Verdict.WRONG, wrong, cited, (reviewer, today))
        if has_value:
            text = row.value or row.value_id or ""
            value = _object(f"{place}, field value", about, text, row.value_id, None)
            if has_object and value == wrong:
                raise InputError(
                    f"{place}, field value: {text!r} is the wrong object itself; give another one, or none"
                )
            yield _decision(place, row, Verdict.RIGHT, value, _cited(row), (reviewer, today))


def _is_its_id(row: LabelRow) -> bool:
    """Return whether what a row has in place of its object is the object's own QID, perhaps with its name."""
    same_name = not row.value or name_key(row.value) == name_key(row.object)
    return bool(row.value_id) and same_name and row.object_id in (None, "", row.value_id)


def _check(label: Label, *, has_value: bool, has_object: bool) -> None:
    """Raise InputError for a label that contradicts itself, or that is about nothing."""
    place, row, verdict = label
    if not has_object and not has_value:
        raise InputError(f"{place}, field object: empty; name the object that is {verdict}, or a right one as value")
    if has_value and (verdict is Verdict.UNKNOWN or (verdict is Verdict.RIGHT and has_object)):
        field, cell = ("value", row.value) if row.value else ("value_id", row.value_id)
        raise InputError(f"{place}, field {field}: {cell!r} stands beside a label {verdict}; leave one of them out")


def _check_name(place: str, text: str | None) -> None:
    """Raise InputError for a right object that is a word for none, or for one that is not known."""
    if names_nothing(text):
        raise InputError(
            f"{place}: {text!r} names no object; where there is none, label each object wrong and leave "
            "value empty; where it is not known, label it unknown"
        )


def _object(place: str, about: About, text: str, qid: str | None, literal: str | None) -> dict[str, str | None]:
    """Return an object as facts have it: its word, its QID, and its literal in the unit of the relation.

    A number is read as those of labelled rows are, with the decimal mark of the relation's language. InputError, with
    the place, for a text that is no value of the relation's kind, or that may mean two.
    """
    kind = kind_of(about)
    if kind.is_entity:
        if qid and not as_qid(qid):
            raise InputError(f"{place}_id: {qid!r} is no QID; write one like Q42, or leave it empty")
        return {"object": text or qid or "", "object_id": as_qid(qid or text), "literal": None}
    if kind.has_values and literal is None:
        literal = _number(place, text, about) if kind.is_numeric else kind.literal((qid or "", text))[0]
        if literal is None and not kind.is_numeric and (meant := kind.meaning(text, about.relation())) is not None:
            literal = kind.literal((str(meant),))[0]
        if literal is None:
            raise InputError(f"{place}: {kind.unread(text, about)}")
    return {"object": literal or text, "object_id": None, "literal": literal}


def _number(place: str, text: str, about: About) -> str | None:
    """Return what a number of a table means in the unit of its relation, as plain digits; None for another text."""
    asked = about.relation()
    check_one_meaning(place, text, asked)
    meant = kind_of(about).meaning(text, asked)
    return None if meant is None else kind_of(about).literal((f"{meant:f}",))[0]


def _cited(row: LabelRow) -> dict[str, str | None]:
    return {"source": row.source or None, "quote": row.quote or None}


def _decision(
    place: str,
    row: LabelRow,
    verdict: Verdict,
    value: Mapping[str, str | None],
    cited: Mapping[str, str | None],
    default: tuple[str, str],
) -> Decision:
    """Return a checked decision. default: person and day of a row that names none."""
    reviewer, today = default
    cells = {
        **{"relation": row.relation, "subject": row.subject or row.subject_id or ""},
        **{"subject_id": row.subject_id and (as_qid(row.subject_id) or row.subject_id), "verdict": verdict.value},
        **{"reviewed_by": row.reviewer or reviewer, "reviewed_on": row.date or today},
        **value,
        **cited,
    }
    is_value = verdict is Verdict.RIGHT and (row.value or row.value_id)
    given = {name: cell for name, cell in cells.items() if cell is not None}
    review = checked(place, given, Review, COLUMNS | OF_VALUE if is_value else COLUMNS)
    return Decision(place, review, bool(row.date))
