"""The chat generator: queries to candidates by asking an OpenAI-compatible server, many requests at a time."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from lmkbc.answer.reply import (
    broken,
    candidates,
    mends,
    united,
)
from lmkbc.ask.context.passages import Provider, gathered, told
from lmkbc.ask.plan import Asking
from lmkbc.ask.schema import answer_schema, keeps_schema
from lmkbc.generate.access import ServerSettings
from lmkbc.generate.completer import CompleterSpec
from lmkbc.generate.conversation import LanguageModelSpec
from lmkbc.generate.verify import verifying
from lmkbc.models.base import WITHHELD, Prompt, Reply
from lmkbc.models.budget import Budget
from lmkbc.models.server import batch
from lmkbc.models.server.client import Server
from lmkbc.models.server.limits import Limits
from lmkbc.models.server.request import calls
from lmkbc.models.server.scorer import ChatScorer
from lmkbc.models.server.session import Session
from lmkbc.models.store import Call, Store
from lmkbc.relation import Relation
from lmkbc.run import Run
from lmkbc.types import CandidateSet, Generator, Notes, Passage, Query, State

log = logging.getLogger(__name__)

PRUNE = "'lmkbc store prune --model NAME' drops what was kept of a model, to have it asked again"
"""What a person can do about answers that are of no use."""

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
        styles = [self.about(name)[0] for name in ("", *self.relations)]
        if self.executor == "batch" and any(style.again or style.repair for style in styles):
            raise ValueError("a batch is answered once: use executor 'calls' where prompt has again or repair")

    def open(self, run: Run, notes: Notes) -> Generator:
        """The generator, and around it the verifier that the table asks for."""
        access, check = self.access(run), self.verify
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
            context=self.provider(run, scorer.paragraphs),
            notes=notes,
        )
        return verifying(generator, scorer, check, run.relations, run.train, notes) if check else generator


@dataclass(frozen=True, kw_only=True)
class ChatCompleter(ServerSettings, CompleterSpec):
    """A server's model that another step asks. extra: further fields of every request."""

    extra: Mapping[str, Any] = field(default_factory=dict)

    def open(self, run: Run, notes: Notes) -> ChatScorer:
        """The model."""
        access = self.access(run)
        return ChatScorer(access.server, access.session, completion=False, extra=self.extra, notes=notes)


