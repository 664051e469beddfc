"""The generator over a local causal model: queries -> prompts -> draws -> candidates."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TypeVar

import msgspec

from lmkbc.answer.reply import (
    broken,
    candidates,
    mends,
    united,
)
from lmkbc.ask.context.passages import Provider, gathered, told
from lmkbc.ask.plan import Asking
from lmkbc.errors import InputError
from lmkbc.generate.completer import CompleterSpec
from lmkbc.generate.conversation import LanguageModelSpec
from lmkbc.generate.verify import verifying
from lmkbc.models.base import Prompt, Reply
from lmkbc.models.causal.checkpoint import Quantise, identity, load
from lmkbc.models.causal.decode import Completion, Decoding
from lmkbc.models.causal.model import CausalModel
from lmkbc.models.causal.scorer import CausalScorer
from lmkbc.models.files import model_name
from lmkbc.models.store import Call, Store
from lmkbc.relation import Relation
from lmkbc.run import Run
from lmkbc.types import CandidateSet, Generator, Notes, Passage, Query, State

Key = TypeVar("Key")
Place = tuple[Query, int]
"""A query, and which of its prompts."""
Asked = tuple[Prompt, Decoding]


@dataclass(frozen=True, kw_only=True)
class LocalSettings:
    """What a recipe's table says of a local causal model: see `lmkbc.models.causal.checkpoint.load`."""

    model: str | None = None
    revision: str | None = None
    dtype: str = "auto"
    device: str | None = None
    trust_remote_code: bool = False
    quantise: Quantise = "none"

    def source(self, run: Run) -> str:
        """The model's place; --model comes before the table's."""
        if source := run.model or self.model:
            return source
        raise InputError(
            "the component 'causal' names no model: give one with --model, of the hub, a directory or a GGUF file"
        )

    def local(self, run: Run) -> Local:
        """The model. All steps of a run that ask one model share it."""
        source = self.source(run)

        def read() -> tuple[CausalModel, str]:
            loaded = load(
                source,
                revision=self.revision,
                dtype=self.dtype,
                device=self.device,
                offline=run.offline,
                trust_remote_code=self.trust_remote_code,
                quantise=self.quantise,
            )
            return CausalModel(*loaded), identity(source, loaded[0])

        own = source, self.revision, self.dtype, self.device, self.trust_remote_code, self.quantise
        model, digest = run.loaded(own, read)
        return Local(model, model_name(source), digest, run.store)


@dataclass(frozen=True, slots=True)
class Local:
    """A local model, its name, what tells it from others, and what opens the store that keeps its answers."""

    model: CausalModel
    name: str
    identity: str
    store: Callable[[], Store]

    def scorer(self, how: Decoding | None = None, *, chat: bool | None = None) -> CausalScorer:
        """What asks it short questions: as a chat where that is said, or else where it has a template."""
        chats = bool(self.model.tokenizer.chat_template) if chat is None else chat
        return CausalScorer(
            self.model, how or Decoding(), chat=chats, store=self.store(), name=self.name, identity=self.identity
        )


@dataclass(frozen=True, kw_only=True)
class Causal(LocalSettings, LanguageModelSpec):
    """What the table of a generator over a local causal model may say."""

    def open(self, run: Run, notes: Notes) -> Generator:
        """The generator, and around it the verifier that the table asks for."""
        asking, local, check = self.asking(run), self.local(run), self.verify
        generator = CausalGenerator(
            local.model,
            asking,
            run.relations,
            local.name,
            context=self.provider(run, local.scorer().paragraphs),
            store=local.store(),
            identity=local.identity,
            voice=self.name,
            notes=notes,
        )
        if check is None:
            return generator
        how = Decoding(draws=check.draws, temperature=check.heat, seed=check.seed)
        scorer = local.scorer(how, chat=self.prompt.form != "completion")
        return verifying(generator, scorer, check, run.relations, run.train, notes)


@dataclass(frozen=True, kw_only=True)
class CausalCompleter(LocalSettings, CompleterSpec):
    """A local model that another step asks."""

    def open(self, run: Run, notes: Notes) -> CausalScorer:  # noqa: ARG002 -- it has nothing to note
        """The model."""
        return self.local(run).scorer()


