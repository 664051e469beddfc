"""Where a model is asked: the server's address, what it calls the model, and the key that must never be written."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import urlsplit

from lmkbc.errors import InputError
from lmkbc.models.files import model_identity, model_name, same_model
from lmkbc.models.store import Call

OPENAI = "https://api.openai.com/v1"
LOOPBACK = ("localhost", "127.0.0.1", "::1")
KEY = "OPENAI_API_KEY"
BASE_URL = "OPENAI_BASE_URL"


@dataclass(frozen=True, slots=True)
class Server:
    """Where a model is asked. any_model: take answers of a server that calls the model by another name."""

    base_url: str
    model: str
    revision: str = ""
    any_model: bool = False
    key: str = field(default="", repr=False)

    @classmethod
    def of(
        cls,
        base_url: str | None,
        model: str | None,
        *,
        revision: str = "",
        any_model: bool = False,
        offline: bool = False,
    ) -> Server:
        """A server by URL and model, the URL else from $OPENAI_BASE_URL, the key only from $OPENAI_API_KEY.

        InputError for what cannot be asked. offline: nothing will be asked, so no key is needed.
        """
        url = (base_url or os.environ.get(BASE_URL) or OPENAI).rstrip("/")
        parts = urlsplit(url) if _is_address(url) else urlsplit("")
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise InputError(f"the base URL {url!r} is no http or https address: give one like {OPENAI}")
        if parts.username or parts.password or parts.query or parts.fragment:
            raise InputError(f"the base URL of {parts.hostname} carries more than an address: give the key in {KEY}")
        if not model:
            raise InputError("no model is named: give one with --model")
        key = os.environ.get(KEY, "")
        if not key and not offline and parts.hostname not in LOOPBACK:
            raise InputError(f"{parts.hostname} needs a key: set the environment variable {KEY}")
        return cls(url, model, revision, any_model, key)

    @property
    def name(self) -> str:
        """What files call the model."""
        return model_name(self.model)

    def call(self, prompt: Any, sampling: Mapping[str, Any], **how: Any) -> Call:
        """A call to this model. how: schema, seed, draw."""
        revision = self.revision or model_identity(self.model)
        return Call(model=self.name, revision=revision, base_url=self.base_url, prompt=prompt, sampling=sampling, **how)

    def known_as(self, call: Call) -> Iterator[Call]:
        """A call of ours, and as it was stored when the model was named by its path."""
        yield call
        if self.name != self.model:
            yield replace(call, model=self.model, revision=self.revision)

    def takes(self, served: str) -> bool:
        """Whether what a model of that name says is an answer of ours."""
        return self.any_model or same_model(self.model, served)

    def without_key(self, text: str) -> str:
        """A text of the server without our key, should it echo it."""
        return text.replace(self.key, "[key]") if len(self.key) > 3 else text

    def echoes(self, tokens: Iterable[tuple[str, float]] | None) -> bool:
        """Whether tokens spell our key, one by one or together."""
        whole = "".join(token for token, _ in tokens or ())
        return self.without_key(whole) != whole


def _is_address(url: str) -> bool:
    """Whether the standard library can take a URL apart: not where brackets or the port make no sense."""
    try:
        return urlsplit(url).port != 0
    except ValueError:
        return False
