"""Bodies of servers' answers: optional fields are read leniently, the fields of an answer strictly."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import msgspec

from lmkbc.errors import UNDECODABLE
from lmkbc.files.jsonl import without_halves
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

NOTHING = (b"", b"null", b"false", b'""', b"{}", b"[]")
"""JSON of a field `error` that names none."""

STREAM = (b"data:", b"event:", b":")
"""Beginnings of an event stream, which some servers send without being asked."""

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
    answer, (choice, *_) = _answer(raw)
    usage = _optional(answer.usage, _Usage) or _Usage()
    logprobs = _optional(choice.logprobs, _Logprobs) or _Logprobs()
    first = next(iter(logprobs.content or ()), None)
    others = [first, *(first.top_logprobs or ())] if first else []
    report = TokenReport(
        text=choice.text or "",
        tokens=[(token, None if p is None else _likely(p)) for token, p in logprobs.spelt() or ()],
        chosen=first.id if first else None,
        likeliest={one.id: _likely(one.logprob) for one in others if one.id is not None},
        prompt_tokens=max(usage.prompt_tokens or 0, 0),
        completion_tokens=1 if usage.completion_tokens is None else max(usage.completion_tokens, 0),
    )
    return answer.model or "", [report]


def decode(raw: bytes) -> tuple[str, list[Reply]]:
    """Return the model's name and the draws in a response's body. Raise ValueError for a body without a draw."""
    answer, choices = _answer(raw)
    replies = [_reply(answer, choice, len(choices)) for choice in choices]
    if all(reply.failed for reply in replies):
        raise ValueError(f"it ended with {replies[0].finish!r}")
    return answer.model or "", replies


def _answer(raw: bytes) -> tuple[_Answer, list[_Choice]]:
    """Return the decoded body of a response, with lone surrogates as U+FFFD, and its choices.

    Raise ValueError for a body without a choice, or with an error.
    """
    whole = without_halves(raw).removeprefix(b"\xef\xbb\xbf").lstrip()
    try:
        answer = _streamed(whole) if whole.startswith(STREAM) else msgspec.json.decode(whole, type=_Answer)
    except RecursionError:
        raise ValueError("its JSON is nested too deeply") from None
    if bytes(answer.error) not in NOTHING:
        raise ValueError("it holds an error")
    if not answer.choices or any(choice.is_empty for choice in answer.choices):
        raise ValueError("it holds no choices")
    return answer, answer.choices


def _streamed(raw: bytes) -> _Answer:
    """Return the events of a stream as one answer. Raise ValueError for a stream without an end."""
    events = [line[5:].strip() for line in raw.splitlines() if line.startswith(b"data:")]
    whole, choices = _Answer(), dict[int, _Choice]()
    for event in events:
        if event == b"[DONE]":
            continue
        part = msgspec.json.decode(event, type=_Answer)
        whole.model, whole.usage = part.model or whole.model, part.usage or whole.usage
        whole.error = part.error or whole.error
        for piece in part.choices or ():
            choice = choices.setdefault(piece.index, _Choice(text=""))
            choice.text = (choice.text or "") + (piece.delta.text() if piece.delta else piece.text or "")
            choice.finish_reason = piece.finish_reason or choice.finish_reason
    if b"[DONE]" not in events and not (choices and all(one.finish_reason for one in choices.values())):
        raise ValueError("it is an event stream without an end")
    whole.choices = [choice for choice in choices.values() if choice.text or choice.end in (*WITHHELD, *CUT_OFF)]
    return whole


def _reply(answer: _Answer, choice: _Choice, share: int) -> Reply:
    message = choice.message or _Message(content=choice.text)
    usage = _optional(answer.usage, _Usage) or _Usage()
    logprobs = _optional(choice.logprobs, _Logprobs) or _Logprobs()
    spelt, prompt = logprobs.spelt(), max(usage.prompt_tokens or 0, 0)
    completion = max(usage.completion_tokens or 0, (usage.total_tokens or 0) - prompt, 0)  # with reasoning
    return Reply(
        text=message.text() or message.refused,
        finish="refusal" if message.refused else choice.end,
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
    except UNDECODABLE:
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
    refusal: str = ""


class _Function(msgspec.Struct):
    arguments: str | dict[str, Any] = ""


class _Tool(msgspec.Struct):
    function: _Function


class _Message(msgspec.Struct):
    content: str | list[_Part | str] | dict[str, Any] | None = None
    refusal: str | None = None
    tool_calls: msgspec.Raw = msgspec.Raw()
    function_call: msgspec.Raw = msgspec.Raw()

    @property
    def refused(self) -> str:
        """Return the words of a refusal, of the message or of a part; "" for an answer."""
        parts = self.content if isinstance(self.content, list) else ()
        return self.refusal or "".join(part.refusal for part in parts if isinstance(part, _Part))

    def text(self) -> str:
        """Return the text of an answer; without one, the arguments of a function that it calls in its place.

        Of parts, such as reasoning and text, only the text counts.
        """
        called = [tool.function for tool in _optional(self.tool_calls, list[_Tool]) or ()]
        called += filter(None, [_optional(self.function_call, _Function)])
        given = [_written(function.arguments) for function in called]
        return _written(self.content) or "\n".join(text for text in given if text.strip() not in ("{}", "null"))


def _written(content: str | Sequence[_Part | str] | Mapping[str, Any] | None) -> str:
    """Return a text that is given as such, in parts, or as an object of JSON."""
    if isinstance(content, Mapping):
        return msgspec.json.encode(content).decode() if content else ""
    if isinstance(content, str):
        return content
    parts = (_Part(text=part) if isinstance(part, str) else part for part in content or ())
    return "".join(part.text for part in parts if part.type in ("text", "output_text"))


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
    index: int = 0
    message: _Message | None = None
    delta: _Message | None = None
    text: str | None = None
    finish_reason: Any = None
    logprobs: msgspec.Raw = msgspec.Raw()
    error: msgspec.Raw = msgspec.Raw()

    @property
    def end(self) -> str:
        """Return the finish reason in this module's words; "content_filter: SAFETY" becomes "content_filter"."""
        if bytes(self.error) not in NOTHING:
            return "error"
        reason = self.finish_reason if isinstance(self.finish_reason, str) and self.finish_reason else "stop"
        word = reason.partition(":")[0].casefold()
        return _SAME.get(word, word if word in WITHHELD else reason)

    @property
    def is_empty(self) -> bool:
        """Return whether it holds neither a text nor a reason for its absence."""
        return self.message is None and self.text is None and self.end not in (*WITHHELD, *CUT_OFF)


class _Answer(msgspec.Struct):
    choices: list[_Choice] | None = None
    model: str | None = None
    usage: msgspec.Raw = msgspec.Raw()
    error: msgspec.Raw = msgspec.Raw()
