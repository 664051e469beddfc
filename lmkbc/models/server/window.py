"""A server's context: how many tokens it reads, where it tells, and how many a prompt has, as nearly as is known.

llama.cpp tells its own at /v1/models (older ones at /props), vLLM and its kin `max_model_len`, some gateways
`context_length`; others tell by refusing. Both llama.cpp and vLLM count tokens at /tokenize.
"""

from __future__ import annotations

import msgspec

from lmkbc.models.answers import Call
from lmkbc.models.files import same_model
from lmkbc.models.server.client import ChatClient
from lmkbc.models.server.limits import GUESSED_ANSWER, estimate
from lmkbc.models.server.refusals import TooLong

LLAMA_CPP = "llamacpp"
TURN = 5
"""Tokens that a chat template puts around a turn, about."""


class _Meta(msgspec.Struct):
    n_ctx: int | None = None


class _Model(msgspec.Struct):
    id: str = ""
    owned_by: str = ""
    max_model_len: int | None = None
    context_length: int | None = None
    meta: _Meta | None = None


class _Models(msgspec.Struct):
    data: list[_Model]


class _Settings(msgspec.Struct):
    n_ctx: int


class _Props(msgspec.Struct):
    default_generation_settings: _Settings


class _Tokens(msgspec.Struct):
    tokens: list[int]


class Window:
    """tokens: what the server reads of prompt and answer together, None where that is not known.

    whole: an answer has to fit at its full length, else the server refuses the request; otherwise it only ends early.
    """

    def __init__(self) -> None:
        self.tokens: int | None = None
        self.whole = False
        self._scale = 1.0  # tokens in one that is estimated

    async def ask(self, client: ChatClient) -> None:
        """Ask the server for its context. What it does not tell stays unknown."""
        models = await client.metadata("models", _Models)
        listed = models.data if models else []
        ours = [model for model in listed if same_model(client.server.model, model.id)] or listed
        if not ours or (len(ours) > 1 and len(ours) == len(listed)):
            return
        (served, *_) = ours
        self.whole = served.max_model_len is not None
        length = served.max_model_len or (served.meta.n_ctx if served.meta else None) or served.context_length
        if length is None and served.owned_by == LLAMA_CPP:
            props = await client.metadata("../props", _Props)
            length = props.default_generation_settings.n_ctx if props else None
        self.tokens = length if length is not None and length > 0 else None

    async def count(self, client: ChatClient, call: Call) -> None:
        """Let the server count the tokens of a prompt, where it does, so that those of others are known better."""
        turns = [] if isinstance(call.prompt, str) else call.prompt
        text = "\n".join(turn["content"] for turn in turns) if turns else call.prompt
        fields = {"model": client.server.model, "content": text, "prompt": text}
        if counted := await client.metadata("../tokenize", _Tokens, fields):
            self._learn(call, len(counted.tokens) + TURN * len(turns))

    def learn_from(self, call: Call, lengths: TooLong | None) -> None:
        """Learn from a refusal, as far as it tells numbers."""
        if lengths is not None:
            self.tokens = lengths.window or self.tokens
            if lengths.prompt is not None:
                self._learn(call, lengths.prompt)

    def exceeded(self, prompt: int, answer: int) -> bool:
        """Whether a prompt of that length probably leaves no room for an answer, by all that is known."""
        if self.tokens is None:
            return False
        return prompt * self._scale + (answer if self.whole else min(answer, GUESSED_ANSWER)) > self.tokens

    def _learn(self, call: Call, tokens: int) -> None:
        self._scale = tokens / length_of(call)[0]


def length_of(call: Call) -> tuple[int, int]:
    """About how many tokens a prompt has, and its answer at its longest."""
    return estimate({"prompt" if isinstance(call.prompt, str) else "messages": call.prompt} | dict(call.sampling))
