"""Facts as one table with typed values, for CSV and Parquet, and as a property graph in GraphML.

The table has the user's own columns of subjects too, as in `subject.region`.
A value is a date as XML Schema writes it, a number in the unit of the relation's item, or a text. Dates and numbers
that cannot be read are left out. GraphML: http://graphml.graphdrawing.org/specification.html.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import IO, Any, NamedTuple

import polars as pl
from markupsafe import escape
from polars.io.plugins import register_io_source

from lmkbc.files import tables
from lmkbc.http import printable
from lmkbc.kb.base.fact_row import FactRow
from lmkbc.kb.base.knowledge import Knowledge
from lmkbc.kb.base.schemas import frames
from lmkbc.kb.export.exporter import Exporter, ExportSettings
from lmkbc.kb.export.left_out import ExportTally, exported


class TypedFact(NamedTuple):
    """A row of a table: a fact with its value and the value's datatype, both null for an entity.

    unit, unit_id: of a number, and its item in Wikidata. precision: of a date, a word such as "year"; of a number, the
    value of its last digit, null if the number was converted. approximate: of a date, whether it is "circa".
    object_label: label of the object's item, where an index or search knew it. language: of a text, its code.
    subject_node, object_node: the things that the base has settled: a QID, or the end of an IRI in RDF. The object's is
    null for a value. reviewed_by, reviewed_on: person who decided that the fact is right, and the day. source, quote:
    address or item that states it, and its words. quote_file, quote_start, quote_end: where it is in a document.
    """

    subject: str
    subject_id: str | None
    relation: str
    property: str
    kind: str
    object: str
    object_id: str | None
    value: str | None
    datatype: str | None
    unit: str | None
    unit_id: str | None
    precision: str | None
    approximate: bool | None
    confidence: float
    sources: str
    model: str
    stated_by: str | None
    object_label: str | None
    language: str | None
    subject_node: str
    object_node: str | None
    reviewed_by: str | None
    reviewed_on: str | None
    source: str | None
    quote: str | None
    quote_file: str | None
    quote_start: int | None
    quote_end: int | None


SCHEMA: dict[str, Any] = dict.fromkeys(TypedFact._fields, pl.String)
SCHEMA |= {"approximate": pl.Boolean, "confidence": pl.Float64} | dict.fromkeys(("quote_start", "quote_end"), pl.Int64)


def typed(fact: FactRow) -> TypedFact:
    """Return a fact with its typed value. LeftOutError for a date or a number that cannot be read."""
    about, made = fact.about, exported(fact)
    datatype = made and made.datatype
    language = datatype[1:] if datatype and datatype[0] == "@" else None
    if datatype and ":" not in datatype:
        datatype = "rdf:langString" if language else f"xsd:{datatype}"
    is_own = made is not None and made.unit == about.unit  # else the number was converted
    return TypedFact(
        fact.subject,
        fact.subject_id,
        fact.relation,
        about.property,
        about.kind,
        fact.object,
        fact.object_id,
        made and made.text,
        datatype,
        made and made.unit,
        made and made.unit_id,
        made and (made.precision or (fact.precision if is_own else None)),
        made and made.approximate,
        fact.confidence,
        "; ".join(fact.sources),
        fact.model,
        ", ".join(fact.stated_by) if fact.stated_by else None,
        fact.object_label,
        language,
        fact.subject_node.node,
        None if made else fact.object_node.node,
        fact.reviewed_by,
        fact.reviewed_on,
        fact.source,
        fact.quote,
        fact.quote_file,
        fact.quote_start,
        fact.quote_end,
    )


def comma_separated(base: Knowledge, tally: ExportTally) -> Iterator[str]:
    """Yield the text of a CSV file in pieces."""
    rows, schema = table(base, tally)
    return (tables.comma_separated(frame, header=not at) for at, frame in enumerate(frames(rows, schema)))


def table(base: Knowledge, tally: ExportTally) -> tuple[Iterator[tuple[Any, ...]], dict[str, Any]]:
    """Return the rows of the table of facts, and its columns: those of `TypedFact`, and the user's own of subjects."""
    columns, own = dict[str, int](), defaultdict[int, dict[int, str]](dict)
    for part in base.own_columns():
        for row, column, value in part.select("subject_row", "column", "value").iter_rows():
            own[row][columns.setdefault(column, len(columns))] = value

    def values(fact: FactRow) -> tuple[Any, ...]:
        return *typed(fact), *map(own.get(fact.subject_row, {}).get, columns.values())

    return tally.written(base.facts(), values), SCHEMA | {f"subject.{name}": pl.String for name in columns}


