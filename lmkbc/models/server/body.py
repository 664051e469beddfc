"""Bodies: of requests, with the optional fields that a server supports, and of answers.

Optional fields of an answer are read leniently, the others strictly. What a server supports is found by trying.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import msgspec

from lmkbc.files.jsonl import without_halves
from lmkbc.models.base import CUT_OFF, WITHHELD, Prompt, Reply, Request
from lmkbc.models.call import Call
from lmkbc.models.server.address import Server

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
    answer = _streamed(whole) if whole.startswith(STREAM) else msgspec.json.decode(whole, type=_Answer)
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


LENGTH = ("max_tokens", "max_completion_tokens")
"""Fields that limit an answer's length: in general, and for the API's newer models."""

OPTIONAL = ("n", "response_format", "logprobs", "top_logprobs", "seed", "chat_template_kwargs")
"""Fields that some servers do not support, and that are not essential for an answer. The first is left out first."""

SAMPLERS = ("temperature", "top_p")
"""Fields that reasoning models do not support. For a server that supports only one of them, the first is kept."""

_UNKNOWN = re.compile(
    r"\b(?:unsupported|unknown|unrecogni[sz]ed|unexpected|deprecated|cannot both|only the default|extra_forbidden"
    r"|not (?:support|allow|permit|a valid)\w*)\b",
    re.IGNORECASE,
)
"""Words of a server for a field that it does not support, whatever the value."""

MOST_DRAWS = 128
"""Maximum number of draws of one request: the API's limit."""


def calls(server: Server, request: Request, prompt: Prompt) -> list[Call]:
    """Return one call per draw of a request, for its prompt or a shorter one. Seeds count up from the sampling's."""
    text, sampling = prompt.form == "completion", request.sampling
    given = {name: getattr(sampling, name) for name in ("temperature", "top_p", "max_tokens", "stop")}
    if given["stop"] is None and text:
        given["stop"] = request.stops
    fields = {name: value for name, value in given.items() if value is not None} | dict(sampling.extra)
    if sampling.logprobs:
        fields["logprobs"] = 1 if text else True
    return [
        server.call(
            prompt.text if text else prompt.messages(),
            fields,
            schema=request.schema,
            seed=None if sampling.seed is None else sampling.seed + draw,
            draw=draw,
        )
        for draw in request.draws
    ]


@dataclass(slots=True)
class Offers:
    """Optional fields that a server refuses.

    several: whether it returns as many draws as `n` requests. model: the server's name for the model.
    accepted: fields of requests that it answered.
    """

    model: str
    refused: set[str] = field(default_factory=set)
    several: bool = True
    accepted: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        """Request one draw at a time if `n` is refused already."""
        self.several = self.several and "n" not in self.refused

    def body(self, call: Call, draws: int) -> dict[str, Any]:
        """Return the body that requests `draws` draws of a call, without fields that the server refuses."""
        body: dict[str, Any] = {"model": self.model}
        body["prompt" if isinstance(call.prompt, str) else "messages"] = call.prompt
        body |= call.sampling
        if draws > 1:
            body["n"] = draws
        if call.seed is not None:
            body["seed"] = call.seed
        if call.schema is not None:
            schema = {"name": "answer", "strict": True, "schema": dict(call.schema)}
            body["response_format"] = {"type": "json_schema", "json_schema": schema}
        return without(body, self.refused)

    def refuse(self, fields: Collection[str]) -> None:
        """Record fields without which a refused request succeeded."""
        self.refused.update(fields)
        self.several = self.several and "n" not in fields


def without(body: Mapping[str, Any], fields: Collection[str]) -> dict[str, Any]:
    """Return a body without some fields. The answer's length stays limited, by the field's other name."""
    left = {name: value for name, value in body.items() if name not in fields}
    return left | ({LENGTH[1]: body[LENGTH[0]]} if LENGTH[0] in fields and LENGTH[0] in body else {})


def blamed(body: Mapping[str, Any], message: str) -> list[str] | None:
    """Return the fields that a refusal names, and that can be left out; None if it names no field of the body.

    Fields of a recipe's own are left out only if the server does not know them. Return [] for a field that the user
    must change.
    """
    words = set(re.findall(r"\w+", message))
    own = body.keys() - {"model", "messages", "prompt", "stop"}
    named = [name for name in own if words & {name, *(body[name] if isinstance(body[name], Mapping) else ())}]
    found = [name for name in OPTIONAL if name in named]
    if unknown := bool(_UNKNOWN.search(message)):
        found += [name for name in named if name not in (*OPTIONAL, *SAMPLERS, *LENGTH)]
    if LENGTH[0] in named and (unknown or LENGTH[1] in words):
        found.append(LENGTH[0])
    if not found and unknown:
        found = [name for name in SAMPLERS if name in named][-1:]
    if "logprobs" in found and "top_logprobs" in body:
        found = list(dict.fromkeys((*found, "top_logprobs")))
    return found if named else None


def guesses(body: Mapping[str, Any], accepted: Collection[str]) -> Iterator[list[str]]:
    """Yield what to leave out after a refusal that names no field: each optional field alone, then all of them.

    Fields that the server has accepted stay.
    """
    left = [name for name in OPTIONAL if name in body and name not in accepted]
    alone = [name for name in left if name != "top_logprobs" or "logprobs" not in left]
    for name in alone:
        yield left[left.index(name) :][:2] if name == "logprobs" and "top_logprobs" in left else [name]
    if len(alone) > 1:
        yield left


def without_prefill(reply: Reply, prompt: Any) -> Reply:
    """Return a reply without a given beginning of the answer, which llama.cpp repeats."""
    given = prompt[-1]["content"] if not isinstance(prompt, str) and prompt[-1]["role"] == "assistant" else ""
    return msgspec.structs.replace(reply, text=reply.text.removeprefix(given)) if given else reply
