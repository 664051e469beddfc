"""What generators over language models share, whatever the back end: their table, and the turns of a conversation."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from lmkbc.answer.reply import (
    broken,
    candidates,
    mends,
    united,
)
from lmkbc.ask.context.passages import Provider, as_context, gathered
from lmkbc.ask.context.providers import located, provider
from lmkbc.ask.context.settings import ContextSettings
from lmkbc.ask.frames import OTHERS
from lmkbc.ask.plan import Asking, Asks, Plan
from lmkbc.generate.spec import GeneratorSpec, Relations, check_names
from lmkbc.generate.verify import Check
from lmkbc.models.base import WITHHELD, LanguageModel, Prompt, Reply
from lmkbc.models.encoder import find_encoder
from lmkbc.relation import Relation
from lmkbc.run import Run
from lmkbc.types import CandidateSet, Example, Generator, Notes, Passage, Query


@dataclass(frozen=True, kw_only=True)
class LanguageModelSpec(Asks, GeneratorSpec):
    """What the table of a generator over a language model may say.

    context: text that is found about each subject. closed_book: refuse text from outside the model. verify: how the
    model is asked again whether each fact holds; not at all where it is left out.
    """

    context: ContextSettings = field(default_factory=ContextSettings)
    closed_book: bool = True
    verify: Check | None = None

    def __post_init__(self) -> None:
        """ValueError for settings that contradict each other."""
        super().__post_init__()
        if self.context.reads and self.closed_book:
            raise ValueError(
                f"the recipe is closed-book, but its context {self.context.provider!r} reads text from outside the "
                "model: say closed_book = false, or use 'none' or 'recall'"
            )

    def check(self, relations: Relations) -> None:
        """InputError for a relation that does not exist."""
        super().check(relations)
        check_names(sorted(self.framing.tables.keys() - {OTHERS}), relations, self.framing.name)
        check_names(self.relations, relations, f"generator {self.component!r}: relations")
        check_names(self.verify.only if self.verify else (), relations, f"generator {self.component!r}: verify.only")

    def voices(self, run: Run, notes: Notes) -> Iterator[tuple[str, Generator]]:
        """The generator, which calls its draws by the table's name itself."""
        yield self.name or self.component, self.open(run, notes)

    def asking(self, run: Run, train: Sequence[Example] | None = None) -> Asking:
        """What is asked about the run's relations, after examples of train, some of them selected by embedding.

        train: other examples than the run's train split.
        """
        chosen = {run.workspace.relation(name).name for name in self.only}
        asked = {name: one for name, one in run.relations.items() if not chosen or one.name in chosen}
        self.framing.check(asked, run.edition.name)
        encoder = find_encoder() if self.embeds else None
        examples = run.train if train is None else train
        return Asking(run.edition, run.relations, examples, self, run.workspace.relations, encoder)

    def provider(self, run: Run, model: Callable[[], LanguageModel]) -> Provider | None:
        """What finds passages, where the table wants any. model: opens what recall asks."""
        return provider(located(self.context, run.files), run.relations, model, run.cache)


@dataclass(frozen=True, slots=True)
class Turn:
    """A further turn of a conversation. follows: the prompt that comes after a reply; None where the reply stands.

    counts: whether what that brings takes the reply's place.
    """

    follows: Callable[[Query, Prompt, Reply], Prompt | None]
    counts: Callable[[Query, Reply | None], bool]


class Conversation:
    """What a model is asked about queries, what follows on its replies, and the candidates that all of them come to.

    name: what the model's voices are called. context: what finds passages that prompts tell. notes: where those go.
    """

    def __init__(
        self, asking: Asking, relations: Mapping[str, Relation], name: str, context: Provider | None, notes: Notes
    ) -> None:
        self._asking, self._relations, self._name = asking, relations, name
        self._context, self._notes = context, notes
        self._passages: dict[Query, tuple[Passage, ...]] = {}

    @property
    def turns(self) -> tuple[Turn, ...]:
        """What may follow on a reply, in this order."""
        return Turn(self._second, lambda *_: True), Turn(self._repair, self._mends)

    def begin(self, queries: Sequence[Query]) -> None:
        """Find the passages of all queries, ahead of their prompts."""
        if self._context:
            self._passages = gathered(self._context, [query for query in queries if query.subject.strip()])
            self._notes.passages |= self._passages

    def plan(self, query: Query) -> Plan:
        """How a query is asked."""
        return self._asking.plan(query)

    def prompts(self, query: Query) -> list[Prompt]:
        """None for a subject without a name, about which nothing can be asked, and none before its context is there."""
        if not query.subject.strip() or (self._context and query not in self._passages):
            return []
        return self._asking.prompts(query, self._told(query))

    def shorter(self, query: Query, part: int) -> Iterator[Prompt]:
        """The prompt of a query, by its place among `prompts`, with ever fewer examples."""
        return self._asking.shorter(query, self._told(query), part)

    def following(self, turn: Turn, query: Query, prompt: Prompt, replies: Sequence[Reply | None]) -> dict[int, Prompt]:
        """Draw -> the prompt that comes after it; draws that say nothing, or were withheld, are left alone."""
        found = {
            draw: turn.follows(query, prompt, reply)
            for draw, reply in enumerate(replies)
            if reply is not None and reply.is_answer and reply.finish not in WITHHELD
        }
        return {draw: after for draw, after in found.items() if after is not None}

    def candidates(self, query: Query, parts: Sequence[Sequence[Reply | None]]) -> CandidateSet:
        """What the draws of each of a query's prompts come to; a query without prompts is missing."""
        relation, style = self._relations[query.relation], self._asking.plan(query).style
        return united([candidates(query, relation, style, replies, self._name) for replies in parts or ([None],)])

    def _told(self, query: Query) -> str:
        return as_context(self._passages.get(query, ()))

    def _second(self, query: Query, prompt: Prompt, reply: Reply) -> Prompt | None:
        """The same asked again, with more told."""
        turn = self._asking.second_turn(query, self._told(query))
        return prompt.followed(reply.text, turn) if turn else None

    def _repair(self, query: Query, _: Prompt, reply: Reply) -> Prompt | None:
        """What asks for a reply that is no answer as a list."""
        prompt = self._asking.repair(query, reply.text)
        style = self._asking.plan(query).style
        return prompt if prompt and broken(query, self._relations[query.relation], style, reply) else None

    def _mends(self, query: Query, reply: Reply | None) -> bool:
        return mends(query, self._relations[query.relation], self._asking.plan(query).style, reply)
