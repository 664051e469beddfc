"""Kind of objects: how they are read, compared and exported, and how they stand in Wikidata.

`Kind` is the protocol, with the answers of a plain text. Each kind is an object of a subclass, in a module beside this
one, with a line in `lmkbc.registry.KINDS`. No other module compares a kind's name.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from decimal import Decimal
from enum import StrEnum
from typing import Any, ClassVar, NamedTuple, Protocol

from lmkbc.names import Memo, folded_key, name_key
from lmkbc.registry import KINDS
from lmkbc.relation import EntityType, Relation, Shape, kind_named

_FOLDED = Memo(folded_key)
WITH_COMMAS = Shape(separators=(";", "\n"), conjunction=False)
"""Form of objects that may hold commas, such as numbers and dates."""
TEXT = EntityType("text", "Q234460")


class LeftOutError(ValueError):
    """An error for a value that has no place: in an export, or in gold. Its text is the reason: "no readable date"."""


class Described(Protocol):
    """A relation, or what a knowledge base keeps of one."""

    @property
    def kind(self) -> str:
        """Return the name of the kind of its objects."""

    @property
    def unit(self) -> str | None:
        """Return the unit of its objects, as the relation spells it; None without one."""

    @property
    def unit_id(self) -> str | None:
        """Return Wikidata's item of the unit."""

    @property
    def language(self) -> str:
        """Return the code of the language of its texts; "" if it is not known."""

    @property
    def tolerance(self) -> float:
        """Return the greatest difference of a right number from a true one, as a share of that."""

    @property
    def absolute_tolerance(self) -> float:
        """Return the same in the unit of its objects, in kilometres for places."""


class Exported(NamedTuple):
    """An object as exports write it.

    text, datatype: literal in RDF and in tables. The datatype is one of XML Schema by its name, has an address, or is a
    language behind @.
    wikidata: datatype of its property, and the value in Wikidata's JSON. command: value in QuickStatements.
    unit, unit_id: of a number, and its item. precision: in tables. approximate: whether it is "circa"; None if that
    makes no sense. node: class of its value node in RDF, then (name, text, datatype) of each statement about the node,
    where a datatype "iri" stands for an address. node_key: what makes it. qualifier: property and item, if any.
    fault: why Wikidata and RDF cannot hold it; "" if they can.
    """

    text: str
    datatype: str
    wikidata: tuple[str, Mapping[str, Any]]
    command: str
    unit: str | None = None
    unit_id: str | None = None
    precision: str | None = None
    approximate: bool | None = None
    node: tuple[str, Sequence[tuple[str, str, str]]] | None = None
    node_key: str = ""
    qualifier: tuple[str, str] | tuple[()] = ()
    fault: str = ""


class Stated(NamedTuple):
    """A value as a source states it.

    text: an item's id, a number, a text, or a date; a time as in Wikidata's JSON, which has no year 0. unit: item of a
    number's unit. precision: of a time, as Wikidata counts it; None if the source does not say it. calendar: item of
    the calendar of a day; "" for the usual one of its time. bounds: of a number.
    """

    text: str
    unit: str | None = None
    precision: int | None = None
    calendar: str = ""
    bounds: tuple[str, str] | None = None


class KnownValue(NamedTuple):
    """A known value as facts are compared with it.

    text: for a reader. value: what it means. has_unit: whether a number came with a unit.
    """

    text: str
    value: Any
    has_unit: bool = False


class Match(StrEnum):
    """Result of comparing an object with a known one, the closest first. REFINES says more, and COMPATIBLE less."""

    SAME = "same"
    COMPATIBLE = "compatible"
    REFINES = "refines"
    UNDECIDED = "undecided"
    CONTRADICTS = "contradicts"


