"""A conversation with a language model about a query: its turns, and the candidates from the replies."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial

from lmkbc.answer.clean import Clean
from lmkbc.answer.reply import broken, candidates, mends, united
from lmkbc.ask.context import Provider, as_context, gathered
from lmkbc.ask.plan import Asking, Slots
from lmkbc.ask.schema import answer_schema
from lmkbc.generate.chain import UNREAD, Chain, Course, asking, together
from lmkbc.models.base import WITHHELD, Prompt, Reply, Request, Talk
from lmkbc.notes import Notes, Passage, Replies
from lmkbc.relation import Relation
from lmkbc.types import CandidateSet, Nil, Query, Source


class Conversation:
    """Questions to a model about queries, the turns after its replies, and the resulting candidates.

    name: name of the model's sources.
    context: provider of passages for prompts.
    notes: where passages and replies are recorded.
    model: name of the model, if it differs from `name`.
    clean: whether to bring names into the relation's shape.
    schema: whether to request the answer to the query itself as JSON of a fixed schema.
    """

    def __init__(
        self,
        asking: Asking,
        relations: Mapping[str, Relation],
        name: str,
        context: Provider | None,
        notes: Notes,
        *,
        clean: Clean = True,
        schema: bool = False,
        model: str = "",
    ) -> None:
        self._model = model
        self._asking, self._relations, self._name = asking, relations, name
        self._context, self._notes, self._clean, self._schema = context, notes, clean, schema
        self._passages: dict[Query, tuple[Passage, ...]] = {}

    def begin(self, queries: Sequence[Query]) -> None:
        """Find the passages of all queries before their prompts are made."""
        if self._context:
            self._passages = gathered(self._context, [query for query in queries if query.subject.strip()])
            self._notes.passages |= self._passages

    def talk(self, query: Query) -> Talk[CandidateSet]:
        """Ask about a query: yield requests, receive their replies, and return the candidates.

        A query whose subject has no name, or whose context is missing, is not asked and counts as missing.
        """
        if not query.subject.strip() or (self._context and query not in self._passages):
            return self.candidates(query, [[None]])
        chain = Chain(self._asking, self._relations[query.relation], query)
        course = yield from chain.course()
        parts = yield from self._answers(query, course)
        replies = Replies(self._name, tuple(map(tuple, parts)), chain.nil_probabilities, model=self._model)
        self._notes.replied(query, replies)
        found = self.candidates(query, parts)
        nil_probabilities = (Nil(share, (Source(self._name, name),)) for name, share in chain.nil_probabilities.items())
        return replace(found, nil_probabilities=(*found.nil_probabilities, *nil_probabilities))

    def _answers(self, query: Query, course: Course) -> Talk[list[list[Reply | None]]]:
        """Return part -> draw -> reply for the query itself.

        The number of parts is that of the draw with most questions.
        """
        context = self._context_text(query)
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
                    prompts[filled] = self._asking.prompt(query, context, slots)
                    asked.setdefault(prompts[filled], slots)
                places[prompts[filled], draw].append(part)
        replies: dict[tuple[Prompt, int], Reply | None] = {}
        shown: dict[Prompt, Prompt] = {}
        wanted = together(places)
        requests = [
            self._request(query, prompt, draws, partial(self._asking.shorter, query, context, asked[prompt]))
            for prompt, draws in wanted.items()
        ]
        for (prompt, draws), one in zip(wanted.items(), (yield from asking(requests)), strict=True):
            shown[prompt] = one.prompt
            replies |= {(prompt, draw): reply for draw, reply in zip(draws, one.replies, strict=True)}
        for follows, counts in (self._second, None), (self._repair, self._mends):
            after = {
                (prompt, draw): further
                for (prompt, draw), reply in replies.items()
                if (reply and reply.is_answer and reply.finish not in WITHHELD)
                and (further := follows(query, shown[prompt], reply))
            }
            requests = [self._request(query, further, [draw]) for (_, draw), further in after.items()]
            for place, one in zip(after, (yield from asking(requests)), strict=True):
                if counts is None or counts(query, one.replies[0]):
                    replies[place] = one.replies[0]
        for place, its in places.items():
            for part in its:
                parts[part][place[1]] = replies[place]
        return parts

    def _request(
        self, query: Query, prompt: Prompt, draws: Sequence[int], shorter: Callable[[], Iterable[Prompt]] = tuple
    ) -> Request:
        plan, style = self._asking.plan(query), self._asking.plan(query).style
        schema = answer_schema(self._relations[query.relation].kind) if self._schema else None
        return Request(prompt, tuple(draws), plan.sampling, style.stops, style.brackets, schema, shorter)

    def candidates(self, query: Query, parts: Sequence[Sequence[Reply | None]]) -> CandidateSet:
        """Return the candidates of a query from the draws of each of its prompts."""
        relation, style = self._relations[query.relation], self._asking.plan(query).style
        return united([candidates(query, relation, style, replies, self._name, clean=self._clean) for replies in parts])

    def _context_text(self, query: Query) -> str:
        return as_context(self._passages.get(query, ()))

    def _second(self, query: Query, prompt: Prompt, reply: Reply) -> Prompt | None:
        """Return the prompt of the second turn, which adds the passages; None if there is no second turn."""
        turn = self._asking.follow_up(query, self._context_text(query))
        return prompt.followed(reply.text, turn) if turn else None

    def _repair(self, query: Query, _: Prompt, reply: Reply) -> Prompt | None:
        """Return the prompt that asks for a broken reply as a list; None if no repair is needed or set."""
        prompt = self._asking.repair(query, reply.text)
        style = self._asking.plan(query).style
        return prompt if prompt and broken(query, self._relations[query.relation], style, reply) else None

    def _mends(self, query: Query, reply: Reply | None) -> bool:
        return mends(query, self._relations[query.relation], self._asking.plan(query).style, reply)
