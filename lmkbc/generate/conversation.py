"""What generators over language models share, whatever the back end: their table, and the turns of a conversation."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache

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
from lmkbc.generate.recorded import Recorded
from lmkbc.generate.replay import Replay, Silent
from lmkbc.generate.spec import GeneratorSpec, Relations, check_names
from lmkbc.generate.verify import Check, verifying
from lmkbc.models.base import WITHHELD, LanguageModel, Prompt, Reply
from lmkbc.models.encoder import find_encoder
from lmkbc.models.files import model_name
from lmkbc.relation import Relation
from lmkbc.run import Run
from lmkbc.types import CandidateSet, Example, Generator, Notes, Passage, Query

Opened = tuple[Generator, Callable[[Check], LanguageModel]]
"""A generator, and what opens the model that verifies for it."""


@dataclass(frozen=True, kw_only=True)
class LanguageModelSpec(Asks, GeneratorSpec):
    """What the table of a generator over a language model may say.

    context: text that is found about each subject. closed_book: refuse text from outside the model. verify: how the
    model is asked again whether each fact holds; not at all where it is left out. clean: bring the names that it
    answers into the relation's shape.
    """

    model: str | None = None
    clean: bool = True
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

    @property
    def called(self) -> tuple[str, ...]:
        """Its name, its model, and that without its owner."""
        names = self.name, self.model, (self.model or "").rpartition("/")[2]
        return tuple(dict.fromkeys(filter(None, names))) or (self.component,)

    @property
    def reads_files(self) -> bool:
        """Whether files are the text that is told about subjects."""
        return self.context.path == "from"

    @property
    def is_replayed(self) -> bool:
        """Unless files are read otherwise."""
        return not self.reads_files

    @abstractmethod
    def is_given(self, run: Run) -> bool:
        """Whether what recorded answers lack can be asked: of a server that is named, or a model of this machine."""

    @abstractmethod
    def back_end(self, run: Run, notes: Notes) -> Opened:
        """The generator over the model, and what opens that model to verify facts. InputError for what a run lacks."""

    def open(self, run: Run, notes: Notes) -> Generator:
        """The generator, or the answers that stand for its model, and around it the verifier that is asked for."""
        back_end = cache(lambda: self.back_end(run, notes))
        check, given = self.verify, run.answers is None or self.is_given(run)
        generator = back_end()[0] if run.answers is None else self._replay(run, back_end if given else None)
        if not check:
            return generator
        return verifying(generator, back_end()[1](check) if given else Silent(), check, run.relations, run.train, notes)

    def _replay(self, run: Run, back_end: Callable[[], Opened] | None) -> Replay:
        """The generator over recorded answers, read as the conversation with the model would be."""
        name = self.name or model_name(run.model or self.model or "") or self.component
        talk = Conversation(self.asking(run), run.relations, name, None, Notes(), clean=self.clean)

        def read(query: Query, replies: Sequence[Reply | None], _: str) -> CandidateSet:
            return talk.candidates(query, [replies])

        recorded = None
        if run.answers:
            recorded = Recorded(run.answers, run.edition, run.relations, clean=self.clean, read=read, name=name)
        return Replay(recorded, (lambda: back_end()[0]) if back_end else None)

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
    clean: whether names are brought into the relation's shape.
    """

    def __init__(
        self,
        asking: Asking,
        relations: Mapping[str, Relation],
        name: str,
        context: Provider | None,
        notes: Notes,
        *,
        clean: bool = True,
    ) -> None:
        self._asking, self._relations, self._name = asking, relations, name
        self._context, self._notes, self._clean = context, notes, clean
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
        return united(
            [
                candidates(query, relation, style, replies, self._name, clean=self._clean)
                for replies in parts or ([None],)
            ]
        )

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
