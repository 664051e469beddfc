"""Readers of what is known: a table, N-Triples (truthy or full), or Wikidata's JSON.

Each yields rows of subject, property and stated value. Years before Christ are counted as in Wikidata's JSON, where 44
BC is -44. Triples count as XML Schema 1.1 does (44 BC is -43), and their days are Gregorian, whatever the calendar of
the statement is. Deprecated statements are left out.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from lmkbc.errors import InputError, did_you_mean
from lmkbc.files import reader
from lmkbc.files.columns import refuse_answers
from lmkbc.files.jsonl import decoded, numbered
from lmkbc.files.splits import QueryRow, check_one_meaning, examples_of
from lmkbc.files.tables import InputTable, TableRow, columns_of
from lmkbc.kb.base.manifest import About, relation_names
from lmkbc.kb.export.ntriples import PROP, WIKIBASE, XSD, unescaped
from lmkbc.kinds.date import of_rdf
from lmkbc.kinds.kind import Stated, kind_of
from lmkbc.kinds.units import unit_of
from lmkbc.link.index_sources import entity_of, lines, open_dump
from lmkbc.link.wikibase import Empty, Redirect, ShapeError, Statement, decode
from lmkbc.names import QID, as_qid, name_key
from lmkbc.relation import Relation
from lmkbc.words import names_nothing, says_none

MERGED = "sameAs"
"""Name in place of a property: the item that follows is the one into which the first was merged."""
NO_VALUE, UNKNOWN_VALUE = Stated("novalue"), Stated("somevalue")
"""Values in place of an object: there is none, and it is unknown. QuickStatements has the same words."""
SEEN: tuple[str, Stated] = ("", UNKNOWN_VALUE)
"""Property and value of a row that states nothing, but that its subject is covered."""


class KnownRow(NamedTuple):
    """A value that a file gives a subject. property: or `MERGED`. place: the line of a table, and its own property."""

    subject: str
    property: str
    value: Stated
    place: str = ""


class Wanted(NamedTuple):
    """Subjects, by item or `name_key`, and properties that are read of a file. objects: items that may be merged.

    relations: those of the base, which a table may call by any of their names.
    """

    subjects: Collection[str]
    properties: Collection[str]
    objects: Collection[str]
    relations: Mapping[str, About]


def rows_of(path: Path, wanted: Wanted) -> Iterator[KnownRow]:
    """Yield the rows of a table or of triples. InputError for none: every fact would count as new."""
    with reader.stream(path) as file:
        is_triples = file.read(1 << 12).lstrip()[:1] in (b"<", b"#")
    rows = _triples(path, wanted) if is_triples else _of_table(path, wanted)
    empty = True
    for row in rows:
        empty = False
        yield row
    if empty:
        raise InputError(f"{path} holds no statement: give rows of subject, property and object, or truthy N-Triples")


COLUMNS = ("property", "subject", "object", "subject_id", "object_id", "value", "unit_id", "datatype")


def _of_table(path: Path, wanted: Wanted) -> Iterator[KnownRow]:
    """Yield the rows of a table of subject, property and object, of labelled rows, or of facts that were exported.

    Properties are called by their ids, or by any name of a relation of the base; things by their items, or by name.
    """
    names, relations = relation_names(wanted.relations), {n: about.relation() for n, about in wanted.relations.items()}
    for row in _table(path):
        name, subject, value, *ids = (cell or "" for cell in row.values)
        subject_id, object_id, typed, unit, datatype = ids
        own, name = names.own(name.strip()), name.strip().rpartition("/")[2]
        of_wikidata = re.fullmatch(r"P[1-9][0-9]*", name)
        if not (own or of_wikidata):
            hint = did_you_mean(name, wanted.relations)
            raise InputError(f"{row.place}: {name!r} is no property, such as P31, and no relation of this base; {hint}")
        place = f"{row.place}, {own or name}"
        of, named = as_qid(subject_id or subject) or name_key(subject), relations[own].property if own else name
        if typed and datatype:
            yield KnownRow(of, named, _literal(typed, datatype.removeprefix("xsd:"))._replace(unit=as_qid(unit)), place)
        elif not of_wikidata:
            labelled = _labelled(row.place, relations[own], value, as_qid(object_id))
            yield from (KnownRow(of, named, one, place) for one in labelled)
        else:
            value = as_qid(object_id) or as_qid(value) or value.strip()
            is_time = re.fullmatch(r"[^+/]{4,9}-\d\d-\d\dT[\d:.]*Z", value)  # as a query service writes it
            yield KnownRow(of, named, _literal(value, "dateTime") if is_time else Stated(value), place)


def _table(path: Path) -> Iterator[TableRow]:
    """Yield the cells of `COLUMNS`; those of labelled rows as JSONL are one row an object."""
    called = {name.casefold() for name in columns_of(path)}
    if "subjectentity" in called:
        for number, line in numbered(path):
            rows = decoded(path, line, _LABELLED, number)
            if rows[0].ObjectEntities is None and rows[0].ObjectEntitiesID is None:
                refuse_answers(path, "ObjectEntities")
                raise InputError(f"{path}, line {number}: no list of objects; where it is not known, leave the row out")
            (example,) = examples_of(rows)
            query, cells = example.query, [(name, one.id) for one in example.objects for name in one.names or ("",)]
            for name, qid in cells or [("", None)]:
                values = (query.relation, query.subject, name, query.subject_id, qid, None, None, None)
                yield TableRow(f"{path}, line {number}", values)
        return
    if not called:
        return
    columns = COLUMNS if "property" in called or "relation" not in called else ("relation", *COLUMNS[1:])
    yield from InputTable(path, columns, 3, ends=True).rows()


_LABELLED = msgspec.json.Decoder(QueryRow)


def _labelled(place: str, relation: Relation, text: str, item: str | None) -> Iterator[Stated]:
    """Yield what an object of a table of one's own states: its item and its name, or a value as facts have it.

    InputError, with the place, for a number that may mean two, and for a word that says that none is known.
    """
    kind, text = kind_of(relation), text.strip()
    if not item and (not text or says_none(text)):
        yield NO_VALUE
        return
    if not item and names_nothing(text):
        raise InputError(f"{place}: {text!r} names no object; leave the row out, or write none if there is no object")
    if item:
        yield Stated(item)
    if text and not (item and kind.has_values):
        check_one_meaning(place, text, relation)
        with_unit = kind.has_unit and re.search(r"[^\W\d_]|[^\w\s.,'+-]", text)  # "23,75 m" is kept as 23.75
        yield Stated(kind.as_kept(text, relation) + f" {relation.unit}" * bool(with_unit and unit_of(relation.unit)))


_ENTITY_IRI, _PROP_IRI = rb"http://www\.wikidata\.org/entity/", rb"http://www\.wikidata\.org/prop/"
_OF_ITEM = re.compile(
    rb"\s*<" + _ENTITY_IRI + rb"(" + QID.encode() + rb")>\s*<(?:" + _PROP_IRI + rb"(direct/|)(P[1-9][0-9]*)"
    rb"|http://www\.w3\.org/2002/07/owl#(sameAs)|http://www\.w3\.org/1999/02/22-rdf-syntax-ns#(type))>\s*(.*?)\s*\.\s*"
)
"""Triple of an item: truthy, the node of a statement, a redirect, or a class."""
_OF_NODE = re.compile(rb"\s*(<[^<>\"\s]+>)\s*<([^<>\"\s]+)>\s*(.*?)\s*\.\s*")
_NONE = re.compile(rb"<" + _PROP_IRI + rb"novalue/(P[1-9][0-9]*)>")
_OBJECT = re.compile(
    rf'<http://www\.wikidata\.org/entity/({QID})>|<((?!http://www\.wikidata\.org/\.well-known/genid/)[^<>"\s]*)>'
    r'|"((?:[^"\\]|\\.)*)"(?:\^\^<([^<>"\s]*)>|@[\w-]+)?'
)


def _triples(path: Path, wanted: Wanted) -> Iterator[KnownRow]:
    """Yield the rows of N-Triples. Statement nodes are read where the file has any, since these say more."""
    seen, nodes, truthy = set[bytes](), dict[bytes, tuple[Sequence[str], str]](), list[KnownRow]()
    merged, subjects = dict[str, str](), {name.encode(): [name] for name in wanted.subjects}
    while subjects:  # again for those items into which subjects were merged
        targets = dict[bytes, list[str]]()
        for item, direct, name, same, is_class, value in _matches(path, _OF_ITEM):
            owners = subjects.get(item, ())
            if name and name not in seen:
                seen.add(name)
                yield KnownRow("", name.decode(), UNKNOWN_VALUE)  # something is known of the property
            if same and (text := _read(value).text) and as_qid(text):
                if item.decode() in wanted.objects or text in wanted.objects:
                    merged[item.decode()] = text
                for owner in owners:
                    targets.setdefault(text.encode(), []).append(owner)
            elif is_class and (none := _NONE.fullmatch(value)):
                truthy += [KnownRow(owner, none[1].decode(), NO_VALUE) for owner in owners]
            elif name and direct:
                truthy += [KnownRow(owner, name.decode(), _read(value)) for owner in owners]
            elif name and owners:
                nodes[value] = owners, name.decode()
        subjects = targets
    yield from (KnownRow(item, MERGED, Stated(target)) for item, target in merged.items())
    full = list(_of_nodes(path, {node: about for node, about in nodes.items() if about[1] in wanted.properties}))
    stated = {row[:2] for row in full}
    yield from full
    yield from (row for row in truthy if row[:2] not in stated)


def _of_nodes(path: Path, nodes: Mapping[bytes, tuple[Sequence[str], str]]) -> Iterator[KnownRow]:
    """Yield what statement nodes state, by their value nodes where they have any. nodes: node -> items, property."""
    simple, inner, deprecated = dict[bytes, Stated](), dict[bytes, bytes](), set[bytes]()
    for node, predicate, value in _matches(path, _OF_NODE) if nodes else ():
        if node not in nodes:
            continue
        name = predicate.decode("utf-8", "replace")
        if name == f"{PROP}statement/value/{nodes[node][1]}":
            inner[node] = value
        elif name == f"{PROP}statement/{nodes[node][1]}":
            simple[node] = _read(value)
        elif name == f"{WIKIBASE}rank" and value == f"<{WIKIBASE}DeprecatedRank>".encode():
            deprecated.add(node)
    parts: dict[bytes, dict[str, Stated]] = {value: {} for value in inner.values()}
    for node, predicate, value in _matches(path, _OF_NODE) if parts else ():
        if node in parts:
            parts[node][predicate.decode("utf-8", "replace").removeprefix(WIKIBASE)] = _read(value)
    for node, stated in simple.items():
        owners, name = nodes[node]
        value = _whole(stated, parts.get(inner.get(node, b""), {}))
        yield from (KnownRow(owner, name, value) for owner in owners if node not in deprecated)


def _whole(stated: Stated, parts: Mapping[str, Stated]) -> Stated:
    """Return a value with what its value node says: a time's precision, and a number's unit and bounds."""
    if precision := parts.get("timePrecision"):
        time = parts.get("timeValue", stated)
        return time._replace(precision=int(precision.text) if re.fullmatch("[0-9]{1,9}", precision.text) else None)
    low, high = (parts.get(f"quantity{side}Bound") for side in ("Lower", "Upper"))
    if unit := parts.get("quantityUnit"):
        return stated._replace(unit=unit.text, bounds=(low.text, high.text) if low and high else None)
    return stated


def _matches(path: Path, pattern: re.Pattern[bytes]) -> Iterator[tuple[Any, ...]]:
    """Yield the groups of each line that a pattern matches. InputError for a file that was cut off."""
    raw = b""
    with reader.stream(path) as file:
        for raw in file:
            if match := pattern.fullmatch(raw):
                yield match.groups()
    if raw.strip() and not raw.lstrip().startswith(b"#") and not raw.partition(b" #")[0].rstrip().endswith(b"."):
        raise InputError(f"{path} ends in the middle of a line, so it was cut off: get it whole")


def _read(raw: bytes) -> Stated:
    """Return the object of a triple. A blank node, and what stands for one, is an unknown value."""
    match = _OBJECT.fullmatch(raw.decode("utf-8", "replace"))
    if match is None:
        return UNKNOWN_VALUE
    if match[3] is None:
        return Stated(match[1] or match[2])
    return _literal(unescaped(match[3]), match[4] or "")


def _literal(text: str, datatype: str) -> Stated:
    """Return a literal of a type with an IRI."""
    return of_rdf(text, datatype.removeprefix(XSD)) or Stated(text)


_DUMP = re.compile(rb'\s*(\[|\{\s*"(type|id|labels|pageid|ns|claims)")')
"""Beginning of Wikidata's JSON, or of a piece of it. No table of subjects begins so."""


