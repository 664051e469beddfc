"""The back end for local models: a causal model that answers all conversations in parallel and stores its answers."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal, NamedTuple

from lmkbc.errors import counted
from lmkbc.models.base import (
    LOCAL_EXTRAS,
    LOOP,
    Answered,
    Key,
    Prompt,
    Reply,
    Request,
    Result,
    Talk,
    resumed,
)
from lmkbc.models.call import Call
from lmkbc.models.local.decode import Completion, Decoding
from lmkbc.models.local.model import CausalModel
from lmkbc.models.server.limits import GUESSED_ANSWER
from lmkbc.models.store import Store, answered
from lmkbc.models.thoughts import answer_of
from lmkbc.notes import Notes
from lmkbc.types import grouped

AT_ONCE = 2048
"""Maximum number of prompts that are in memory as tokens."""
PORTION = 512
"""Prompts whose options are scored and stored at a time; a killed run loses at most these. A prefix is read once."""

ENDS = {
    "length": "cut off at max_tokens",
    LOOP: "stopped, since they only repeated themselves",
    "window": "not asked, since prompts exceed the model's window: say fit = true in the recipe's table shots, "
    "so that they are shown fewer examples, or give them less to read",
}
"""Reason of an incomplete answer -> message for the user."""


class _Draw(NamedTuple):
    """A draw of a prompt, its decoding, and its number in a series that starts with the seed."""

    prompt: Prompt
    how: Decoding
    number: int


class LocalModel:
    """A causal model of this machine.

    identity: distinguishes it, weights included, from models of the same name in the store.
    chats: whether plain questions use the chat template.
    longest: tokens of an answer without a limit; None for the default of `Decoding`.
    notes: get the usage.
    """

    def __init__(
        self,
        model: CausalModel,
        name: str = "",
        identity: str = "",
        *,
        store: Store | None = None,
        chats: bool = False,
        longest: int | None = None,
        notes: Notes | None = None,
    ) -> None:
        self.model, self.name, self.identity = model, name, identity
        self._store, self._chats, self._longest, self.notes = store, chats, longest, notes or Notes()
        self.place = str(store.place) if store else ""
        self._ends: Counter[str] = Counter()
        self._shortened = 0

    @property
    def lost(self) -> str:
        """Return why answers of the last conversation are missing."""
        return "prompts exceed the model's window" if self._ends["window"] else ""

    def converse(self, talks: Mapping[Key, Talk[Result]]) -> Iterator[tuple[Key, Result]]:
        """Answer all talks in parallel: their next requests are processed together."""
        self._ends, self._shortened = Counter(), 0
        with self.model.usage.added(self.notes.usage):
            known: Iterable[tuple[Key, list[Answered] | None]] = ((key, None) for key in talks)
            while True:
                asked: dict[Key, list[Request]] = {}
                for key, replies in known:
                    requests, result = resumed(talks[key], replies)
                    if requests:
                        asked[key] = requests
                    else:
                        yield key, result  # type: ignore[misc]
                if not asked:
                    return
                known = self._round(asked)

    def remarks(self) -> Iterator[str]:
        """Yield sentences about incomplete draws and shortened prompts of the last conversation."""
        total = self._ends.total()
        yield from (f"{self._ends[end]} of {total} draws {why}" for end, why in ENDS.items() if self._ends[end])
        if self._shortened:
            shortened = counted(self._shortened, "prompt was", "prompts were")
            yield f"{shortened} shown fewer examples, to fit the model's window"

    def texts(
        self, prompts: Sequence[str], max_tokens: int, draws: int = 1, temperature: float = 0.0, seed: int = 0
    ) -> list[list[str]]:
        """Return the draws of each prompt, up to the end of the line, without blank ones."""
        how = Decoding(draws=draws, temperature=temperature, seed=seed, max_tokens=max_tokens, stops=("\n",))

        def drawn(row: Sequence[Completion]) -> list[str] | None:
            texts = [answer_of(draw.text or "") or "" for draw in row]
            return texts if any(texts) else None

        found = self._completed(prompts, how, drawn)
        return [[text for draw in draws or () if (text := draw.strip())] for draws in found]

    def paragraphs(self, prompts: Sequence[str], max_tokens: int = 128, stop: str = "\n\n") -> list[str | None]:
        """Return the greedy answer to each prompt; None for a prompt that exceeds the window."""
        how = Decoding(max_tokens=max_tokens, stops=(stop,) if stop else ())
        return self._completed(prompts, how, lambda row: None if row[0].text is None else answer_of(row[0].text))

    def log_probabilities(self, prompts: Sequence[str], options: Sequence[str]) -> list[list[float]]:
        """Return, for each prompt, the log-probability of each option as the next word."""
        words = list(options) if self._chats else [f" {option}" for option in options]
        return self._likelihoods(list(map(self.model.closed, self._put(prompts))), [words] * len(prompts), "words")

    def option_scores(self, prompts: Sequence[Prompt], options: Sequence[Sequence[str]]) -> list[list[float]]:
        """Return the log-probability of each of its options as the answer to each prompt; -inf if unknown."""
        spaced = [
            [f" {text}" if prompt.form == "completion" else text for text in row]
            for prompt, row in zip(prompts, options, strict=True)
        ]
        rows = self._likelihoods([self.model.closed(self.model.text(prompt)) for prompt in prompts], spaced, "options")
        if lost := sum(bool(row) and max(row) == -math.inf for row in rows):
            self.notes.remark(
                f"{self.name}: {lost} of {len(rows)} prompts whose candidates are ranked exceed the model's window: "
                "show fewer examples"
            )
        return rows

    def _round(self, asked: Mapping[Key, Sequence[Request]]) -> Iterator[tuple[Key, list[Answered]]]:
        """Yield the answers to the requests of each key as soon as they are complete."""
        draws: list[_Draw] = []
        keys: list[Key] = []
        fitted: dict[Key, list[tuple[Prompt, int, int]]] = defaultdict(list)
        for key, requests in asked.items():
            for request in requests:
                prompt, how = self._fitted(request)
                fitted[key].append((prompt, len(draws), len(draws) + len(request.draws)))
                shared = request.draws == tuple(range(how.draws))  # else each draw has its own seed
                for number in request.draws:
                    seed = how.seed if shared or not how.temperature else how.seed + number
                    draws.append(_Draw(prompt, replace(how, draws=1, seed=seed), number if shared else 0))
                    keys.append(key)
        replies: dict[int, Reply | None] = {}
        lacking = Counter(keys)
        for place, reply in self._replies(draws):
            replies[place] = reply
            self._ends[reply.finish if reply else "window"] += 1
            lacking[key := keys[place]] -= 1
            if not lacking[key]:
                yield key, [Answered(prompt, [replies.pop(at) for at in range(*its)]) for prompt, *its in fitted[key]]

    def _replies(self, draws: Sequence[_Draw]) -> Iterator[tuple[int, Reply | None]]:
        """Yield the place of each draw with its reply, from the store if possible."""
        new: set[int] = set()

        def ask(places: Sequence[int]) -> Iterator[dict[int, Any]]:
            new.update(places)
            series = grouped(((draws[place].prompt, draws[place].how), place) for place in places)
            together: defaultdict[Decoding, list[tuple[Prompt, list[int]]]] = defaultdict(list)
            for (prompt, how), its in series.items():
                numbers = [draws[place].number for place in its]
                together[replace(how, first=min(numbers), draws=max(numbers) + 1 - min(numbers))].append((prompt, its))
            for how, whole in together.items():
                for row, completions in self._complete([self.model.text(prompt) for prompt, _ in whole], how):
                    yield {place: _reply(completions[draws[place].number - how.first]) for place in whole[row][1]}

        calls = [self._call(draw) for draw in draws]
        for place, reply in answered(self._store, calls, ask, Reply, lambda reply: reply.is_answer):
            if place not in new:
                self.model.usage.replayed(reply.prompt_tokens, reply.completion_tokens)
            yield place, reply

    def _call(self, draw: _Draw) -> Call:
        sampling = draw.how.key
        seed = sampling.pop("seed")
        del sampling["first"], sampling["draws"]
        return Call(
            model=self.name,
            prompt=draw.prompt.text if draw.prompt.form == "completion" else draw.prompt.messages(),
            revision=self.identity,
            sampling=sampling,
            seed=seed if draw.how.temperature else None,
            draw=draw.number,
        )

    def _fitted(self, request: Request) -> tuple[Prompt, Decoding]:
        """Return the prompt, with fewer examples if the window leaves no room for an answer, and its decoding."""
        sampling = request.sampling
        extra = {name: value for name, value in sampling.extra.items() if name in LOCAL_EXTRAS}
        sampling = replace(sampling, max_tokens=sampling.max_tokens or self._longest, extra=extra)
        stops = request.stops if request.prompt.form == "completion" else ()
        how = Decoding.of(sampling, stops, lists=request.lists)
        answer = min(how.max_tokens, GUESSED_ANSWER)
        if self.model.fits(self.model.text(request.prompt), answer):
            return request.prompt, how
        shorter = (prompt for prompt in request.shorter() if self.model.fits(self.model.text(prompt), answer))
        found = next(iter(shorter), None)
        self._shortened += found is not None
        return found or request.prompt, how

    def _complete(self, texts: Sequence[str], how: Decoding) -> Iterator[tuple[int, list[Completion]]]:
        """Yield the draws of each text as soon as they are complete, by its place."""
        for start in range(0, len(texts), AT_ONCE):
            for row, completions in self.model.complete(texts[start : start + AT_ONCE], how):
                yield start + row, completions

    def _completed(
        self, prompts: Sequence[str], how: Decoding, read: Callable[[Sequence[Completion]], Any]
    ) -> list[Any]:
        """Return the result of `read` for the draws of each prompt."""
        texts = self._put(prompts)

        def complete(places: Sequence[int]) -> Iterator[dict[int, Any]]:
            for row, completions in self._complete([texts[place] for place in places], how):
                yield {places[row]: read(completions)}

        return self._kept(texts, [how.key] * len(texts), complete)

    def _likelihoods(
        self, texts: Sequence[str], options: Sequence[Sequence[str]], key: Literal["words", "options"]
    ) -> list[list[float]]:
        """Return log-probabilities of each text's options. key: name of the options in the store."""

        def score(places: Sequence[int]) -> Iterator[dict[int, list[float | None] | None]]:
            for start in range(0, len(places), PORTION):
                some = places[start : start + PORTION]
                rows = self.model.log_probabilities([texts[at] for at in some], [options[at] for at in some])
                finite = [[p if math.isfinite(p) else None for p in row] for row in rows]  # JSON has no infinity
                known = [row if any(p is not None for p in row) else None for row in finite]
                yield dict(zip(some, known, strict=True))

        found = self._kept(texts, [{key: list(row)} for row in options], score)
        return [
            [-math.inf if p is None else p for p in row or [None] * len(choices)]
            for row, choices in zip(found, options, strict=True)
        ]

    def _kept(
        self,
        texts: Sequence[str],
        sampling: Sequence[Mapping[str, Any]],
        answer: Callable[[Sequence[int]], Iterator[dict[int, Any]]],
    ) -> list[Any]:
        """Return the answer to each text, from the store if possible; None, which is not stored, for no answer.

        answer: receives the places of texts without a stored answer, and yields answers by place.
        """
        calls = [
            Call(model=self.name, revision=self.identity, prompt=text, sampling=how)
            for text, how in zip(texts, sampling, strict=True)
        ]
        new: set[int] = set()

        def ask(places: Sequence[int]) -> Iterator[dict[int, Any]]:
            new.update(places)
            return answer(places)

        with self.model.usage.added(self.notes.usage):
            answers = dict(answered(self._store, calls, ask))
            self.model.replayed([text for place, text in enumerate(texts) if place not in new])
        return [answers[place] for place in range(len(texts))]

    def _put(self, prompts: Sequence[str]) -> list[str]:
        return [self.model.chat([{"role": "user", "content": text}]) if self._chats else text for text in prompts]


def _reply(draw: Completion) -> Reply | None:
    if draw.text is None:
        return None
    return Reply(
        draw.text,
        "stop" if draw.finished else LOOP if draw.looped else "length",
        prompt_tokens=draw.prompt_tokens,
        completion_tokens=draw.tokens,
        logprobs=list(draw.logprobs) or None,
    )
