"""Strict readers of exports: QuickStatements' two, and Wikibase's data model of JSON.

Written from the rules of quickstatements3 and of Wikibase's docs/topics/json. A value that the real readers would take
as a free text, or leave out, is an error here.
"""

import csv
import io
import re
from typing import Annotated, Literal, NamedTuple

import msgspec

ITEM, PROPERTY = r"Q[1-9]\d*", r"P[1-9]\d*"
QUANTITY = r"[+-]?\d+(?:\.\d+)?(?:~\d+(?:\.\d+)?)?(?:U[1-9]\d*)?"
TIME = r"[+-]\d+-\d\d-\d\dT00:00:00Z/(?:7|8|9|10|11)(?:/J)?"
PLACE = r"@-?\d+(?:\.\d+)?/-?\d+(?:\.\d+)?"
VALUE = re.compile(rf'{ITEM}|{QUANTITY}|{TIME}|{PLACE}|(?:[a-z-]+:)?"[^"\t\n]+"|somevalue|novalue')
PAIR = re.compile(r"(!?S|P)[1-9]\d*")


class Command(NamedTuple):
    """A statement as it is read. more: qualifiers and references, as typed."""

    item: str
    property: str
    value: str
    more: tuple[tuple[str, str], ...] = ()
    summary: str = ""


def version_1(text: str) -> list[Command]:
    """Read commands of version 1: `||` is a line's end, `|` a tab, and a comment stands behind a statement alone."""
    lines = text.replace("||", "\n").replace("|", "\t").split("\n")
    return [_command(line.strip()) for line in lines if line.strip()]


def _command(line: str) -> Command:
    found = re.fullmatch(r"(.*?) *(?:/\*\s*(.*?)\s*\*/)?", line)
    assert found
    item, name, value, *rest = (found[1].split("\t") + [""] * 3)[: max(3, found[1].count("\t") + 1)]
    pairs = list(zip(rest[::2], rest[1::2], strict=True))
    _check(item, name, value, *(value for _, value in pairs))
    assert all(PAIR.fullmatch(key) for key, _ in pairs), line
    return Command(item, name, value, tuple(pairs), found[2] or "")


def comma_separated(text: str) -> list[Command]:
    """Read CSV: `qid`, then properties, each followed by what belongs to its statement; an empty cell is nothing."""
    header, *rows = csv.reader(io.StringIO(text, newline=""), strict=True)
    assert header[0] == "qid", header
    assert re.fullmatch(PROPERTY, header[1]), header
    return [one for row in rows for one in _row(header, row)]


def _row(header: list[str], row: list[str]) -> list[Command]:
    assert len(row) == len(header), row
    made: list[Command] = []
    for name, cell in zip(header[1:], map(str.strip, row[1:]), strict=True):
        if cell and name == "#":
            made[-1] = made[-1]._replace(summary=made[-1].summary + cell)
        elif cell and re.fullmatch(r"(qal|[Ss])[1-9]\d*", name):
            _check(row[0], "P1", cell.replace('"""', '"'))
            made[-1] = made[-1]._replace(more=(*made[-1].more, (name, cell)))
        elif cell:
            _check(row[0], name, cell.replace('"""', '"'))
            made.append(Command(row[0], name, cell))
    return made


def _check(item: str, name: str, *values: str) -> None:
    assert re.fullmatch(ITEM, item), item
    assert re.fullmatch(PROPERTY, name), name
    assert all(map(VALUE.fullmatch, values)), values


Qid = Annotated[str, msgspec.Meta(pattern=f"^{ITEM}$")]
Pid = Annotated[str, msgspec.Meta(pattern=f"^{PROPERTY}$")]
Amount = Annotated[str, msgspec.Meta(pattern=r"^[+-](0|[1-9]\d{0,126})(\.\d{1,126})?$", max_length=127)]
Unit = Annotated[str, msgspec.Meta(pattern=rf"^(1|http://www\.wikidata\.org/entity/{ITEM})$")]
Text = Annotated[str, msgspec.Meta(min_length=1, pattern=r"^\S(.*\S)?$")]


class Strict(msgspec.Struct, forbid_unknown_fields=True):
    """Object without other fields."""


class Entity(Strict):
    entity_type: Literal["item"] = msgspec.field(name="entity-type")
    id: Qid
    numeric_id: int = msgspec.field(name="numeric-id")


class Quantity(Strict):
    amount: Amount
    unit: Unit


