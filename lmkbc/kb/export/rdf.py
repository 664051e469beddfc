"""Facts with their provenance as Turtle and as JSON-LD, and as triples for a store. Needs the extra `rdf`.

Each fact is a truthy triple and a statement node as in the other exports of triples. Items have labels too. All is
written as a stream, so a subject with facts of several relations stands in several places.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from typing import IO

from pyoxigraph import RdfFormat, Triple, parse, serialize

from lmkbc.kb.base.fact_row import FactRow
from lmkbc.kb.base.knowledge import Knowledge
from lmkbc.kb.export.exporter import Exporter, ExportSettings
from lmkbc.kb.export.left_out import ExportTally
from lmkbc.kb.export.ntriples import PROP, RDFS, WIKIBASE, XSD, Triples
from lmkbc.kb.export.provenance import PROV, FactProvenance
from lmkbc.names import WIKIDATA_ITEM

PREFIXES = {
    "wd": WIKIDATA_ITEM,
    "wdt": f"{PROP}direct/",
    "p": PROP,
    "ps": f"{PROP}statement/",
    "psv": f"{PROP}statement/value/",
    "pq": f"{PROP}qualifier/",
    "wikibase": WIKIBASE,
    "prov": PROV,
    "rdf": "http://www.w3.org/1999/02/22-rdf-syntax-ns#",
    "rdfs": RDFS,
    "skos": "http://www.w3.org/2004/02/skos/core#",
    "dct": "http://purl.org/dc/terms/",
    "xsd": XSD,
}
"""Prefix -> beginning of IRIs. The prefix of the user's own IRIs is `OWN_PREFIX`."""
OWN_PREFIX = "own"
OWN_PATHS = {
    OWN_PREFIX: "",
    "owne": "entity/",
    "ownt": "prop/direct/",
    "ownp": "prop/",
    "ownps": "prop/statement/",
    "ownpsv": "prop/statement/value/",
}
"""Prefix of a query -> what follows the beginning of the user's own IRIs, as `wd`, `wdt`, `p`, `ps`, `psv` do."""


def triples_of(base: Knowledge, tally: ExportTally, settings: ExportSettings) -> Iterator[Triple]:
    """Yield the triples of a base's facts, with labels and provenance."""
    triples = Triples(settings.base, settings.date, settings.run, all_labels=True)
    provenance = FactProvenance(base, triples)

    def written(fact: FactRow) -> str:
        return "".join(chain(triples.truthy(fact), triples.statement(fact), provenance.of_fact(fact)))

    for piece in chain(provenance.of_build(), tally.written(base.facts(), written), provenance.of_replies()):
        for quad in parse(piece, RdfFormat.N_TRIPLES):
            yield quad.triple


@dataclass(frozen=True, kw_only=True)
class RdfExporter(Exporter):
    """A format that pyoxigraph writes. form: its name there."""

    form: str
    counted: str = ""

    def fill(self, file: IO[bytes], base: Knowledge, tally: ExportTally, settings: ExportSettings) -> int:
        """Write the facts, and return their number."""
        prefixes = {**PREFIXES, OWN_PREFIX: settings.base}
        serialize(triples_of(base, tally, settings), file, getattr(RdfFormat, self.form), prefixes=prefixes)
        return tally.facts


TURTLE, JSON_LD = RdfExporter(form="TURTLE"), RdfExporter(form="JSON_LD")
