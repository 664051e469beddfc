"""The generator over a local causal model: queries -> prompts -> draws -> candidates."""

from __future__ import annotations

import logging
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict

import msgspec

from lmkbc.asking import Asking
from lmkbc.context import Passage, Provider, told
from lmkbc.errors import InputError
from lmkbc.generate.causal.decode import Completion, Decoding
from lmkbc.generate.causal.model import CausalModel
from lmkbc.generate.chat.answer import Reply
from lmkbc.generate.chat.said import candidates
from lmkbc.prompts import Prompt
from lmkbc.store import Call, Store
from lmkbc.types import CandidateSet, Query, Relation

log = logging.getLogger(__name__)


class CausalGenerator:
    """Proposes what a local model answers: draw k of the model "m" is the voice "m#k".

    context: what is told of a query in its prompt, kept in `retrieved`. identity: what tells this model from others of
    its name in the store, weights included. remarks: draws that were no whole answers, logged when it is done.
    """

    def __init__(
        self, model: CausalModel, asking: Asking, relations: Mapping[str, Relation], name: str, *,
        context: Provider | None = None, store: Store | None = None, identity: str = "",
    ) -> None:  # fmt: skip
        self.retrieved: dict[Query, tuple[Passage, ...]] = {}
        self._model, self._asking, self._relations, self._name = model, asking, relations, name
        self._context, self._store, self._identity = context, store, identity
        self._ends: Counter[str] = Counter()

    @property
    def remarks(self) -> tuple[str, ...]:
        """What a person should know of a run, in sentences."""
        kinds = {"length": "cut off at max_tokens", "window": "not asked, since prompts exceed the model's window"}
        total = self._ends.total()
        return tuple(
            f"{self._name}: {self._ends[k]} of {total} draws {why}" for k, why in kinds.items() if self._ends[k]
        )

    def generate(self, queries: Sequence[Query]) -> Iterator[CandidateSet]:
        """One set per distinct query, in the order in which the model comes to them."""
        distinct = list(dict.fromkeys(queries))
        if self._context:
            self.retrieved = dict(zip(distinct, self._context.find(distinct), strict=True))
        waiting: defaultdict[Decoding, list[tuple[Query, Prompt]]] = defaultdict(list)
        for query in distinct:
            prompt, how = self._asking.prompt(query, told(self.retrieved.get(query, ()))), self._decoding(query)
            if stored := self._stored(prompt, how):
                yield self._set(query, stored)
            else:
                waiting[how].append((query, prompt))
        for how, asked in waiting.items():
            for place, draws in self._model.complete([self._text(prompt) for _, prompt in asked], how):
                query, prompt = asked[place]
                replies = [self._reply(draw) for draw in draws]
                self._keep(prompt, how, replies)
                yield self._set(query, replies)
        for remark in self.remarks:
            log.warning(remark)

    def _decoding(self, query: Query) -> Decoding:
        plan = self._asking.plan(query)
        return Decoding.of(plan.sampling, plan.style.stops if plan.style.form == "completion" else ())

    def _text(self, prompt: Prompt) -> str:
        if prompt.form == "completion":
            return prompt.text
        if not self._model.tokenizer.chat_template:
            raise InputError(
                f"the model {self._name!r} has no chat template, which a prompt of form {prompt.form!r} needs: "
                "use form = 'completion', or a model tuned for chat"
            )
        return self._model.chat(prompt.messages())

    def _reply(self, draw: Completion) -> Reply | None:
        if draw.text is None:
            return None
        return Reply(draw.text, "stop" if draw.finished else "length", logprobs=list(draw.logprobs) or None)

    def _set(self, query: Query, replies: Sequence[Reply | None]) -> CandidateSet:
        self._ends.update(reply.finish if reply else "window" for reply in replies)
        relation, style = self._relations[query.relation], self._asking.plan(query).style
        return candidates(query, relation, style, replies, self._name)

    def _calls(self, prompt: Prompt, how: Decoding) -> list[Call]:
        sampling = asdict(how)
        draws, seed = sampling.pop("draws"), sampling.pop("seed")
        return [
            Call(
                model=self._name,
                prompt=prompt.text if prompt.form == "completion" else prompt.messages(),
                revision=self._identity,
                sampling=sampling,
                seed=seed if how.temperature else None,
                draw=draw,
            )
            for draw in range(draws)
        ]

    def _stored(self, prompt: Prompt, how: Decoding) -> list[Reply]:
        """The draws of a prompt, where all of them were committed before."""
        found = [self._store.get(call) for call in self._calls(prompt, how)] if self._store else []
        return [] if None in found else [msgspec.convert(reply, Reply) for reply in found]

    def _keep(self, prompt: Prompt, how: Decoding, replies: Sequence[Reply | None]) -> None:
        if self._store:
            pairs = zip(self._calls(prompt, how), replies, strict=True)
            self._store.put((call, msgspec.to_builtins(reply)) for call, reply in pairs if reply)
