"""Inferred facts: the closure of given triples under a schema's axioms, with the derivation of each."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from lmkbc.errors import LmkbcError
from lmkbc.groups import grouped
from lmkbc.probe.kmir.schema import Axiom, Schema

LIMIT = 20_000_000
"""Most triples of a closure. A schema that derives more is not useful for questions."""


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
            if len(self.steps) + len(steps) > LIMIT:
                raise LmkbcError(f"the schema derives more than {LIMIT} triples: drop a transitive relation or a chain")
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
