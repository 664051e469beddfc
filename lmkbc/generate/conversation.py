"""What generators over language models share, whatever the back end: their table, and the turns of a conversation."""

from __future__ import annotations

from abc import abstractmethod
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, partial

from lmkbc.answer.reply import (
    broken,
    candidates,
    mends,
    united,
)
from lmkbc.ask.context.passages import ContextSettings, Provider, as_context, gathered
from lmkbc.ask.context.providers import located, provider
from lmkbc.ask.frames import OTHERS
from lmkbc.ask.plan import Asking, Asks, Slots
from lmkbc.generate.chain import UNREAD, Chain, Course, Request, Talk, asking, no_shorter, together
from lmkbc.generate.recorded import Recorded
from lmkbc.generate.replay import Replay, Silent
from lmkbc.generate.spec import GeneratorSpec, Question, Relations, check_names
from lmkbc.generate.verify import Check, verifying
from lmkbc.models.base import WITHHELD, LanguageModel, Prompt, Reply, Writer
from lmkbc.models.encoder import find_encoder
from lmkbc.models.files import model_name
from lmkbc.relation import Relation
from lmkbc.run.base import Run
from lmkbc.types import (
    CandidateSet,
    Example,
    Generator,
    Nil,
    Notes,
    Passage,
    Query,
    Source,
)

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

    def sources(self, run: Run, notes: Notes) -> Iterator[tuple[str, Generator]]:
        """The generator, which calls its draws by the table's name itself."""
        yield self.name or self.component, self.open(run, notes)

    def questions(self, run: Run, notes: Notes) -> Iterator[Question]:
        """All that it asks, as far as it does not depend on answers."""
        for name, generator in self.opened(run, notes):
            yield Question(name, self, generator.generate)

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
    def asks_model(self) -> bool:
        """One that writes."""
        return True

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
        generator = back_end()[0] if run.answers is None else self._replay(run, notes, back_end if given else None)
        if not check:
            return generator
        return verifying(generator, back_end()[1](check) if given else Silent(), check, run.relations, run.train, notes)

    def _replay(self, run: Run, notes: Notes, back_end: Callable[[], Opened] | None) -> Replay:
        """The generator over recorded answers, read as the conversation with the model would be."""
        name = self.name or model_name(run.model or self.model or "") or self.component
        talk = Conversation(self.asking(run), run.relations, name, None, Notes(), clean=self.clean)

        def read(query: Query, replies: Sequence[Reply | None], _: str) -> CandidateSet:
            return talk.candidates(query, [replies])

        recorded = None
        if run.answers:
            recorded = Recorded(run.answers, run.edition, run.relations, clean=self.clean, read=read, name=name)
            notes.at_end.append(recorded.ended)
            notes.asked(*recorded.models)
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

    def provider(self, run: Run, model: Callable[[], Writer]) -> Provider | None:
        """What finds passages, where the table wants any. model: opens what recall asks."""
        return provider(located(self.context, run.files), run.relations, model, run.cache)


