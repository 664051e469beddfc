"""The back end for local models: a causal model that answers all dialogues in parallel and stores its answers."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import NamedTuple

from lmkbc.errors import counted
from lmkbc.local.decode import Completion, Decoding
from lmkbc.local.model import CausalModel
from lmkbc.models.answers import KeptAnswers, KeptOptions, Scored, Store
from lmkbc.models.base import (
    LOCAL_EXTRAS,
    LOOP,
    Call,
    Dialogue,
    Key,
    Outcome,
    Prompt,
    Reply,
    Request,
    Response,
    Result,
    Size,
    next_requests,
)
from lmkbc.models.prefixes import beginnings
from lmkbc.models.server.limits import GUESSED_ANSWER
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


PLAIN_TOKENS = 128
"""Maximum number of tokens of an answer to a plain prompt, unless the request says another."""


class _Draw(NamedTuple):
    """A draw: its call, the text that is read, and its number in a series from the seed on."""

    call: Call
    text: str
    how: Decoding
    number: int


class LocalModel:
    """A causal model of this machine. All dialogues are answered in parallel: their next requests together.

    identity: distinguishes it, weights included, from models of the same name in the store.
    chats: whether plain prompts use the chat template.
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
        self.store, self._chats, self._longest, self.notes = store, chats, longest, notes or Notes()
        self.place = str(store.place) if store else ""

    def complete(
        self, dialogues: Mapping[Key, Dialogue[Result]], outcome: Outcome | None = None
    ) -> Iterator[tuple[Key, Result]]:
        """Yield the result of each dialogue. outcome: gets sentences about incomplete draws and shortened prompts."""
        ends: Counter[str] = Counter()
        with self.model.usage.added(self.notes.usage):
            answered: Iterable[tuple[Key, list[Response] | None]] = ((key, None) for key in dialogues)
            while True:
                asked: dict[Key, list[Request]] = {}
                for key, responses in answered:
                    requests, result = next_requests(dialogues[key], responses)
                    if requests:
                        asked[key] = requests
                    else:
                        yield key, result  # type: ignore[misc]
                if not asked:
                    break
                answered = self._round(asked, ends)
        if outcome is not None:
            shortened, total = ends.pop("shortened", 0), ends.total()
            outcome.lost = "prompts exceed the model's window" if ends["window"] else ""
            outcome.remarks += [f"{ends[end]} of {total} draws {why}" for end, why in ENDS.items() if ends[end]]
            if shortened:
                many = counted(shortened, "prompt was", "prompts were")
                outcome.remarks.append(f"{many} shown fewer examples, to fit the model's window")

    def score(self, prompts: Sequence[Prompt], options: Sequence[Sequence[str]]) -> list[list[float]]:
        """Return the log-probability of each of its options as the continuation of each prompt; -inf if unknown."""
        calls = self.option_calls(prompts, options)
        answers = KeptOptions(self.store, calls)
        missing = list(answers.asked)
        with self.model.usage.added(self.notes.usage):
            for places in (missing[start : start + PORTION] for start in range(0, len(missing), PORTION)):
                asked = [answers.asked[place] for place in places]
                texts = list(map(_options, asked))
                count = partial(self.notes.received, [None])  # an answer counts as soon as its prompt is read
                logs = self.model.log_probabilities([call.prompt for call in asked], texts, count)
                new = {place: _scored(text, row) for place, text, row in zip(places, texts, logs, strict=True)}
                kept = {place: scored for place, scored in new.items() if {*scored.scores.values()} != {None}}
                answers.keep(kept)
            stored = [calls[place].prompt for place in answers.stored if place not in answers.asked]
            for tokens in self.model.encode(stored):
                self.model.usage.replayed(len(tokens))
        rows = [row or [-math.inf] * len(choices) for row, choices in zip(answers.rows(), options, strict=True)]
        ranked = [row for row, prompt in zip(rows, prompts, strict=True) if prompt.form != "plain"]
        if lost := sum(bool(row) and max(row) == -math.inf for row in ranked):
            self.notes.remark(
                f"{self.name}: {lost} of {len(ranked)} prompts whose candidates are ranked exceed the model's window: "
                "show fewer examples"
            )
        return rows

    def beginnings(self, prompt: Prompt, options: Sequence[str]) -> list[str]:
        """Return the shortest beginning of each option that no other option has, in whole tokens after a prompt."""
        (call,) = self.option_calls([prompt], [options])
        given = _options(call)  # of which some begin with a space
        found = beginnings(self.model.encode, str(call.prompt), given)
        return [text[len(whole) - len(option) :] for text, whole, option in zip(found, given, options, strict=True)]

    def prompts(self, request: Request) -> list[Prompt]:
        """Return the prompt of a request, with fewer examples if the window leaves no room for an answer."""
        return [self._fitted(request)[0]]

    def calls(self, request: Request, prompt: Prompt) -> list[Call]:
        """Return a call per draw."""
        return [draw.call for draw in self._draws(request, prompt, self._text(prompt))]

    def option_calls(self, prompts: Sequence[Prompt], options: Sequence[Sequence[str]]) -> list[Call]:
        """Return the call of each prompt. Options that continue a text begin with a space."""
        calls = []
        for prompt, row in zip(prompts, options, strict=True):
            plain, text = prompt.form == "plain", self.model.closed(self._text(prompt))
            spaced = text and (not self._chats if plain else prompt.form == "completion")
            given = {"words" if plain else "options": [f" {option}" if spaced else option for option in row]}
            calls.append(Call(model=self.name, revision=self.identity, prompt=text, sampling=given))
        return calls

    def kept(self, calls: Sequence[Call]) -> list[Reply | None]:
        """Return the stored reply of each call."""
        return self._kept(calls).found

    def sizes(self, calls: Sequence[Call]) -> Iterator[tuple[Call, Size]]:
        """Yield the size of the only request for draws of a prompt, in the model's own tokens."""
        call = calls[0]
        text = call.prompt if isinstance(call.prompt, str) else self.model.chat(call.prompt)
        prompt, *options = map(len, self.model.encode([text, *_options(call)]))
        yield call, Size(1, prompt + sum(options), len(calls) * call.sampling.get("max_tokens", 0))

    def _round(
        self, asked: Mapping[Key, Sequence[Request]], ends: Counter[str]
    ) -> Iterator[tuple[Key, list[Response]]]:
        """Yield the responses to the requests of each key as soon as they are complete. ends: counts draws by end."""
        draws: list[_Draw] = []
        keys: list[Key] = []
        parts: dict[Key, list[tuple[Prompt, range]]] = defaultdict(list)
        for key, requests in asked.items():
            for request in requests:
                prompt, text = self._fitted(request)
                ends["shortened"] += prompt is not request.prompt
                its = self._draws(request, prompt, text)
                parts[key].append((prompt, range(len(draws), len(draws) + len(its))))
                draws += its
                keys += [key] * len(its)
        replies: dict[int, Reply | None] = {}
        lacking = Counter(keys)
        for place, reply in self._answers(draws):
            replies[place] = reply
            ends[reply.finish if reply else "window"] += 1
            lacking[key := keys[place]] -= 1
            if not lacking[key]:
                yield key, [Response(prompt, list(map(replies.pop, its))).plain() for prompt, its in parts[key]]

    def _kept(self, calls: Sequence[Call]) -> KeptAnswers:
        return KeptAnswers(self.store, calls, Reply, lambda reply: not reply.failed)  # a blank one would come again

    def _answers(self, draws: Sequence[_Draw]) -> Iterator[tuple[int, Reply | None]]:
        """Yield the place of each draw with its reply, from the store if possible."""
        answers = self._kept([draw.call for draw in draws])
        for place, reply in answers.stored.items():
            self.model.usage.replayed(reply.prompt_tokens, reply.completion_tokens)
            yield place, reply
        series = grouped(((draws[place].text, draws[place].how), place) for place in answers.missing)
        together: defaultdict[Decoding, list[tuple[str, int, list[int]]]] = defaultdict(list)
        for (text, how), its in series.items():
            numbers = [draws[place].number for place in its]
            alike = replace(how, seed=0, first=min(numbers), draws=max(numbers) + 1 - min(numbers))
            together[alike].append((text, how.seed, its))
        for how, whole in together.items():
            for start in range(0, len(whole), AT_ONCE):
                texts, seeds, places = zip(*whole[start : start + AT_ONCE], strict=True)
                for row, completions in self.model.complete(texts, how, seeds):
                    new = {place: _reply(completions[draws[place].number - how.first]) for place in places[row]}
                    kept = answers.keep(new)
                    self.notes.received(kept.values())
                    yield from kept.items()

    def _draws(self, request: Request, prompt: Prompt, text: str) -> list[_Draw]:
        """Return the draws of a request. text: of the prompt."""
        how = self._decoding(request)
        asked = text if prompt.form == "plain" else prompt.text if prompt.form == "completion" else prompt.messages()
        shared = request.draws == tuple(range(how.draws))  # else each draw has its own seed
        draws = []
        for number in request.draws:
            drawn = replace(how, draws=1, seed=how.seed if shared or not how.temperature else how.seed + number)
            sampling = {name: value for name, value in drawn.key.items() if name not in ("seed", "first", "draws")}
            call = Call(
                model=self.name,
                prompt=asked,
                revision=self.identity,
                sampling=sampling,
                seed=drawn.seed if how.temperature else None,
                draw=number if shared else 0,
            )
            draws.append(_Draw(call, text, drawn, call.draw))
        return draws

    def _decoding(self, request: Request) -> Decoding:
        sampling, form = request.sampling, request.prompt.form
        extra = {name: value for name, value in sampling.extra.items() if name in LOCAL_EXTRAS}
        most = sampling.max_tokens or (PLAIN_TOKENS if form == "plain" else self._longest)
        stops = request.stops if form in ("completion", "plain") else ()
        return Decoding.of(
            replace(sampling, max_tokens=most, extra=extra), stops, lists=request.lists, schema=request.schema
        )

    def _fitted(self, request: Request) -> tuple[Prompt, str]:
        """Return the prompt, with fewer examples if the window leaves no room for an answer, and its text."""
        answer, text = min(self._decoding(request).max_tokens, GUESSED_ANSWER), self._text(request.prompt)
        if not self.model.fits(text, answer):
            for prompt in request.shorter():
                if self.model.fits(shorter := self._text(prompt), answer):
                    return prompt, shorter
        return request.prompt, text

    def _text(self, prompt: Prompt) -> str:
        if prompt.form == "plain":
            return self.model.chat(prompt.messages()) if self._chats else prompt.text
        return self.model.text(prompt)


def _options(call: Call) -> list[str]:
    return list(call.sampling.get("words") or call.sampling.get("options") or ())


def _scored(options: Sequence[str], logs: Sequence[float]) -> Scored:
    # JSON has no infinity
    return Scored(dict(zip(options, [log if math.isfinite(log) else None for log in logs], strict=True)))


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
