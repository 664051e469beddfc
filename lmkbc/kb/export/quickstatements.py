"""Facts for review by a person: QuickStatements of unknown facts, in small batches.

A model is no source. So statements have no references, and a comment on each one says that it is for review.

Example of a version 1 command: "Q1<TAB>P2<TAB>Q3 /* comment */". Both readers of this format accept a comment only
after a statement and a space. A comment on its own line, or after a tab, is an error. In CSV, a comment is in a column
"#" after the column of its property.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from lmkbc.files import reader
from lmkbc.files.tables import InputTable
from lmkbc.kb.base.knowledge import FactRow
from lmkbc.kb.export.left_out import exported
from lmkbc.kb.export.wikidata_json import check, check_property
from lmkbc.kinds.kind import LeftOutError, accepted, kind_of
from lmkbc.select.calibration import confidence_text

NOTICE = "README.txt"
"""File beside the batches that describes them."""
REVIEW = (
    "FOR REVIEW, NOT FOR UPLOAD. A language model proposed these statements, and a model is no source: check each,\n"
    "add a reference to a source that says so (S854, S248), and delete what no source confirms. Confidence is what\n"
    "the model's answers make likely, not a proof.\n"
)
Triple = tuple[str, str, str]
"""Subject, property, and the object: a QID, a number in plain digits in the unit of the facts, a date, or a text."""


def read_marks(path: Path) -> dict[Triple, tuple[str, str]] | None:
    """Read the table of an audit: subject, property and object -> mark and other known objects. None for another file.

    An object is that of `object_of`. Facts without a QID of the subject are left out.
    """
    with reader.stream(path) as file:
        if file.read(5) != b"mark,":  # the first column of the table that an audit writes
            return None
    names = "mark subject_id property known object_id literal object".split()
    rows = (row.values for row in InputTable(path, names, len(names), ends=True).rows())
    cells = ([cell or "" for cell in row] for row in rows)
    return {
        (subject, name, next(filter(None, objects), "")): (mark, known)
        for mark, subject, name, known, *objects in cells
        if subject
    }


def object_of(fact: FactRow) -> str:
    """Return the object of a fact by which the table of an audit is searched: its QID, its literal or its text."""
    return fact.object_id or fact.literal or fact.object


class Proposal(NamedTuple):
    """Statement to check: item, property, value as in commands, summary, and a qualifier's property and value."""

    subject: str
    property: str
    value: str
    summary: str
    qualifier: tuple[str, str] | tuple[()] = ()


def proposal(fact: FactRow) -> Proposal:
    """Return the statement of a fact about an item. Its object is an item, a number, a date, or a text without quotes.

    LeftOutError for other facts.
    """
    check_property(fact)
    made, text = exported(fact), fact.object
    if made and not kind_of(fact.about).has_values:
        ends = any(mark in text for mark in ('"', "|", "/*", "*/"))
        check(made, is_accepted=not ends and bool(text) and text == accepted(text))
    written = made.command if made else fact.object_id
    if fact.subject_id is None or written is None:
        raise LeftOutError(f"no QID of the {'object' if fact.subject_id else 'subject'}")
    confidence = confidence_text(fact.confidence, 2)
    about = f"{fact.subject} - {fact.relation} - {fact.worded}; {fact.model}, confidence {confidence}"
    return Proposal(
        fact.subject_id,
        fact.about.property,
        written,
        f"unchecked, for review: {comment(about)}",
        made.qualifier if made else (),
    )


def commands(batch: Sequence[Proposal]) -> str:
    """Return commands of version 1."""
    return "".join(
        "\t".join((proposal.subject, proposal.property, proposal.value, *proposal.qualifier))
        + f" /* {proposal.summary} */\n"
        for proposal in batch
    )


def table(batch: Sequence[Proposal]) -> str:
    """Return CSV commands: a row per statement, and columns per property, for its value, a qualifier and a summary."""
    columns = {name: at for at, name in enumerate(dict.fromkeys(proposal.property for proposal in batch))}
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    qualifiers = [f"qal{proposal.qualifier[0][1:]}" for proposal in batch if proposal.qualifier]
    behind = [*qualifiers[:1], "#"]
    writer.writerow(["qid", *(cell for name in columns for cell in (name, *behind))])
    width = 1 + len(behind)
    for proposal in batch:
        cells = [""] * width * len(columns)
        at = width * columns[proposal.property]
        qualified = (proposal.qualifier or ("", ""))[1 : len(behind)]
        cells[at : at + width] = proposal.value, *qualified, proposal.summary
        writer.writerow([proposal.subject, *cells])
    return buffer.getvalue()


def comment(text: str) -> str:
    """Return a text for a comment, without anything that ends the comment, the column or the line."""
    return accepted(text).replace("|", "/").replace("*/", "* /")  # in this order, since "*|" would become an end


def batches(rows: Iterator[Proposal], size: int) -> Iterator[Sequence[Proposal]]:
    """Yield statements in batches."""
    return iter(lambda: [*islice(rows, size)], [])
