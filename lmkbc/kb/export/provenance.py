"""FactProvenance of facts by PROV-O: https://www.w3.org/TR/prov-o/.

The build is an activity that used a recipe, descriptions of relations, and files. A model is a software agent, and a
statement is attributed to the models that gave it. If the base keeps replies, a question is an activity of the build,
which made both the statement and the replies.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from lmkbc.files.arrays import key
from lmkbc.files.checksum import sha256
from lmkbc.kb.base.fact_row import FactRow
from lmkbc.kb.base.knowledge import Knowledge
from lmkbc.kb.export.ntriples import RDF_TYPE, RDFS_LABEL, Triples, escaped, iri, line, text
from lmkbc.kinds.url import is_address
from lmkbc.names import WIKIDATA_ITEM, as_qid

PROV = "http://www.w3.org/ns/prov#"
PART_OF = "<http://purl.org/dc/terms/isPartOf>"


def prov(name: str) -> str:
    """Return a term of PROV-O."""
    return iri(PROV, name)


@dataclass(slots=True)
class FactProvenance:
    """The provenance of a base's facts, as N-Triples."""

    base: Knowledge
    triples: Triples
    _described: set[str] = field(default_factory=set)
    _asked: set[str] = field(init=False)

    def __post_init__(self) -> None:
        self._asked = {name for shard in self.base.shards for name, count in shard.replies.items() if count}

    def of_build(self) -> Iterator[str]:
        """Yield the build, and what it used: recipe, relations and files, each by its hash."""
        build, inputs = self._build(), self.base.inputs
        yield from _described_as(build, "Activity", f"build {self.triples.run}")
        if self.base.finished:
            yield line(build, prov("endedAtTime"), text(self.base.finished, "dateTime"))
        used = [("recipe", key(inputs["recipe"]), inputs.get("system"))] if inputs.get("recipe") else []
        used += [("relation", hashed, name) for name, hashed in inputs.get("relations", {}).items()]
        used += [("file", hashed, name) for name, hashed in inputs.get("files", {}).items()]
        for kind, hashed, name in used:
            thing = iri(f"{self.triples.base}{kind}/", str(hashed))
            yield line(build, prov("used"), thing)
            yield from _described_as(thing, "Plan" if kind == "recipe" else "Entity", str(name or kind))

    def of_fact(self, fact: FactRow) -> Iterator[str]:
        """Yield the provenance of a fact: the activity that made its statement, and the models that gave it."""
        node = self.triples.fact_node(fact)
        yield line(node, prov("wasGeneratedBy"), self._activity(fact.subject_row, fact.relation))
        for model in filter(None, fact.model.split("; ")):
            agent = self._agent(model)
            yield line(node, prov("wasAttributedTo"), agent)
            if agent not in self._described:
                self._described.add(agent)
                yield line(self._build(), prov("wasAssociatedWith"), agent)
                yield from _described_as(agent, "SoftwareAgent", model)
        yield from self.of_support(fact)

    def of_support(self, fact: FactRow) -> Iterator[str]:
        """Yield who decided that a fact is right and when, its source, and the quote that supports it."""
        node, source = self.triples.fact_node(fact), _source(fact)
        if fact.reviewed_by:
            person = iri(f"{self.triples.base}person/", fact.reviewed_by)
            yield line(node, prov("wasAttributedTo"), person)
            yield from _described_as(person, "Person", fact.reviewed_by)
        if source:
            yield line(node, prov("hadPrimarySource"), source)
        if fact.quote:
            quote = iri(
                f"{self.triples.base}quote/", sha256(f"{source}\n{fact.quote}".encode("utf-8", "backslashreplace"))[:32]
            )
            yield line(node, prov("wasDerivedFrom"), quote)
            yield from _described_as(quote, "Entity")
            yield line(quote, prov("value"), text(fact.quote))
            if source:
                yield line(quote, prov("wasQuotedFrom"), source)

    def of_replies(self) -> Iterator[str]:
        """Yield the replies that the base keeps: text, model, and the question that each answers."""
        for part in self.base.reply_parts():
            for row, relation, model, texts in part.iter_rows():
                question = self._activity(row, relation)
                yield from _described_as(question, "Activity")
                yield line(question, PART_OF, self._build())
                for place, content in enumerate(texts):
                    if content is not None:
                        reply = f"{question[:-1]}/{escaped(model)}/{place}>"
                        yield from _described_as(reply, "Entity")
                        yield line(reply, prov("value"), text(content))
                        yield line(reply, prov("wasGeneratedBy"), question)
                        yield line(reply, prov("wasAttributedTo"), self._agent(model))

    def _build(self) -> str:
        return iri(f"{self.triples.base}run/", self.triples.run)

    def _agent(self, model: str) -> str:
        return iri(f"{self.triples.base}model/", model)

    def _activity(self, row: int, relation: str) -> str:
        """Return the question about a subject and a relation; the build if the base keeps no replies about it."""
        if relation not in self._asked:
            return self._build()
        return f"<{self.triples.base}question/{self.triples.run}/{row}/{escaped(relation)}>"


def _source(fact: FactRow) -> str:
    """Return the node of a fact's source: an item, an address that RDF can hold, or the file of a document; or ""."""
    if fact.source and as_qid(fact.source):
        return iri(WIKIDATA_ITEM, fact.source)
    if fact.source and is_address(fact.source):
        return f"<{fact.source}>"
    return iri("urn:lmkbc:file/", fact.quote_file) if fact.quote_file else ""


def _described_as(node: str, kind: str, label: str = "") -> Iterator[str]:
    yield line(node, RDF_TYPE, prov(kind))
    if label:
        yield line(node, RDFS_LABEL, text(label))
