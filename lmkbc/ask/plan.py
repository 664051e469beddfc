"""What is asked of a model about each relation: style, examples and sampling, as a recipe's tables say."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from lmkbc.ask.examples import ExampleSelector, Shots, TextEncoder
from lmkbc.ask.prompts import (
    PromptStyle,
    compose,
    listed,
    worded,
)
from lmkbc.ask.steps import Step
from lmkbc.edition import Edition
from lmkbc.errors import InputError
from lmkbc.models.base import Message, Prompt, Sampling
from lmkbc.relation import Relation
from lmkbc.settings import changed
from lmkbc.types import Example, Query

Slots = Mapping[str, str]
"""What the steps of a chain filled, by their names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Differs:
    """What is asked otherwise of one relation: settings of the tables that stand beside it."""

    prompt: Mapping[str, Any] = field(default_factory=dict)
    shots: Mapping[str, Any] = field(default_factory=dict)
    sampling: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Asks:
    """What is asked of a model, as a recipe's plain data.

    relations: relation, by any edition's name, -> what differs for it.
    """

    prompt: PromptStyle = field(default_factory=PromptStyle)
    shots: Shots = field(default_factory=Shots)
    sampling: Sampling = field(default_factory=Sampling)
    relations: Mapping[str, Differs] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """InputError for what a relation sets otherwise and that makes no sense; ValueError for such a step's draws."""
        for name in ("", *self.relations):
            self.about(name)

    def about(self, name: str) -> tuple[PromptStyle, Shots, Sampling]:
        """What is asked of the relation that the table calls by a name."""
        own, where = self.relations.get(name, Differs()), f"relations.{name}"
        style = changed(self.prompt, own.prompt, f"{where}.prompt")
        sampling = changed(self.sampling, own.sampling, f"{where}.sampling")
        for step in style.steps:
            step.sampling(sampling)
        return style, changed(self.shots, own.shots, f"{where}.shots"), sampling

    @property
    def chained(self) -> bool:
        """Whether any relation is asked in steps."""
        return any(self.about(name)[0].steps for name in ("", *self.relations))

    @property
    def embeds(self) -> bool:
        """Whether any relation's examples are selected by embedding."""
        return any(self.about(name)[1].method == "nearest" for name in ("", *self.relations))


@dataclass(frozen=True, slots=True)
class Plan:
    """How one relation is asked."""

    style: PromptStyle
    selector: ExampleSelector
    sampling: Sampling


class Asking:
    """Prompts and sampling for queries of an edition.

    known: all relations by all spellings; what the table says of those that the edition does not ask is ignored.
    """

    def __init__(
        self,
        edition: Edition,
        relations: Mapping[str, Relation],
        train: Sequence[Example],
        asks: Asks,
        known: Mapping[str, Relation] | None = None,
        encoder: TextEncoder | None = None,
    ) -> None:
        self._edition = edition
        self._relations = relations
        spelt = {(known or relations)[name].name: name for name in asks.relations}
        selectors: dict[Shots, ExampleSelector] = {}
        self._plans: dict[str, Plan] = {}
        for name, relation in relations.items():
            style, shots, sampling = asks.about(spelt.get(relation.name, ""))
            if shots not in selectors:
                selectors[shots] = ExampleSelector(shots, train, encoder)
            self._plans[name] = Plan(style, selectors[shots], sampling)

    def plan(self, query: Query) -> Plan:
        """How a query's relation is asked."""
        return self._plans[query.relation]

    def prompt(
        self, query: Query, context: str = "", slots: Slots | None = None, unseen: Query | None = None
    ) -> Prompt:
        """The prompt of a query; context: text that was found about it; slots: what steps filled.

        unseen: another query, about which no example tells anything.
        """
        return self._composed(query, context, slots, self._plans[query.relation].selector.select(query, unseen))

    def showing(self, query: Query, shots: Sequence[Example]) -> Prompt:
        """The prompt of a query with these worked examples in place of the recipe's."""
        return self._composed(query, "", None, shots)

    def shorter(self, query: Query, context: str, slots: Slots) -> Iterator[Prompt]:
        """The same prompt with ever fewer examples, where the shots say so."""
        for shots in self._plans[query.relation].selector.fewer(query):
            yield self._composed(query, context, slots, shots)

    def step(self, query: Query, step: Step, slots: Slots) -> Prompt:
        """What a step asks, by itself. slots: what steps before it filled."""
        style = self._plans[query.relation].style
        text = worded(step.ask, style, self._relations, query, **slots)
        return Prompt((), (Message("user", text),), style.form)

    def _composed(self, query: Query, context: str, slots: Slots | None, shots: Sequence[Example]) -> Prompt:
        style, edition = self._plans[query.relation].style, self._edition.name
        if style.steps and slots is None:
            raise InputError(f"prompt.steps of {query.relation}: a model that is not asked to write fills no slots")
        return compose(style, self._relations, query, shots, edition=edition, context=context, slots=slots or {})

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
        relation = self._relations[query.relation]
        slots = {"answer": answer.strip(), "list": listed(style, ("first name", "second name"), relation)}
        text = worded(style.repair, style, self._relations, query, **slots)
        return Prompt((), (Message("user", text),), style.form)
