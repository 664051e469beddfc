"""Execution of chains, for any back end: the steps before the query, and the slots that each draw gets from them.

A chain is a generator function that yields requests and receives replies. A server can thus be asked about many queries
at a time, and a local model about all at once. Every call is an ordinary one and is stored like others.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial

from lmkbc.answer.steps import read, verdict
from lmkbc.ask.plan import Asking, Slots
from lmkbc.ask.steps import VERDICTS, Step
from lmkbc.models.base import Answered, Prompt, Reply, Request, Talk
from lmkbc.relation import Relation
from lmkbc.types import Query

DENIED = Reply("[]")
"""Reply of a draw without objects: its gate says no, or no item is left."""

UNREAD = Reply("")
"""Reply of a draw whose step cannot be read, and of a part that only other draws have."""


Course = list[list[Slots] | Reply | None]
"""State of each draw: the slots of each next question, its final reply, or None for a failed draw."""


class Chain:
    """The steps of one query. nil_probabilities: "existence" step -> share of its draws that say no."""

    def __init__(self, asking: Asking, relation: Relation, query: Query) -> None:
        self._asking, self._relation, self._query = asking, relation, query
        self._plan = asking.plan(query)
        self.nil_probabilities: dict[str, float] = {}

    def course(self) -> Talk[Course]:
        """Ask all steps in order, and return the state of each draw."""
        course: Course = [[{}] for _ in range(self._plan.sampling.samples)]
        for step in self._plan.style.steps:
            if step.items:
                course = self._onwards(course, step, partial(_given, step))
            elif step.parse_as == "existence":
                yield from self._weighed(course, step)
            else:
                course = yield from self._taken(course, step)
        return course

    def _taken(self, course: Course, step: Step) -> Talk[Course]:
        """Return the states after a step, which is asked for every draw, or once if all draws share its answer."""
        shared = step.sampling(self._plan.sampling).samples == 1
        wanted = together(
            (self._asking.step(self._query, step, slots), 0 if shared else draw)
            for draw, branches in enumerate(course)
            for slots in (branches if isinstance(branches, list) else ())
        )
        replies = yield from self._replies(wanted, step)

        def items(draw: int, slots: Slots) -> tuple[str, ...] | Reply | None:
            reply = replies[self._asking.step(self._query, step, slots), 0 if shared else draw]
            if reply is None:
                return None
            if step.parse_as == "gate":
                holds = verdict(reply)
                return UNREAD if holds is None else ("",) if holds else DENIED
            found = read(step, reply, self._relation, self._query.subject)
            return UNREAD if found is None else found

        return self._onwards(course, step, items)

    def _onwards(
        self, course: Course, step: Step, items: Callable[[int, Slots], tuple[str, ...] | Reply | None]
    ) -> Course:
        """Return the states after a step with the given items.

        A draw fails if one of its questions fails. It is unread if no item can be read.
        """
        after: Course = []
        for draw, branches in enumerate(course):
            if not isinstance(branches, list):
                after.append(branches)
                continue
            found = [(slots, items(draw, slots)) for slots in branches]
            further = [one for slots, its in found if isinstance(its, tuple) for one in self._filled(slots, its, step)]
            ends = [its for _, its in found if not isinstance(its, tuple)]
            if None in ends:
                after.append(None)
            elif further:
                after.append(further)
            else:
                after.append(UNREAD if UNREAD in ends else DENIED)
        return after

    def _filled(self, slots: Slots, items: Sequence[str], step: Step) -> Iterator[Slots]:
        if step.parse_as in VERDICTS:
            yield slots
        elif step.items or step.each:
            yield from ({**slots, step.name: item} for item in items)
        else:
            yield {**slots, step.name: "; ".join(items) or self._plan.style.null}

    def _weighed(self, course: Course, step: Step) -> Talk[None]:
        """Record how many draws of an existence step say no. If a call fails, every draw fails."""
        places = range(step.sampling(self._plan.sampling).samples)
        wanted = {self._asking.step(self._query, step, {}): list(places)}
        replies = yield from self._replies(wanted, step)
        if None in replies.values():
            course[:] = [None] * len(course)
        verdicts = [holds for reply in replies.values() if reply and (holds := verdict(reply)) is not None]
        if verdicts:
            self.nil_probabilities[step.name] = verdicts.count(False) / len(verdicts)

    def _replies(
        self, wanted: Mapping[Prompt, Sequence[int]], step: Step
    ) -> Talk[dict[tuple[Prompt, int], Reply | None]]:
        sampling = step.sampling(self._plan.sampling)
        requests = [Request(prompt, tuple(draws), sampling, ("\n",)) for prompt, draws in wanted.items()]
        return {
            (request.prompt, draw): reply
            for request, one in zip(requests, (yield from asking(requests)), strict=True)
            for draw, reply in zip(request.draws, one.replies, strict=True)
        }


def _given(step: Step, _: int, __: Slots) -> tuple[str, ...]:
    return step.items


def asking(requests: list[Request]) -> Talk[list[Answered]]:
    """Return the answers to requests; [] without a call if there are no requests.

    A first draw with its own temperature becomes a separate request.
    """
    each = [_parted(request) for request in requests]
    answered = iter((yield [part for parts in each for part in parts]) if requests else [])
    answers = [[next(answered) for _ in parts] for parts in each]
    return [Answered(its[0].prompt, tuple(reply for one in its for reply in one.replies)) for its in answers]


def _parted(request: Request) -> list[Request]:
    """Return the parts of a request: its first draw separately if it has its own temperature."""
    sampling, (first, *others) = request.sampling, request.draws
    if sampling.first_temperature is None:
        return [request]
    rest = replace(sampling, first_temperature=None)
    if first != 0:
        return [replace(request, sampling=rest)]
    alone = replace(request, draws=(0,), sampling=replace(rest, temperature=sampling.first_temperature))
    return [alone, *([replace(request, draws=tuple(others), sampling=rest)] if others else [])]


def together(wanted: Iterable[tuple[Prompt, int]]) -> dict[Prompt, list[int]]:
    """Return prompt -> its draws, each once, in order."""
    draws: defaultdict[Prompt, dict[int, None]] = defaultdict(dict)
    for prompt, draw in wanted:
        draws[prompt][draw] = None
    return {prompt: list(its) for prompt, its in draws.items()}