class ChatGenerator:
    """Asks a server. Whatever it is asked stays in the store, so that a run, killed or not, can be gone on with.

    name: what its voices are called; the model's name unless given. schema: ask for JSON of a fixed shape.
    executor: "calls" asks query by query; "batch" sends all of them as one job of the Batch API.
    context: what is told of a query in its prompt. notes: where usage, remarks and passages go when it is done.
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
        notes: Notes | None = None,
    ) -> None:
        self.notes = notes or Notes()
        self._passages: dict[Query, tuple[Passage, ...]] = {}
        self._asking = asking
        self._relations = relations
        self._server = server
        self._store = store
        self._limits = limits or Limits()
        self._budget = budget or Budget()
        self._name = name or server.name
        self._schema = schema
        self._executor = executor
        self._offline = offline
        self._context = context

    def generate(self, queries: Sequence[Query]) -> Iterator[CandidateSet]:
        """One set per distinct query, in the order in which answers come. ServerError when asking is in vain."""
        distinct = list(dict.fromkeys(queries))
        if self._context:
            named = [query for query in distinct if query.subject.strip()]
            self._passages = gathered(self._context, named)
            self.notes.passages |= self._passages
        tally = _Tally()
        session = Session(self._server, self._store, self._limits, self._budget, offline=self._offline)
        with asyncio.Runner() as runner:
            try:
                if not self._offline:
                    runner.run(self._look_ahead(session, distinct))
                if self._executor == "batch" and not self._offline:
                    runner.run(batch.run(session, self._store, self._calls, distinct, self._limits))
                done: asyncio.Queue[CandidateSet | BaseException] = asyncio.Queue()
                workers = runner.run(self._start(session, iter(distinct), done, tally))
                for _ in distinct:
                    one = runner.run(done.get())
                    if isinstance(one, BaseException):
                        raise one
                    yield one
                del workers
            finally:
                runner.run(session.close())
        self.notes.usage |= _usage(session)
        for remark in _remarks(session, tally, self._store):
            self.notes.remark(f"{self._name}: {remark}")

    async def _start(
        self, session: Session, todo: Iterator[Query], done: asyncio.Queue[CandidateSet | BaseException], tally: _Tally
    ) -> list[asyncio.Task[None]]:
        async def work() -> None:
            try:
                for query in todo:
                    await asyncio.sleep(0)  # answers from the store alone would hold up all others
                    done.put_nowait(await self._answer(session, query, tally))
            except Exception as error:  # raised where the results are read
                done.put_nowait(error)

        return [asyncio.create_task(work()) for _ in range(self._limits.concurrency)]

    async def _answer(self, session: Session, query: Query, tally: _Tally) -> CandidateSet:
        relation, style = self._relations[query.relation], self._asking.plan(query).style
        turn = self._asking.second_turn(query, told(self._passages.get(query, ())))
        parts: list[Sequence[Reply | None]] = []
        for part, whole in enumerate(self._prompts(query)):
            shown = [whole]  # the last of them is what is answered
            replies = await session.draws(self._draws(query, whole), self._shorter(query, part, shown))
            final = await self._again(session, query, shown[-1], turn, replies) if turn else replies
            parts.append([await self._repaired(session, query, draw, reply) for draw, reply in enumerate(final)])
        one = united([candidates(query, relation, style, replies, self._name) for replies in parts or ([None],)])
        said = [reply for replies in parts for reply in replies if reply]
        tally.count(one, said, relation if self._schema else None)
        return one

    async def _again(
        self, session: Session, query: Query, prompt: Prompt, turn: str, replies: Sequence[Reply | None]
    ) -> list[Reply | None]:
        """What each draw is answered with when told more; a draw that said nothing is not asked again."""
        final: list[Reply | None] = []
        for draw, reply in enumerate(replies):
            if reply is None or reply.finish in WITHHELD or not reply.is_answer:
                final.append(reply)
            else:
                final += await session.draws([self._draws(query, prompt.followed(reply.text, turn))[draw]])
        return final

    async def _repaired(self, session: Session, query: Query, draw: int, reply: Reply | None) -> Reply | None:
        """A draw, or where it is no answer and the style says how to ask for it as a list, what that brought."""
        relation, style = self._relations[query.relation], self._asking.plan(query).style
        prompt = self._asking.repair(query, reply.text) if reply else None
        if prompt is None or not broken(query, relation, style, reply):
            return reply
        (mended,) = await session.draws([self._draws(query, prompt)[draw]])
        return mended if mends(query, relation, style, mended) else reply

    def _shorter(self, query: Query, part: int, shown: list[Prompt]) -> Iterator[list[Call]]:
        """The calls of ever shorter prompts, each of which is noted when it is come to."""
        for prompt in self._asking.shorter(query, told(self._passages.get(query, ())), part):
            shown.append(prompt)
            yield self._draws(query, prompt)

    async def _look_ahead(self, session: Session, queries: Sequence[Query]) -> None:
        """Say what will not fit the server, before anything is sent."""
        calls = (self._draws(query, prompt)[0] for query in queries for prompt in self._prompts(query))
        over, count = await session.look_ahead(calls)
        if over:
            log.warning(
                f"{self._name}: {over} of {count} prompts leave no room for an answer in the server's context of "
                f"{session.window.tokens} tokens: those whose shots say fit = true are shown fewer examples"
            )

    def _calls(self, query: Query) -> list[Call]:
        return [call for prompt in self._prompts(query) for call in self._draws(query, prompt)]

    def _prompts(self, query: Query) -> list[Prompt]:
        """None for a subject without a name, about which nothing can be asked, and none before its context is there."""
        if not query.subject.strip() or (self._context and query not in self._passages):
            return []
        return self._asking.prompts(query, told(self._passages.get(query, ())))

    def _draws(self, query: Query, prompt: Prompt) -> list[Call]:
        """One call per draw."""
        schema = answer_schema(self._relations[query.relation].kind) if self._schema else None
        plan = self._asking.plan(query)
        return calls(self._server, plan.sampling, plan.style.stops, prompt, schema)


class _Tally:
    """What became of all draws."""

    def __init__(self) -> None:
        self.states: Counter[State] = Counter()
        self.withheld = self.shapeless = self.unread = 0
        self.blank: Counter[str] = Counter()
        self.unanswered: list[Query] = []

    def count(self, found: CandidateSet, replies: Sequence[Reply], schema_of: Relation | None) -> None:
        """Count one query's draws. schema_of: the relation whose schema was asked for."""
        self.states.update(found.draws)
        withheld = sum(reply.finish in WITHHELD for reply in replies)
        blank = [reply.finish for reply in replies if not reply.is_answer and not reply.failed]
        self.withheld += withheld
        self.blank.update(blank)
        unread = sum(state in (State.UNPARSED, State.TRUNCATED) for state in found.draws)
        self.unread += max(unread - withheld - len(blank), 0)
        if schema_of is not None:
            self.shapeless += sum(not keeps_schema(one.text, schema_of.kind) for one in replies)
        if State.MISSING in found.draws:
            self.unanswered.append(found.query)


