"""A schema of relations: their templates, and the axioms by which facts follow from facts.

The six axioms of KMIR (Gao et al. 2022), read from a TOML file.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from importlib.resources import as_file, files
from pathlib import Path
from typing import Literal, NamedTuple

from lmkbc.errors import InputError, did_you_mean
from lmkbc.files.reader import read_toml
from lmkbc.settings import checked
from lmkbc.types import grouped

Axiom = Literal["symmetric", "transitive", "equivalent", "inverse", "sub-relation", "chain"]

BUNDLED = {
    "kamel": "kamel/schema.toml",
    "domains": "kmir/schemas/domains.toml",
    "conceptnet": "kmir/schemas/conceptnet.toml",
}
"""Bundled schemas by name: KAMEL's, KAMEL's with the paper's types of knowledge as topics, and ConceptNet's."""


@dataclass(frozen=True, slots=True)
class RelationSchema:
    """Schema of a relation r. Each template is a sentence with {subject} and {object} once each.

    aspect: what subjects with the same object share, as in "continent"; None if they form no category. symmetric: (x r
    y) implies (y r x). transitive: (x r y) and (y r z) imply (x r z). inverse: relations q
    for which (x r y) implies (y q x). equivalent: relations q for which (x r y) holds exactly if (x q y) does. implies:
    relations q for which (x r y) implies (x q y).
    """

    name: str
    templates: tuple[str, ...] = ()
    topic: str = ""
    aspect: str | None = None
    symmetric: bool = False
    transitive: bool = False
    inverse: tuple[str, ...] = ()
    equivalent: tuple[str, ...] = ()
    implies: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class AxiomChain:
    """(x first y) and (y second z) imply (x implies z)."""

    first: str
    second: str
    implies: str


@dataclass(frozen=True, slots=True)
class _AxiomRule:
    """Axiom with one premise: (x source y) implies (x target y), or (y target x) if flipped."""

    axiom: Axiom
    source: str
    target: str
    flipped: bool


@dataclass(frozen=True)
class Schema:
    """The relations by name, and all axioms as rules. InputError for an unknown name."""

    relations: Mapping[str, RelationSchema]
    chains: tuple[AxiomChain, ...] = field(default=())

    def __post_init__(self) -> None:
        """Raise InputError for unknown names, and for relations without templates."""
        for name, relation in self.relations.items():
            _check_templates(name, relation.templates)
        used = {rule.target for rule in self.rules}
        used.update(name for _, join in self.joins for name in (join.first, join.second, join.implies))
        for name in sorted(used - self.relations.keys()):
            raise InputError(f"the schema's axioms name {name!r}: {did_you_mean(name, self.relations)}")

    @cached_property
    def rules(self) -> list[_AxiomRule]:
        """Return the axioms with one premise, in the order of the file."""
        return [rule for name, relation in self.relations.items() for rule in _rules(name, relation)]

    @cached_property
    def joins(self) -> list[tuple[Axiom, AxiomChain]]:
        """Return the axioms with two premises. A transitive relation is a chain with itself."""
        transitive = (name for name, relation in self.relations.items() if relation.transitive)
        return [
            *(("transitive", AxiomChain(name, name, name)) for name in transitive),
            *(("chain", chain) for chain in self.chains),
        ]


def _rules(name: str, relation: RelationSchema) -> Iterator[_AxiomRule]:
    if relation.symmetric:
        yield _AxiomRule("symmetric", name, name, flipped=True)
    for other in relation.equivalent:
        yield _AxiomRule("equivalent", name, other, flipped=False)
        yield _AxiomRule("equivalent", other, name, flipped=False)
    yield from (_AxiomRule("inverse", name, other, flipped=True) for other in relation.inverse)
    yield from (_AxiomRule("sub-relation", name, other, flipped=False) for other in relation.implies)


def _check_templates(name: str, templates: tuple[str, ...]) -> None:
    if not templates:
        raise InputError(f"schema: the relation {name!r} has no templates: give sentences with {{subject}}, {{object}}")
    for template in templates:
        if sorted(re.findall(r"\{\w*\}?|\}", template)) != ["{object}", "{subject}"]:
            raise InputError(f"schema: template {template!r} of {name!r} needs {{subject}} and {{object}}, each once")


def read_schema(given: Path | None = None) -> Schema:
    """Read a schema from its TOML file, or a bundled one by its name; default: KAMEL's.

    InputError for a wrong schema.
    """
    name = "kamel" if given is None else str(given)
    if given is not None and (name not in BUNDLED or given.is_file()):
        return _read(given)
    with as_file(files("lmkbc.probe").joinpath(BUNDLED[name])) as bundled:
        return _read(bundled)


def _read(path: Path) -> Schema:
    if not (path.is_file() or path.suffix):
        raise InputError(f"{str(path)!r} is no file, and no bundled schema: {did_you_mean(str(path), BUNDLED)}")
    return checked(Schema, read_toml(path), f"{path}: a schema")


class Triple(NamedTuple):
    """Fact: two entities by name, and the relation between them."""

    subject: str
    relation: str
    object: str


@dataclass(frozen=True, slots=True)
class Derivation:
    """Derivation of a triple: its axiom, and its one or two premises."""

    axiom: Axiom
    premises: tuple[Triple, ...]


class Closure:
    """All true facts: the given triples and all inferred ones. No triple relates an entity to itself.

    steps: inferred triple -> its first derivation. Those derived directly from given triples come first.
    """

    def __init__(self, given: Iterable[Triple], schema: Schema) -> None:
        self.given = dict.fromkeys(given)
        self.steps: dict[Triple, Derivation] = {}
        self.objects: defaultdict[tuple[str, str], dict[str, None]] = defaultdict(dict)
        self.subjects: defaultdict[tuple[str, str], dict[str, None]] = defaultdict(dict)
        self._rules = grouped((rule.source, rule) for rule in schema.rules)
        self._firsts = grouped((join.first, (axiom, join)) for axiom, join in schema.joins)
        self._seconds = grouped((join.second, (axiom, join)) for axiom, join in schema.joins)
        fresh = list(self.given)
        for triple in fresh:
            self._add(triple)
        while fresh:
            fresh = self._round(fresh)

    def __contains__(self, triple: object) -> bool:
        return triple in self.given or triple in self.steps

    def _add(self, triple: Triple) -> None:
        self.objects[triple.subject, triple.relation][triple.object] = None
        self.subjects[triple.relation, triple.object][triple.subject] = None

    def _round(self, fresh: list[Triple]) -> list[Triple]:
        """Return the triples that follow from the fresh triples and earlier ones, and add them to the closure."""
        steps: dict[Triple, Derivation] = {}
        for triple in fresh:
            for made, step in self._follows(triple):
                if made.subject != made.object and made not in self and made not in steps:
                    steps[made] = step
        self.steps |= steps
        for triple in steps:
            self._add(triple)
        return list(steps)

    def _follows(self, triple: Triple) -> Iterator[tuple[Triple, Derivation]]:
        subject, relation, object_ = triple
        for rule in self._rules[relation]:
            ends = (object_, subject) if rule.flipped else (subject, object_)
            yield Triple(ends[0], rule.target, ends[1]), Derivation(rule.axiom, (triple,))
        for axiom, join in self._firsts[relation]:
            for end in self.objects.get((object_, join.second), ()):
                yield (
                    Triple(subject, join.implies, end),
                    Derivation(axiom, (triple, Triple(object_, join.second, end))),
                )
        for axiom, join in self._seconds[relation]:
            for start in self.subjects.get((join.first, subject), ()):
                yield (
                    Triple(start, join.implies, object_),
                    Derivation(axiom, (Triple(start, join.first, subject), triple)),
                )
