"""A fact of a knowledge base as readers get it, and the things that it is about."""

from __future__ import annotations

from typing import NamedTuple
from urllib.parse import quote

from lmkbc.kb.base.manifest import About
from lmkbc.names import spelling
from lmkbc.types import GoldObject


class Thing(NamedTuple):
    """A thing of a base, as it was settled. id: its QID. name: its most frequent name. other: number, if it has no QID.

    The number is 0 for the first thing without a QID that has this name, so name and number stand for one thing.
    """

    id: str | None
    name: str
    other: int = 0

    @property
    def path(self) -> str:
        """Return the end of an IRI: the name, escaped except for letters and digits; a slash parts it from a number."""
        return quote(self.name, safe="", errors="backslashreplace") + (f"/{self.other}" if self.other else "")

    @property
    def node(self) -> str:
        """Return the text that stands for the thing: its QID, or "entity/" and the end of its IRI."""
        return self.id or f"entity/{self.path}"


class FactRow(NamedTuple):
    """A row of facts, and its relation's description.

    literal: plain digits of a number, or a date as `PartialDate` writes it; None for other objects.
    stated_by: splits whose labelled rows state the fact; None if no row does. precision: of a number, the value of its
    last digit. object_label: label of the object's item, if an index or search knew it. reviewed_by, reviewed_on: who
    decided that the fact is right, and the day; None without a decision. source, quote: address or item that states it,
    and what is said there. quote_file, quote_start, quote_end: where that is in a document of the user. subject_entity,
    object_entity: the things that the base has settled; None where it has settled none.
    """

    subject_row: int
    subject: str
    subject_id: str | None
    object: str
    object_id: str | None
    literal: str | None
    confidence: float
    sources: list[str]
    model: str
    relation: str
    about: About
    stated_by: list[str] | None = None
    precision: str | None = None
    object_label: str | None = None
    reviewed_by: str | None = None
    reviewed_on: str | None = None
    source: str | None = None
    quote: str | None = None
    quote_file: str | None = None
    quote_start: int | None = None
    quote_end: int | None = None
    subject_entity: Thing | None = None
    object_entity: Thing | None = None

    @property
    def subject_node(self) -> Thing:
        """Return the thing that the subject is."""
        return self.subject_entity or Thing(self.subject_id, self.subject)

    @property
    def object_node(self) -> Thing:
        """Return the thing that the object is, if it is an entity."""
        return self.object_entity or Thing(self.object_id, self.object)

    @property
    def gold(self) -> GoldObject:
        """Return the object as one of a labelled row."""
        names = (self.literal,) if self.literal else dict.fromkeys(filter(None, (self.object, self.object_label)))
        return GoldObject(tuple(names), self.object_id or self.literal)

    @property
    def worded(self) -> str:
        """Return the model's word for the object, and the label of its item in brackets if that is another name."""
        return worded(self.object, self.object_label)


def worded(word: str, label: str | None) -> str:
    """Return a word, and the label of its item if that is another name, as in "Holland (Netherlands)"."""
    return word if not label or spelling(label) == spelling(word) else f"{word} ({label})"