def _usage(session: Session) -> dict[str, Any]:
    """Tokens of all answers, stored ones included, and what this run asked and spent."""
    told = {"prompt_tokens": session.tokens[0], "completion_tokens": session.tokens[1], "from_store": session.replayed}
    return told | session.budget.spent


def _remarks(session: Session, tally: _Tally, store: Store) -> Iterator[str]:
    """What a person should know about a run, in sentences."""
    budget, cost = session.budget, session.budget.cost
    price = "" if cost is None else f", cost {cost:.4f}"
    yield (
        f"{budget.requests} requests, {session.replayed} answers from the store, {budget.prompt_tokens} prompt and "
        f"{budget.completion_tokens} answer tokens{price}"
    )
    if tally.withheld:
        yield (
            f"{tally.withheld} draws were refused by the model or a content filter: they count as no answer, and are "
            f"kept; {PRUNE}"
        )
    if tally.unread:
        yield f"{tally.unread} draws hold no answer that can be read: they are kept; {PRUNE}"
    if tally.blank:
        ends = ", ".join(f"{count} ended with {end!r}" for end, count in sorted(tally.blank.items()))
        yield f"{tally.blank.total()} draws say nothing ({ends}): they are not kept, so that the next run asks again"
    if session.dropped:
        yield f"{session.dropped} rows of {store.path} were no answers: dropped, and asked for again"
    yield from store.remarks
    if tally.shapeless:
        yield f"{tally.shapeless} answers do not keep the JSON schema: they were read as plain text"
    if refused := sorted(session.offers.refused):
        yield f"the server takes no {' and '.join(refused)}: asked without"
    elif not session.offers.several:
        yield "the server ignores n: each draw was asked for alone"
    if session.shortened:
        yield f"{session.shortened} prompts were shown fewer examples, to fit the server's context"
    if session.too_long:
        yield (
            f"{session.too_long} prompts exceed the server's context: say fit = true in the recipe's table shots, so "
            "that they are shown fewer examples, or have the server read more tokens"
        )
    if tally.unanswered:
        first = tally.unanswered[0]
        lack = "its context is missing" if first.subject.strip() else "no subject"
        why = session.stopped or next((reason for reason, _ in session.failures.most_common(1)), lack)
        yield (
            f"{len(tally.unanswered)} queries lack answers ({why}), first ({first.subject!r}, {first.relation!r}); "
            f"run again to go on from {store.path}"
        )
