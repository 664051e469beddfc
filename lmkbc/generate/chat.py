"""The chat generator: queries to candidates by asking an OpenAI-compatible server, many requests at a time."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from lmkbc.ask.context.passages import Provider
from lmkbc.ask.plan import Asking
from lmkbc.ask.schema import answer_schema
from lmkbc.generate.access import ServerSettings
from lmkbc.generate.chain import Answered, Request, resumed
from lmkbc.generate.chat_tally import Tally, remarks, usage
from lmkbc.generate.completer import CompleterSpec
from lmkbc.generate.conversation import Conversation, LanguageModelSpec, Opened
from lmkbc.models.answers import Call, Store
from lmkbc.models.base import LanguageModel, Prompt, Reply, check_extra
from lmkbc.models.budget import Budget
from lmkbc.models.server import batch
from lmkbc.models.server.address import Server
from lmkbc.models.server.limits import Limits
from lmkbc.models.server.pump import pumped
from lmkbc.models.server.request import calls
from lmkbc.models.server.scorer import ChatScorer
from lmkbc.models.server.session import Session
from lmkbc.relation import Relation
from lmkbc.run.base import Run
from lmkbc.types import CandidateSet, Notes, Query

log = logging.getLogger(__name__)

Executor = Literal["calls", "batch"]


@dataclass(frozen=True, kw_only=True)
class Chat(ServerSettings, LanguageModelSpec):
    """What the table of a generator over a server may say: see `ChatGenerator`."""

    schema: bool = False
    executor: Executor = "calls"

    def __post_init__(self) -> None:
        """ValueError for settings that contradict each other."""
        ServerSettings.__post_init__(self)
        LanguageModelSpec.__post_init__(self)
        once = all(
            not (style.follow_up or style.repair or any(step.ask for step in style.steps)) for style in self.styles
        )
        if self.executor == "batch" and not once:
            raise ValueError(
                "a batch is answered once: use executor 'calls' where prompt has follow_up, repair or steps"
            )

    def is_given(self, run: Run) -> bool:
        """Whether a server is named, or a model of this machine."""
        return self.is_named(run)

    def back_end(self, run: Run, notes: Notes) -> Opened:
        """The generator over the server, or over a local model where that is meant, and what verifies for it."""
        if self.is_local(run):
            from lmkbc.generate import local_table

            return local_table.generator(self, run, notes)
        access, check = self.access(run), self.verify
        notes.asked(access.server.name)
        scorer = ChatScorer(
            access.server,
            access.session,
            completion=self.prompt.form == "completion",
            draws=check.draws if check else 1,
            temperature=check.heat if check else 0.0,
            extra=self.sampling.extra,
            notes=notes,
        )
        generator = ChatGenerator(
            self.asking(run),
            run.relations,
            access.server,
            access.store,
            limits=access.limits,
            budget=access.budget,
            name=self.name,
            schema=self.schema,
            executor=self.executor,
            offline=run.offline,
            context=self.provider(run, lambda: scorer),
            clean=self.clean,
            notes=notes,
        )
        return generator, lambda _: scorer


@dataclass(frozen=True, kw_only=True)
class ChatCompleter(ServerSettings, CompleterSpec):
    """A server's model that another step asks. extra: further fields of every request."""

    extra: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """ValueError for settings that make no sense."""
        super().__post_init__()
        check_extra(self.extra)

    def is_given(self, run: Run) -> bool:
        """Whether a server is named, or a model of this machine."""
        return self.is_named(run)

    def open(self, run: Run, notes: Notes) -> LanguageModel:
        """The model."""
        if self.is_local(run):
            from lmkbc.generate import local_table

            return local_table.completer(self, run, notes)
        access = self.access(run)
        notes.asked(access.server.name)
        return ChatScorer(access.server, access.session, completion=False, extra=self.extra, notes=notes)


