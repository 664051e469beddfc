"""Bodies of servers' answers: optional fields are read leniently, the fields of an answer strictly."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

import msgspec

from lmkbc.models.base import CUT_OFF, WITHHELD, Reply

_SAME = {
    **dict.fromkeys(("max_tokens", "model_length", "model_context_window_exceeded"), "length"),
    **dict.fromkeys(("safety", "sensitive", "prohibited_content", "blocklist", "spii", "recitation"), "content_filter"),
    **dict.fromkeys(("end_turn", "stop_sequence"), "stop"),
}
"""Other servers' finish reasons -> those used here."""

THOUGHT = ("<think>", "</think>")

LEAST = -1e30
"""Least log-probability. llama.cpp writes the least number for -inf, which JSON lacks."""

_HALF = re.compile(
    rb"(?P<whole>\\[^u]|\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2})"
    rb"|\\u[dD][89a-fA-F][0-9a-fA-F]{2}|\xed[\xa0-\xbf][\x80-\xbf]"
)
"""A lone surrogate, as an escape or as bytes, in a text that was cut within a character."""

CODES = {"context_length_exceeded", "exceed_context_size_error"}
MOST_TOKENS = 10**9
"""Larger numbers of tokens in a server's message are ignored."""

_CONTEXT = re.compile(r"\bcontext (?:length|size|window)\b", re.IGNORECASE)
_WINDOW = re.compile(r"context (?:length|size)(?: is)?(?: only)? \(?(\d{1,9})\b", re.IGNORECASE)
_PROMPT = re.compile(
    r"\b(?:request|input) \((\d{1,9}) tokens|resulted in (\d{1,9}) t|\((\d{1,9}) in |(\d{1,9}) input t"
)

Optional = TypeVar("Optional")


@dataclass(frozen=True, slots=True)
class TokenReport:
    """Report of a server on the tokens of a text and on the next token.

    tokens: each with its log-probability; None for the first token of a given text.
    chosen: id of the next token.
    likeliest: token id -> log-probability, of the next token and its alternatives.
    """

    text: str
    tokens: Sequence[tuple[str, float | None]]
    chosen: int | None
    likeliest: Mapping[int, float]
    prompt_tokens: int
    completion_tokens: int


def decode_tokens(raw: bytes) -> tuple[str, list[TokenReport]]:
    """Return the model's name and the tokens in a response's body. Raise ValueError for a body without a choice."""
    answer = _answer(raw)
    usage = _optional(answer.usage, _Usage) or _Usage()
    logprobs = _optional(answer.choices[0].logprobs, _Logprobs) or _Logprobs()
    first = next(iter(logprobs.content or ()), None)
    others = [first, *(first.top_logprobs or ())] if first else []
    report = TokenReport(
        text=answer.choices[0].text or "",
        tokens=[(token, None if p is None else _likely(p)) for token, p in logprobs.spelt() or ()],
        chosen=first.id if first else None,
        likeliest={one.id: _likely(one.logprob) for one in others if one.id is not None},
        prompt_tokens=max(usage.prompt_tokens or 0, 0),
        completion_tokens=1 if usage.completion_tokens is None else max(usage.completion_tokens, 0),
    )
    return answer.model or "", [report]


def decode(raw: bytes) -> tuple[str, list[Reply]]:
    """Return the model's name and the draws in a response's body. Raise ValueError for a body without a draw."""
    answer = _answer(raw)
    replies = [_reply(answer, choice) for choice in answer.choices]
    if all(reply.failed for reply in replies):
        raise ValueError(f"it ended with {replies[0].finish!r}")
    return answer.model or "", replies


class TooLong(NamedTuple):
    """Tokens of the prompt and of the context, if the server reports them."""

    prompt: int | None
    window: int | None


def too_long(body: Mapping[str, Any], message: str) -> TooLong | None:
    """Return the lengths in a refusal of a prompt that is too long; None for another refusal."""
    if not (CODES & {str(body.get("code")), str(body.get("type"))} or _CONTEXT.search(message)):
        return None
    return TooLong(
        _number(body.get("n_prompt_tokens"), _PROMPT.search(message)),
        _number(body.get("n_ctx"), _WINDOW.search(message)),
    )


def _number(field: Any, written: re.Match[str] | None) -> int | None:
    if isinstance(field, int) and 0 < field < MOST_TOKENS:
        return field
    return next((int(number) for number in written.groups() if number), None) if written else None


def _answer(raw: bytes) -> _Answer:
    """Return the decoded body of a response, with lone surrogates as U+FFFD.

    Raise ValueError for a body without a choice.
    """
    whole = _HALF.sub(lambda found: found["whole"] or rb"\ufffd", raw)
    answer = msgspec.json.decode(whole, type=_Answer)
    if not answer.choices or any(choice.is_empty for choice in answer.choices):
        raise ValueError("it holds no choices")
    return answer


