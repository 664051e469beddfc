"""A causal model that answers many prompts at a time, with the results of each prompt alone."""

from __future__ import annotations

import logging
import math
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import TypeVar

import numpy as np
import numpy.typing as npt
import torch
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from lmkbc.errors import InputError
from lmkbc.local.abilities import Abilities, abilities
from lmkbc.local.branches import Batched, Ragged
from lmkbc.local.caches import PrefixCaches
from lmkbc.local.decode import ANSWER, Asked, Completion, Decoding, Read, Room, decode
from lmkbc.local.grammar import Forms
from lmkbc.local.trees import Scores, alone, layer_at, read_batched, read_packed
from lmkbc.local.turns import Turns, holds_thought, turns
from lmkbc.models.base import ONE_TURN, Prompt
from lmkbc.models.budget import Usage
from lmkbc.models.endings import list_end
from lmkbc.models.hardware import capacity, computes
from lmkbc.models.prefixes import Group, Option, Tokens, groups, of_one_length, with_options
from lmkbc.models.thoughts import answer_of
from lmkbc.types import grouped

ALL = Room(sys.maxsize, sys.maxsize)
Worked = TypeVar("Worked")
log = logging.getLogger("lmkbc")

COLUMNS = 2048
"""Maximum number of tokens after a prefix that are read at a time where every prompt has a row of one length."""