class EntityValue(Strict, tag_field="type", tag="wikibase-entityid"):
    value: Entity


class QuantityValue(Strict, tag_field="type", tag="quantity"):
    value: Quantity


class StringValue(Strict, tag_field="type", tag="string"):
    value: Text


class Time(Strict):
    """Years before Christ have no year 0; parts that the precision does not state are zeros."""

    time: Annotated[str, msgspec.Meta(pattern=r"^[+-]\d{4,16}-\d\d-\d\dT00:00:00Z$")]
    timezone: Literal[0]
    before: Literal[0]
    after: Literal[0]
    precision: Annotated[int, msgspec.Meta(ge=7, le=11)]
    calendarmodel: Literal["http://www.wikidata.org/entity/Q1985727", "http://www.wikidata.org/entity/Q1985786"]

    def __post_init__(self) -> None:
        year, month, day = (int(part) for part in self.time[1:].split("T")[0].split("-"))
        if not year or (month > 0) != (self.precision > 9) or (day > 0) != (self.precision > 10):
            raise ValueError("a time states less or more than its precision")


class TimeValue(Strict, tag_field="type", tag="time"):
    value: Time


class Monolingual(Strict):
    text: Text
    language: str


class MonolingualValue(Strict, tag_field="type", tag="monolingualtext"):
    value: Monolingual


class Globe(Strict):
    latitude: Annotated[float, msgspec.Meta(ge=-90, le=90)]
    longitude: Annotated[float, msgspec.Meta(ge=-180, le=180)]
    altitude: None
    precision: float
    globe: Literal["http://www.wikidata.org/entity/Q2"]


class GlobeValue(Strict, tag_field="type", tag="globecoordinate"):
    value: Globe


TEXTS = ("string", "url", "external-id")
OF = {
    "wikibase-item": EntityValue,
    "quantity": QuantityValue,
    "time": TimeValue,
    "monolingualtext": MonolingualValue,
    "globe-coordinate": GlobeValue,
    **dict.fromkeys(TEXTS, StringValue),
}


class Snak(Strict):
    snaktype: Literal["value", "somevalue", "novalue"]
    property: Pid
    datatype: Literal[
        "wikibase-item", "quantity", "string", "url", "external-id", "time", "monolingualtext", "globe-coordinate"
    ]
    datavalue: EntityValue | QuantityValue | StringValue | TimeValue | MonolingualValue | GlobeValue | None = None

    def __post_init__(self) -> None:
        if (self.snaktype == "value") != (self.datavalue is not None):
            raise ValueError("a value is there where snaktype says so, and nowhere else")
        if self.datavalue is not None and not isinstance(self.datavalue, OF[self.datatype]):
            raise ValueError(f"the value is no {self.datatype}")
        if isinstance(self.datavalue, EntityValue) and self.datavalue.value.id != f"Q{self.datavalue.value.numeric_id}":
            raise ValueError("id and numeric-id differ")


class Reference(Strict):
    snaks: dict[Pid, list[Snak]]
    snaks_order: list[Pid] = msgspec.field(name="snaks-order")

    def __post_init__(self) -> None:
        if [*self.snaks] != self.snaks_order:
            raise ValueError("snaks have another order")


class Statement(Strict):
    mainsnak: Snak
    type: Literal["statement"]
    rank: Literal["preferred", "normal", "deprecated"]
    qualifiers: dict[Pid, list[Snak]] = {}
    qualifiers_order: list[Pid] = msgspec.field(name="qualifiers-order", default=[])
    references: list[Reference] = []

    def __post_init__(self) -> None:
        if [*self.qualifiers] != self.qualifiers_order:
            raise ValueError("qualifiers have another order")


class Label(Strict):
    language: Literal["mul"]
    value: Text


class Item(Strict):
    type: Literal["item"]
    claims: dict[Pid, Annotated[list[Statement], msgspec.Meta(min_length=1)]]
    id: Qid | None = None
    labels: dict[str, Label] = {}

    def __post_init__(self) -> None:
        if any(one.mainsnak.property != name for name, claims in self.claims.items() for one in claims):
            raise ValueError("a statement stands under another property")


def items(text: str) -> list[Item]:
    """Read Wikidata's JSON, an item to a line."""
    first, *lines, last, rest = text.split("\n")
    assert (first, last, rest) == ("[", "]", "")
    return [msgspec.json.decode(line.removesuffix(","), type=Item) for line in lines]
