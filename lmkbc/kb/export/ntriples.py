"""Facts as N-Triples 1.1: Wikidata's truthy triples, or statement nodes with confidence, sources and run.

Whatever a model wrote, a line is one triple of absolute IRIs and escaped text. A thing without an item gets a node in
the user's own IRI space, made from its name. A further thing of the same name has a number behind it: things are what
the base has settled, so that one thing in two spellings is one node.
LeftOutError for a number or a date that cannot be read, and for an address that is no absolute IRI. XML Schema has no
type for a decade or a century: they are intervals of EDTF, the Library of Congress's format of dates.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from urllib.parse import quote

from lmkbc.errors import OptionError
from lmkbc.files.checksum import sha256
from lmkbc.kb.base.fact_row import FactRow, Thing
from lmkbc.kb.base.knowledge import Knowledge
from lmkbc.kb.export.exporter import Exporter, ExportSettings
from lmkbc.kb.export.left_out import ExportTally, exported
from lmkbc.kb.export.wikidata_json import check
from lmkbc.kinds.kind import LeftOutError, kind_of
from lmkbc.kinds.url import is_iri
from lmkbc.names import WIKIDATA_ITEM

PROP = "http://www.wikidata.org/prop/"
WIKIBASE = "http://wikiba.se/ontology#"
XSD = "http://www.w3.org/2001/XMLSchema#"
RDF_TYPE = "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>"
RDFS = "http://www.w3.org/2000/01/rdf-schema#"
RDFS_LABEL = f"<{RDFS}label>"
ALSO = "<http://www.w3.org/2004/02/skos/core#altLabel>"
CREATED = "<http://purl.org/dc/terms/created>"
OWN = "urn:lmkbc:"
"""Default IRI space for things without an item in Wikidata."""
_LANGUAGE = re.compile(
    "([a-z]{2,3}(-[a-z]{3}){0,3}|[a-z]{4,8})(-[a-z]{4})?(-[a-z]{2}|-[0-9]{3})?(-[a-z]{5,8})?(-x(-[a-z0-9]{1,8})+)?",
    re.IGNORECASE,
)
"""Pattern of language tags. Source: BCP 47, without extensions."""
_ESCAPED = re.compile(r'[\x00-\x1f"\\\x7f-\x9f\u2028\u2029\ufffe\uffff]')
_SHORT = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\r": "\\r"}
_ESCAPE = re.compile(r"\\(?:u([0-9A-Fa-f]{4})|U00((?:0[0-9A-Fa-f]|10)[0-9A-Fa-f]{4})|(.))")
_MEANT = {"t": "\t", **{short[1]: char for char, short in _SHORT.items()}}


def checked_base(base: str) -> str:
    """Return the prefix of the user's own IRIs. OptionError if it is not absolute, or does not end in /, # or :."""
    if not (base.isascii() and base.endswith(("/", "#", ":")) and is_iri(f"{base}entity/")):
        raise OptionError("base", f"is {base!r}: give the beginning of an absolute IRI that ends with /, # or :")
    return base


def iri(space: str, name: str = "") -> str:
    """Return an IRI. space: a valid prefix. name: escaped except for letters and digits."""
    return f"<{space}{escaped(name)}>"


def escaped(name: str) -> str:
    """Return a name as a part of an IRI."""
    return quote(name, safe="", errors="backslashreplace")


def text(value: str, datatype: str = "") -> str:
    """Return a literal, plain, of one of XML Schema's types, of the type with an IRI, or in a language ("@fr")."""
    escaped = _ESCAPED.sub(lambda char: _SHORT.get(char[0]) or f"\\u{ord(char[0]):04X}", value)
    escaped = escaped.encode("utf-8", "backslashreplace").decode() if not escaped.isascii() else escaped
    if datatype.startswith("@"):
        return f'"{escaped}"{datatype}'
    return f'"{escaped}"' + (f"^^<{datatype if ':' in datatype else XSD + datatype}>" if datatype else "")


def unescaped(literal: str) -> str:
    """Return the text of a literal between its quotes."""
    return _ESCAPE.sub(lambda sign: _MEANT.get(sign[3], sign[3]) or chr(int(sign[1] or sign[2], 16)), literal)


def line(subject: str, predicate: str, value: str) -> str:
    """Return a triple as one line."""
    return f"{subject} {predicate} {value} .\n"


def fact_key(fact: FactRow) -> str:
    """Return what names a fact's statement in RDF and in SQLite. LeftOutError as `exported`.

    It is a hash of subject, property, relation and object. A year and about this year are two statements.
    """
    made = exported(fact)
    value = (made.text, made.datatype, "circa" if made.approximate else "") if made else (fact.object_node.node,)
    parts = fact.subject_node.node, fact.about.property, fact.relation, *value
    return sha256("\n".join(parts).encode("utf-8", "backslashreplace"))[:32]