class ChatGenerator:
    """Asks a server. Whatever it is asked stays in the store, so that a run, killed or not, can be gone on with.

    name: what its sources are called; the model's name unless given. schema: ask for JSON of a fixed shape.
    executor: "calls" asks query by query; "batch" sends all of them as one job of the Batch API.
    context: what is told of a query in its prompt. clean: bring names into the relation's shape. notes: where usage,
    remarks and passages go when it is done.
    """

    def __init__(
        self,
        asking: Asking,
        relations: Mapping[str, Relation],
        server: Server,
        store: Store,
        *,
        limits: Limits | None = None,
        budget: Budget | None = None,
        name: str = "",
        schema: bool = False,
        executor: Executor = "calls",
        offline: bool = False,
        context: Provider | None = None,
        clean: bool = True,
        notes: Notes | None = None,
    ) -> None:
        self.notes = notes or Notes()
        self._name = name or server.name
        self._talk = Conversation(asking, relations, self._name, context, self.notes, clean=clean)
        self._relations = relations
        self._server = server
        self._store = store
        self._limits = limits or Limits()
        self._budget = budget or Budget()
        self._schema = schema
        self._executor = executor
        self._offline = offline

    def generate(self, queries: Sequence[Query]) -> Iterator[CandidateSet]:
        """One set per distinct query, in the order in which answers come. ServerError when asking is in vain."""
        distinct = list(dict.fromkeys(queries))
        self._talk.begin(distinct)
        tally = Tally()
        session = Session(self._server, self._store, self._limits, self._budget, offline=self._offline)

        async def before() -> None:
            if not self._offline:
                await self._look_ahead(session, distinct)
            if self._executor == "batch" and not self._offline:
                await batch.run(session, self._store, self._calls, distinct, self._limits)

        async def answer(query: Query) -> CandidateSet:
            return await self._answer(session, query, tally)

        yield from pumped(session, distinct, answer, before)
        self.notes.usage |= usage(session, self.notes.usage)
        for remark in remarks(session, tally, self._store):
            self.notes.remark(f"{self._name}: {remark}")

    async def _answer(self, session: Session, query: Query, tally: Tally) -> CandidateSet:
        talk, received = self._talk.talk(query), list[Reply]()
        requests, candidates = resumed(talk)
        while candidates is None:
            answered = [await self._replies(session, query, request) for request in requests]
            received += [reply for one in answered for reply in one.replies if reply]
            requests, candidates = resumed(talk, answered)
        tally.count(candidates, received, self._relations[query.relation] if self._schema else None)
        return candidates

    async def _replies(self, session: Session, query: Query, request: Request) -> Answered:
        shown = [request.prompt]  # the last of them is what is answered

        def shorter() -> Iterator[list[Call]]:
            for prompt in request.shorter():
                shown.append(prompt)
                yield self._draws(query, request, prompt)

        replies = await session.draws(self._draws(query, request, request.prompt), shorter())
        return Answered(shown[-1], replies)

    async def _look_ahead(self, session: Session, queries: Sequence[Query]) -> None:
        """Say what will not fit the server, before anything is sent."""
        calls = (self._draws(query, one, one.prompt)[0] for query in queries for one in self._talk.first(query))
        over, count = await session.look_ahead(calls)
        if over:
            log.warning(
                f"{self._name}: {over} of {count} prompts leave no room for an answer in the server's context of "
                f"{session.window.tokens} tokens: those whose shots say fit = true are shown fewer examples"
            )

    def _calls(self, query: Query) -> list[Call]:
        return [call for one in self._talk.first(query) for call in self._draws(query, one, one.prompt)]

    def _draws(self, query: Query, request: Request, prompt: Prompt) -> list[Call]:
        """One call per draw."""
        shaped = self._schema and request.final
        schema = answer_schema(self._relations[query.relation].kind) if shaped else None
        every = calls(self._server, request.sampling, request.stops, prompt, schema)
        return [every[draw] for draw in request.draws]