class Conversation:
    """What a model is asked about queries, what follows on its replies, and the candidates that all of them come to.

    name: what the model's sources are called. context: what finds passages that prompts tell. notes: where those go.
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

    def begin(self, queries: Sequence[Query]) -> None:
        """Find the passages of all queries, ahead of their prompts."""
        if self._context:
            self._passages = gathered(self._context, [query for query in queries if query.subject.strip()])
            self._notes.passages |= self._passages

    def talk(self, query: Query) -> Talk[CandidateSet]:
        """Ask about a query: requests are yielded, their replies sent in, and at the end it returns the candidates.

        Nothing is asked about a subject without a name, nor where its context is not there: it is missing.
        """
        if not query.subject.strip() or (self._context and query not in self._passages):
            return self.candidates(query, [[None]])
        chain = Chain(self._asking, self._relations[query.relation], query)
        course = yield from chain.course()
        parts = yield from self._answers(query, course)
        texts = (None if reply is None else reply.text for part in parts for reply in part)
        self._notes.replied(query, self._name, texts)
        found = self.candidates(query, parts)
        nil_probabilities = (Nil(share, (Source(self._name, name),)) for name, share in chain.nil_probabilities.items())
        return replace(found, nil_probabilities=(*found.nil_probabilities, *nil_probabilities))

    def first(self, query: Query) -> list[Request]:
        """What is asked about a query before anything is answered."""
        return next(self.talk(query), [])

    def _answers(self, query: Query, course: Course) -> Talk[list[list[Reply | None]]]:
        """Part -> draw -> reply, of the query itself, asked in as many parts as the draw that has most goes on with."""
        told = self._told(query)
        most = max((len(one) for one in course if isinstance(one, list)), default=1)
        parts: list[list[Reply | None]] = [[one if one is None else UNREAD for one in course] for _ in range(most)]
        prompts: dict[tuple[str, ...], Prompt] = {}
        asked: dict[Prompt, Slots] = {}
        places: defaultdict[tuple[Prompt, int], list[int]] = defaultdict(list)
        for draw, branches in enumerate(course):
            if not isinstance(branches, list):
                parts[0][draw] = branches
                continue
            for part, slots in enumerate(branches):
                filled = tuple(slots.values())
                if filled not in prompts:
                    prompts[filled] = self._asking.prompt(query, told, slots)
                    asked.setdefault(prompts[filled], slots)
                places[prompts[filled], draw].append(part)
        said: dict[tuple[Prompt, int], Reply | None] = {}
        shown: dict[Prompt, Prompt] = {}
        wanted = together(places)
        requests = [
            self._request(query, prompt, draws, partial(self._asking.shorter, query, told, asked[prompt]))
            for prompt, draws in wanted.items()
        ]
        for (prompt, draws), one in zip(wanted.items(), (yield from asking(requests)), strict=True):
            shown[prompt] = one.prompt
            said |= {(prompt, draw): reply for draw, reply in zip(draws, one.replies, strict=True)}
        for follows, counts in (self._second, _always), (self._repair, self._mends):
            after = {
                (prompt, draw): further
                for (prompt, draw), reply in said.items()
                if (reply and reply.is_answer and reply.finish not in WITHHELD)
                and (further := follows(query, shown[prompt], reply))
            }
            requests = [self._request(query, further, [draw]) for (_, draw), further in after.items()]
            for place, one in zip(after, (yield from asking(requests)), strict=True):
                if counts(query, one.replies[0]):
                    said[place] = one.replies[0]
        for place, its in places.items():
            for part in its:
                parts[part][place[1]] = said[place]
        return parts

    def _request(
        self, query: Query, prompt: Prompt, draws: Sequence[int], shorter: Callable[[], Iterator[Prompt]] = no_shorter
    ) -> Request:
        plan = self._asking.plan(query)
        return Request(prompt, tuple(draws), plan.sampling, plan.style.stops, plan.style.brackets, shorter=shorter)

    def candidates(self, query: Query, parts: Sequence[Sequence[Reply | None]]) -> CandidateSet:
        """What the draws of each of a query's prompts come to."""
        relation, style = self._relations[query.relation], self._asking.plan(query).style
        return united([candidates(query, relation, style, replies, self._name, clean=self._clean) for replies in parts])

    def _told(self, query: Query) -> str:
        return as_context(self._passages.get(query, ()))

    def _second(self, query: Query, prompt: Prompt, reply: Reply) -> Prompt | None:
        """The same asked again, with more told."""
        turn = self._asking.follow_up(query, self._told(query))
        return prompt.followed(reply.text, turn) if turn else None

    def _repair(self, query: Query, _: Prompt, reply: Reply) -> Prompt | None:
        """What asks for a reply that is no answer as a list."""
        prompt = self._asking.repair(query, reply.text)
        style = self._asking.plan(query).style
        return prompt if prompt and broken(query, self._relations[query.relation], style, reply) else None

    def _mends(self, query: Query, reply: Reply | None) -> bool:
        return mends(query, self._relations[query.relation], self._asking.plan(query).style, reply)


def _always(_: Query, __: Reply | None) -> bool:
    return True
