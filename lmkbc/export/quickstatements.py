"""Facts for a person to look at: QuickStatements of what is not known yet, in batches small enough to be read.

A model is no source. Nothing here has a reference, and each statement says that it is not to be uploaded as it is. Both
readers of version 1 commands take a comment behind a statement alone, with a blank before it: a line of its own, or a
comment behind a tab, is an error there. The reader of CSV takes it in a column "#" behind that of a property.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import NamedTuple

from lmkbc.build.facts import decimal
from lmkbc.build.saved import FactRow
from lmkbc.errors import InputError
from lmkbc.export.wikidata_json import plain
from lmkbc.files import packed
from lmkbc.files.tables import InputTable
from lmkbc.names import QID, as_qid

NOTICE = "README.txt"
"""The file beside the batches that says what they are."""
REVIEW = (
    "FOR REVIEW, NOT FOR UPLOAD. A language model proposed these statements, and a model is no source: check each,\n"
    "add a reference to a source that says so (S854, S248), and delete what no source confirms. Confidence is what\n"
    "the model's answers make likely, not a proof.\n"
)
Known = set[tuple[str, str, str]]
"""Subject, property, and the object: a QID, or a number in plain digits."""
_TRIPLE = re.compile(
    rf"\s*<http://www\.wikidata\.org/entity/({QID})>\s*<http://www\.wikidata\.org/prop/direct/(P[1-9][0-9]*)>\s*"
    rf'(?:<http://www\.wikidata\.org/entity/({QID})>|"([^"\\]*)"(?:\^\^<[^>]*>)?)\s*\.\s*'
)


def read_known(path: Path, properties: frozenset[str]) -> Known:
    """Read what is known already of some properties: rows of subject, property, object, or truthy N-Triples.

    It is held in memory, some 250 bytes a statement.
    """
    return {row for row in statements(path) if row[1] in properties}


def statements(path: Path) -> Iterator[tuple[str, str, str]]:
    """Yield subject, property and object of a file. InputError where it holds none, which would let all facts pass."""
    rows = iter(_triples(path) if _is_triples(path) else _rows(path))
    if (first := next(rows, None)) is None:
        raise InputError(f"{path} holds no statement: give rows of subject, property and object, or truthy N-Triples")
    yield from chain((first,), rows)


def _is_triples(path: Path) -> bool:
    with packed.stream(path) as file:
        return file.read(1 << 12).lstrip()[:1] in (b"<", b"#")


def _triples(path: Path) -> Iterator[tuple[str, str, str]]:
    raw = b""
    with packed.stream(path) as file:
        for raw in packed.lines(file):
            found = _TRIPLE.fullmatch(raw.decode("utf-8", "replace"))
            if found and (value := found[3] or decimal(found[4]) or found[4]):
                yield found[1], found[2], value
    if raw.strip() and not raw.lstrip().startswith(b"#") and not raw.partition(b" #")[0].rstrip().endswith(b"."):
        raise InputError(f"{path} ends in the middle of a line, so it was cut off: get it whole")


def _rows(path: Path) -> Iterator[tuple[str, str, str]]:
    for row in InputTable(path, ("subject", "property", "object"), 3, ends=True).rows():
        subject, name, value = (cell or "" for cell in row.values)
        qid, name = as_qid(subject), name.strip().rpartition("/")[2]
        if qid is None or not re.fullmatch(r"P[1-9][0-9]*", name):
            raise InputError(f"{row.place}: {subject!r}, {name!r} are no item and property; write them like Q42, P31")
        yield qid, name, as_qid(value) or decimal(value) or value.strip()


class Proposal(NamedTuple):
    """Statement to be checked: an item, a property, a value as commands write it, and a summary."""

    subject: str
    property: str
    value: str
    summary: str


def proposals(facts: Iterator[FactRow], known: Known) -> Iterator[Proposal]:
    """Yield each fact about an item that is not known, with an item or a number for its object."""
    for fact in facts:
        value = fact.object_id if fact.about.kind == "entity" else fact.literal
        if fact.subject_id is None or value is None or (fact.subject_id, fact.about.property, value) in known:
            continue
        unit = fact.about.unit_id if fact.about.kind == "number" else None
        written = value + (f"U{unit[1:]}" if unit else "")
        about = f"{fact.subject} - {fact.relation} - {fact.object}; {fact.model}, confidence {fact.confidence:.2f}"
        yield Proposal(fact.subject_id, fact.about.property, written, f"unchecked, for review: {comment(about)}")


def commands(batch: Sequence[Proposal]) -> str:
    """Write commands of version 1."""
    return "".join(f"{one.subject}\t{one.property}\t{one.value} /* {one.summary} */\n" for one in batch)


def table(batch: Sequence[Proposal]) -> str:
    """Write CSV commands: a row for each statement, with two columns for each property, its value and a summary."""
    columns = {name: at for at, name in enumerate(dict.fromkeys(one.property for one in batch))}
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(["qid", *(cell for name in columns for cell in (name, "#"))])
    for one in batch:
        cells = [""] * 2 * len(columns)
        at = 2 * columns[one.property]
        cells[at : at + 2] = one.value, one.summary
        writer.writerow([one.subject, *cells])
    return buffer.getvalue()


def comment(text: str) -> str:
    """Return a text within a comment: nothing in it ends the comment, the column or the line."""
    return plain(text).replace("|", "/").replace("*/", "* /")  # in this order, since "*|" would become an end


def batches(found: Iterator[Proposal], size: int) -> Iterator[Sequence[Proposal]]:
    """Yield statements in batches."""
    return iter(lambda: [*islice(found, size)], [])
