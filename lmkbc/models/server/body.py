"""Bodies of servers' answers: optional fields are read leniently, the fields of an answer strictly."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import msgspec

from lmkbc.errors import UNDECODABLE
from lmkbc.files.jsonl import without_halves
from lmkbc.models.base import CUT_OFF, WITHHELD, Reply
from lmkbc.models.thoughts import THOUGHT_NAMES

_SAME = {
    **dict.fromkeys(("max_tokens", "model_length", "model_context_window_exceeded"), "length"),
    **dict.fromkeys(("safety", "sensitive", "prohibited_content", "blocklist", "spii", "recitation"), "content_filter"),
    **dict.fromkeys(("end_turn", "stop_sequence"), "stop"),
}
"""Other servers' finish reasons -> those used here."""

THOUGHT = ("<think>", "</think>")

LEAST = -1e30
"""Least log-probability. llama.cpp writes the least number for -inf, which JSON lacks."""

DONE = "[DONE]"
"""Last event of a stream."""

_FIELD = re.compile(r"^[ \t]*(?::.*|(?:event|id|retry):.*|data:)", re.MULTILINE)
"""A comment of an event stream, or the name of a field, at the beginning of a line. No JSON has these there."""

_BLANKS = re.compile(r"\s*")

_TEXTS = ("text", "output_text", "", None)
"""Types of a message's parts that are texts."""

_NO_TEXTS = re.compile(rf"{THOUGHT_NAMES}|refusal|tool|function|reference|citation|source|search", re.IGNORECASE)
"""Types of parts whose text is no answer, whatever other parts there are."""

_JSON = json.JSONDecoder(parse_constant={"-Infinity": LEAST}.get)
"""Reads NaN and Infinity as null: some servers write them as numbers, which JSON lacks."""

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
        text=_written(choice.text),
        tokens=[(token, None if p is None else _likely(p)) for token, p in logprobs.spelt() or ()],
        chosen=first.id if first else None,
        likeliest={one.id: _likely(one.logprob) for one in others if one.id is not None and one.logprob is not None},
        prompt_tokens=usage.tokens[0],
        completion_tokens=1 if usage.completion_tokens is None else max(usage.completion_tokens, 0),
    )
    return answer.model or "", [report]


def decode(raw: bytes) -> tuple[str, list[Reply]]:
    """Return the model's name and the draws in a response's body. Raise ValueError for a body without a draw."""
    answer, choices = _answer(raw)
    replies = [_reply(answer, choice, place, len(choices)) for place, choice in enumerate(choices)]
    if all(reply.failed for reply in replies):
        raise ValueError(f"it ended with {replies[0].finish!r}")
    return answer.model or "", replies


def values(raw: bytes) -> list[Any]:
    """Return the values of JSON in a body: of a document, of lines, or of the events of a stream, with `DONE`.

    Comments and empty events are left out, and lone surrogates are U+FFFD. Raise ValueError for what is no JSON.
    """
    text, place = _FIELD.sub("", without_halves(raw).decode("utf-8-sig")), 0
    found: list[Any] = []
    try:
        while (place := _BLANKS.match(text, place).end()) < len(text):  # type: ignore[union-attr]
            if text.startswith(DONE, place):
                value, place = DONE, place + len(DONE)
            else:
                value, place = _JSON.raw_decode(text, place)
            found.append(value)
    except RecursionError:
        raise ValueError("its JSON is nested too deeply") from None
    except json.JSONDecodeError as error:
        raise ValueError(f"its JSON is cut off or broken at character {error.pos + 1:,}") from None
    return found


def usage_in(raw: bytes) -> tuple[int, int]:
    """Return the prompt and answer tokens that any body reports; (0, 0) for none."""
    try:
        reported = [_optional(value.get("usage"), _Usage) for value in values(raw) if isinstance(value, dict)]
    except ValueError:
        return 0, 0
    return next((usage.tokens for usage in reversed(reported) if usage), (0, 0))


def _answer(raw: bytes) -> tuple[_Answer, list[_Choice]]:
    """Return the decoded body of a response, and its choices.

    Raise ValueError for a body without a choice, or with an error.
    """
    found = values(raw)
    answers = [msgspec.convert(value, _Answer, strict=False) for value in found if value != DONE]
    is_whole = len(answers) == len(found) == 1 and not any(choice.delta for choice in answers[0].choices or ())
    answer = answers[0] if is_whole else _joined(answers, DONE in found)
    if answer.error:
        raise ValueError("it holds an error")
    if not answer.choices or any(choice.is_empty for choice in answer.choices):
        raise ValueError("it holds no choices")
    return answer, answer.choices


def _joined(events: Sequence[_Answer], done: bool) -> _Answer:
    """Return the events of a stream as one answer. Raise ValueError for a stream without an end."""
    whole, choices = _Answer(), dict[int | None, _Choice]()
    for part in events:
        whole.model, whole.usage = part.model or whole.model, part.usage or whole.usage
        whole.error = part.error or whole.error
        for piece in part.choices or ():
            choice = choices.setdefault(piece.index, _Choice(text="", logprobs={}))
            turn = piece.delta or piece.message
            choice.text += turn.text() if turn else _written(piece.text)
            choice.finish_reason = piece.finish_reason or choice.finish_reason
            choice.error = piece.error or choice.error
            for name, tokens in piece.logprobs.items() if isinstance(piece.logprobs, dict) else ():
                choice.logprobs[name] = choice.logprobs.get(name, []) + (tokens if isinstance(tokens, list) else [])
    if not done and not (choices and all(choice.finish_reason for choice in choices.values())):
        raise ValueError("it is an event stream without an end")
    whole.choices = [choice for choice in choices.values() if choice.text or choice.end in (*WITHHELD, *CUT_OFF)]
    return whole


