"""The generator over a language model: from queries to conversations, and from their replies to candidates.

The model writes its answers, or ranks the known objects of a relation. Every back end is used in the same way.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Annotated, Any, ClassVar

from lmkbc.answer.clean import Clean
from lmkbc.ask.builder import PromptBuilder, PromptSettings
from lmkbc.ask.context import ContextSettings, Provider, located, provider, read_corpus
from lmkbc.ask.examples import read_bank
from lmkbc.errors import counted, refuse
from lmkbc.generate.access import is_given, open_model
from lmkbc.generate.conversation import Conversation
from lmkbc.generate.draws import answer_tokens
from lmkbc.generate.option_ranking import CandidateRanking, RankingGenerator
from lmkbc.generate.recorded import replayed
from lmkbc.generate.recorded_file import LONGEST
from lmkbc.generate.replay import Replay
from lmkbc.generate.spec import GeneratorQuestions, GeneratorSpec, Relations, check_names
from lmkbc.generate.verify import Check, Verifying
from lmkbc.models.base import (
    CUT_OFF,
    LOCAL_EXTRAS,
    WITHHELD,
    Dialogue,
    LanguageModel,
    Message,
    Outcome,
    PlannedRequest,
    Prompt,
    Reply,
    Request,
    next_requests,
)
from lmkbc.models.identity import model_name, same_model
from lmkbc.models.reference import ModelReference
from lmkbc.notes import Notes
from lmkbc.relation import OTHERS
from lmkbc.session.run import ModelRun, Run
from lmkbc.settings import ReadBy
from lmkbc.types import CandidateSet, Example, Generator, Query, State

PRUNE = "'lmkbc store prune --model NAME' drops what was kept of a model, to have it asked again"
"""Advice on stored answers that cannot be used."""
LONGER = "a larger sampling.max_tokens in the recipe leaves room, and asks again what was answered with the old limit"
"""Advice on answers that end at their longest length."""
SOONER = (
    "sooner than at sampling.max_tokens, so the server has a limit of its own, on an answer or on its context: raise "
    "it there"
)
"""Advice on answers that end before their longest length."""
UNREADABLE = State.UNPARSED, State.TRUNCATED
"""States of draws that have a text without an answer."""


VERIFIED = ReadBy(
    "a rule such as 'verified', or thresholds tuned with its scores,",
    lambda *tables: tables[-1].select.reads_verification,
)


@dataclass(frozen=True, kw_only=True)
class LanguageModelSpec(ModelReference, PromptSettings, GeneratorSpec):
    """The table of a generator over a language model.

    ranking: rank the known objects of a relation; without it, the model writes its answers.
    context: text about each subject for the prompt.
    verify: fact verification; none if not given.
    clean: whether to bring names into the relation's shape; "spellings" changes only names whose spelling the shape
    lists.
    """

    ranking: CandidateRanking | None = None
    clean: Clean = True
    context: ContextSettings = field(default_factory=ContextSettings)
    verify: Annotated[Check | None, VERIFIED] = None
    REMOVED: ClassVar[Mapping[str, str]] = {
        **ModelReference.REMOVED,
        "closed_book": "a recipe with a context reads text, any other does not",
    }
    talk: ClassVar[type[Conversation]] = Conversation
    """Class of its conversations, which a system's own generator may replace."""

    def __post_init__(self) -> None:
        """Raise ValueError for contradictory settings."""
        ModelReference.__post_init__(self)
        PromptSettings.__post_init__(self)
        refuse(
            (
                self.ranking is not None and self.chained,
                "prompt.steps are asked of a model that writes: a ranking has none",
            ),
        )

    def check(self, relations: Relations) -> None:
        """Raise InputError for an unknown relation."""
        super().check(relations)
        check_names(sorted(self.framing.tables.keys() - {OTHERS}), relations, self.framing.name)
        check_names(self.relations, relations, f"generator {self.component!r}: relations")
        self.context.check(relations, f"generator {self.component!r}: context")
        if self.verify:
            self.verify.check(relations, f"generator {self.component!r}: verify")

    def check_files(self, relations: Relations) -> None:
        """Open the files of context and of examples. InputError for one that cannot be read."""
        if self.context.reads and self.context.path != "from":
            read_corpus(Path(self.context.path))
        for file in filter(None, dict.fromkeys(self.about(name)[1].path for name in ("", *self.relations))):
            read_bank(file, relations, {})

    def sources(self, run: Run, notes: Notes) -> Iterator[tuple[str, Generator]]:
        """Yield the generator, which already names its draws by the table's name."""
        yield self.name or self.component, self.open(run, notes)

    def questions(self, run: Run, notes: Notes) -> Iterator[GeneratorQuestions]:
        """Yield all its questions that do not depend on answers."""
        for name, generator in self.opened(run, notes):
            yield GeneratorQuestions(name, self, generator.generate)

    @property
    def is_bounded(self) -> bool:
        """Return whether the recipe limits its answers, and so what may follow them."""
        if self.ranking is not None:
            return self.verify is None
        samplings = [self.about(name)[2] for name in ("", *self.relations)]
        samplings += [step.sampling(self.sampling) for style in self.styles for step in style.steps if step.ask]
        return all(sampling.max_tokens for sampling in samplings)

    def planner(
        self, run: Run, train: Sequence[Example] | None = None
    ) -> Callable[[Query, str], Iterator[PlannedRequest]]:
        """Return a function that yields all requests that may be sent about a query, in order; the first one is sent.

        Its second argument is the text that was found for the prompt. train: other examples than the run's train split.
        """
        examples = run.train if train is None else train
        asking = self.asking(run, examples)
        conversation = self.talk(asking, run.relations, "", None, Notes(), clean=self.clean)
        check = self.verify and self.verify.open(None, run.relations, examples)

        def planned(query: Query, context: str) -> Iterator[PlannedRequest]:
            yield from conversation.plan(query, context)
            if check:
                style, sampling = asking.plan(query).style, asking.plan(query).sampling
                replies = sampling.samples * math.prod(step.branches for step in style.steps)
                longest = answer_tokens(sampling)
                objects = self.ranking.max if self.ranking else replies * style.most_objects(longest)
                yield from check.plan(query, objects, replies * longest)

        return planned

    @property
    def called(self) -> tuple[str, ...]:
        """Return its name, its model, and the model without the owner."""
        names = self.name, self.model, (self.model or "").rpartition("/")[2]
        return tuple(dict.fromkeys(filter(None, names))) or (self.component,)

    @property
    def reads_files(self) -> bool:
        """Return whether the given files are the context of the prompts."""
        return self.context.path == "from"

    @property
    def asks_model(self) -> bool:
        """Return whether it asks for answers, not for likelihoods."""
        return self.ranking is None

    @property
    def learns(self) -> bool:
        """Return whether it ranks the objects of labelled rows."""
        return self.ranking is not None

    def open(self, run: Run, notes: Notes) -> Generator:
        """Return the generator over the model or over recorded answers, with the verifier around it."""
        model = cache(lambda: self.model_of(run, notes))

        def asks() -> Generator:
            return self._over(model(), run, notes)

        given = run.answers is None or is_given(self, run)
        generator = asks() if run.answers is None else self._replay(run, notes, asks if given else None)
        if self.verify and not given:
            notes.remark("no model is given that could verify facts: those without a recorded score stay unverified")
        if not self.verify or not given:
            return generator
        return Verifying(generator, self.verify.open(model(), run.relations, run.train, notes), notes)

    def offer(self, run: ModelRun, relations: Relations) -> dict[str, Any]:
        """Return what the server of the model offers to the recipe's requests, and what the recipe asks for."""
        model: Any = self.model_of(run, Notes())
        samples = max(sampling.samples for _, _, sampling in self.variants)
        style, _, sampling = self.about("")
        request = Request(
            Prompt((), (Message("user", "Say yes."),), style.form),
            (0,),
            replace(sampling, max_tokens=1, logprobs=True),
            style.stops,
            schema=style.schema(next(iter(relations.values()))),
        )
        found = model.examine(samples, request)
        return {
            "model": model.name,
            "served": any(same_model(model.name, name) for name in found["lists"]),
            "samples": samples,
            **found,
        }

    def model_of(self, run: ModelRun, notes: Notes) -> LanguageModel:
        """Return the opened model."""
        tables = self.sampling.extra, *(item.sampling.get("extra", {}) for item in self.relations.values())
        extras = {f"sampling.extra.{name}" for extra in tables for name in extra if name not in LOCAL_EXTRAS}
        return open_model(
            self,
            run,
            notes,
            completion=self.prompt.form == "completion",
            extra=self.sampling.extra,
            of_servers=extras,
        )

    def _over(self, model: LanguageModel, run: Run, notes: Notes) -> Generator:
        """Return the generator over an opened model."""
        name, asking = self.name or model.name, self.asking(run)
        if self.ranking:
            return RankingGenerator(model, asking, run.edition, run.relations, run.labelled, self.ranking, name)
        conversation = self.talk(
            asking, run.relations, name, self.provider(run), notes, clean=self.clean, model=model_name(model.name)
        )
        return AnswerGenerator(model, conversation, name, notes)

    def _replay(self, run: Run, notes: Notes, ask: Callable[[], Generator] | None) -> Replay:
        """Return the generator over recorded answers, read like those of the model."""
        name = self.name or model_name(run.model or self.model or "") or self.component
        conversation = self.talk(self.asking(run), run.relations, name, None, Notes(), clean=self.clean)

        def read(query: Query, parts: Sequence[Sequence[Reply | None]], _: str) -> CandidateSet:
            return conversation.candidates(query, parts)

        files = run.answers
        return Replay(replayed(files, run, notes, clean=self.clean, read=read, name=name) if files else None, ask)

    def asking(self, run: Run, train: Sequence[Example] | None = None) -> PromptBuilder:
        """Return the prompts for the run's relations, with examples from train.

        train: other examples than the run's train split.
        """
        self.framing.check(self.asked(run), run.edition.name)
        examples = run.train if train is None else train
        return PromptBuilder(run.edition, run.relations, examples, self, run.workspace.relations)

    def provider(self, run: Run) -> Provider | None:
        """Return the provider of passages: the user's documents, else what the table names; None for none."""
        return run.documents or provider(located(self.context, run.files), run.relations, run.cache)