def write_parquet(file: IO[bytes], base: Knowledge, tally: ExportTally) -> None:
    """Write facts as Parquet. Tens of thousands of them are in memory at a time. OSError if the disk refuses."""
    rows, schema = table(base, tally)
    try:
        register_io_source(lambda *_: frames(rows, schema), schema=schema).sink_parquet(file)
    except pl.exceptions.PolarsError as error:
        file.write(bytes(1 << 16))  # raises the disk's own error, which polars does not always name
        raise OSError(printable(str(error))) from error


OF_NODE = ("label", "kind", "datatype", "unit", "unit_id", "precision", "approximate", "language")
OF_EDGE = (
    *("relation", "property", "confidence", "sources", "model", "stated_by"),
    *("reviewed_by", "reviewed_on", "source", "quote"),
)
"""Attributes of nodes and of edges in GraphML."""
_GRAPHML_TYPES = {"confidence": "double", "approximate": "boolean"}
_NO_XML = re.compile("[^\t\n\r -\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that XML 1.0 cannot hold."""


def graphml(facts: Iterable[TypedFact]) -> Iterator[str]:
    """Yield the lines of a GraphML file: an edge per fact, a node per entity, and a node per value of a fact.

    An entity's node has its QID as id. The others are what the base has settled.
    """
    yield '<?xml version="1.0" encoding="UTF-8"?>\n<graphml xmlns="http://graphml.graphdrawing.org/xmlns">\n'
    for side, names in (("node", OF_NODE), ("edge", OF_EDGE)):
        for name in names:
            kind = _GRAPHML_TYPES.get(name, "string")
            yield f'<key id="{side}-{name}" for="{side}" attr.name="{name}" attr.type="{kind}"/>\n'
    yield '<graph edgedefault="directed">\n'
    nodes = dict[str, str]()
    for number, fact in enumerate(facts):
        ends = list[str]()
        for name, thing in ((fact.subject, fact.subject_node), (fact.object, fact.object_node)):
            key, about = thing or "", {"label": name, "kind": "entity"}
            if thing is None:
                key, about = f"value {number}", fact._asdict() | {"label": fact.value}
            if key not in nodes:
                nodes[key] = key if key.isalnum() else f"n{number}-{len(ends)}"
                yield f'<node id="{nodes[key]}">{_data("node", OF_NODE, about)}</node>\n'
            ends.append(nodes[key])
        data = _data("edge", OF_EDGE, fact._asdict())
        yield f'<edge source="{ends[0]}" target="{ends[1]}">{data}</edge>\n'
    yield "</graph>\n</graphml>\n"


def _data(side: str, names: Iterable[str], values: dict[str, Any]) -> str:
    """Return the elements of those attributes that have a value."""
    made = ""
    for name in names:
        if (value := values.get(name)) is not None:
            text = (
                str(value).lower() if isinstance(value, bool) else _NO_XML.sub("\N{REPLACEMENT CHARACTER}", str(value))
            )
            made += f'<data key="{side}-{name}">{escape(text)}</data>'
    return made


class _Parquet(Exporter):
    def fill(self, file: IO[bytes], base: Knowledge, tally: ExportTally, settings: ExportSettings) -> int:  # noqa: ARG002
        """Write facts as Parquet, and return the number of its rows."""
        write_parquet(file, base, tally)
        return tally.facts


CSV = Exporter(pieces=lambda base, tally, _: comma_separated(base, tally))
PARQUET = _Parquet(counted="")
GRAPHML = Exporter(pieces=lambda base, tally, _: graphml(tally.written(base.facts(), typed)))
