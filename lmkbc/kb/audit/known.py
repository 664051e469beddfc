"""Known facts from Wikidata, a file or a split, and comparison with a base's facts: known, new, or contradicting.

Known numbers are compared in the unit of the facts. A number that was converted is the same as a fact if it is the
fact's number when it is rounded to as many places: 39 square miles are 101 km2.

Wikidata is not complete, so a fact that it lacks is new, not wrong. A fact contradicts Wikidata if its relation has one
object and Wikidata has another one, or if Wikidata says that there is none ("no value"). Where Wikidata says "unknown
value" alone, or has values that cannot be compared, nothing is decided. A fact is new only if what is known covers it:
a file that has nothing of its subject, or nothing of its property, cannot tell.
"""

from __future__ import annotations

import logging
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Context, Decimal
from enum import StrEnum
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from lmkbc.errors import InputError
from lmkbc.kb.base.knowledge import About, FactRow, Knowledge
from lmkbc.kb.export import quickstatements
from lmkbc.kb.export.quickstatements import MERGED, Triple
from lmkbc.kinds.entity import object_key
from lmkbc.kinds.kind import kind_of
from lmkbc.kinds.numbers import last_place
from lmkbc.kinds.units import unit_of
from lmkbc.link.index_sources import entity_of, lines, open_dump
from lmkbc.link.search import Wikidata
from lmkbc.link.wikibase import Empty, EntitiesReply, Redirect, ShapeError, Statement, WikibaseEntity, decode, entities
from lmkbc.link.wikidata import Client
from lmkbc.names import as_qid, name_key
from lmkbc.progress import Report, silent
from lmkbc.types import Example

_ENTITY = re.compile(rb'\s*(\[|\{\s*"(type|id|labels|pageid|ns|claims)")')
"""Beginning of Wikidata's JSON, or of a piece of it. No table of subjects begins so."""


_WIDE = Context(prec=1000)
"""Context in which any number that is read can be rounded to the places of another one."""
_NOTHING = frozenset[str]()
log = logging.getLogger(__name__)


class Mark(StrEnum):
    """Result of the comparison of a fact with known facts, in the order of a written list."""

    NEW = "new"
    CONTRADICTING = "contradicting"
    KNOWN = "known"
    UNCOVERED = "not covered"


class MarkedFact(NamedTuple):
    """A compared fact. is_checked: whether a value is known for its subject and property. known: these values."""

    fact: FactRow
    mark: Mark
    is_checked: bool
    known: frozenset[str]


@dataclass(frozen=True, slots=True)
class Known:
    """Known facts. objects: QIDs, plain digits and folded texts, by subject and property; none if there is no object.

    undecided: subjects and properties with an unknown value, or one that cannot be compared.
    properties: those of which something is known. subjects: those of which all facts of these properties are known.
    named: whether subjects and objects are also given by name, as in a split. converted: the numbers among the objects
    that were given in another unit than that of the facts. merged: item -> the item into which it was merged.
    """

    objects: Mapping[tuple[str, str], frozenset[str]]
    properties: frozenset[str]
    subjects: frozenset[str] = _NOTHING
    named: bool = False
    converted: Mapping[tuple[str, str], frozenset[str]] = field(default_factory=dict)
    merged: Mapping[str, str] = field(default_factory=dict)
    undecided: frozenset[tuple[str, str]] = frozenset()

    def marked(self, fact: FactRow) -> MarkedFact:
        """Return a fact with its mark.

        A fact without a QID is compared by name, and may be marked as new by mistake.
        """
        subjects = [fact.subject_id, name_key(fact.subject) if self.named else None]
        keys = [(subject, fact.about.property) for subject in subjects if subject]
        key = next((key for key in keys if key in self.objects), None)
        known = self.objects[key] if key else None
        item = fact.object_id and self.merged.get(fact.object_id, fact.object_id)
        kind = kind_of(fact.about)
        value = item if kind.is_entity else kind.known_key(fact.literal)
        named = self.named or not (kind.is_entity or kind.has_values)
        values = {value, name_key(fact.object) if named else None} - {None}
        if known is not None and not known:
            return MarkedFact(fact, Mark.CONTRADICTING, True, frozenset({"no value"}))
        if key is None and not self.undecided.isdisjoint(keys):
            return MarkedFact(fact, Mark.UNCOVERED, False, _NOTHING)
        if key is None and (fact.subject_id not in self.subjects or fact.about.property not in self.properties):
            return MarkedFact(fact, Mark.UNCOVERED, False, _NOTHING)
        if key is None or known is None or not values:
            return MarkedFact(fact, Mark.NEW, False, _NOTHING)
        if not values.isdisjoint(known) or any(_rounds_to(number, fact) for number in self.converted.get(key, ())):
            return MarkedFact(fact, Mark.KNOWN, True, known)
        return MarkedFact(fact, Mark.CONTRADICTING if fact.about.one_object else Mark.NEW, True, known)