class CausalGenerator:
    """Proposes what a local model answers: draw k of the model "m" is the voice "m#k", or another where voice says so.

    context: what is told of a query in its prompt. identity: what tells this model from others of its name in the
    store, weights included. notes: where passages go, and how many draws were no whole answers.
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
        voice: str = "",
        notes: Notes | None = None,
    ) -> None:
        self.notes = notes or Notes()
        self._passages: dict[Query, tuple[Passage, ...]] = {}
        self._model, self._asking, self._relations, self._name = model, asking, relations, name
        self._voice = voice or name
        self._context, self._store, self._identity = context, store, identity
        self._ends: Counter[str] = Counter()

    def _remarks(self) -> tuple[str, ...]:
        kinds = {"length": "cut off at max_tokens", "window": "not asked, since prompts exceed the model's window"}
        total = self._ends.total()
        ends = [f"{self._ends[k]} of {total} draws {why}" for k, why in kinds.items() if self._ends[k]]
        return tuple(f"{self._voice}: {one}" for one in (*ends, *(self._store.remarks if self._store else ())))

    def generate(self, queries: Sequence[Query]) -> Iterator[CandidateSet]:
        """One set per distinct query, in the order in which the model comes to them."""
        distinct = list(dict.fromkeys(queries))
        named = [query for query in distinct if query.subject.strip()]  # nothing can be asked about the others
        if self._context:
            self._passages = gathered(self._context, named)
            self.notes.passages |= self._passages
            named = [query for query in named if query in self._passages]
        askable = set(named)
        yield from (CandidateSet(query, draws=(State.MISSING,)) for query in distinct if query not in askable)
        asked = {
            (query, part): (prompt, self._decoding(query))
            for query in named
            for part, prompt in enumerate(self._asking.prompts(query, self._told(query)))
        }
        parts = Counter(query for query, _ in asked)
        answers: defaultdict[Query, dict[int, Sequence[Reply | None]]] = defaultdict(dict)
        for (query, part), replies in self._in_turns(asked):
            answers[query][part] = replies
            if len(answers[query]) == parts[query]:
                yield self._set(query, [said for _, said in sorted(answers.pop(query).items())])
        for remark in self._remarks():
            self.notes.remark(remark)

    def _in_turns(self, asked: Mapping[Place, Asked]) -> Iterator[tuple[Place, Sequence[Reply | None]]]:
        """The draws of each prompt: told more in a second turn, and asked for as lists where they are none."""
        told_more = self._followed(asked, self._answers(asked), self._second_turn)
        yield from self._followed(asked, told_more, self._repair, self._mends)

    def _followed(
        self,
        asked: Mapping[Place, Asked],
        answered: Iterable[tuple[Place, Sequence[Reply | None]]],
        turn: Callable[[Query, Prompt, Reply], Prompt | None],
        counts: Callable[[Query, Reply | None], bool] = lambda *_: True,
    ) -> Iterator[tuple[Place, Sequence[Reply | None]]]:
        """The draws of each prompt; where another prompt follows a draw, what that brings, if it counts."""
        final: dict[Place, list[Reply | None]] = {}
        following: dict[tuple[Place, int], Asked] = {}
        for place, replies in answered:
            prompt, how = asked[place]
            next_ones = {draw: turn(place[0], prompt, reply) for draw, reply in enumerate(replies) if reply}
            if not any(next_ones.values()):
                yield place, replies
                continue
            final[place] = list(replies)
            for draw, following_prompt in next_ones.items():
                alone = replace(how, draws=1, seed=how.seed + draw if how.temperature else how.seed)
                following |= {(place, draw): (following_prompt, alone)} if following_prompt else {}
        for (place, draw), (reply,) in self._answers(following):
            if counts(place[0], reply):
                final[place][draw] = reply
        yield from final.items()

    def _second_turn(self, query: Query, prompt: Prompt, reply: Reply) -> Prompt | None:
        turn = self._asking.second_turn(query, self._told(query))
        return prompt.followed(reply.text, turn) if turn and reply.text.strip() else None

    def _repair(self, query: Query, _: Prompt, reply: Reply) -> Prompt | None:
        prompt = self._asking.repair(query, reply.text)
        style = self._asking.plan(query).style
        return prompt if prompt and broken(query, self._relations[query.relation], style, reply) else None

    def _mends(self, query: Query, reply: Reply | None) -> bool:
        return mends(query, self._relations[query.relation], self._asking.plan(query).style, reply)

    def _answers(self, asked: Mapping[Key, tuple[Prompt, Decoding]]) -> Iterator[tuple[Key, Sequence[Reply | None]]]:
        """The draws of each prompt, in any order."""
        waiting: defaultdict[Decoding, list[Key]] = defaultdict(list)
        for key, (prompt, how) in asked.items():
            stored = self._stored(prompt, how)
            if len(stored) == how.draws:
                yield key, stored
            else:
                waiting[replace(how, first=len(stored), draws=how.draws - len(stored))].append(key)
        for how, keys in waiting.items():
            for place, draws in self._model.complete([self._text(asked[key][0]) for key in keys], how):
                prompt, whole = asked[keys[place]]
                replies = [self._reply(draw) for draw in draws]
                self._keep(prompt, how, replies)
                yield keys[place], [*self._stored(prompt, replace(whole, draws=how.first)), *replies]

    def _told(self, query: Query) -> str:
        return told(self._passages.get(query, ()))

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

    def _set(self, query: Query, parts: Sequence[Sequence[Reply | None]]) -> CandidateSet:
        self._ends.update(reply.finish if reply else "window" for replies in parts for reply in replies)
        relation, style = self._relations[query.relation], self._asking.plan(query).style
        return united([candidates(query, relation, style, replies, self._voice) for replies in parts])

    def _calls(self, prompt: Prompt, how: Decoding) -> list[Call]:
        sampling = asdict(how)
        first, draws, seed = (sampling.pop(name) for name in ("first", "draws", "seed"))
        return [
            Call(
                model=self._name,
                prompt=prompt.text if prompt.form == "completion" else prompt.messages(),
                revision=self._identity,
                sampling=sampling,
                seed=seed if how.temperature else None,
                draw=draw,
            )
            for draw in range(first, first + draws)
        ]

    def _stored(self, prompt: Prompt, how: Decoding) -> list[Reply]:
        """The draws of a prompt that were committed before, up to the first that was not; no answer is dropped."""
        found: list[Reply] = []
        if self._store is None:
            return found
        for call in self._calls(prompt, how):
            reply: Reply | None = self._store.get(call, Reply)
            if reply is not None and not reply.is_answer:
                self._store.drop(call)
                reply = None
            if reply is None:
                break
            found.append(reply)
        return found

    def _keep(self, prompt: Prompt, how: Decoding, replies: Sequence[Reply | None]) -> None:
        if self._store:
            pairs = zip(self._calls(prompt, how), replies, strict=True)
            self._store.put((call, msgspec.to_builtins(reply)) for call, reply in pairs if reply and reply.is_answer)
