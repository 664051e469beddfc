"""Facts as commands of QuickStatements, in small batches.

A model is no source. So a statement that no person decided has no reference, and its comment says that it is for
review. One that a person decided has the reference of the decision: the address of a page (S854) and the day (S813), or
an item (S248).

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
from lmkbc.kb.base.fact_row import FactRow
from lmkbc.kb.export.left_out import cited, exported
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
DECIDED = (
    "A person decided each of these statements, and the comment says who. If the decision has a source, so has the\n"
    "statement: an address (S854) or an item (S248), with the day (S813). Add one to each of the others, before you\n"
    "upload anything. More than a handful of edits needs a bot account.\n"
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
    """Statement: item, property, value as in commands, summary, a qualifier's property and value, and a reference.

    reference: property and value of each part. is_decided: whether a person decided the fact.
    """

    subject: str
    property: str
    value: str
    summary: str
    qualifier: tuple[str, str] | tuple[()] = ()
    reference: Sequence[tuple[str, str]] = ()
    is_decided: bool = False


def proposal(fact: FactRow) -> Proposal:
    """Return the statement of a fact about an item. Its object is an item, a number, a date, or a text without quotes.

    LeftOutError for other facts.
    """
    check_property(fact)
    made, text = exported(fact), fact.object
    if made and not kind_of(fact.about).has_values:
        ends = any(mark in text for mark in ('"', "|", "/*", "*/"))
        check(made, is_accepted=not ends and bool(text) and text == accepted(text))
    subject, written = fact.subject_node.id, made.command if made else fact.object_node.id
    if subject is None or written is None:
        raise LeftOutError(f"no QID of the {'object' if subject else 'subject'}")
    confidence = confidence_text(fact.confidence, 2)
    about = f"{fact.subject} - {fact.relation} - {fact.worded}; {fact.model}, confidence {confidence}"
    mark = "unchecked, for review"
    if fact.reviewed_by:
        about = f"{fact.subject} - {fact.relation} - {fact.worded}{'' if reference(fact) else '; add a source'}"
        mark = f"reviewed by {comment(fact.reviewed_by)} on {fact.reviewed_on}"
    return Proposal(
        subject,
        fact.about.property,
        written,
        f"{mark}: {comment(about)}",
        made.qualifier if made else (),
        reference(fact),
        bool(fact.reviewed_by),
    )


def reference(fact: FactRow) -> list[tuple[str, str]]:
    """Return the parts of the reference of a fact that a person decided: Wikidata's property, and value as in commands.

    An asterisk in an address is escaped, since it could begin or end a comment.
    """
    if (found := cited(fact)) is None:
        return []
    name, source = found
    value = source if name == "P248" else f'"{source.replace("*", "%2A")}"'
    return [(name, value), ("P813", f"+{fact.reviewed_on}T00:00:00Z/11")]


def commands(batch: Sequence[Proposal]) -> str:
    """Return commands of version 1."""
    return "".join(
        "\t".join((proposal.subject, proposal.property, proposal.value, *proposal.qualifier, *_cited(proposal)))
        + f" /* {proposal.summary} */\n"
        for proposal in batch
    )


def _cited(proposal: Proposal) -> list[str]:
    """Return the parts of a reference as they follow a command, with S in place of P."""
    return [part for name, value in proposal.reference for part in (f"S{name[1:]}", value)]


def table(batch: Sequence[Proposal]) -> str:
    """Return CSV commands: a row per statement.

    Columns per property are for its value, qualifiers, parts of references, and a summary.
    """
    columns = {name: at for at, name in enumerate(dict.fromkeys(proposal.property for proposal in batch))}
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    more = [_more(proposal) for proposal in batch]
    behind = [*sorted(dict.fromkeys(name for cells in more for name in cells), key=lambda name: name[0] == "S"), "#"]
    writer.writerow(["qid", *(cell for name in columns for cell in (name, *behind))])
    width = 1 + len(behind)
    for proposal, own in zip(batch, more, strict=True):
        cells = [""] * width * len(columns)
        at = width * columns[proposal.property]
        cells[at : at + width] = proposal.value, *(own.get(name, "") for name in behind[:-1]), proposal.summary
        writer.writerow([proposal.subject, *cells])
    return buffer.getvalue()


def _more(proposal: Proposal) -> dict[str, str]:
    """Return column -> cell of a statement's qualifier and reference."""
    qualifiers = {f"qal{name[1:]}": value for name, value in [proposal.qualifier] if name} if proposal.qualifier else {}
    return qualifiers | {f"S{name[1:]}": value for name, value in proposal.reference}


def comment(text: str) -> str:
    """Return a text for a comment, without anything that ends the comment, the column or the line."""
    return accepted(text).replace("|", "/").replace("*/", "* /")  # in this order, since "*|" would become an end


def batches(rows: Iterator[Proposal], size: int) -> Iterator[Sequence[Proposal]]:
    """Yield statements in batches."""
    return iter(lambda: [*islice(rows, size)], [])