class Kind:
    """A kind of objects, here texts that are kept as a model wrote them.

    is_entity: objects have names, which are parted, cleaned and linked; they can be subjects too.
    has_values: objects are read out of a text, and compared by what they mean.
    is_numeric: objects are numbers, for which there are rules of their own.
    is_parted: texts are cut at the relation's separators. holds_marks: commas and full stops may be part of an object.
    one_object: a subject has at most one. has_unit: a relation may give objects a unit.
    is_marked: objects have a form of their own, so that a text without it holds none.
    fields: keys that hold the object in JSON. example: texts that the kind reads, for messages; "" if it reads any.
    schema: JSON schema of an object in a structured reply. data_types: of Wikidata's properties. type: of its objects,
    for wordings. asks_when: whether it is asked for with "when". shape: form of its objects in a new relation.
    form: end of a definition that says how an object is written; {within} is the unit. hint: what else to fill in.
    """

    name = "string"
    is_entity = has_values = is_numeric = is_parted = is_marked = holds_marks = one_object = has_unit = False
    asks_when = False
    fields: frozenset[str] = frozenset()
    example = ""
    schema: ClassVar[Mapping[str, Any]] = {"type": "string"}
    data_types: tuple[str, ...] = ("string",)
    type = TEXT
    shape = Shape()
    form = ", exactly as it is written. Nothing when there is none."
    hint = ""

    def read(self, text: str, relation: Relation) -> list[str]:
        """Return the objects that a text gives, in their normal form."""
        return [text]

    def marked(self, text: str) -> list[str]:
        """Return the objects that a reply marks by their form alone."""
        return []

    def bare(self, text: str, *, is_sentence: bool) -> str:
        """Return an object without what models write around it; "" if there is none."""
        return text

    def in_line(self, line: str, relation: Relation) -> list[str]:
        """Return the objects of a closing line that asks for exactly this form."""
        return [line.strip()]

    def joined(self, fields: Sequence[tuple[str, str]]) -> tuple[int, str] | None:
        """Return an object that fields of JSON make together, behind the place of its first field; None for none.

        fields: the key and text of each.
        """
        return None

    def size(self, value: str) -> str | int | None:
        """Return the number that a shape's bounds are compared with; None if there is none."""
        return None

    def meaning(self, text: str, relation: Relation) -> Hashable:
        """Return what a text means, by which equal objects are found; None if it is no object of this kind."""
        return _FOLDED[text]

    def unread(self, text: str, about: Described) -> str:
        """Return what is wrong with a text of a table that is no object of this kind, and what to write."""
        return f"{text!r} is no {about.kind} that an answer can match; write it as {self.example}"

    def as_kept(self, text: str, relation: Relation) -> str:
        """Return an object of a labelled row of one's own as facts have it."""
        return text

    def said(self, text: str, relation: Relation) -> str:
        """Return an object as a reply in the relation's language has it, for examples in prompts."""
        return text

    def is_same(self, given: Any, true: Any, relation: Relation, *, coarser: bool) -> bool:
        """Return whether a meaning is right. coarser: whether one that is less precise, but not contrary, is."""
        return given is not None and given == true

    def votes(self, texts: Sequence[str]) -> Mapping[str, str]:
        """Return text -> the other one, such as a more precise one, for which it is a vote, of one query's objects."""
        return {}

    def literal(self, texts: Sequence[str]) -> tuple[str | None, str | None]:
        """Return what a knowledge base keeps of an object, and the value of its last digit, from its id and text."""
        return None, None

    def exported(self, value: str | None, about: Described) -> Exported:
        """Return an object for exports: its literal, or its text. LeftOutError if it cannot be written."""
        text = value or ""
        return Exported(text, "string", (self.data_types[0], {"type": "string", "value": accepted(text)}), f'"{text}"')

    def known(self, stated: Stated, about: Described) -> KnownValue | None:
        """Return what a known value means; None if that cannot be said."""
        return KnownValue(stated.text, name_key(stated.text))

    def compare(self, own: str, known: KnownValue, about: Described) -> Match:
        """Return what an object, by its literal or its text, says beside a known value."""
        return Match.SAME if name_key(own) == known.value else Match.CONTRADICTS

    def gold(self, text: str, row: Mapping[str, str], relation: Relation) -> str:
        """Return a value of a query service as gold. row: its unit, precision and calendar. LeftOutError as reason."""
        return text


def accepted(text: str) -> str:
    """Return a text in the form that Wikidata accepts: single spaces, printable characters only."""
    return " ".join("".join(char if char.isprintable() else " " for char in text).split())


def kind_of(described: Described) -> Kind:
    """Return the kind of a relation's objects."""
    kind: Kind = kind_named(described.kind)
    return kind


def kinds() -> dict[str, Kind]:
    """Return the kinds by name, those of plug-ins last."""
    return {name: KINDS.get(name) for name in (*KINDS, *KINDS.plugged())}


def allowed_values(text: str, relation: Relation) -> tuple[list[str], str]:
    """Return the values in a text that the shape allows, and the rule that the last other one violates."""
    kept: list[str] = []
    rule, kind = "", kind_of(relation)
    for value in kind.read(text, relation):
        size = kind.size(value)
        if violated := "" if size is None else _violated_rule(Decimal(size), relation.shape):
            rule = violated
        else:
            kept.append(value)
    return kept, rule or f"no {relation.kind}"


def _violated_rule(value: Decimal, shape: Shape) -> str:
    """Return the rule that a number violates, "" if none."""
    if shape.minimum is not None and value < Decimal(str(shape.minimum)):
        return "minimum"
    if shape.maximum is not None and value > Decimal(str(shape.maximum)):
        return "maximum"
    return "integer" if shape.integer and value % 1 else ""
