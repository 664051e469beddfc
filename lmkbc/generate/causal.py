"""The generator over a local causal model: queries -> prompts -> draws -> candidates."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from lmkbc.ask.context.passages import Provider
from lmkbc.ask.plan import Asking
from lmkbc.errors import counted
from lmkbc.generate.chain import Answered, Request, resumed
from lmkbc.generate.closed import ClosedGenerator, ClosedList
from lmkbc.generate.completer import CompleterSpec
from lmkbc.generate.conversation import Conversation, LanguageModelSpec, Opened
from lmkbc.generate.local import Local, LocalSettings
from lmkbc.generate.verify import Check
from lmkbc.models.answers import Store
from lmkbc.models.base import LOOP, LanguageModel, OptionScorer, Prompt, Reply
from lmkbc.models.causal.decode import Completion, Decoding
from lmkbc.models.causal.kept import KeptDraws
from lmkbc.models.causal.model import CausalModel
from lmkbc.models.causal.scorer import CausalScorer
from lmkbc.models.server.limits import GUESSED_ANSWER
from lmkbc.relation import Relation
from lmkbc.run.base import Run
from lmkbc.types import CandidateSet, Generator, Notes, Query

Key = TypeVar("Key")
Place = tuple[Query, int, int]
"""A query, which of the requests about it, and the first of the draws that are asked together."""
Asked = tuple[Prompt, Decoding]


@dataclass(frozen=True, kw_only=True)
class Causal(LocalSettings, LanguageModelSpec):
    """What the table of a generator over a local causal model may say.

    closed: score a list of known objects; where it is left out, the model writes its answers. base_url: a server that
    scores the list in place of a model of this machine; --base-url comes before it.
    """

    closed: ClosedList | None = None
    base_url: str | None = None

    def __post_init__(self) -> None:
        """ValueError for settings that contradict each other."""
        super().__post_init__()
        if self.base_url is not None and self.closed is None:
            raise ValueError("base_url is of closed lists: a server's model writes by component 'chat'")
        if self.closed is not None and self.chained:
            raise ValueError("prompt.steps are asked of a model that writes: closed lists are scored, and have none")

    @property
    def asks_model(self) -> bool:
        """Unless a list is scored: likelihoods are no answers."""
        return self.closed is None

    def is_given(self, run: Run) -> bool:
        """Whether a model is named with --model, or lies on this machine, or a server that scores is named."""
        return self.is_here(run) or bool(run.servers.base_url or self.base_url)

    def back_end(self, run: Run, notes: Notes) -> Opened:
        """The generator over the model or, of closed lists, the server, and what verifies for it."""
        served = self.closed is not None and (run.servers.base_url or self.base_url)
        return (self._served if served else self._here)(run, notes)

    def _here(self, run: Run, notes: Notes) -> Opened:
        """The generator over the model, and what asks that model whether a fact holds."""
        local, chat = self.local(run), self.prompt.form != "completion"
        notes.asked(local.name)

        def verifier(check: Check) -> LanguageModel:
            how = Decoding(draws=check.draws, temperature=check.heat, seed=check.seed)
            return local.scorer(how, chat=chat, notes=notes)

        if self.closed:
            return self._ranking(run, local.scorer(notes=notes), local.name), verifier
        return self._answering(run, local, notes), verifier

    def _served(self, run: Run, notes: Notes) -> Opened:
        """The same over a server, whose libraries a local model does without."""
        from lmkbc.generate.access import ServerSettings
        from lmkbc.models.server.option_scorer import ServerOptionScorer
        from lmkbc.models.server.scorer import ChatScorer

        settings = ServerSettings(model=self.model, base_url=self.base_url, revision=self.revision or "")
        access, plain = settings.access(run), self.prompt.form == "completion"
        notes.asked(access.server.name)

        def verifier(check: Check) -> LanguageModel:
            draws, heat = check.draws, check.heat
            return ChatScorer(
                access.server, access.session, completion=plain, draws=draws, temperature=heat, notes=notes
            )

        scorer = ServerOptionScorer(access.server, access.store, access.session, notes)
        return self._ranking(run, scorer, access.server.name), verifier

    def _answering(self, run: Run, local: Local, notes: Notes) -> Generator:
        return CausalGenerator(
            local.model,
            self.asking(run),
            run.relations,
            local.name,
            context=self.provider(run, local.scorer),
            store=local.store(),
            identity=local.identity,
            source=self.name,
            clean=self.clean,
            notes=notes,
        )

    def _ranking(self, run: Run, scorer: OptionScorer, model: str) -> Generator:
        how, source = self.closed or ClosedList(), self.name or model
        return ClosedGenerator(scorer, self.asking(run), run.edition, run.relations, run.train, how, source)


@dataclass(frozen=True, kw_only=True)
class CausalCompleter(LocalSettings, CompleterSpec):
    """A local model that another step asks."""

    def is_given(self, run: Run) -> bool:
        """Whether a model is named with --model, or lies on this machine."""
        return self.is_here(run)

    def open(self, run: Run, notes: Notes) -> CausalScorer:
        """The model."""
        local = self.local(run)
        notes.asked(local.name)
        return local.scorer(notes=notes)


class CausalGenerator:
    """Proposes what a local model answers: draw k of the model "m" is the source "m#k", or "source#k".

    context: what is told of a query in its prompt. identity: what tells this model from others of its name in the
    store, weights included. clean: bring names into the relation's shape. notes: where passages go, what was asked, and
    how many draws were no whole answers.
    """

    def __init__(
        self,
        model: CausalModel,
        asking: Asking,
        relations: Mapping[str, Relation],
        name: str,
        *,
        context: Provider | None = None,
        store: Store | None = None,
        identity: str = "",
        source: str = "",
        clean: bool = True,
        notes: Notes | None = None,
    ) -> None:
        self.notes = notes or Notes()
        self._source = source or name
        self._talk = Conversation(asking, relations, self._source, context, self.notes, clean=clean)
        self._model, self._draws = model, KeptDraws(store, name, identity)
        self._ends: Counter[str] = Counter()
        self._shortened = 0

    def _remarks(self) -> tuple[str, ...]:
        kinds = {
            "length": "cut off at max_tokens",
            LOOP: "stopped, since they only repeated themselves",
            "window": "not asked, since prompts exceed the model's window: say fit = true in the recipe's table shots, "
            "so that they are shown fewer examples, or give them less to read",
        }
        total = self._ends.total()
        ends = [f"{self._ends[k]} of {total} draws {why}" for k, why in kinds.items() if self._ends[k]]
        if self._shortened:
            shortened = counted(self._shortened, "prompt was", "prompts were")
            ends.append(f"{shortened} shown fewer examples, to fit the model's window")
        return tuple(f"{self._source}: {one}" for one in (*ends, *self._draws.remarks))

    def generate(self, queries: Sequence[Query]) -> Iterator[CandidateSet]:
        """One set per distinct query, in the order in which the model comes to them."""
        with self._model.usage.added(self.notes.usage):
            yield from self._sets(queries)
        for remark in self._remarks():
            self.notes.remark(remark)

    def _sets(self, queries: Sequence[Query]) -> Iterator[CandidateSet]:
        """All queries' talks side by side, so that what all of them ask next is asked together."""
        distinct = list(dict.fromkeys(queries))
        self._talk.begin(distinct)
        talks = {query: self._talk.talk(query) for query in distinct}
        answered: Iterable[tuple[Query, list[Answered] | None]] = ((query, None) for query in distinct)
        while True:
            asked: dict[Query, list[Request]] = {}
            for query, replies in answered:
                asked[query], candidates = resumed(talks[query], replies)
                if candidates is not None:
                    del asked[query]
                    yield candidates
            if not asked:
                return
            answered = self._round(asked)

    def _round(self, asked: Mapping[Query, Sequence[Request]]) -> Iterator[tuple[Query, list[Answered]]]:
        """The answers to what is asked about each query, which come in any order.

        Draws of a prompt that others do not share are asked alone, each with a seed of its own.
        """
        calls: dict[Place, Asked] = {}
        for query, requests in asked.items():
            for number, request in enumerate(requests):
                prompt, how = self._fitted(request)
                if request.draws == tuple(range(how.draws)):
                    calls[query, number, 0] = prompt, how
                    continue
                for draw in request.draws:
                    seed = how.seed + draw if how.temperature else how.seed
                    calls[query, number, draw] = prompt, replace(how, draws=1, seed=seed)
        lacking = Counter(query for query, *_ in calls)
        replies: dict[Place, Sequence[Reply | None]] = {}
        for place, its in self._answers(calls):
            query, *_ = place
            replies[place] = its
            self._ends.update(reply.finish if reply else "window" for reply in its)
            lacking[query] -= 1
            if not lacking[query]:
                answered = []
                for number, request in enumerate(asked[query]):
                    own = [one for draw in request.draws if (one := (query, number, draw)) in calls]
                    said = [reply for one in own for reply in replies.pop(one)]
                    answered.append(Answered(calls[own[0]][0], said))
                yield query, answered

    def _answers(self, asked: Mapping[Key, tuple[Prompt, Decoding]]) -> Iterator[tuple[Key, Sequence[Reply | None]]]:
        """The draws of each prompt, in any order."""
        waiting: defaultdict[Decoding, list[Key]] = defaultdict(list)
        kept: dict[Key, list[Reply]] = {}
        for key, (prompt, how) in asked.items():
            stored = self._draws.of(prompt, how)
            for reply in stored:
                self._model.usage.replayed(reply.prompt_tokens, reply.completion_tokens)
            if len(stored) == how.draws:
                yield key, stored
            else:
                kept[key] = stored
                waiting[replace(how, first=len(stored), draws=how.draws - len(stored))].append(key)
        for how, keys in waiting.items():
            for place, draws in self._model.complete([self._model.text(asked[key][0]) for key in keys], how):
                key = keys[place]
                replies = self._draws.with_new(asked[key][0], how, [self._reply(draw) for draw in draws])
                yield key, [*kept.pop(key), *replies]

    def _fitted(self, request: Request) -> Asked:
        """The prompt, with fewer examples where it leaves the window no room for an answer and the shots may be cut."""
        stops = request.stops if request.prompt.form == "completion" else ()
        how = Decoding.of(request.sampling, stops, lists=request.lists)
        answer = min(how.max_tokens, GUESSED_ANSWER)
        if self._model.fits(self._model.text(request.prompt), answer):
            return request.prompt, how
        shorter = (one for one in request.shorter() if self._model.fits(self._model.text(one), answer))
        if (found := next(shorter, None)) is not None:
            self._shortened += 1
        return found or request.prompt, how

    def _reply(self, draw: Completion) -> Reply | None:
        if draw.text is None:
            return None
        return Reply(
            draw.text,
            "stop" if draw.finished else LOOP if draw.looped else "length",
            prompt_tokens=draw.prompt_tokens,
            completion_tokens=draw.tokens,
            logprobs=list(draw.logprobs) or None,
        )
