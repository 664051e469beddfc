"""Estimate of a run: its requests to language models, their cost and duration. Nothing is asked or written."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Any, cast

import msgspec

from lmkbc.ask.context import as_context, gathered
from lmkbc.errors import InputError
from lmkbc.files.reader import whole
from lmkbc.generate.access import asked_name
from lmkbc.generate.language_model import LanguageModelSpec
from lmkbc.generate.spec import GeneratorQuestions
from lmkbc.models.answers import CallCounter, CountingModel
from lmkbc.models.base import PlannedRequest
from lmkbc.models.identity import same_model
from lmkbc.models.reference import ModelReference
from lmkbc.models.server.refusal import ServerError
from lmkbc.models.store_place import default_place
from lmkbc.notes import Notes, Replies
from lmkbc.plan import Plan
from lmkbc.progress import Report, silent
from lmkbc.run.pipeline import BLOCK
from lmkbc.session.run import Run
from lmkbc.types import CandidateSet, Query, State


@dataclass(frozen=True, slots=True, kw_only=True)
class GeneratorEstimate:
    """The estimate of one generator. cost: upper bound from its tokens, None without prices.

    asked: counts of requests; None if it sends no text to a language model. bounded: whether its answers have a limit;
    else their length, and what follows them, is a guess.
    """

    name: str
    asked: CallCounter | None
    cost: float | None = None
    bounded: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """The estimate of a run.

    seconds: of the first requests, by the rate of an earlier run, `timed`; None if no earlier run has a rate. rated:
    number of requests of that run.
    links: whether a model is also asked to link or to group names, which is not counted.
    """

    queries: int
    generators: tuple[GeneratorEstimate, ...]
    seconds: float | None
    timed: Path | None
    rated: int = 0
    links: bool = False

    @property
    def is_bound(self) -> bool:
        """Return whether the run cannot cost more, as far as its tokens are known."""
        return not self.links and all(one.bounded for one in self.generators)

    def total(self, name: str) -> int:
        """Return the sum of a count over all generators."""
        return sum(getattr(one.asked, name) for one in self.generators if one.asked)

    @property
    def cost(self) -> float | None:
        """Return the sum of known costs; None if no cost is known."""
        costs = [one.cost for one in self.generators if one.cost is not None]
        return math.fsum(costs) if costs else None


class _NoNotes(Notes):
    """Notes that store nothing, for a dry run."""

    def remark(self, sentence: str) -> None:
        """Ignore a remark."""

    def replied(self, query: Query, replies: Replies) -> None:
        """Ignore replies."""


def estimate(plan: Plan, queries: Iterable[Query], timings: Iterable[Path] = (), report: Report = silent) -> Estimate:
    """Compose the requests of a run, look them up in the store, and count those that are missing.

    timings: `timing.json` files of earlier runs of the system. The first one with requests gives the rate. InputError
    for input that the run would also refuse.
    """
    run, recipe = plan.run, plan.recipe
    default_place(run.servers.get("store"), offline=run.offline)
    counter, whole = CallCounter(), tuple(dict.fromkeys(queries))
    dry = replace(run, spellings=recipe.clean.spellings, offline=True, dry=counter, in_memory={}, budgets=[])
    with suppress(ServerError):  # one that cannot be asked which model it serves is no obstacle yet
        replace(plan, run=replace(dry, offline=run.offline)).served()  # refuses what the run would refuse
    generators = []
    for planned in plan.generators:
        own, notes = planned.reads(dry), _NoNotes()
        questions = list(planned.spec.questions(own, notes))
        if not questions:
            generators.append(GeneratorEstimate(name=planned.spec.called[0], asked=None))
        for question in questions:
            lacking, bounded = list(_ask(question, whole, report)), True
            if counter.requests and isinstance(question.table, LanguageModelSpec):
                bounded = question.table.is_bounded
                _follow(question.table, own, notes, lacking)
            counts = counter.taken()
            cost = _cost(run, question.table, counts)
            generators.append(GeneratorEstimate(name=question.name, asked=counts, cost=cost, bounded=bounded))
    seconds, timed, rated = _time(sum(one.asked.requests for one in generators if one.asked), timings)
    links = bool(recipe.link.ask or recipe.pool.asks)
    return Estimate(
        queries=len(whole), generators=tuple(generators), seconds=seconds, timed=timed, rated=rated, links=links
    )


def _ask(question: GeneratorQuestions, queries: Sequence[Query], report: Report) -> Iterator[Query]:
    """Ask about all queries, and yield those that lack an answer."""
    stream, done = iter(queries), 0
    report(f"{question.name} (queries)", 0, len(queries))
    while block := tuple(islice(stream, BLOCK)):
        for found in question.ask(block):
            if isinstance(found, CandidateSet) and State.MISSING in found.draws and found.query.subject.strip():
                yield found.query
        done += len(block)
        report(f"{question.name} (queries)", done, len(queries))


def _follow(spec: LanguageModelSpec, run: Run, notes: Notes, lacking: Sequence[Query]) -> None:
    """Count what may follow the first request about each query."""
    model, planned = cache(lambda: cast(CountingModel, spec.model_of(run, notes))), spec.planner(run)
    for query in lacking:
        first, *others = planned(query, as_context(notes.passages.get(query, ())))
        for request in others:
            if request.name != first.name:
                model().foresee(request)


Foreseen = tuple[str, Query, list[PlannedRequest]]
"""Generator and the model that it asks, query, and all requests that may be sent about it."""


def foreseen(plan: Plan, queries: Sequence[Query]) -> Iterator[Foreseen]:
    """Yield the requests of all generators that ask a language model, which need not be there."""
    run = plan.run
    for spec in plan.recipe.parts:
        if not isinstance(spec, LanguageModelSpec):
            continue
        planned, asked = spec.planner(run), [query for query in queries if query.relation in spec.asked(run)]
        reads = spec.provider(run)
        passages = gathered(reads, asked) if reads else {}
        model = asked_name(spec, run) or spec.component
        name = f"{spec.name} ({model})" if spec.name and not same_model(model, spec.name) else model
        for query in asked:
            yield name, query, list(planned(query, as_context(passages.get(query, ()))))


def _cost(run: Run, table: object, counts: CallCounter) -> float | None:
    """Return the cost of the tokens, with answers of full length; None for a local model, and without prices."""
    prices = run.servers.get("prices") or (table.prices if isinstance(table, ModelReference) else None)
    if prices is None or not counts.estimated:
        return None
    return (counts.prompt_tokens * prices[0] + counts.answer_tokens * prices[1]) / 1e6


class _Timing(msgspec.Struct):
    """Fields of an earlier run's `timing.json`. That of a build lists usage per level."""

    seconds: float = 0.0
    usage: dict[str, dict[str, Any]] | list[dict[str, dict[str, Any]]] = {}


def _time(requests: int, timings: Iterable[Path]) -> tuple[float | None, Path | None, int]:
    """Return the seconds for some requests, the file with the rate, and the number of requests that it is of.

    A run without requests gives no rate.
    """
    for path in timings:
        try:
            timing = msgspec.json.decode(whole(path), type=_Timing)
        except (InputError, msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            continue  # not a run, or one from before timings existed
        levels = timing.usage if isinstance(timing.usage, list) else [timing.usage]
        counts = [used.get("calls") or used.get("requests") or 0 for level in levels for used in level.values()]
        asked = sum(count for count in counts if isinstance(count, int | float))
        if asked > 0 and timing.seconds > 0:
            return timing.seconds / asked * requests, path, int(asked)
    return None, None, 0
