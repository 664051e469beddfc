"""The client of servers with OpenAI's API: chat, completion, models, and what llama.cpp and vLLM add."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from lmkbc.http import Pace
from lmkbc.models.base import Reply
from lmkbc.models.identity import same_model
from lmkbc.models.server.body import TokenReport, decode_tokens
from lmkbc.models.server.client import ModelClient
from lmkbc.models.server.limits import InFlight, Window
from lmkbc.models.server.refusal import ServerError

LLAMA_CPP = "llamacpp"


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
    """Properties that llama.cpp reports. total_slots: number of prompts with a cache."""

    default_generation_settings: _Settings | None = None
    total_slots: int | None = None


class _Tokens(msgspec.Struct):
    """A text in the server's tokens."""

    tokens: list[int]


class _Templated(msgspec.Struct):
    prompt: str


class _Listing(msgspec.Struct):
    """Models that a server lists, whatever it says of them."""

    data: list[msgspec.Raw]


class ChatClient(ModelClient):
    """Sends requests as they are. Servers report their context in different places, or only in refusals."""

    async def answer(self, body: Mapping[str, Any]) -> Sequence[Reply]:
        """Return the draws of one request."""
        return self.read(await self.send("/chat/completions" if "messages" in body else "/completions", body))

    async def models(self) -> Sequence[str]:
        """Return the names of the models that the server lists, after retries."""
        waiting = InFlight(self.server, self.limits)
        raw = await Pace(self.limits).retrying(lambda: waiting.over(self.send("/models")))
        return [model.id for model in msgspec.json.decode(raw, type=_Models).data if model.id]

    async def describe(self) -> Window:
        """Return the server's context: at /models, or at /props of llama.cpp's older versions."""
        listed = (await self.metadata("models", _Models) or _Models([])).data
        ours = [model for model in listed if same_model(self.server.model, model.id)] or listed
        if not ours or (len(ours) > 1 and len(ours) == len(listed)):
            return Window()
        (served, *_) = ours
        length = served.max_model_len or (served.meta.n_ctx if served.meta else None) or served.context_length
        if length is None and served.owned_by == LLAMA_CPP:
            props = await self.metadata("../props", _Props) or _Props()
            length = props.default_generation_settings.n_ctx if props.default_generation_settings else None
        return Window(length if length and length > 0 else None, whole=served.max_model_len is not None)

    async def slots(self) -> int | None:
        """Return the number of llama.cpp's caches."""
        return (await self.metadata("../props", _Props) or _Props()).total_slots

    async def tokens(self, text: str, *, special: bool = False) -> Sequence[int] | None:
        """Return a text in the tokens of llama.cpp or vLLM."""
        fields = {"content": text, "add_special": True}
        if not special:
            fields = {"model": self.server.model, "content": text, "prompt": text}
        counted = await self.metadata("../tokenize", _Tokens, fields)
        return None if counted is None else counted.tokens

    async def rendered(self, messages: Sequence[Mapping[str, str]]) -> str | None:
        """Return a chat, rendered by the template of llama.cpp's model."""
        templated = await self.metadata(
            "../apply-template",
            _Templated,
            {"messages": messages, "chat_template_kwargs": {"enable_thinking": False}},
        )
        return None if templated is None else templated.prompt

    async def token_reports(self, body: Mapping[str, Any]) -> Sequence[TokenReport]:
        """Return the tokens of one request, as one report."""
        return self.decoded(await self.send("/completions", body), decode_tokens)[1]

    async def elsewhere(self) -> ServerError | None:
        """Return the error for an address that lacks /v1, where the server lists its models; None if it does not."""
        root = self.server.root
        if "/v" in root.partition("://")[2] or await self.metadata("v1/models", _Listing) is None:
            return None
        return ServerError(f"{root} is not the whole address of its API: give {root}/v1 with --base-url")