def _reply(answer: _Answer, choice: _Choice) -> Reply:
    message = choice.message or _Message(content=choice.text)
    usage, share = _optional(answer.usage, _Usage) or _Usage(), len(answer.choices)
    logprobs = _optional(choice.logprobs, _Logprobs) or _Logprobs()
    spelt, prompt = logprobs.spelt(), max(usage.prompt_tokens or 0, 0)
    completion = max(usage.completion_tokens or 0, (usage.total_tokens or 0) - prompt, 0)  # with reasoning
    return Reply(
        text=message.text() or message.refusal or "",
        finish="refusal" if message.refusal else choice.end,
        served=answer.model or "",
        prompt_tokens=prompt // share,
        completion_tokens=completion // share,
        logprobs=None if spelt is None else [(token, p) for token, p in spelt if p is not None],
        first=logprobs.first(),
    )


def _optional(raw: msgspec.Raw, kind: type[Optional]) -> Optional | None:
    """Return an optional field, decoded; None if it is missing or has another shape."""
    try:
        return msgspec.json.decode(raw, type=kind) if raw else None
    except msgspec.DecodeError:
        return None


def _likely(logprob: float) -> float:
    return min(logprob, 0.0) if logprob > LEAST else -math.inf


class _Usage(msgspec.Struct):
    """Tokens of a request. Some servers count tokens of reasoning only in the total."""

    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    total_tokens: int | None = None


class _Part(msgspec.Struct):
    type: str = "text"
    text: str = ""


class _Message(msgspec.Struct):
    content: str | list[_Part] | None = None
    refusal: str | None = None

    def text(self) -> str:
        """Return the text of an answer; if it has parts, such as reasoning and text, only the text parts."""
        parts = self.content or ""
        return parts if isinstance(parts, str) else "".join(part.text for part in parts if part.type == "text")


class _Alternative(msgspec.Struct):
    token: str
    logprob: float
    id: int | None = None


class _Token(_Alternative):
    top_logprobs: list[_Alternative] | None = None


class _Logprobs(msgspec.Struct):
    """Log-probabilities in the format of chat (content), or of completion (tokens, token_logprobs, top_logprobs)."""

    content: list[_Token] | None = None
    tokens: list[str] | None = None
    token_logprobs: list[float | None] | None = None
    top_logprobs: list[dict[str, float] | None] | None = None

    def spelt(self) -> list[tuple[str, float | None]] | None:
        """Return the tokens of the text with their log-probabilities; None if they are missing."""
        if self.content is not None:
            return [(token.token, token.logprob) for token in self.content]
        if self.tokens is None or self.token_logprobs is None:
            return None
        return list(zip(self.tokens, self.token_logprobs, strict=False))

    def first(self) -> list[tuple[str, float]] | None:
        """Return the alternatives to the first token that is not blank, after the reasoning."""
        content = self.content or []
        for chosen in content[_thought([token.token for token in content]) :]:
            if chosen.token.strip():
                return [(alternative.token, alternative.logprob) for alternative in chosen.top_logprobs or ()] or None
        start = _thought(self.tokens or ())
        for token, others in [*zip(self.tokens or (), self.top_logprobs or (), strict=False)][start:]:
            if token.strip():
                return [*others.items()] if others else None
        return None


def _thought(tokens: Sequence[str]) -> int:
    """Return the number of tokens of reasoning before the answer; all if the reasoning has no end."""
    start, text = 0, ""
    for place, token in enumerate(tokens):
        text += token
        if text.rstrip().endswith(THOUGHT[1]):
            start, text = place + 1, ""
        elif THOUGHT[0] in text:
            start = len(tokens)
    return start


class _Choice(msgspec.Struct):
    message: _Message | None = None
    text: str | None = None
    finish_reason: str | None = None
    logprobs: msgspec.Raw = msgspec.Raw()

    @property
    def end(self) -> str:
        """Return the finish reason in this module's words; "content_filter: SAFETY" becomes "content_filter"."""
        reason = self.finish_reason or "stop"
        word = reason.partition(":")[0].casefold()
        return _SAME.get(word, word if word in WITHHELD else reason)

    @property
    def is_empty(self) -> bool:
        """Return whether it holds neither a text nor a reason for its absence."""
        return self.message is None and self.text is None and self.end not in (*WITHHELD, *CUT_OFF)


class _Answer(msgspec.Struct):
    choices: list[_Choice]
    model: str | None = None
    usage: msgspec.Raw = msgspec.Raw()
