"""Chains at work: the steps that come before a query is asked, whatever the back end, and what each draw goes on with.

What is wanted of a model is yielded, and its replies are sent in, so that a server asks about many queries at a time
and a local model about all at once. Every call is an ordinary one, with a place of its own in the store.
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
"""Reply of a draw that named nothing: its gate is closed, or no item is left."""

UNREAD = Reply("")
"""Reply of a draw whose step cannot be read, and in place of a part that only other draws have."""


Course = list[list[Slots] | Reply | None]
"""State of each draw: the slots of each next question, or its final reply, or None for a failed draw."""


class Chain:
    """The steps of one query. nil_probabilities: per "existence" step, the share of its draws that say no."""

    def __init__(self, asking: Asking, relation: Relation, query: Query) -> None:
        self._asking, self._relation, self._query = asking, relation, query
        self._plan = asking.plan(query)
        self.nil_probabilities: dict[str, float] = {}

    def course(self) -> Talk[Course]:
        """Ask step after step."""
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
        """Return the course after a step, which is asked for every draw, or once where draws share its answer."""
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
        """Return the course with a step's items. A draw fails as a whole; it is unread where no item can be read."""
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
        """Note how many draws of an existence step say no. If a call fails, every draw fails."""
        places = range(step.sampling(self._plan.sampling).samples)
        wanted = {self._asking.step(self._query, step, {}): list(places)}
        replies = yield from self._replies(wanted, step)
        if None in replies.values():
            course[:] = [None] * len(course)
        said = [holds for reply in replies.values() if reply and (holds := verdict(reply)) is not None]
        if said:
            self.nil_probabilities[step.name] = said.count(False) / len(said)

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
    """Return the answers to some requests; [] without asking if there are no requests.

    A first draw with a temperature of its own is a request of its own.
    """
    each = [_parted(request) for request in requests]
    answered = iter((yield [part for parts in each for part in parts]) if requests else [])
    answers = [[next(answered) for _ in parts] for parts in each]
    return [Answered(its[0].prompt, tuple(reply for one in its for reply in one.replies)) for its in answers]


def _parted(request: Request) -> list[Request]:
    """Return a request as those that it takes: its first draw by itself if that is drawn otherwise."""
    sampling, (first, *others) = request.sampling, request.draws
    if sampling.first_temperature is None:
        return [request]
    rest = replace(sampling, first_temperature=None)
    if first != 0:
        return [replace(request, sampling=rest)]
    own = replace(request, draws=(0,), sampling=replace(rest, temperature=sampling.first_temperature))
    return [own, *([replace(request, draws=tuple(others), sampling=rest)] if others else [])]


def together(wanted: Iterable[tuple[Prompt, int]]) -> dict[Prompt, list[int]]:
    """Prompt -> the draws that are wanted of it, each once, in order."""
    draws: defaultdict[Prompt, dict[int, None]] = defaultdict(dict)
    for prompt, draw in wanted:
        draws[prompt][draw] = None
    return {prompt: list(its) for prompt, its in draws.items()}