class AnswerGenerator:
    """Proposes the answers of a language model: draw k of the model "m" is the source "m#k".

    name: name of its sources. notes: where remarks and passages are recorded.
    """

    def __init__(
        self,
        model: LanguageModel,
        conversation: Conversation,
        name: str,
        notes: Notes | None = None,
    ) -> None:
        self.notes = notes or Notes()
        self._model, self._conversation, self._name = model, conversation, name

    def generate(self, queries: Sequence[Query]) -> Iterator[CandidateSet]:
        """Yield one set per distinct query, in the order of the answers."""
        distinct = list(dict.fromkeys(queries))
        self._conversation.begin(distinct)
        tally, outcome = _Tally(), Outcome()
        for _, candidates in self._model.complete({query: self._counted(query, tally) for query in distinct}, outcome):
            yield candidates
        for remark in (*outcome.remarks, *tally.remarks(outcome.lost, self._model.place, stopped=self.notes.stopped)):
            self.notes.remark(f"{self._name}: {remark}")

    def _counted(self, query: Query, tally: _Tally) -> Dialogue[CandidateSet]:
        """Hold the conversation about a query, and count its replies."""
        dialogue = self._conversation.dialogue(query)
        received: list[Reply] = []
        requests, candidates = next_requests(dialogue)
        while candidates is None:
            responses = yield requests
            for request, response in zip(requests, responses, strict=True):
                replies = [*filter(None, response.replies)]
                received += replies
                tally.measure(replies, request.sampling.max_tokens or 0)
                for reply in replies:
                    self.notes.live(query, reply.text)
            requests, candidates = next_requests(dialogue, responses)
        tally.count(candidates, received)
        return replace(candidates, tokens=sum(one.prompt_tokens + one.completion_tokens for one in received))