def _rounds_to(number: str, fact: FactRow) -> bool:
    """Return whether a number is a fact's when it is rounded to as many places."""
    if fact.literal is None:
        return False
    rounded = Decimal(number).quantize(Decimal(last_place(fact.literal)), context=_WIDE)
    return rounded == Decimal(fact.literal)


def read(
    paths: Sequence[Path],
    properties: Mapping[str, About],
    subjects: frozenset[str],
    linked: Collection[Triple] = (),
) -> Known:
    """Read what is known about some subjects and properties, from one file or several. linked: facts about items.

    A file is a table of subject, property and object, truthy N-Triples, or Wikidata's JSON. Several JSON files may be
    pieces of one dump, in order. Numbers without a unit are taken to have that of the facts, and a warning says so.
    InputError for a file that is cut off, and for one without a statement.
    """
    dumps = [path for path in paths if _is_dump(path)]
    rows = ((*row, None) for path in paths if path not in dumps for row in quickstatements.statements(path))
    more = _entities(dumps, frozenset(properties), subjects) if dumps else ()
    merged, objects = dict[str, str](), {found for *_, found in linked}

    def unmerged() -> Iterator[tuple[str, str, str, str | None]]:
        for subject, name, value, item in chain(rows, more):
            if name != MERGED:
                yield subject, name, value, item
            elif not objects.isdisjoint((subject, value)):
                merged[subject] = value

    return _followed(_gathered(unmerged(), properties, subjects, is_whole=bool(dumps)), merged, properties)


def marked_by(path: Path, base: Knowledge) -> Callable[[FactRow], MarkedFact]:
    """Return a function that marks the facts of a base by a file of known facts, or by the table of an audit.

    A fact that the audit does not list is not covered. InputError as `read`.
    """
    marks = quickstatements.read_marks(path)
    if marks is None:
        subjects = frozenset(fact.subject_id for fact in base.facts() if fact.subject_id)
        properties = {about.property: about for about in base.relations.values() if about.is_of_wikidata()}
        return read([path], properties, subjects).marked

    def marked(fact: FactRow) -> MarkedFact:
        key = fact.subject_id or "", fact.about.property, quickstatements.object_of(fact)
        mark, known = marks.get(key, (Mark.UNCOVERED, ""))
        return MarkedFact(fact, Mark(mark), bool(known), frozenset(filter(None, [known])))

    return marked


def of_wikidata(
    wikidata: Wikidata,
    properties: Mapping[str, About],
    subjects: frozenset[str],
    unlinked: Collection[tuple[str, str]],
    linked: Collection[Triple] = (),
    report: Report = silent,
) -> Known:
    """Ask Wikidata about some subjects and properties; its answers are cached.

    unlinked: subjects and properties whose known objects are compared by their labels too. linked: facts about items.
    Items that differ from known ones may have been merged with them, so Wikidata is asked about both.
    """
    claims = _claims(frozenset(properties))
    entity = msgspec.defstruct("AskedEntity", [("claims", claims | Empty, [])], bases=(WikibaseEntity,), gc=False)
    decoder: Any = msgspec.json.Decoder(EntitiesReply[entity])  # type: ignore[valid-type]

    def stated(item: Any) -> _Stated | None:
        return [*_statements(item.claims)] if item.missing is msgspec.UNSET else None

    def ask(client: Client, missing: list[str]) -> Iterator[Mapping[str, _Stated | None]]:
        done = 0
        for answers in client.entities(missing, lambda ids: entities(ids, decoder, stated, props="info|claims")):
            done += len(answers)
            report("ask Wikidata (subjects)", done, len(missing))
            yield answers

    found = wikidata.kept(f"statements of {'|'.join(sorted(properties))}", sorted(subjects), _STATED, ask)
    rows = ((subject, *row) for subject, some in found.items() if some is not None for row in (_SEEN, *some))
    known = _gathered(rows, properties, subjects, is_whole=True)
    objects = {key: values for key in unlinked if (values := known.objects.get(key))}
    labels = wikidata.labels(sorted({value for values in objects.values() for value in values if as_qid(value)}))
    names = {
        key: values | {name_key(labels[value]) for value in values & labels.keys()} for key, values in objects.items()
    }
    known = replace(known, objects={**known.objects, **names}, named=True)
    others = ((known.objects.get((subject, name), _NOTHING), found) for subject, name, found in linked)
    items = {item for values, found in others if values and found not in values for item in (found, *values)}
    return _followed(known, wikidata.merged(sorted(item for item in items if as_qid(item) == item)), properties)


def _followed(known: Known, merged: Mapping[str, str], properties: Mapping[str, About]) -> Known:
    """Return known facts in which each merged item is the item that it became."""
    objects = {
        key: frozenset(merged.get(value, value) for value in values)
        if kind_of(properties[key[1]]).is_entity
        else values
        for key, values in (known.objects if merged else {}).items()
    }
    return replace(known, objects={**known.objects, **objects}, merged=merged)