def is_dump(path: Path) -> bool:
    """Return whether a file is Wikidata's JSON."""
    if path.is_dir():
        return False
    with open_dump(path) as file:
        return _DUMP.match(file.read(1 << 12)) is not None


def of_dumps(paths: Sequence[Path], wanted: Wanted) -> Iterator[KnownRow]:
    """Yield the statements of entities in the pieces of a dump, in order.

    Claims of other properties are not decoded. The first row of an entity states nothing.
    """
    fields: list[Any] = [("id", str), ("claims", claims_of(wanted.properties) | Empty, [])]
    fields += [("redirects", Redirect | None, None)]
    decoder = msgspec.json.Decoder(msgspec.defstruct("Entity", fields, gc=False))
    first = last = b""
    for path in paths:
        for number, line in enumerate(lines(path, piece=True), start=1):
            first, last = first or line.strip(), line.strip() or last
            if not (written := entity_of(line)):
                continue
            try:
                item: Any = decode(written, decoder)
            except ShapeError as error:
                raise InputError(
                    f"{path}, line {number}: no entity of Wikidata's JSON ({error}); get it whole"
                ) from None
            merged = [item.redirects.origin] if item.redirects else []
            moved = [origin for origin in merged if {origin, item.id} & {*wanted.objects}]
            yield from (KnownRow(origin, MERGED, Stated(item.id)) for origin in moved)
            for subject in filter(wanted.subjects.__contains__, (item.id, *merged)):
                yield KnownRow(subject, *SEEN)
                yield from (KnownRow(subject, *claim) for claim in stated(item.claims))
    if first == b"[" and last != b"]":
        raise InputError(f"{paths[-1]} ends before the closing bracket: get it whole, or give all its pieces in order")


