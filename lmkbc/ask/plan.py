"""What is asked of a model about each relation: style, examples and sampling, as a recipe's tables say."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lmkbc.ask.examples import ExampleSelector, Shots, TextEncoder
from lmkbc.ask.prompts import (
    PromptStyle,
    compose,
    listed,
    worded,
)
from lmkbc.edition import Edition
from lmkbc.errors import InputError, did_you_mean
from lmkbc.models.base import Message, Prompt, Sampling
from lmkbc.relation import Relation
from lmkbc.types import Example, Query

TABLES = ("prompt", "shots", "sampling")


@dataclass(frozen=True, slots=True)
class Plan:
    """How one relation is asked."""

    style: PromptStyle
    selector: ExampleSelector
    sampling: Sampling


class Asking:
    """Prompts and sampling for queries of an edition.

    tables: the recipe's tables `prompt`, `shots` and `sampling`. overrides: relation (any edition's spelling) -> the
    same tables with what differs for that relation. known: all relations by all spellings; those that the edition
    does not ask are ignored.
    """

    def __init__(
        self, edition: Edition, relations: Mapping[str, Relation], train: Sequence[Example],
        tables: Mapping[str, Mapping[str, Any]], overrides: Mapping[str, Mapping[str, Any]] | None = None,
        known: Mapping[str, Relation] | None = None, encoder: TextEncoder | None = None,
    ) -> None:  # fmt: skip
        self._edition = edition
        self._relations = relations
        own = _by_relation(overrides or {}, known or relations)
        selectors: dict[Shots, ExampleSelector] = {}
        self._plans: dict[str, Plan] = {}
        for name, relation in relations.items():
            merged = {table: {**tables.get(table, {}), **own.get(relation.name, {}).get(table, {})} for table in TABLES}
            shots = Shots.of(merged["shots"])
            if shots not in selectors:
                selectors[shots] = ExampleSelector(shots, train, encoder)
            style, sampling = PromptStyle.of(merged["prompt"]), Sampling.of(merged["sampling"])
            self._plans[name] = Plan(style, selectors[shots], sampling)

    def plan(self, query: Query) -> Plan:
        """How a query's relation is asked."""
        return self._plans[query.relation]

    def prompt(self, query: Query, context: str = "", slot: str = "") -> Prompt:
        """The prompt of a query; context: text that was found about it; slot: what {slot} is."""
        return self._composed(query, context, slot, self._plans[query.relation].selector.select(query))

    def prompts(self, query: Query, context: str = "") -> list[Prompt]:
        """The prompts of a query: one, or one for each slot of its style."""
        return [self.prompt(query, context, slot) for slot in self._slots(query)]

    def shorter(self, query: Query, context: str, part: int) -> Iterator[Prompt]:
        """The prompt of a query, by its place among `prompts`, with ever fewer examples, where the shots say so."""
        slot = self._slots(query)[part]
        for shots in self._plans[query.relation].selector.fewer(query):
            yield self._composed(query, context, slot, shots)

    def _slots(self, query: Query) -> tuple[str, ...]:
        return self._plans[query.relation].style.slots or ("",)

    def _composed(self, query: Query, context: str, slot: str, shots: Sequence[Example]) -> Prompt:
        style, edition = self._plans[query.relation].style, self._edition.name
        return compose(style, self._relations, query, shots, edition=edition, context=context, slot=slot)

    def second_turn(self, query: Query, context: str) -> str:
        """What is said once a query is answered, so that it is answered again; nothing where the answer stands."""
        style = self._plans[query.relation].style
        if not style.again or ("{context}" in style.again and not context.strip()):
            return ""
        return worded(style.again, style, self._relations, query, context=context.strip())

    def repair(self, query: Query, answer: str) -> Prompt | None:
        """What asks for a broken answer as a list, where the style has anything to ask."""
        style = self._plans[query.relation].style
        if not style.repair:
            return None
        slots = {"answer": answer.strip(), "list": listed(style, ("first name", "second name"))}
        text = worded(style.repair, style, self._relations, query, **slots)
        return Prompt((), (Message("user", text),), style.form)


def needs_encoder(tables: Mapping[str, Any], overrides: Mapping[str, Mapping[str, Any]]) -> bool:
    """Whether any relation's examples are selected by embedding."""
    return any(one.get("shots", {}).get("method") == "nearest" for one in (tables, *overrides.values()))


def _by_relation(
    overrides: Mapping[str, Mapping[str, Any]], known: Mapping[str, Relation]
) -> dict[str, Mapping[str, Any]]:
    own: dict[str, Mapping[str, Any]] = {}
    for name, tables in overrides.items():
        if name not in known:
            raise InputError(f"relations names {name!r}, which is no relation: {did_you_mean(name, known)}")
        for table in tables:
            if table not in TABLES:
                raise InputError(f"relations.{name} has no table {table!r}: {did_you_mean(table, TABLES)}")
        own[known[name].name] = tables
    return own
