"""Grouping: a language model is asked which answers to a query name the same object, before sources are pooled.

In each group, the name that most sources propose replaces the others. So sources agree on an object even if they name
it differently (MAVE, LM-KBC 2026, names of stock exchanges).
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from msgspec import structs

from lmkbc.ask.slots import fill, one_line
from lmkbc.generate.access import StepModel, step_model
from lmkbc.generate.spec import check_names
from lmkbc.models.base import LanguageModel
from lmkbc.models.plain_questions import paragraphs
from lmkbc.models.thoughts import answer_of
from lmkbc.names import name_key
from lmkbc.notes import Notes
from lmkbc.relation import Relation
from lmkbc.session.run import Run
from lmkbc.types import CandidateSet, State

_NUMBER = re.compile(r"\d{1,4}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Grouping:
    """A recipe's table `group`.

    ask: the model, by name or by its settings (`StepModel`); "" groups nothing. only: the relations whose names are
    grouped; empty for all whose objects are not numbers. most: names of a query that the model is shown, those of most
    sources first.
    """

    ask: str | Mapping[str, Any] = ""
    only: tuple[str, ...] = ()
    most: int = 40

    def __post_init__(self) -> None:
        """Check the settings. InputError for wrong settings of a model; ValueError for others."""
        if not 2 <= self.most <= 200:
            raise ValueError(f"most is {self.most}: give 2 to 200")
        if self.only and not self.ask:
            raise ValueError("only says which names are grouped: name the model in group.ask")
        self.model()

    def model(self) -> StepModel | None:
        """Return the model to ask; None if the table names none."""
        return step_model(self.ask, "ask") if self.ask else None

    def check(self, relations: Mapping[str, Relation]) -> None:
        """Raise InputError for a relation that does not exist. relations: all relations, by every name."""
        check_names(self.only, relations, "group.only")

    def open(self, run: Run, notes: Notes) -> Grouper | None:
        """Return the grouper; None if the table names no model."""
        model = self.model()
        if model is None:
            return None
        wanted = {
            name: relation
            for name, relation in run.relations.items()
            if (relation.is_in(self.only) if self.only else not relation.has_numbers())
        }
        return Grouper(model.open(run, notes), wanted, self.most)


class Grouper:
    """Asks one prompt for each query with several names. relations: the relations to group, as queries spell them."""

    def __init__(self, model: LanguageModel, relations: Mapping[str, Relation], most: int) -> None:
        self._model, self._relations, self._most = model, relations, most

    def merged(self, sources: Sequence[Sequence[CandidateSet]]) -> list[list[CandidateSet]]:
        """Return the sets of all sources, each in the order of the queries, with one name for each object.

        If the model fails on a query, the query is marked as missing, since its names would count as different objects.
        """
        columns = [list(sets) for sets in zip(*sources, strict=True)]
        asked = {place: names for place, sets in enumerate(columns) if len(names := self._names(sets)) > 1}
        prompts = [self._prompt(columns[place][0], names) for place, names in asked.items()]
        distinct = list(dict.fromkeys(prompts))
        replies = dict(zip(distinct, paragraphs(self._model, distinct), strict=True))
        for (place, names), prompt in zip(asked.items(), prompts, strict=True):
            reply = replies[prompt]
            if reply is None:
                columns[place] = [
                    CandidateSet(group.query, draws=(State.MISSING,) * len(group.draws)) for group in columns[place]
                ]
            else:
                canonical = _canonical(names, reply)
                columns[place] = [_renamed(group, canonical) for group in columns[place]]
        return [list(sets) for sets in zip(*columns, strict=True)] if columns else [[] for _ in sources]

    def _names(self, sets: Sequence[CandidateSet]) -> list[str]:
        """Return the names of a query's candidates, those of most sources first. Spellings of a name are merged."""
        if not sets or sets[0].query.relation not in self._relations:
            return []
        votes: defaultdict[str, Counter[str]] = defaultdict(Counter)
        for candidate in (candidate for group in sets for candidate in group.candidates):
            votes[name_key(candidate.text)][candidate.text] += max(len(candidate.sources), 1)
        first = sorted(votes.values(), key=lambda spellings: (-spellings.total(), min(spellings)))
        return [min(spellings, key=lambda text: (-spellings[text], text)) for spellings in first[: self._most]]

    def _prompt(self, group: CandidateSet, names: Sequence[str]) -> str:
        relation = self._relations[group.query.relation]
        listed = "\n".join(f"{number}. {one_line(name)}" for number, name in enumerate(names, 1))
        return (
            f"Question: {fill(relation.question, {'subject': one_line(group.query.subject)})}\n"
            f"Answers that were given:\n{listed}\n"
            f"Some of them may be names of one and the same {relation.object_type.noun}. Write the numbers of such "
            "names in a line, parted by commas, a line for each; write 0 if all are different. Write nothing else."
        )


def _canonical(names: Sequence[str], reply: str) -> dict[str, str]:
    """Return key of a name -> first name of its group, for names that a reply groups. A name is in one group only."""
    canonical: dict[str, str] = {}
    for line in (answer_of(reply) or "").split("\n")[: len(names)]:
        places = sorted({int(number) - 1 for number in _NUMBER.findall(line)})
        group = [
            names[place] for place in places if 0 <= place < len(names) and name_key(names[place]) not in canonical
        ]
        if len(group) > 1:
            canonical |= dict.fromkeys(map(name_key, group), group[0])
    return canonical


def _renamed(group: CandidateSet, canonical: Mapping[str, str]) -> CandidateSet:
    named = [structs.replace(each, text=canonical.get(name_key(each.text), each.text)) for each in group.candidates]
    return replace(group, candidates=tuple(named))