def _reply(answer: _Answer, choice: _Choice, place: int, draws: int) -> Reply:
    """Return a draw with its part of the tokens: an equal one, and one more in the first draws for what is left."""
    message = choice.message or _Message(content=choice.text)
    prompt, completion = (_optional(answer.usage, _Usage) or _Usage()).tokens
    logprobs = _optional(choice.logprobs, _Logprobs) or _Logprobs()
    spelt = logprobs.spelt()
    return Reply(
        text=message.text() or message.refused,
        finish="refusal" if message.refused else choice.end,
        served=answer.model or "",
        prompt_tokens=(prompt - place - 1) // draws + 1,
        completion_tokens=(completion - place - 1) // draws + 1,
        logprobs=None if spelt is None else [(token, p) for token, p in spelt if p is not None],
        first=logprobs.first(),
    )


def _optional(value: Any, kind: type[Optional]) -> Optional | None:
    """Return an optional field as its type; None if it is missing or has another shape."""
    try:
        return msgspec.convert(value, kind, strict=False) if value else None
    except UNDECODABLE:
        return None


def _number(logprob: float | None) -> float | None:
    """Return a log-probability that JSON can hold; None for NaN."""
    return None if logprob is None or math.isnan(logprob) else max(logprob, LEAST)


def _likely(logprob: float) -> float:
    return min(logprob, 0.0) if logprob > LEAST else -math.inf


class _Usage(msgspec.Struct):
    """Tokens of a request. Some servers count tokens of reasoning only in the total."""

    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    total_tokens: int | None = None

    @property
    def tokens(self) -> tuple[int, int]:
        """Return the prompt and answer tokens, with reasoning."""
        prompt = max(self.prompt_tokens or 0, 0)
        return prompt, max(self.completion_tokens or 0, (self.total_tokens or 0) - prompt, 0)


class _Message(msgspec.Struct):
    content: Any = None
    refusal: Any = None
    tool_calls: Any = None
    function_call: Any = None

    @property
    def refused(self) -> str:
        """Return the words of a refusal, of the message or of a part; "" for an answer."""
        parts = self.content if isinstance(self.content, list) else ()
        words = (self.refusal, *(part.get("refusal") for part in parts if isinstance(part, Mapping)))
        return "".join(one for one in words if isinstance(one, str))

    def text(self) -> str:
        """Return the text of an answer; without one, the arguments of a function that it calls in its place.

        Of parts, such as reasoning and text, only the text counts.
        """
        called = [tool.get("function") for tool in _optional(self.tool_calls, list[dict[str, Any]]) or ()]
        called.append(self.function_call)
        given = [_written(one.get("arguments")) for one in called if isinstance(one, Mapping)]
        return _written(self.content) or "\n".join(text for text in given if text.strip() not in ("{}", "null"))


def _written(content: Any) -> str:
    """Return a text that is given as such, in parts, or as an object of JSON."""
    if isinstance(content, Mapping) and not (content.get("type") in _TEXTS[:2] and "text" in content):
        return msgspec.json.encode(content).decode() if content else ""
    if not isinstance(content, list):
        content = [content]
    parts = [(part.get("type"), part.get("text")) if isinstance(part, Mapping) else (None, part) for part in content]
    known = [text for kind, text in parts if kind in _TEXTS]
    texts = known or [text for kind, text in parts if not _NO_TEXTS.search(str(kind))]
    texts = [text.get("value") if isinstance(text, Mapping) else text for text in texts]
    return "".join(text for text in texts if isinstance(text, str))


class _Alternative(msgspec.Struct):
    token: str
    logprob: float | None = None
    id: int | None = None


class _Token(_Alternative):
    top_logprobs: list[_Alternative] | None = None


class _Logprobs(msgspec.Struct):
    """Log-probabilities in the format of chat (content), or of completion (tokens, token_logprobs, top_logprobs)."""

    content: list[_Token] | None = None
    tokens: list[str] | None = None
    token_logprobs: list[float | None] | None = None
    top_logprobs: list[dict[str, float | None] | None] | None = None

    def spelt(self) -> list[tuple[str, float | None]] | None:
        """Return the tokens of the text with their log-probabilities; None if they are missing."""
        if self.content is not None:
            return [(token.token, _number(token.logprob)) for token in self.content]
        if self.tokens is None or self.token_logprobs is None:
            return None
        return [(token, _number(p)) for token, p in zip(self.tokens, self.token_logprobs, strict=False)]

    def first(self) -> list[tuple[str, float]] | None:
        """Return the alternatives to the first token that is not blank, after the reasoning."""
        content = self.content or []
        for chosen in content[_thought([token.token for token in content]) :]:
            if chosen.token.strip():
                return _known((other.token, other.logprob) for other in chosen.top_logprobs or ())
        start = _thought(self.tokens or ())
        for token, others in [*zip(self.tokens or (), self.top_logprobs or (), strict=False)][start:]:
            if token.strip():
                return _known((others or {}).items())
        return None


def _known(pairs: Iterable[tuple[str, float | None]]) -> list[tuple[str, float]] | None:
    """Return tokens with their log-probabilities, without those that have none; None if nothing is left."""
    numbers = ((token, _number(p)) for token, p in pairs)
    return [(token, p) for token, p in numbers if p is not None] or None


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
    index: int | None = 0
    message: _Message | None = None
    delta: _Message | None = None
    text: Any = None
    finish_reason: Any = None
    logprobs: Any = None
    error: Any = None

    @property
    def end(self) -> str:
        """Return the finish reason in this module's words; "content_filter: SAFETY" becomes "content_filter"."""
        if self.error:
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
    usage: Any = None
    error: Any = None
