"""Known facts from Wikidata, a file, a base or a split, and comparison with a base's facts, by the kind of objects.

Wikidata is not complete, so a fact that it lacks is new, not wrong. A fact contradicts Wikidata if its relation has one
object and Wikidata has another one, or if Wikidata says that there is none ("no value"). It refines a known one if it
says more and nothing else, as a day in a known year does; then it is no second statement. Where Wikidata says "unknown
value" alone, or has values that cannot be compared, nothing is decided. A fact is new only if what is known covers it:
a file that has nothing of its subject, or nothing of its property, cannot tell.
"""

from __future__ import annotations

import logging
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from lmkbc.errors import OptionError, counted
from lmkbc.kb.audit.known_files import (
    MERGED,
    NO_VALUE,
    SEEN,
    UNKNOWN_VALUE,
    KnownRow,
    Wanted,
    claims_of,
    is_dump,
    of_dumps,
    rows_of,
    stated,
)
from lmkbc.kb.base.fact_row import FactRow
from lmkbc.kb.base.knowledge import Knowledge
from lmkbc.kb.base.manifest import About
from lmkbc.kb.export import quickstatements
from lmkbc.kb.export.quickstatements import Triple
from lmkbc.kinds.kind import KnownValue, Match, Stated, kind_of
from lmkbc.kinds.units import unit_of
from lmkbc.link.search import Wikidata
from lmkbc.link.wikibase import Empty, EntitiesReply, WikibaseEntity, entities
from lmkbc.link.wikidata import Client
from lmkbc.names import as_qid, name_key
from lmkbc.progress import Report, silent
from lmkbc.types import Example, Query

_NOTHING = frozenset[str]()
log = logging.getLogger(__name__)


class Mark(StrEnum):
    """Result of the comparison of a fact with known facts, in the order of a written list."""

    NEW = "new"
    CONTRADICTING = "contradicting"
    REFINING = "refining"
    KNOWN = "known"
    UNCOVERED = "not covered"


_MARKS = {
    Match.SAME: Mark.KNOWN,
    Match.COMPATIBLE: Mark.KNOWN,
    Match.REFINES: Mark.REFINING,
    Match.UNDECIDED: Mark.UNCOVERED,
}
"""Result of a comparison -> mark. Another object is new, or contradicts the known one if there is only one."""
CLOSEST = [*Match]


class MarkedFact(NamedTuple):
    """A compared fact. is_checked: whether known values of its subject and property decide. known: these."""

    fact: FactRow
    mark: Mark
    is_checked: bool
    known: frozenset[str]


@dataclass(frozen=True, slots=True)
class Known:
    """Known facts. objects: known values by subject and property; none if there is no object.

    undecided: subjects and properties with an unknown value, or one that cannot be compared.
    properties: those of which something is known. subjects: those of which all facts of these properties are known.
    named: whether subjects are also given by name, as in a split. has_names: whether objects are. merged: item -> the
    item into which it was merged. shared: keys of names that several subjects of the base have.
    """

    objects: Mapping[tuple[str, str], Sequence[KnownValue]]
    properties: frozenset[str]
    subjects: frozenset[str] = _NOTHING
    named: bool = False
    has_names: bool = False
    merged: Mapping[str, str] = field(default_factory=dict)
    undecided: frozenset[tuple[str, str]] = frozenset()
    shared: frozenset[str] = _NOTHING

    def marked(self, fact: FactRow) -> MarkedFact:
        """Return a fact with its mark.

        A fact without a QID is compared by name, and may be marked as new by mistake. What is known by a name that
        several subjects have may be of another one: it decides nothing, unless it says the same.
        """
        subjects, name = [*filter(None, (fact.subject_id,))], name_key(fact.subject)
        by_name = self._marked(fact, [*subjects, name] if self.named else subjects)
        if name not in self.shared:
            return by_name
        says_same = by_name.mark in (Mark.KNOWN, Mark.REFINING)
        return by_name if says_same else self._marked(fact, subjects)

    def _marked(self, fact: FactRow, subjects: Sequence[str]) -> MarkedFact:
        """Return a fact with its mark by what is known of the first of some keys of its subject."""
        keys = [(subject, fact.about.property) for subject in subjects]
        known = next((self.objects[key] for key in keys if key in self.objects), None)
        if known is None and not self.undecided.isdisjoint(keys):
            return MarkedFact(fact, Mark.UNCOVERED, False, _NOTHING)
        if known is None and (self.subjects.isdisjoint(subjects) or fact.about.property not in self.properties):
            return MarkedFact(fact, Mark.UNCOVERED, False, _NOTHING)
        if known is not None and not known:
            return MarkedFact(fact, Mark.CONTRADICTING, True, frozenset({"no value"}))
        kind = kind_of(fact.about)
        own = self._values(fact)
        if known is None or not own:
            return MarkedFact(fact, Mark.NEW, False, _NOTHING)
        closest = min((kind.compare(text, value, fact.about) for text in own for value in known), key=CLOSEST.index)
        mark = _MARKS.get(closest, Mark.CONTRADICTING if fact.about.one_object else Mark.NEW)
        is_checked = closest not in (Match.REFINES, Match.UNDECIDED)
        return MarkedFact(fact, mark, is_checked, frozenset(value.text for value in known))

    def _values(self, fact: FactRow) -> list[str]:
        """Return the texts by which the object of a fact is compared."""
        kind = kind_of(fact.about)
        if not kind.is_entity:
            return [text] if (text := fact.literal if kind.has_values else fact.object) else []
        item = self.merged.get(fact.object_id or "", fact.object_id)
        return [text for text in (item, fact.object if self.has_names else None) if text]


