"""A conversation with a language model about a query: its steps and turns, and the candidates from the replies.

A conversation is a generator function that yields requests and receives replies. A server can thus be asked about many
queries at a time, and a local model about all at once. Every call is an ordinary one and is stored like others.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import zip_longest

from lmkbc.answer.clean import Clean
from lmkbc.ask.builder import PromptBuilder, Slots
from lmkbc.ask.context import Provider, as_context, gathered
from lmkbc.ask.steps import FOUND, VERDICTS, Step
from lmkbc.generate.draws import answer_tokens, asking, planned, together
from lmkbc.generate.reply import candidates, state_of, united
from lmkbc.generate.step_answers import read, verdict
from lmkbc.models.base import (
    Dialogue,
    PlannedRequest,
    Prompt,
    Reply,
    Request,
)
from lmkbc.notes import Notes, Passage, Replies
from lmkbc.relation import Relation
from lmkbc.scoring.matchers import number
from lmkbc.types import CandidateSet, Nil, Query, Source, State

AGREED = 0.8
"""Share of the first draws that have to agree, so that no others are asked for."""


DENIED = Reply("[]")
"""Reply of a draw without objects: its gate says no, or no item is left."""

UNREAD = Reply("")
"""Reply of a draw whose step cannot be read, and of a part that only other draws have."""


Course = list[list[Slots] | Reply | None]
"""State of each draw: the slots of each next question, its final reply, or None for a failed draw."""


class _Chain:
    """The steps of one query. nil_probabilities: "existence" step -> share of its draws that say no."""

    def __init__(self, asking: PromptBuilder, relation: Relation, query: Query) -> None:
        self.asking, self._relation, self._query = asking, relation, query
        self._plan = asking.plan(query)
        self.nil_probabilities: dict[str, float] = {}

    def course(self) -> Dialogue[Course]:
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

    def _taken(self, course: Course, step: Step) -> Dialogue[Course]:
        """Return the states after a step, which is asked for every draw, or once if all draws share its answer."""
        shared = step.sampling(self._plan.sampling).samples == 1
        wanted = together(
            (self.asking.step(self._query, step, slots), 0 if shared else draw)
            for draw, branches in enumerate(course)
            for slots in (branches if isinstance(branches, list) else ())
        )
        replies = yield from self._replies(wanted, step)

        def items(draw: int, slots: Slots) -> tuple[str, ...] | Reply | None:
            reply = replies[self.asking.step(self._query, step, slots), 0 if shared else draw]
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

    def _weighed(self, course: Course, step: Step) -> Dialogue[None]:
        """Record how many draws of an existence step say no. If a call fails, every draw fails."""
        places = range(step.sampling(self._plan.sampling).samples)
        wanted = {self.asking.step(self._query, step, {}): list(places)}
        replies = yield from self._replies(wanted, step)
        if None in replies.values():
            course[:] = [None] * len(course)
        verdicts = [holds for reply in replies.values() if reply and (holds := verdict(reply)) is not None]
        if verdicts:
            self.nil_probabilities[step.name] = verdicts.count(False) / len(verdicts)

    def _replies(
        self, wanted: Mapping[Prompt, Sequence[int]], step: Step
    ) -> Dialogue[dict[tuple[Prompt, int], Reply | None]]:
        sampling = step.sampling(self._plan.sampling)
        requests = [Request(prompt, tuple(draws), sampling, ("\n",)) for prompt, draws in wanted.items()]
        return {
            (request.prompt, draw): reply
            for request, one in zip(requests, (yield from asking(requests)), strict=True)
            for draw, reply in zip(request.draws, one.replies, strict=True)
        }


def _given(step: Step, _: int, __: Slots) -> tuple[str, ...]:
    return step.items


class Conversation:
    """Questions to a model about queries, the turns after its replies, and the resulting candidates.

    name: name of the model's sources.
    context: provider of passages for prompts.
    notes: where passages and replies are recorded.
    model: name of the model, if it differs from `name`.
    clean: whether to bring names into the relation's shape.
    """

    def __init__(
        self,
        asking: PromptBuilder,
        relations: Mapping[str, Relation],
        name: str,
        context: Provider | None,
        notes: Notes,
        *,
        clean: Clean = True,
        model: str = "",
    ) -> None:
        self._model = model
        self.asking, self._relations, self._name = asking, relations, name
        self._context, self._notes, self._clean = context, notes, clean
        self._passages: dict[Query, tuple[Passage, ...]] = {}

    def begin(self, queries: Sequence[Query]) -> None:
        """Find the passages of all queries before their prompts are made."""
        if self._context:
            self._passages = gathered(self._context, [query for query in queries if query.subject.strip()])
            self._notes.passages |= self._passages

    def dialogue(self, query: Query) -> Dialogue[CandidateSet]:
        """Ask about a query: yield requests, receive their replies, and return the candidates.

        A query whose subject has no name is not asked and counts as missing.
        """
        if not query.subject.strip():
            return self.candidates(query, [[None]])
        chain = _Chain(self.asking, self._relations[query.relation], query)
        course = yield from chain.course()
        first = self.asking.plan(query).sampling.at_first
        parts = yield from self._answers(query, course[:first])
        if first and not self._agree(query, parts):
            later = yield from self._answers(query, [*[UNREAD] * first, *course[first:]])
            parts = [
                [*before[:first], *after[first:]]
                for before, after in zip_longest(parts, later, fillvalue=[UNREAD] * len(course))
            ]
        yield from self._expand(query, course[: len(parts[0])], parts)
        replies = Replies(self._name, tuple(map(tuple, parts)), chain.nil_probabilities, model=self._model)
        self._notes.replied(query, replies)
        found = self.candidates(query, parts)
        nil_probabilities = (Nil(share, (Source(self._name, name),)) for name, share in chain.nil_probabilities.items())
        return replace(found, nil_probabilities=(*found.nil_probabilities, *nil_probabilities))

    def _agree(self, query: Query, parts: Sequence[Sequence[Reply | None]]) -> bool:
        """Return whether enough of the first draws name the same object, near numbers, or nothing."""
        found = self.candidates(query, parts)
        named = [(one.text.casefold(), number(one.text) or math.nan, one.sources) for one in found.candidates]
        shares = [
            len(
                {
                    source
                    for other, value, its in named
                    if one == other or math.isclose(size, value, rel_tol=0.05)
                    for source in its
                }
            )
            for one, size, _ in named
        ]
        return max([*shares, len(found.nothing)]) >= AGREED * len(parts[0]) - 1e-9

    def plan(self, query: Query, context: str) -> Iterator[PlannedRequest]:
        """Yield the requests that may be sent about a query, in order, with slots for what only answers say."""
        plan = self.asking.plan(query)
        draws, style, slots, sizes = plan.sampling.samples, plan.style, dict[str, str](), dict[str, int]()
        branches, apart = 1, plan.redraws  # questions of a draw, and whether draws have prompts of their own
        for step in style.steps:
            sampling, size = step.sampling(plan.sampling), max(map(len, step.items), default=0)
            if not step.items:
                once, size = step.parse_as == "existence", answer_tokens(sampling)
                prompt = self.asking.step(query, step, {} if once else slots)
                request = Request(prompt, tuple(range(sampling.samples)), sampling, ("\n",))
                each = sampling.samples > 1 and apart and not once
                times = 1 if once else branches * (draws if apart and not each else 1)
                yield from planned(f"step {step.name!r}", request, times, sizes, apart=each)
                apart = apart or (sampling.samples > 1 and step.parse_as not in VERDICTS)
            branches *= step.branches
            if step.parse_as not in VERDICTS:
                slots[step.name], sizes[step.name] = f"{{{step.name}}}", size
        prompt, asked = (
            self.asking.prompt(query, context, slots),
            branches * (1 + sum(one.again for one in style.turns)),
        )
        yield from planned("question", self.request(query, prompt, range(draws)), asked, sizes, apart=apart)
        if expand := style.expand:
            sizes[FOUND] = expand.rounds * answer_tokens(plan.sampling)
            further = self.asking.prompt(query, context, {**slots, FOUND: f"{{{FOUND}}}"})
            request = self.request(query, further, range(draws))
            yield from planned("expansion", request, asked * expand.rounds, sizes, apart=True)
        sizes["answer"], answer = answer_tokens(plan.sampling), "{answer}"
        for turn in style.turns:
            if after := turn.prompt(self, query, prompt, context, answer):
                yield from planned(turn.name, self.request(query, after, range(draws)), branches, sizes, apart=True)

    def _answers(self, query: Query, course: Course) -> Dialogue[list[list[Reply | None]]]:
        """Return part -> draw -> reply for the query itself.

        The number of parts is that of the draw with most questions.
        """
        context = self.context_text(query)
        most = max((len(one) for one in course if isinstance(one, list)), default=1)
        parts: list[list[Reply | None]] = [[one if one is None else UNREAD for one in course] for _ in range(most)]
        plan = self.asking.plan(query)
        prompts: dict[tuple[int, tuple[str, ...]], Prompt] = {}
        asked: dict[Prompt, tuple[Slots, int]] = {}
        places: defaultdict[tuple[Prompt, int], list[int]] = defaultdict(list)
        for draw, branches in enumerate(course):
            if not isinstance(branches, list):
                parts[0][draw] = branches
                continue
            for part, slots in enumerate(branches):
                shown_to = draw if plan.redraws else 0
                filled = shown_to, tuple(slots.values())
                if filled not in prompts:
                    prompts[filled] = self.asking.prompt(query, context, slots, draw=shown_to)
                    asked.setdefault(prompts[filled], (slots, shown_to))
                places[prompts[filled], draw].append(part)
        replies: dict[tuple[Prompt, int], Reply | None] = {}
        shown: dict[Prompt, Prompt] = {}
        wanted = together(places)
        requests = [
            self.request(query, prompt, draws, partial(self.asking.shorter, query, context, *asked[prompt]))
            for prompt, draws in wanted.items()
        ]
        for (prompt, draws), one in zip(wanted.items(), (yield from asking(requests)), strict=True):
            shown[prompt] = one.prompt
            replies |= {(prompt, draw): reply for draw, reply in zip(draws, one.replies, strict=True)}
        for turn in plan.style.turns:
            after = {
                (prompt, draw): request
                for (prompt, draw), reply in replies.items()
                if reply and (request := turn.request(self, query, shown[prompt], draw, reply))
            }
            for place, one in zip(after, (yield from asking([*after.values()])), strict=True):
                if turn.counts(self, query, one.replies[0]):
                    replies[place] = one.replies[0]
        for place, its in places.items():
            for part in its:
                parts[part][place[1]] = replies[place]
        return parts

    def names(self, query: Query, reply: Reply | None) -> dict[str, str]:
        """Return the objects that a reply names, by their text without case."""
        return {one.text.casefold(): one.text for one in self.candidates(query, [[reply]]).candidates}

    def _expand(self, query: Query, course: Course, parts: list[list[Reply | None]]) -> Dialogue[None]:
        """Ask each question of each draw again for other objects, and add the replies to the parts."""
        if (expand := self.asking.plan(query).style.expand) is None:
            return
        latest = [*parts]
        found: dict[int, list[tuple[Slots, dict[str, str]]]] = {
            draw: [(slots, {}) for slots in branches]
            for draw, branches in enumerate(course)
            if isinstance(branches, list)
        }
        for turn in range(expand.rounds):
            least = expand.least(turn)
            for draw, branches in found.items():
                after = [
                    (slots, before, {**before, **self.names(query, latest[part][draw]), **before})
                    for part, (slots, before) in enumerate(branches)
                ]
                found[draw] = [(slots, names) for slots, before, names in after if len(names) - len(before) >= least]
            if not any(found.values()):
                return
            further: Course = [
                [
                    {**slots, FOUND: "; ".join([*names.values()][-expand.names :])}
                    for slots, names in found.get(draw, ())
                ]
                or UNREAD
                for draw in range(len(course))
            ]
            latest = yield from self._answers(query, further)
            parts += latest

    def request(
        self, query: Query, prompt: Prompt, draws: Sequence[int], shorter: Callable[[], Iterable[Prompt]] = tuple
    ) -> Request:
        """Return the request for some draws of a prompt about a query."""
        plan, style = self.asking.plan(query), self.asking.plan(query).style
        relation = self.relation(query)
        return Request(
            prompt,
            tuple(draws),
            plan.sampling,
            style.stops,
            style.format.brackets,
            style.schema(relation),
            shorter,
        )

    def relation(self, query: Query) -> Relation:
        """Return the relation of a query."""
        return self._relations[query.relation]

    def state(self, query: Query, reply: Reply | None) -> State:
        """Return how a reply about a query is read."""
        return state_of(query, self._relations[query.relation], self.asking.plan(query).style, reply)

    def candidates(self, query: Query, parts: Sequence[Sequence[Reply | None]]) -> CandidateSet:
        """Return the candidates of a query from the draws of each of its prompts."""
        relation, style = self._relations[query.relation], self.asking.plan(query).style
        return united([candidates(query, relation, style, replies, self._name, clean=self._clean) for replies in parts])

    def context_text(self, query: Query) -> str:
        """Return the passages that were found about a query, as a text."""
        return as_context(self._passages.get(query, ()))