class _Tally:
    """Draws by what became of them: number by query, the first that cannot be read, and the ends of blank ones."""

    def __init__(self) -> None:
        self._draws: dict[str, Counter[Query]] = {}
        self._unread = ""
        self._ends: Counter[str] = Counter()
        self._unanswered, self._partial = list[Query](), list[Query]()
        self._advice = LONGER

    def measure(self, replies: Sequence[Reply], most: int) -> None:
        """Find out whether one that was cut had fewer tokens than the most that were asked for."""
        cut = sum(reply.finish == CUT_OFF[0] for reply in replies)
        if 0 < sum(reply.completion_tokens for reply in replies) < most * cut:
            self._advice = SOONER

    def count(self, candidates: CandidateSet, replies: Sequence[Reply]) -> None:
        """Count one query's draws."""
        withheld = sum(reply.finish in WITHHELD for reply in replies)
        blank = [reply.finish for reply in replies if not reply.is_answer and not reply.failed]
        unread = sum(map(UNREADABLE.__contains__, candidates.draws))
        counts = {
            "withheld": withheld,
            "cut": candidates.draws.count(State.CUT),
            # without its steps, a draw is not asked
            "unread": max(min(unread, len(replies)) - withheld - len(blank), 0),
            "blank": len(blank),
            "longest": sum(reply.finish == CUT_OFF[0] for reply in replies),
        }
        for name in filter(counts.__getitem__, counts):
            self._draws.setdefault(name, Counter())[candidates.query] = counts[name]
        if counts["unread"] and not self._unread and len(replies) == len(candidates.draws):
            read = zip(candidates.draws, replies, strict=True)
            texts = (one.text for state, one in read if state in UNREADABLE and one.is_answer)
            self._unread = f", such as {next(filter(None, texts), '')[:LONGEST]!r}"
        self._ends.update(blank)
        if State.MISSING in candidates.draws:
            (self._unanswered if candidates.failed else self._partial).append(candidates.query)

    def remarks(self, lost: str, place: str, *, stopped: bool) -> Iterator[str]:
        """Yield sentences for the user about the draws.

        lost: why answers are missing. place: of the store. stopped: whether the run was stopped.
        """
        ends = ", ".join(f"{count} ended with {end!r}" for end, count in sorted(self._ends.items()))
        kinds = {
            "withheld": f"refused by the model or a content filter: they count as no answer, and are kept; {PRUNE}",
            "cut": "cut off within a list: the objects before the cut count, and they are kept",
            "unread": f"without an answer that can be read{self._unread}: they are kept; {PRUNE}",
            "blank": f"without any text, or cut off within thoughts ({ends}): they are not kept, so that the next run "
            "asks them again",
            "longest": f"that ended where the length was limited: {self._advice}",
        }
        for name, what in kinds.items():
            draws = self._draws.get(name)
            if draws and (name != "longest" or self._draws.keys() & {"cut", "unread", "blank"}):
                yield f"{counted(len(draws), 'query has', 'queries have')} {counted(draws.total(), 'draw')} {what}"
        unanswered = [*self._unanswered, *(self._partial if stopped else ())]
        for queries, lack in ((unanswered, "answers"), (() if stopped else self._partial, "some draws")):
            if queries:
                yield (
                    f"{counted(len(queries), 'query lacks', 'queries lack')} {lack} ({lost or 'no subject'}), first "
                    f"({queries[0].subject!r}, {queries[0].relation!r}); run again to go on from {place}"
                )