@dataclass(frozen=True, slots=True)
class Triples:
    """Facts as N-Triples. base: prefix of the user's own IRIs. date: date of the build. run: id of the build.

    all_labels: whether Wikidata's items have their labels too, and not only nodes in the user's own space.
    """

    base: str = OWN
    date: str = ""
    run: str = ""
    all_labels: bool = False

    def node(self, thing: Thing) -> str:
        """Return the node of a thing: Wikidata's if it has an item, else one in the user's own space."""
        return iri(WIKIDATA_ITEM, thing.id) if thing.id else f"<{self.base}entity/{thing.path}>"

    def predicate(self, fact: FactRow, kind: str) -> str:
        """Return a predicate of a fact's relation: of Wikidata's property, else in the user's own space."""
        return iri(f"{PROP if fact.about.is_of_wikidata() else f'{self.base}prop/'}{kind}{fact.about.property}")

    def labels(self, fact: FactRow) -> Iterator[str]:
        """Yield the labels of a fact's nodes, and the spellings that the fact has, in the language of its relation."""
        tag = f"@{fact.about.language}" if _LANGUAGE.fullmatch(fact.about.language) else ""
        things = [(fact.subject_node, fact.subject), (fact.object_node, fact.object)]
        for thing, name in things[: 1 + kind_of(fact.about).is_entity]:
            if self.all_labels or thing.id is None:
                yield line(self.node(thing), RDFS_LABEL, text(thing.name, tag))
                if name != thing.name:
                    yield line(self.node(thing), ALSO, text(name, tag))

    def value(self, fact: FactRow) -> str:
        """Return the object as a simple value. LeftOutError for one that cannot be written."""
        if (made := exported(fact)) is None:
            return self.node(fact.object_node)
        if made.datatype == "anyURI":
            check(made, is_accepted=True)
            return f"<{made.text}>"
        if made.datatype[0] == "@" and not _LANGUAGE.fullmatch(made.datatype[1:]):
            raise LeftOutError("a language code that RDF does not accept")
        sign = "+" if made.datatype == "decimal" and made.text[0] != "-" else ""
        return text(sign + made.text, "" if made.datatype == "string" else made.datatype)

    def truthy(self, fact: FactRow) -> Iterator[str]:
        """Yield a fact as one truthy triple, and labels."""
        yield line(self.node(fact.subject_node), self.predicate(fact, "direct/"), self.value(fact))
        yield from self.labels(fact)

    def fact_node(self, fact: FactRow) -> str:
        """Return the node of a fact's statement."""
        return iri(f"{self.base}statement/{fact_key(fact)}")

    def statement(self, fact: FactRow) -> Iterator[str]:
        """Yield a fact as a statement node. A number with its unit and a date with its precision are value nodes."""
        value, node, made = self.value(fact), self.fact_node(fact), exported(fact)
        yield line(self.node(fact.subject_node), self.predicate(fact, ""), node)
        yield line(node, RDF_TYPE, iri(WIKIBASE, "Statement"))
        yield line(node, iri(WIKIBASE, "rank"), iri(WIKIBASE, "NormalRank"))
        yield line(node, self.predicate(fact, "statement/"), value)
        if made and made.node:
            name, parts = made.node
            content = self._hashed("value", made.node_key)
            yield line(node, self.predicate(fact, "statement/value/"), content)
            yield line(content, RDF_TYPE, iri(WIKIBASE, name))
            for part, what, datatype in parts:
                yield line(content, iri(WIKIBASE, part), f"<{what}>" if datatype == "iri" else text(what, datatype))
        if made and made.qualifier:
            yield line(node, iri(f"{PROP}qualifier/", made.qualifier[0]), iri(WIKIDATA_ITEM, made.qualifier[1]))
        qualifiers = [("confidence", f"{fact.confidence:.6f}", "decimal")]
        qualifiers += [("model", model, "") for model in fact.model.split("; ") if model]
        qualifiers += [*(("source", source, "") for source in fact.sources), ("run", self.run, "")]
        decided = [("reviewedBy", fact.reviewed_by, ""), ("reviewedOn", fact.reviewed_on, "date")]
        decided += [("reference", fact.source, ""), ("quote", fact.quote, "")]
        qualifiers += [(name, value, datatype) for name, value, datatype in decided if value]
        for predicate, content, datatype in qualifiers:
            yield line(node, iri(f"{self.base}{predicate}"), text(content, datatype))
        if self.date:
            yield line(node, CREATED, text(self.date, "date"))
        yield from self.labels(fact)

    def _hashed(self, kind: str, content: str) -> str:
        """Return a node whose name is the hash of its content."""
        return iri(f"{self.base}{kind}/{sha256(content.encode())[:32]}")


def _triples(base: Knowledge, tally: ExportTally, settings: ExportSettings) -> Iterator[str]:
    triples = Triples(settings.base, settings.date, settings.run)
    return tally.written(base.facts(), lambda fact: "".join(triples.truthy(fact)))


def _statements(base: Knowledge, tally: ExportTally, settings: ExportSettings) -> Iterator[str]:
    triples = Triples(settings.base, settings.date, settings.run)
    return tally.written(base.facts(), lambda fact: "".join(triples.statement(fact)))


TRIPLES, STATEMENTS = Exporter(pieces=_triples), Exporter(pieces=_statements)