class CausalModel:
    """Completes prompts and scores continuations. Prompts share the key/value cache of a common prefix.

    usage: the counts so far.
    """

    def __init__(self, model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase) -> None:
        self.model, self.tokenizer, self.usage = model, tokenizer, Usage()
        self._config = model.config.get_text_config()
        before, self._added = _around(tokenizer)
        self._start = tokenizer.bos_token if before and before[0] == tokenizer.bos_token_id else None
        self._prefix_caches = PrefixCaches(model)
        self._watched: int | None = None
        self._noted: dict[Tokens, npt.NDArray[np.float32]] = {}

    def complete(
        self, prompts: Sequence[str], how: Decoding, seeds: Sequence[int] = ()
    ) -> Iterator[tuple[int, list[Completion]]]:
        """Yield the draws of each prompt, by its place, in any order. An answer ends before the first stop string.

        seeds: of the prompts, if they differ.
        """
        encoded = self.encode(prompts)
        room = [self._window - len(tokens) for tokens in encoded]
        asked = [place for place in range(len(prompts)) if room[place] >= 1 and encoded[place]]
        for place in set(range(len(prompts))) - set(asked):
            yield place, [Completion(None, finished=False)] * how.draws
        read: set[Tokens] = set()
        begun, seeds = list(map(self._turns.begun, prompts)), seeds or [how.seed] * len(prompts)
        for one, (first, *rest) in self._timed(self._answered(encoded, begun, asked, room, how, seeds)):
            self._count([len(one.prompt)])
            self.usage.saved_by_prefixes += len(one.prefix) if one.prefix in read else 0
            self.usage.completion_tokens += sum(draw.tokens for draw in (first, *rest))
            read.add(one.prefix)
            yield one.place, [replace(first, prompt_tokens=len(one.prompt)), *rest]

    def log_probabilities(
        self, prompts: Sequence[str], options: Sequence[Sequence[str]], on_read: Callable[[], None] = lambda: None
    ) -> list[list[float]]:
        """Return, for each prompt, the log-probability (natural) of each of its options as its continuation.

        on_read: called when a prompt with its options has been read.
        After an empty prompt, an option is a whole text, which follows the start token, or the end token of a model
        without one. The log-probability is -inf for options that exceed the model's window.
        """
        tokens = with_options(self.encode, prompts, options)
        begin = next(
            (token for token in (self.tokenizer.bos_token_id, self.tokenizer.eos_token_id) if token is not None), None
        )
        if begin is not None:
            tokens = [
                choices
                if prompt
                else [option if option.first else Option((begin, *option.whole), 1) for option in choices]
                for prompt, choices in zip(prompts, tokens, strict=True)
            ]
        logs = [[0.0 if 1 <= first == len(whole) else -math.inf for whole, first in choices] for choices in tokens]
        fits = [
            [at for at, (whole, first) in enumerate(choices) if 1 <= first < len(whole) <= self._window]
            for choices in tokens
        ]
        asked = [number for number, places in enumerate(fits) if places]
        kept = [[tokens[number][place] for place in fits[number]] for number in asked]
        self._count([min(option.first for option in choices) for choices in kept])
        for at, (scores, state) in self._timed(self._read(kept, self._watched, reuse=True)):
            if state is not None:
                self._noted[_start(kept[at])] = state.float().cpu().numpy()
            for place, score in zip(fits[asked[at]], scores, strict=True):
                logs[asked[at]][place] = score
            on_read()
        return logs

    def _read(
        self, prompts: Sequence[Sequence[Option]], layer: int | None, *, reuse: bool = False
    ) -> Iterator[tuple[int, Scores]]:
        """Yield the scores of prompts with options, by place.

        reuse: whether to continue cached prefixes of earlier calls.
        """
        longest = max((len(option.whole) for options in prompts for option in options), default=0)
        if longest > self._able.reach:
            return read_batched(self.model, self._groups, prompts, COLUMNS, layer, grows=self._able.grows)
        starts = [_start(options) for options in prompts]
        shared = self._groups(starts)
        if reuse:
            shared = [self._prefix_caches.reused(starts, group) for group in shared]
        self.usage.saved_by_prefixes += sum(group.saved for group in shared)
        return read_packed(self.model, self._prefix_caches, shared, prompts, layer)

    def computes(self) -> dict[str, str | int]:
        """Return the device, the precision and the like of the computation."""
        return computes(self.model)

    def watch(self, depth: float) -> None:
        """Record the states at this depth of prompts whose options are scored, so that `states` need not read them.

        A second call deletes the states recorded so far.
        """
        self._watched, self._noted = layer_at(self.model, depth), {}

    def states(self, prompts: Sequence[str], depth: float) -> npt.NDArray[np.float32]:
        """Return the hidden state after each prompt's last token, (n, d); 0 for prompts beyond the window.

        A prompt that occurs several times is read once.

        depth: share of the layers after which it is read.
        """
        tokens, layer = self.encode(prompts), layer_at(self.model, depth)
        noted = self._noted if layer == self._watched else {}
        states = np.zeros((len(prompts), self._config.hidden_size), dtype=np.float32)
        for place in (at for at, row in enumerate(tokens) if row in noted):
            states[place] = noted[tokens[place]]
            self.usage.replayed(len(tokens[place]))
        read = grouped((row, at) for at, row in enumerate(tokens) if row not in noted and 1 <= len(row) <= self._window)
        self._count([len(row) for row, places in read.items() for _ in places])
        rows = [*read]
        for at, (_, state) in self._timed(self._read([*map(alone, rows)], layer)):
            if state is not None:
                states[read[rows[at]]] = state.float().cpu().numpy()
        return states

    def encode(self, texts: Sequence[str]) -> list[Tokens]:
        """Return the tokens of texts, with the model's start token once and no end token.

        Raise InputError for a token that the model has no embedding of.
        """
        plain = [text.removeprefix(self._start) if self._start else text for text in texts]
        found = [tuple(tokens) for tokens in self.tokenizer(plain)["input_ids"]] if plain else []
        last, size = max(map(max, filter(None, found)), default=0), getattr(self._config, "vocab_size", sys.maxsize)
        if last >= size:
            raise InputError(
                f"{self.model.name_or_path or 'the model'} has no embeddings of the tokens {size} to "
                f"{len(self.tokenizer) - 1} of its tokenizer, and a prompt holds {last} "
                f"({self.tokenizer.convert_ids_to_tokens(last)!r}): use the tokenizer that belongs to the weights"
            )
        ended = len(self._added)
        return [row[:-ended] if ended and row[-ended:] == self._added else row for row in found]

    def chat(self, messages: Sequence[Mapping[str, str]]) -> str:
        """Return a chat as text, rendered by the model's template, up to where the answer begins.

        A last assistant turn is the beginning of the answer. Raise InputError if the template refuses the turns; some
        refuse a system turn.
        """
        begun = messages[-1]["role"] == "assistant"
        try:
            text = self.tokenizer.apply_chat_template(
                [dict(turn) for turn in messages],
                tokenize=False,
                add_generation_prompt=not begun,
                continue_final_message=begun,
                enable_thinking=False,
            )
        except Exception as error:  # a template may raise any error
            reason = " ".join(str(error).split())[:200]
            raise InputError(f"the model's chat template refuses a prompt ({reason}): {ONE_TURN}") from None
        return str(text)

    def text(self, prompt: Prompt) -> str:
        """Return a prompt as the text that the model reads: a text unchanged, turns rendered by the chat template."""
        if prompt.form == "completion":
            return prompt.text
        if not self.tokenizer.chat_template:
            raise InputError(
                f"the model has no chat template, which a prompt of form {prompt.form!r} needs: "
                "use form = 'completion', or a model tuned for chat"
            )
        return self.chat(prompt.messages())

    def closed(self, text: str) -> str:
        """Return a prompt with its open thought closed, so that options can follow as answers."""
        return self._turns.closed(text)

    def fits(self, text: str, answer: int) -> bool:
        """Return whether the window has room for a text and an answer of `answer` tokens."""
        room = self._window - answer
        return len(text.encode()) < room or len(self.encode([text])[0]) <= room  # a token has at least one byte

    def _count(self, prompts: Sequence[int]) -> None:
        self.usage.calls += len(prompts)
        self.usage.prompt_tokens += sum(prompts)

    def _timed(self, work: Iterator[Worked]) -> Iterator[Worked]:
        """Yield the pieces of work, and count the time that each takes."""
        start = time.perf_counter()
        for piece in work:
            self.usage.seconds += time.perf_counter() - start
            yield piece
            start = time.perf_counter()
        self.usage.seconds += time.perf_counter() - start

    @cached_property
    def _able(self) -> Abilities:
        able = abilities(self.model, self.encode)
        if not able.shares:
            log.warning(
                "%s cannot continue from a cache (%s): every prompt is read as a whole%s, which takes longer",
                self.model.name_or_path or "the model",
                type(self.model).__name__,
                "" if able.grows else ", for every token of an answer",
            )
        return able

    @property
    def _window(self) -> int:
        """Return the most tokens of prompt and answer together."""
        return int(getattr(self._config, "max_position_embeddings", None) or 1 << 30)

    @cached_property
    def _room(self) -> Room:
        """Return how many answers may grow together."""
        config = self._config
        heads = getattr(config, "num_key_value_heads", None) or config.num_attention_heads
        size = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
        token = 2 * config.num_hidden_layers * heads * size * self.model.dtype.itemsize
        able = capacity(self.model.device)
        return Room(able.rows, max(able.memory // token, 1))

    def _groups(self, prompts: Sequence[Tokens], spare: int = 1, *, to_answer: bool = False) -> list[Group]:
        """Return prompts grouped by prefix. Those whose prefix saves too little form a group without a prefix.

        to_answer: whether they are answered, not read with options.
        """
        found = groups(prompts, spare) if self._able.shares or not prompts else [Group(0, tuple(range(len(prompts))))]
        able = capacity(self.model.device)
        least = able.saving_of_answers if to_answer else able.saving
        alone = tuple(member for group in found if group.saved < least for member in group.members)
        return [group for group in found if group.saved >= least] + ([Group(0, alone)] if alone else [])

    def _answered(
        self,
        encoded: Sequence[Tokens],
        begun: Sequence[str],
        places: Sequence[int],
        room: Sequence[int],
        how: Decoding,
        seeds: Sequence[int],
    ) -> Iterator[tuple[Asked, list[Completion]]]:
        """Yield the draws of the prompts at the given places."""
        ragged: list[Asked] = []
        equal: list[list[Asked]] = []
        for group in self._groups([encoded[place] for place in places], to_answer=True):
            members = [places[member] for member in group.members]
            prefix = encoded[members[0]][: group.shared]
            asked = [Asked(place, encoded[place], prefix, room[place], seeds[place], begun[place]) for place in members]
            if self._able.ragged and max(len(one.prompt) for one in asked) + how.max_tokens <= self._able.reach:
                ragged += asked
            else:
                equal.append(asked)
        how_to_read = self._turns.ends, self._reader(how), self._forms
        if ragged:
            yield from decode(Ragged(self.model, self._prefix_caches), ragged, how, self._room, *how_to_read)
        for asked in equal:
            with torch.inference_mode():
                branches = Batched(self.model, asked[0].prefix, grows=self._able.grows)
            lengths = [len(one.prompt) - len(one.prefix) for one in asked]
            for run in of_one_length(lengths, how.draws * min(how.max_tokens, ANSWER), COLUMNS):
                yield from decode(branches, [asked[place] for place in run], how, ALL, *how_to_read)

    @cached_property
    def _forms(self) -> Forms:
        return Forms(self.tokenizer, self._config.vocab_size)

    @cached_property
    def _turns(self) -> Turns:
        """Return how answers begin and end."""
        return turns(self.model, self.tokenizer, self.chat)

    def _reader(self, how: Decoding) -> Read:
        def decoded(tokens: list[int]) -> str:
            return str(self.tokenizer.decode(tokens, clean_up_tokenization_spaces=False))

        def read(tokens: list[int], begun: str) -> Completion:
            text, ended = self._turns.read(tokens, decoded)
            text = begun + text
            found = [len(text)] if ended else []
            answer = answer_of(text) if (how.stops or how.lists) and holds_thought(text) else text
            if answer is not None:  # else it still thinks
                start = max(text.rfind(answer), 0)
                found += [place for stop in how.stops if (place := text.find(stop, start)) >= 0]
                if how.lists and (end := list_end(text[start:])) is not None:
                    found.append(start + end)
            return Completion(text[: min(found)] if found else text, finished=bool(found))

        return read


def _around(tokenizer: PreTrainedTokenizerBase) -> tuple[Tokens, Tokens]:
    """Return the tokens that a tokenizer adds before and after a text."""
    plain, whole = (tokenizer("Peru", add_special_tokens=added)["input_ids"] for added in (False, True))
    at = next((at for at in range(len(whole)) if whole[at : at + len(plain)] == plain), len(whole))
    return tuple(whole[:at]), tuple(whole[at + len(plain) :])


def _start(options: Sequence[Option]) -> Tokens:
    """Return the tokens of a prompt that do not depend on its continuation."""
    return options[0].whole[: min(option.first for option in options)]
