"""Optional fields of requests that a server supports, which are found by trying."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

from lmkbc.models.base import Call, Reply
from lmkbc.models.server.address import Seen
from lmkbc.models.server.limits import LENGTH
from lmkbc.models.server.refusal import WORDS, RejectedError

OPTIONAL = ("stream_options", "n", "response_format", "logprobs", "top_logprobs", "seed", "chat_template_kwargs")
"""Fields that some servers do not support, and that are not essential for an answer. The first is left out first."""
SAMPLERS = ("temperature", "top_p")
"""Fields that reasoning models do not support. For a server that supports only one of them, the first is kept."""
MOST_DRAWS = 128
"""Maximum number of draws of one request: the API's limit."""


@dataclass(slots=True)
class Offers:
    """Optional fields that a server refuses, and whether it answers only as a stream.

    several: whether it returns as many draws as `n` requests. model: the server's name for the model.
    seen: what all sessions know of the server.
    accepted: fields of requests that it answered.
    """

    model: str
    seen: Seen = field(default_factory=Seen)
    several: bool = True
    accepted: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        """Request one draw at a time if `n` is refused already."""
        self.several = self.several and "n" not in self.refused

    @property
    def refused(self) -> set[str]:
        """Return the fields that the server refuses."""
        return self.seen.refused

    def body(self, call: Call, draws: int) -> dict[str, Any]:
        """Return the body that requests `draws` draws of a call, without fields that the server refuses."""
        body: dict[str, Any] = {"model": self.model}
        body["prompt" if isinstance(call.prompt, str) else "messages"] = call.prompt
        body |= call.sampling
        if draws > 1:
            body["n"] = draws
        if call.seed is not None:
            body["seed"] = call.seed
        if self.seen.streams:
            body["stream"] = True
        if body.get("stream"):
            body["stream_options"] = {"include_usage": True}
        return without(body, self.refused)

    def learn_stream(self, body: Mapping[str, Any], refused: RejectedError) -> bool:
        """Return whether a refusal wants a stream where a whole answer was requested; streams are requested then."""
        if body.get("stream") or self.seen.streams or "stream" in self.refused or not WORDS.stream.search(refused.said):
            return False
        self.seen.streams = str(refused)
        return True

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
    if unknown := bool(WORDS.unknown.search(message)):
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
