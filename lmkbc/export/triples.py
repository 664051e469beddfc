"""Facts as RDF: Wikidata's truthy triples, and statement nodes that carry what is known of a fact.

What has no item is a node of one's own space of IRIs, by its name, which is also its label: one name is one node, be it
of one thing or of two. No fact is left out but a number that cannot be read.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass

from lmkbc.export.knowledge import Statement
from lmkbc.export.terms import (
    CREATED,
    ENTITY,
    OWN,
    PROP,
    RDF_TYPE,
    RDFS_LABEL,
    WIKIBASE,
    iri,
    line,
    signed,
    text,
)

NO_UNIT = "Q199"
"""Wikidata's item for the number one: the unit of what is counted."""


@dataclass(frozen=True, slots=True)
class Triples:
    """Facts as N-Triples. base: of one's own IRIs; date: of the build; run: its id."""

    base: str = OWN
    date: str = ""
    run: str = ""

    def node(self, name: str, qid: str | None) -> str:
        """The node of a thing: Wikidata's where it has an item, else one's own."""
        return iri(ENTITY, qid) if qid else iri(f"{self.base}entity/", name)

    def labels(self, fact: Statement) -> Iterator[str]:
        """The names of the nodes of one's own."""
        if fact.subject_id is None:
            yield line(self.node(fact.subject, None), RDFS_LABEL, text(fact.subject))
        if fact.about.kind == "entity" and fact.object_id is None:
            yield line(self.node(fact.object, None), RDFS_LABEL, text(fact.object))

    def value(self, fact: Statement) -> str | None:
        """The object as a simple value; None for a number that cannot be read."""
        if fact.about.kind == "entity":
            return self.node(fact.object, fact.object_id)
        if fact.about.kind == "string":
            return text(fact.object)
        return None if fact.literal is None else text(signed(fact.literal), "decimal")

    def truthy(self, fact: Statement) -> Iterator[str]:
        """A fact as one triple."""
        if (value := self.value(fact)) is not None:
            yield line(self.node(fact.subject, fact.subject_id), iri(f"{PROP}direct/{fact.about.property}"), value)
            yield from self.labels(fact)

    def statement(self, fact: Statement) -> Iterator[str]:
        """A fact as a statement node, a number with its unit as a value node."""
        if (value := self.value(fact)) is None:
            return
        subject, name = self.node(fact.subject, fact.subject_id), fact.about.property
        mark = hashlib.sha256("\n".join((subject, name, fact.relation, value)).encode()).hexdigest()[:32]
        node = iri(f"{self.base}statement/{mark}")
        yield line(subject, iri(f"{PROP}{name}"), node)
        yield line(node, RDF_TYPE, iri(f"{WIKIBASE}Statement"))
        yield line(node, iri(f"{WIKIBASE}rank"), iri(f"{WIKIBASE}NormalRank"))
        yield line(node, iri(f"{PROP}statement/{name}"), value)
        if fact.literal is not None:
            yield from self._quantity(node, name, fact.literal, fact.about.unit_id)
        yield line(node, iri(f"{self.base}confidence"), text(f"{fact.confidence:.6f}", "decimal"))
        for model in filter(None, fact.model.split("; ")):
            yield line(node, iri(f"{self.base}model"), text(model))
        for source in fact.sources:
            yield line(node, iri(f"{self.base}source"), text(source))
        yield line(node, iri(f"{self.base}run"), text(self.run))
        if self.date:
            yield line(node, CREATED, text(self.date, "date"))
        yield from self.labels(fact)

    def _quantity(self, statement: str, name: str, digits: str, unit: str | None) -> Iterator[str]:
        mark = hashlib.sha256(f"{digits} {unit}".encode()).hexdigest()[:32]
        node = iri(f"{self.base}value/{mark}")
        yield line(statement, iri(f"{PROP}statement/value/{name}"), node)
        yield line(node, RDF_TYPE, iri(f"{WIKIBASE}QuantityValue"))
        yield line(node, iri(f"{WIKIBASE}quantityAmount"), text(signed(digits), "decimal"))
        yield line(node, iri(f"{WIKIBASE}quantityUnit"), iri(ENTITY, unit or NO_UNIT))
