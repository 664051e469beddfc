"""Group names by a model, put several questions about a fact, and cut long spans of years (MAVE, LM-KBC 2026)."""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from msgspec import structs

from lmkbc.ask.slots import fill, one_line
from lmkbc.ask.steps import Step
from lmkbc.ask.templates import check_template, reads, render
from lmkbc.errors import refuse
from lmkbc.generate.access import step_model
from lmkbc.generate.spec import check_names
from lmkbc.generate.verify import Check, FactCheck, Score, first_words
from lmkbc.models.base import LanguageModel, Request, Sampling
from lmkbc.models.plain_questions import paragraphs
from lmkbc.models.thoughts import answer_of
from lmkbc.names import name_key
from lmkbc.notes import Notes
from lmkbc.relation import Relation
from lmkbc.select.pool import Pooling
from lmkbc.session.run import Run
from lmkbc.types import CandidateSet, Query, State

_NUMBER = re.compile(r"\d{1,4}")
MOST = 40
"""Names of a query that the model is shown, those of most sources first."""


@dataclass(frozen=True, kw_only=True)
class Names(Pooling):
    """A model is asked which answers to a query name the same object; the name of most sources replaces the others.

    ask: the model, by name or by its settings (`StepModel`).
    only: the relations whose names are grouped; () for all without numbers.
    """

    ask: str | Mapping[str, Any]
    only: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Raise InputError for wrong settings of the model."""
        Pooling.__post_init__(self)
        step_model(self.ask)

    @property
    def asks(self) -> bool:
        """Return True."""
        return True

    def check(self, relations: Mapping[str, Relation]) -> None:
        """Raise InputError for a relation that does not exist. relations: all relations, by every name."""
        check_names(self.only, relations, "pool.only")

    def grouped(self, run: Run) -> dict[str, Relation]:
        """Return the relations whose names are grouped, by the edition's names."""
        return {
            name: relation
            for name, relation in run.relations.items()
            if (relation.is_in(self.only) if self.only else not relation.has_numbers())
        }

    def open(self, run: Run, notes: Notes, *, replayed: bool = False) -> NameGrouper | None:
        """Return the grouper; None if no model is given beside recorded answers."""
        model, lacking = step_model(self.ask), "group names: different names of an object stay apart"
        opened = model.open(run, notes, replayed=replayed, lacking=lacking) if model else None
        return NameGrouper(opened, self.grouped(run)) if opened else None


class NameGrouper:
    """Asks one prompt for each query with several names. relations: the relations to group, as queries spell them."""

    def __init__(self, model: LanguageModel, relations: Mapping[str, Relation]) -> None:
        self._model, self._relations = model, relations

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
        return [min(spellings, key=lambda text: (-spellings[text], text)) for spellings in first[:MOST]]

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


QUESTION = 8
"""Most tokens of a reply to a question."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FactQuestion:
    """A question about a fact.

    ask: template over `subject`, `object` and `question`, the relation's question. holds: first word of a reply if the
    fact holds; any other word denies it.
    """

    ask: str
    holds: str = "Yes"

    def __post_init__(self) -> None:
        """Raise ValueError for a question without the object, and for `holds` with several words."""
        check_template("verify.questions", self.ask, ("subject", "object", "question"))
        refuse(
            (
                "object" not in reads(self.ask),
                f"verify.questions asks {self.ask!r}: say which object, with {{{{ object }}}}",
            ),
            (len(self.holds.split()) != 1, f"holds is {self.holds!r}: give one word"),
        )


@dataclass(frozen=True, kw_only=True)
class Questions(Check):
    """Several questions about a fact, each without examples; its score is the share of them that affirm it.

    questions: questions besides the variants, which may be (). Replies are read as text.
    """

    REPLACES: ClassVar[tuple[str, ...]] = ("aggregation",)

    questions: tuple[FactQuestion, ...] = ()

    @property
    def asks(self) -> bool:
        """Return whether anything is asked about a fact."""
        return bool(self.variants or self.questions)

    @property
    def reads_texts(self) -> bool:
        """Return whether replies are read as texts."""
        return bool(self.questions) or super().reads_texts

    @property
    def checker(self) -> type[FactCheck]:
        """Return the class that asks."""
        return _QuestionCheck


class _QuestionCheck(FactCheck):
    """Puts the questions of a recipe, and counts votes."""

    _check: Questions

    def _put(self, question: FactQuestion, query: Query, text: str) -> str:
        subject = one_line(query.subject)
        asked = fill(self._relations[query.relation].question, {"subject": subject})
        return render(question.ask, {"subject": subject, "object": one_line(text), "question": asked})

    def requests(self, query: Query, text: str) -> Iterator[tuple[str, Request, int]]:
        """Yield each question about a fact, its request, and how often one like it is sent."""
        yield from super().requests(query, text)
        for question in self._check.questions:
            put = self._put(question, query, text)
            yield put, self.request(put, QUESTION), 1

    def judgements(self, facts: Sequence[tuple[Query, str]]) -> Iterator[Score]:
        """Yield each fact with its score in each variant, and with the share of replies that affirm it."""
        yield from super().judgements(facts)
        for question in self._check.questions:
            prompts = [self._put(question, *fact) for fact in facts]
            for fact, draws in zip(facts, self.texts(prompts, QUESTION), strict=True):
                if words := first_words(draws):
                    yield fact, words.count(question.holds.casefold()) / len(words)

    def score(self, scores: Sequence[float]) -> float:
        """Return the share of questions that affirm a fact."""
        return math.fsum(share >= 0.5 for share in scores) / len(scores)


@dataclass(frozen=True, kw_only=True)
class LastYears(Step):
    """A step whose span keeps the width of its slots: of a longer span, the last `max` slots count."""

    REPLACES: ClassVar[tuple[str, ...]] = ("widen",)

    def span(self, first: int, last: int) -> tuple[int, int]:
        """Return the first year that counts, and the number of years in a slot."""
        return max(first, (last // self.every - self.max + 1) * self.every), self.every


@dataclass(frozen=True, kw_only=True)
class Account(Step):
    """A step whose first answer is drawn at another temperature. first_temperature: 0 for greedy decoding."""

    first_temperature: float

    def sampling(self, table: Sampling) -> Sampling:
        """Return the sampling of its answers."""
        return replace(Step.sampling(self, table), first_temperature=self.first_temperature)


COMPONENTS = {
    "mave26/years": LastYears,
    "mave26/names": Names,
    "mave26/questions": Questions,
    "mave26/account": Account,
}