def read(paths: Sequence[Path], base: Knowledge) -> Known:
    """Read what is known about the subjects and relations of a base, from one file or several.

    A file is a table of subject, property and object, by items or by names, labelled rows, N-Triples, or Wikidata's
    JSON. Several JSON files may be pieces of one dump, in order. Numbers without a unit are taken to have that of the
    facts, and a warning says so. InputError for a file that is cut off, and for one without a statement.
    """
    dumps = [path for path in paths if is_dump(path)]
    properties = {about.property: about for about in base.relations.values()}
    items, linked = items_of(base)
    subjects = items.union(name_key(fact.subject) for fact in base.facts())
    objects = frozenset(item for *_, item in linked if item)
    wanted = Wanted(subjects, frozenset(properties), objects, base.relations)
    rows = (row for path in paths if path not in dumps for row in rows_of(path, wanted))
    merged = dict[str, str]()

    def unmerged() -> Iterator[KnownRow]:
        for row in chain(rows, of_dumps(dumps, wanted) if dumps else ()):
            if row.property == MERGED:
                merged[row.subject] = row.value.text
            else:
                yield row

    return _followed(_gathered(unmerged(), properties, subjects, is_whole=bool(dumps)), merged, properties)


def with_shared_names(known: Known, base: Knowledge) -> Known:
    """Return known facts that say which names several subjects of a base share. A warning counts those that it uses."""
    if not known.named:
        return known
    stated = known.subjects.union(subject for subject, _ in known.objects)
    used = [
        subjects
        for key, subjects in base.shared_names.items()
        if key in stated and not stated.issuperset(qid or "" for _, qid in subjects)
    ]
    for subjects in used[:1]:
        log.warning(
            "known facts call subjects by %s that several subjects of the base have, first %r (%s): give them the "
            "column subject_id; without it, they only confirm facts",
            counted(len(used), "name"),
            subjects[0][0],
            ", ".join(qid or "no QID" for _, qid in subjects),
        )
    return replace(known, shared=frozenset(base.shared_names))


def marked_by(path: Path | None, base: Knowledge, need: str) -> Callable[[FactRow], MarkedFact]:
    """Return a function that marks the facts of a base by a file of known facts, or by the table of an audit.

    A fact that the audit does not list is not covered. need: sentence of the format that has no file. OptionError for
    none, and InputError as `read`.
    """
    if path is None:
        made = "the file that 'lmkbc audit DIR --known wikidata --out FILE' wrote"
        raise OptionError("format", f"{need}: give those that it has with --known FILE, or {made}")
    marks = None if path.is_dir() else quickstatements.read_marks(path)
    if marks is None:
        return with_shared_names(of_base(path) if path.is_dir() else read([path], base), base).marked

    def marked(fact: FactRow) -> MarkedFact:
        key = fact.subject_id or "", fact.about.property, quickstatements.object_of(fact)
        mark, value = marks.get(key, (Mark.UNCOVERED, ""))
        return MarkedFact(fact, Mark(mark), bool(value), frozenset(filter(None, [value])))

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
    entity = msgspec.defstruct(
        "AskedEntity", [("claims", claims_of(properties) | Empty, [])], bases=(WikibaseEntity,), gc=False
    )
    decoder: Any = msgspec.json.Decoder(EntitiesReply[entity])  # type: ignore[valid-type]

    def claimed(item: Any) -> _Stated | None:
        return [*stated(item.claims)] if item.missing is msgspec.UNSET else None

    def ask(client: Client, missing: list[str]) -> Iterator[Mapping[str, _Stated | None]]:
        done = 0
        for answers in client.entities(missing, lambda ids: entities(ids, decoder, claimed, props="info|claims")):
            done += len(answers)
            report("ask Wikidata (subjects)", done, len(missing))
            yield answers

    found = wikidata.kept(f"values of {'|'.join(sorted(properties))}", sorted(subjects), _STATED, ask)
    rows = (KnownRow(subject, *one) for subject, some in found.items() if some is not None for one in (SEEN, *some))
    known = _gathered(rows, properties, subjects, is_whole=True)
    objects = {key: values for key in unlinked if (values := known.objects.get(key))}
    labels = wikidata.labels(sorted({one.text for values in objects.values() for one in values if as_qid(one.text)}))
    names = {
        key: [*values, *(KnownValue(label, name_key(label)) for one in values if (label := labels.get(one.text)))]
        for key, values in objects.items()
    }
    known = replace(known, objects={**known.objects, **names}, has_names=True)
    others = ((known.objects.get((subject, name), ()), found) for subject, name, found in linked)
    items = {
        item
        for values, found in others
        if values and found not in (own := {one.text for one in values})
        for item in (found, *own)
    }
    return _followed(known, wikidata.merged(sorted(item for item in items if as_qid(item) == item)), properties)


