"""Check bare facts after worked facts of the recipe (ProP, Alivanistos et al., LM-KBC 2022)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from lmkbc.errors import refuse
from lmkbc.generate.spec import check_names
from lmkbc.generate.verify import Check, FactCheck
from lmkbc.models.base import Request
from lmkbc.models.plain_questions import paragraphs
from lmkbc.models.thoughts import answer_of
from lmkbc.names import folded_key
from lmkbc.relation import Relation
from lmkbc.types import Query

LONG_REPLY = 100
"""Most tokens of a reply, which is read whole."""


@dataclass(frozen=True, kw_only=True)
class BareFacts(Check):
    """As other checks, but without a task before the examples and a cue after the fact.

    Only the word for false alone denies a fact; every other reply affirms it.

    facts: relation, by any name -> subject, object and truth of each worked example, in order.
    """

    REPLACES: ClassVar[tuple[str, ...]] = ("bare", "denial")

    facts: Mapping[str, tuple[tuple[str, str, bool], ...]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Raise ValueError for a wrong value."""
        Check.__post_init__(self)
        refuse(
            (
                self.by != "text" or self.samples > 1,
                "the one greedy reply to each fact is read: use by = 'text' and one sample",
            )
        )

    def check(self, relations: Mapping[str, Relation], what: str) -> None:
        """Raise InputError for a relation that does not exist. relations: all relations, by every name."""
        super().check(relations, what)
        check_names(self.facts, relations, f"{what}.facts")

    @property
    def checker(self) -> type[FactCheck]:
        """Return the class that asks."""
        return _BareFactCheck


class _BareFactCheck(FactCheck):
    """Shows the facts of a recipe, and reads whole replies."""

    _check: BareFacts

    def facts(self, query: Query) -> list[tuple[Query, str, bool]]:
        """Return the facts of the recipe, but for those about the query's own subject."""
        subject, given = folded_key(query.subject), self._relations[query.relation].entry(self._check.facts, ())
        return [(Query(s, query.relation), o, holds) for s, o, holds in given if folded_key(s) != subject]

    def worked(self, query: Query) -> str:
        """Return the worked examples."""
        words = self._check.words
        return "".join(f"{self.question(about, o)}{words[not holds]}\n\n" for about, o, holds in self.facts(query))

    def question(self, query: Query, text: str) -> str:
        """Return the bare fact."""
        return f"{self.fact(query, text)}\n"

    def request(self, text: str, max_tokens: int) -> Request:
        """Return the request of a question, with room for a long reply."""
        return super().request(text, max(max_tokens, LONG_REPLY))

    def votes(self, prompts: Sequence[str]) -> list[float | None]:
        """Return 0 for the word for false alone, 1 for any other reply, None for a failed one."""
        replies = paragraphs(self._scorer, prompts, self._check.max_tokens or LONG_REPLY, "")
        answers: Iterator[str | None] = (reply and answer_of(reply) for reply in replies)
        return [None if answer is None else float(answer.strip() != self._check.words[1]) for answer in answers]


COMPONENTS = {"prop22/facts": BareFacts}