def _gathered(
    rows: Iterable[tuple[str, str, str, str | None]],
    properties: Mapping[str, About],
    subjects: frozenset[str],
    *,
    is_whole: bool,
) -> Known:
    """Return what rows state of some subjects and properties. is_whole: whether the rows have all of each property."""
    stated = defaultdict[tuple[str, str], set[str]](set)
    converted = defaultdict[tuple[str, str], set[str]](set)
    unitless, left_out, undecided = Counter[str](), Counter[str](), set[tuple[str, str]]()
    seen, covered = set(properties if is_whole else ()), set[str]()
    for subject, name, value, item in rows:
        about = properties.get(name)
        if about is not None:
            seen.add(name)
        if subject not in subjects:
            continue
        covered.add(subject)
        if about is None:
            continue
        if value == quickstatements.UNKNOWN_VALUE:
            undecided.add((subject, name))
            continue
        if value == quickstatements.NO_VALUE:
            stated[subject, name].update(())
            continue
        known = kind_of(about).known(value, item, about)
        if known is None:
            left_out[name] += 1
            undecided.add((subject, name))
            continue
        stated[subject, name] |= known.keys
        if known.is_converted:
            converted[subject, name] |= known.keys
        elif not known.has_unit and unit_of(about.unit):
            unitless[f"{name} in {about.unit}"] += 1
    if unitless:
        log.warning(
            "known numbers without a unit are taken to be in that of the facts, so one in another unit contradicts "
            "them by mistake: %s",
            ", ".join(f"{count} of {name}" for name, count in unitless.items()),
        )
    if left_out:
        log.warning(
            "known values that cannot be read, or whose unit is not known or does not fit, were left out: %s",
            ", ".join(f"{count} of {name}" for name, count in left_out.items()),
        )
    objects, others = ({key: frozenset(values) for key, values in table.items()} for table in (stated, converted))
    return Known(objects, frozenset(seen), frozenset(covered), converted=others, undecided=frozenset(undecided))


def of_split(examples: Iterable[Example], property_of: Callable[[str], str]) -> Known:
    """Return the known facts of a split: QIDs, numbers and all names. property_of: relation's name -> property."""
    by_key = dict[tuple[str, str], frozenset[str]]()
    for example in examples:
        query, objects = example.query, example.objects
        values = {gold.id for gold in objects if gold.id} | {name for gold in objects for name in gold.names}
        known = frozenset(map(object_key, values)) | {name_key(value) for value in values}
        for subject in filter(None, (query.subject_id, name_key(query.subject))):
            key = subject, property_of(query.relation)
            by_key[key] = by_key.get(key, frozenset()) | known
    return Known(by_key, frozenset(name for _, name in by_key), named=True)


def _is_dump(path: Path) -> bool:
    with open_dump(path) as file:
        return _ENTITY.match(file.read(1 << 12)) is not None


def _entities(
    paths: Sequence[Path], properties: frozenset[str], subjects: frozenset[str]
) -> Iterator[tuple[str, str, str, str | None]]:
    """Yield the statements of entities, without deprecated ones, and the items of units.

    Claims of other properties are not decoded. The first row of an entity states nothing.
    """
    claims = _claims(properties)
    fields: list[Any] = [("id", str), ("claims", claims | Empty, []), ("redirects", Redirect | None, None)]
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
            yield from ((origin, MERGED, item.id, None) for origin in merged)
            for subject in filter(subjects.__contains__, (item.id, *merged)):
                yield subject, *_SEEN
                yield from ((subject, *row) for row in _statements(item.claims))
    if first == b"[" and last != b"]":
        raise InputError(f"{paths[-1]} ends before the closing bracket: get it whole, or give all its pieces in order")


def _claims(properties: frozenset[str]) -> Any:
    """Return the type of claims of some properties. Other claims are not decoded."""
    fields: list[Any] = [(name, list[Statement[str | dict[str, Any]]], []) for name in sorted(properties)]
    return msgspec.defstruct("Claims", fields, gc=False)


_Stated = list[tuple[str, str, str | None]]
"""Statement of an entity: property, value (`NO_VALUE` and `UNKNOWN_VALUE` too), and item of the unit."""
_STATED: msgspec.json.Decoder[_Stated | None] = msgspec.json.Decoder(_Stated | None)
_SEEN: tuple[str, str, None] = ("", "", None)


def _text(value: Mapping[str, Any]) -> str:
    """Return the text of a value: an item's id, an amount, a text, a time with its precision, else its JSON."""
    if time := value.get("time"):
        return f"{time}/{value.get('precision', 0)}"
    simple = (text for name in ("id", "amount", "text") if isinstance(text := value.get(name), str))
    return next(simple, msgspec.json.encode(value, order="sorted").decode())


def _statements(claims: Any) -> Iterator[tuple[str, str, str | None]]:
    for name in getattr(claims, "__struct_fields__", ()):  # no claims at all are an empty list
        for claim in getattr(claims, name):
            if claim.rank != "deprecated":
                snak = claim.mainsnak
                value = snak.snaktype if snak.datavalue is None else snak.datavalue.value
                if text := value if isinstance(value, str) else _text(value):
                    unit = "" if isinstance(value, str) else str(value.get("unit", ""))
                    yield name, text, as_qid(unit.rpartition("/")[2])
