"""A schema of relations: their templates, and the axioms by which facts follow from facts.

The six axioms of KMIR (Gao et al. 2022), read from a TOML file and checked for contradictions.
"""

from __future__ import annotations

import string
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from importlib.resources import as_file, files
from pathlib import Path
from typing import Literal

from lmkbc.errors import InputError, did_you_mean
from lmkbc.files.reader import read_toml
from lmkbc.settings import checked

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
    y) implies (y r x). asymmetric: both never hold. transitive: (x r y) and (y r z) imply (x r z). inverse: relations q
    for which (x r y) implies (y q x). equivalent: relations q for which (x r y) holds exactly if (x q y) does. implies:
    relations q for which (x r y) implies (x q y).
    """

    name: str
    templates: tuple[str, ...] = ()
    topic: str = ""
    aspect: str | None = None
    symmetric: bool = False
    asymmetric: bool = False
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
class AxiomRule:
    """Axiom with one premise: (x source y) implies (x target y), or (y target x) if flipped."""

    axiom: Axiom
    source: str
    target: str
    flipped: bool


@dataclass(frozen=True)
class Schema:
    """The relations by name, and all axioms as rules. InputError for a schema that contradicts itself."""

    relations: Mapping[str, RelationSchema]
    chains: tuple[AxiomChain, ...] = field(default=())

    def __post_init__(self) -> None:
        """Raise InputError for unknown names, relations without templates, and contradictory axioms."""
        for name, relation in self.relations.items():
            _check_templates(name, relation.templates)
        used = {rule.target for rule in self.rules}
        used.update(name for _, join in self.joins for name in (join.first, join.second, join.implies))
        for name in sorted(used - self.relations.keys()):
            raise InputError(f"the schema's axioms name {name!r}: {did_you_mean(name, self.relations)}")
        for name, relation in self.relations.items():
            self._check_symmetry(name, relation)

    @cached_property
    def rules(self) -> list[AxiomRule]:
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

    def _check_symmetry(self, name: str, relation: RelationSchema) -> None:
        for other in relation.inverse:
            if relation.symmetric and other != name and not self._same(name, other):
                raise InputError(
                    f"schema: {name!r} is symmetric, so it is its own inverse, but names {other!r} as inverse: "
                    "drop one, or declare the two equivalent"
                )
        implied = self._implied(name)
        for other in sorted({target for target, _ in implied}):
            if self.relations[other].asymmetric and (other, True) in implied and (other, False) in implied:
                raise InputError(
                    f"schema: (x {name} y) implies both (x {other} y) and (y {other} x), but {other!r} is asymmetric: "
                    "mend symmetric, inverse, equivalent or implies of these relations"
                )

    def _same(self, name: str, other: str) -> bool:
        return other in self.relations[name].equivalent or name in self.relations[other].equivalent

    def _implied(self, name: str) -> set[tuple[str, bool]]:
        """Return every (q, flipped) that follows from one triple of a relation."""
        reached, open_ = {(name, False)}, [(name, False)]
        while open_:
            source, flipped = open_.pop()
            for rule in self.rules:
                fresh = (rule.target, flipped != rule.flipped)
                if rule.source == source and fresh not in reached:
                    reached.add(fresh)
                    open_.append(fresh)
        return reached


def _rules(name: str, relation: RelationSchema) -> Iterator[AxiomRule]:
    if relation.symmetric:
        yield AxiomRule("symmetric", name, name, flipped=True)
    for other in relation.equivalent:
        yield AxiomRule("equivalent", name, other, flipped=False)
        yield AxiomRule("equivalent", other, name, flipped=False)
    for other in relation.inverse:
        yield AxiomRule("inverse", name, other, flipped=True)
    for other in relation.implies:
        yield AxiomRule("sub-relation", name, other, flipped=False)


def _check_templates(name: str, templates: tuple[str, ...]) -> None:
    if not templates:
        raise InputError(f"schema: the relation {name!r} has no templates: give sentences with {{subject}}, {{object}}")
    for template in templates:
        try:
            slots = sorted(slot for _, slot, _, _ in string.Formatter().parse(template) if slot is not None)
        except ValueError:
            slots = []
        if slots != ["object", "subject"]:
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