def _followed(known: Known, merged: Mapping[str, str], properties: Mapping[str, About]) -> Known:
    """Return known facts in which each merged item is the item that it became."""
    objects = {
        key: [KnownValue(merged.get(value.text, value.text), merged.get(value.value, value.value)) for value in values]
        for key, values in (known.objects if merged else {}).items()
        if kind_of(properties[key[1]]).is_entity
    }
    return replace(known, objects={**known.objects, **objects}, merged=merged)


def _listed(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{number} of {name}" for name, number in counts.items())


def _gathered(
    rows: Iterable[KnownRow], properties: Mapping[str, About], subjects: frozenset[str], *, is_whole: bool
) -> Known:
    """Return what rows state of some subjects and properties. is_whole: whether the rows have all of each property."""
    objects = defaultdict[tuple[str, str], list[KnownValue]](list)
    unitless, left_out, undecided = Counter[str](), Counter[str](), set[tuple[str, str]]()
    unread = ""
    seen, covered = set(properties if is_whole else ()), set[str]()
    for subject, name, value, place in rows:
        about = properties.get(name)
        if about is not None:
            seen.add(name)
        if subject not in subjects:
            continue
        covered.add(subject)
        if about is None:
            continue
        if value == NO_VALUE:
            objects[subject, name] += ()
            continue
        known = None if value == UNKNOWN_VALUE else kind_of(about).known(value, about)
        if known is None:
            if value != UNKNOWN_VALUE:
                left_out[name] += 1
                unread = unread or (place and f"; first {place}: {kind_of(about).unread(value.text, about)}")
            undecided.add((subject, name))
            continue
        objects[subject, name].append(known)
        if not known.has_unit and unit_of(about.unit):
            unitless[f"{name} in {about.unit}"] += 1
    if unitless:
        log.warning(
            "known numbers without a unit are taken to be in that of the facts, so one in another unit contradicts "
            "them by mistake: %s",
            _listed(unitless),
        )
    if left_out:
        log.warning(
            "known values that cannot be read, or whose unit is not known or does not fit, were left out: %s%s",
            _listed(left_out),
            unread,
        )
    values = (one for (_, name), own in objects.items() if kind_of(properties[name]).is_entity for one in own)
    return Known(
        objects=dict(objects),
        properties=frozenset(seen),
        subjects=frozenset(covered),
        named=any(as_qid(subject) is None for subject in covered),
        has_names=any(as_qid(one.text) is None for one in values),
        undecided=frozenset(undecided),
    )


def wikidata_relations(base: Knowledge) -> dict[str, About]:
    """Return the relations of a base that are of a property of Wikidata, by property."""
    return {about.property: about for about in base.relations.values() if about.is_of_wikidata()}


def items_of(base: Knowledge) -> tuple[frozenset[str], list[Triple]]:
    """Return the items that a base has facts about, and these facts: subject, property, and the object's item or ""."""
    keys = {(fact.subject_id, fact.about.property, fact.object_id or "") for fact in base.facts() if fact.subject_id}
    return frozenset(subject for subject, *_ in keys), sorted(keys)


def of_split(examples: Iterable[Example], about_of: Callable[[str], About]) -> Known:
    """Return the known facts of a split: QIDs, values and all names. about_of: relation's name -> its description."""
    objects = defaultdict[tuple[str, str], list[KnownValue]](list)
    for example in examples:
        query, about = example.query, about_of(example.query.relation)
        texts = dict.fromkeys(text for gold in example.objects for text in (gold.id, *gold.names) if text)
        known = [value for text in texts if (value := kind_of(about).known(Stated(text), about))]
        for subject in filter(None, (query.subject_id, name_key(query.subject))):
            objects[subject, about.property] += known
    return Known(dict(objects), frozenset(name for _, name in objects), named=True, has_names=True)


def of_base(path: Path) -> Known:
    """Return the facts of another base, as its reader gives them. They are compared by QIDs, values and names."""
    other, subjects = Knowledge(path), set[str]()

    def rows() -> Iterator[Example]:
        for fact in other.facts():
            subjects.update(filter(None, (fact.subject_id, name_key(fact.subject))))
            yield Example(Query(fact.subject, fact.relation, fact.subject_id), (fact.gold,))

    known = of_split(rows(), other.relations.__getitem__)
    return replace(known, subjects=frozenset(subjects))


_Stated = list[tuple[str, Stated]]
"""Statements of an entity: property and value."""
_STATED: msgspec.json.Decoder[_Stated | None] = msgspec.json.Decoder(_Stated | None)
