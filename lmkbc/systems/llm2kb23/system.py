"""Ask for a broken answer again, as a list (LLM2KB, LM-KBC 2023)."""

from __future__ import annotations

from dataclasses import dataclass

from lmkbc.ask.steps import Turn
from lmkbc.ask.style import VARIABLES, PromptStyle
from lmkbc.ask.templates import check_template, reads
from lmkbc.errors import refuse
from lmkbc.generate.conversation import Conversation
from lmkbc.models.base import WITHHELD, Prompt, Reply, Request
from lmkbc.types import Query, State


@dataclass(frozen=True)
class Repair(Turn):
    """Asks for a broken reply as a list. A repair without objects is a failed parse, like the reply that it repairs."""

    template: str
    name = "repair"

    def prompt(self, talk: Conversation, query: Query, asked: Prompt, context: str, answer: str) -> Prompt:  # noqa: ARG002
        """Return the prompt for a broken answer."""
        style, relation = talk.asking.plan(query).style, talk.relation(query)
        shown = style.listed(("first name", "second name"), relation)
        return talk.asking.worded(self.template, query, answer=answer.strip(), list=shown)

    def request(self, talk: Conversation, query: Query, prompt: Prompt, draw: int, reply: Reply) -> Request | None:
        """Return the request for a reply that could not be parsed, although no filter withheld it."""
        given = reply.is_answer and reply.finish not in WITHHELD
        is_broken = given and talk.state(query, reply) is State.UNPARSED
        return talk.request(query, self.prompt(talk, query, prompt, "", reply.text), [draw]) if is_broken else None

    def counts(self, talk: Conversation, query: Query, reply: Reply | None) -> bool:
        """Return whether a repair names objects."""
        state = talk.state(query, reply)
        return state.has_objects or state is State.DROPPED


@dataclass(frozen=True, kw_only=True)
class RepairingStyle(PromptStyle):
    """A prompt whose broken answers are repaired.

    repair: template of a separate prompt for an answer that is no list, over `answer` and `list`, an example of the
    list form.
    """

    repair: str

    def __post_init__(self) -> None:
        """Raise ValueError for a template without the answer."""
        PromptStyle.__post_init__(self)
        check_template("repair", self.repair, (*VARIABLES, "answer", "list"))
        refuse(
            (
                "answer" not in reads(self.repair),
                "repair asks for a broken answer as a list: show that answer with {{ answer }}",
            )
        )

    @property
    def turns(self) -> tuple[Turn, ...]:
        """Return the repair."""
        return (Repair(self.repair),)


COMPONENTS = {"llm2kb23/prompt": RepairingStyle}