def claims_of(properties: Iterable[str]) -> Any:
    """Return the type of claims of some properties. Other claims are not decoded."""
    fields: list[Any] = [(name, list[Statement[str | dict[str, Any]]], []) for name in sorted(properties)]
    return msgspec.defstruct("Claims", fields, gc=False)


def stated(claims: Any) -> Iterator[tuple[str, Stated]]:
    """Yield property and value of claims, without deprecated ones."""
    for name in getattr(claims, "__struct_fields__", ()):  # no claims at all are an empty list
        for claim in getattr(claims, name):
            if claim.rank != "deprecated":
                snak = claim.mainsnak
                value = snak.snaktype if snak.datavalue is None else snak.datavalue.value
                if value:
                    yield name, Stated(value) if isinstance(value, str) else _of_json(value)


def _of_json(value: Mapping[str, Any]) -> Stated:
    """Return a value of Wikidata's JSON: an item's id, an amount, a text, a time, else its JSON."""
    if isinstance(time := value.get("time"), str):
        precision, calendar = value.get("precision"), str(value.get("calendarmodel", "")).rpartition("/")[2]
        return Stated(time, None, precision if isinstance(precision, int) else 0, calendar)
    if isinstance(amount := value.get("amount"), str):
        low, high = value.get("lowerBound"), value.get("upperBound")
        bounds = (low, high) if isinstance(low, str) and isinstance(high, str) else None
        return Stated(amount, as_qid(str(value.get("unit", "")).rpartition("/")[2]), bounds=bounds)
    simple = (text for name in ("id", "text") if isinstance(text := value.get(name), str))
    return Stated(next(simple, msgspec.json.encode(value, order="sorted").decode()))
