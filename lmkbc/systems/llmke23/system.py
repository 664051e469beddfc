"""Show texts in a second turn, examples of given rows, and keywords of relations (Zhang et al., LLMKE, LM-KBC 2023)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Annotated, Self

from lmkbc.ask.context import ContextSettings
from lmkbc.ask.examples import Shots
from lmkbc.ask.steps import Turn
from lmkbc.ask.style import VARIABLES, PromptStyle
from lmkbc.ask.templates import check_template, reads, render
from lmkbc.errors import refuse
from lmkbc.generate.conversation import Conversation
from lmkbc.generate.spec import check_names
from lmkbc.link.hits import ObjectType
from lmkbc.link.linker import Linking, under_own_names
from lmkbc.models.base import WITHHELD, Prompt, Reply, Request
from lmkbc.relation import Relation
from lmkbc.settings import ReadBy
from lmkbc.types import Example, Query

LOOKED_UP = ReadBy("provider 'titles'", lambda context, *_: context.provider == "titles")


@dataclass(frozen=True)
class FollowUp(Turn):
    """A second turn, whose answer counts. template: see `ContextStyle`. Without context, the first answer stands."""

    template: str
    name = "follow-up"

    def prompt(self, talk: Conversation, query: Query, asked: Prompt, context: str, answer: str) -> Prompt | None:
        """Return the prompt of the second turn, which adds the passages; None if there is no second turn."""
        if "context" in reads(self.template) and not context.strip():
            return None
        return asked.followed(answer, talk.asking.filled(self.template, query, context=context.strip()))

    def request(self, talk: Conversation, query: Query, prompt: Prompt, draw: int, reply: Reply) -> Request | None:
        """Return the request of the second turn; None if there is none, or no answer before it."""
        is_answer = reply.is_answer and reply.finish not in WITHHELD
        after = self.prompt(talk, query, prompt, talk.context_text(query), reply.text) if is_answer else None
        return talk.request(query, after, [draw]) if after else None


@dataclass(frozen=True, kw_only=True)
class ContextStyle(PromptStyle):
    """A prompt whose answer is asked for again.

    follow_up: template of a second user turn after the first answer, over the names of `ask` and `context`, which is
    then shown only here.
    """

    follow_up: str

    def __post_init__(self) -> None:
        """Raise ValueError for a wrong template, and for a form without turns."""
        PromptStyle.__post_init__(self)
        check_template("follow_up", self.follow_up, (*VARIABLES, "asked", "context"))
        refuse(
            (
                self.form == "completion",
                "follow_up is a second turn, and form 'completion' has none: use 'single' or 'chat'",
            )
        )

    @property
    def turns(self) -> tuple[Turn, ...]:
        """Return the second turn."""
        return (FollowUp(self.follow_up),)

    @property
    def opens_with_context(self) -> bool:
        """Return False: what is found is shown in the second turn."""
        return False


@dataclass(frozen=True, kw_only=True)
class TitledContext(ContextSettings):
    """Texts about a subject under another title.

    titles: relation, by any name -> template of the title to look up, over `subject`; the subject itself if not given.
    """

    titles: Annotated[Mapping[str, str], LOOKED_UP] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Raise ValueError for a wrong value."""
        ContextSettings.__post_init__(self)
        for name, template in self.titles.items():
            check_template(f"titles.{name}", template, ("subject",))

    def check(self, relations: Mapping[str, Relation], what: str) -> None:
        """Raise InputError for a relation that does not exist."""
        check_names(self.titles, relations, f"{what}.titles")

    def title(self, query: Query, relation: Relation) -> str:
        """Return the title under which a query's texts are looked up."""
        return render(relation.entry(self.titles, "{{ subject }}"), {"subject": query.subject})


@dataclass(frozen=True, kw_only=True)
class RowShots(Shots):
    """Examples of given rows.

    rows: use only the relation's n-th to m-th row of the file or of train, counted from 1.
    one_empty: whether to append the relation's first example without objects if the k others all have objects.
    """

    rows: tuple[int, int]
    one_empty: bool = False

    def __post_init__(self) -> None:
        """Raise ValueError for a wrong value."""
        Shots.__post_init__(self)
        first, last = self.rows
        refuse((not 1 <= first <= last, f"rows is {[*self.rows]}: give the first and the last row, counted from 1"))

    @property
    def shows(self) -> bool:
        """Return whether any example is shown."""
        return self.k > 0 or self.one_empty

    def offers(self, number: int) -> bool:
        """Return whether a row may be shown."""
        return self.rows[0] <= number <= self.rows[1]

    def last(self, chosen: Sequence[Example], empty: Iterable[Example]) -> list[Example]:
        """Return an example without objects, if all of those that were chosen have some."""
        return [*islice(empty, self.one_empty and all(example.objects for example in chosen))]


@dataclass(frozen=True, kw_only=True)
class KeywordLinking(Linking):
    """Linking by keywords of relations. keywords: relation, by any name -> those that replace its object type's."""

    keywords: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def check(self, relations: Mapping[str, Relation]) -> None:
        """Raise InputError for a relation that does not exist."""
        super().check(relations)
        check_names(self.keywords, relations, "link.keywords")

    def canonical(self, relations: Mapping[str, Relation]) -> Self:
        """Return the settings under the relations' own names. InputError for a relation that does not exist."""
        return replace(super().canonical(relations), keywords=under_own_names(self.keywords, relations))

    def object_type(self, relation: Relation) -> ObjectType:
        """Return the type of a relation's objects, with the strategies and keywords that apply to it."""
        kind = super().object_type(relation)
        return replace(kind, keywords=tuple(map(str.casefold, relation.entry(self.keywords, kind.keywords))))


COMPONENTS = {
    "llmke23/prompt": ContextStyle,
    "llmke23/context": TitledContext,
    "llmke23/shots": RowShots,
    "llmke23/link": KeywordLinking,
}
