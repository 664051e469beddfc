"""A model's server: its address, its name for the model, and the key, which is never written to files.

A server gets only a key that the user has named for its host, not one that a recipe alone names.
"""

from __future__ import annotations

import logging
import os
import re
from base64 import b64encode
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any
from urllib.parse import SplitResult, parse_qsl, quote, urlsplit

from lmkbc.errors import InputError
from lmkbc.http import is_loopback, is_web_address
from lmkbc.models.base import Call, Reply
from lmkbc.models.identity import model_identity, model_name, same_model

KEY = "OPENAI_API_KEY"
KEYS = "LMKBC_KEYS"
"""Variable that maps hosts to key variables, as in "api.example.org=EXAMPLE_KEY,other.org=OTHER_KEY"."""

log = logging.getLogger(__name__)

OPENAI = "https://api.openai.com/v1"
BASE_URL = "OPENAI_BASE_URL"

ROOT = "/v1"
"""Path of the API on most servers."""

PORTS = {"http": ":80", "https": ":443"}
"""Ports that an address need not name."""

ASKED_AT = ("/chat/completions", "/completions", "/models")
"""Ends of providers' full addresses, which are not part of a base URL."""

_SECRET = re.compile(r"(?:\A|[&;])[^=&;]*(?:key|token|secret|sig|pass|auth|cred|code)[^=&;]*=", re.IGNORECASE)
"""A part of a query that may hold a key, by its name."""

AZURE_HOSTS = (".openai.azure.com", ".cognitiveservices.azure.com", ".services.ai.azure.com")
"""Ends of Azure's hosts. A deployment there serves one model, under a name of its owner's."""


@dataclass(frozen=True, slots=True)
class Defaults:
    """Address of an API, unless the user names another one.

    url: base URL. key: environment variable with the key for its host; "" for an API without keys.
    variable: environment variable with another base URL; "" for none.
    """

    url: str
    key: str = ""
    variable: str = ""


OF_OPENAI = Defaults(OPENAI, KEY, BASE_URL)


@dataclass(slots=True)
class Seen:
    """Observations of a server. reached: whether it ever answered. answered: whether its model did.

    refused: fields of a request that it does not support. cuts: whether it was seen to cut a prompt without an error.
    streams: refusal of a whole answer by a model that answers only as a stream; "" for others.
    """

    reached: bool = False
    answered: bool = False
    cuts: bool = False
    streams: str = ""
    refused: set[str] = field(default_factory=set)


@dataclass(frozen=True, slots=True)
class Server:
    """A model's server.

    any_model: whether to accept a server's other name for the model.
    key_variable: environment variable with the key; "" if the user has named none for this server.
    """

    base_url: str
    model: str
    revision: str = ""
    any_model: bool = False
    key: str = field(default="", repr=False)
    key_variable: str = KEY
    seen: Seen = field(default_factory=Seen, repr=False, compare=False)

    @classmethod
    def of(
        cls,
        base_url: str | None,
        model: str | None,
        *,
        revision: str = "",
        any_model: bool = False,
        offline: bool = False,
        recipe_url: str | None = None,
        key_env: str = "",
        defaults: Defaults = OF_OPENAI,
    ) -> Server:
        """Return a server by URL and model. The URL is base_url, from the user, else $OPENAI_BASE_URL, else recipe_url.

        model: may be missing with any_model, for the only one that the server lists. defaults: of the server's API.
        offline: whether nothing will be requested, so that no key is needed.
        key_env: variable that a recipe names for its URL.

        Raise InputError for an unusable address, and for a server without a key (`KEYS`).
        """
        given = base_url or os.environ.get(defaults.variable)
        parts = _address((given or recipe_url or defaults.url).strip())
        url, host = parts.geturl(), str(parts.hostname)
        if not (model or (any_model and not host.endswith(AZURE_HOSTS))):
            raise InputError("no model is named: give one with --model")
        if offline:
            return cls(url, model or "", revision, any_model)
        variable = variable_of(parts, of_recipe=not given and bool(recipe_url), wanted=key_env, defaults=defaults)
        key = os.environ.get(variable, "").strip() if variable else ""
        if not (key.isascii() and key.isprintable()):
            raise InputError(f"the key in {variable} holds a character that no key has: copy it again")
        if not key and not is_loopback(host):
            hint = "; any word will do for a server that checks none"
            raise InputError(f"{host} needs a key: set the environment variable {variable}{hint}")
        _warn_of_plain(parts.scheme, host)
        return cls(url, model or "", revision, any_model, key, variable)

    @property
    def root(self) -> str:
        """Return the base URL without its query."""
        return self.base_url.partition("?")[0]

    @property
    def kept_as(self) -> str:
        """Return the base URL in keys of the store, with /v1 if it has no path: servers answer alike at both."""
        parts = urlsplit(self.base_url)
        host = parts.netloc.lower().removesuffix(PORTS.get(parts.scheme, ""))
        return parts._replace(netloc=host, path=parts.path or (host and ROOT)).geturl()

    @property
    def query(self) -> Mapping[str, str]:
        """Return the query that every request carries, such as api-version."""
        return dict(parse_qsl(urlsplit(self.base_url).query, keep_blank_values=True))

    @property
    def name(self) -> str:
        """Return the model's name in files."""
        return model_name(self.model)

    @property
    def of_several(self) -> str:
        """Return the key of the store's note on whether it gives several answers to one request."""
        return f"several answers of {self.model} at {self.kept_as}"

    def call(self, prompt: Any, sampling: Mapping[str, Any], **how: Any) -> Call:
        """Return a call to this model. how: seed, draw."""
        revision = self.revision or model_identity(self.model)
        return Call(model=self.name, revision=revision, base_url=self.kept_as, prompt=prompt, sampling=sampling, **how)

    def takes(self, served: str) -> bool:
        """Return whether an answer from a model of that name is accepted."""
        return self.any_model or same_model(self.model, served)

    def is_answer(self, reply: Reply) -> bool:
        """Return whether a reply is an answer of this model."""
        return reply.is_answer and self.takes(reply.served)

    def without_key(self, body: bytes) -> bytes:
        """Return what the server sent without our key, in case the server echoes it: as it is, in a URL, or in JSON."""
        if len(self.key) > 3:
            in_base64 = b64encode(self.key.encode()).decode()
            for form in (self.key, quote(self.key, safe=""), quote(self.key), self.key.replace("/", r"\/"), in_base64):
                body = re.sub(re.escape(form.encode()), b"[key]", body, flags=re.IGNORECASE)
        return body

    def hidden(self, text: str) -> str:
        """Return words of the server without our key."""
        return self.without_key(text.encode(errors="replace")).decode()


def _address(url: str) -> SplitResult:
    """Return the parts of a base URL in normal form. Raise InputError for an unusable one."""
    parts = urlsplit(url) if is_web_address(url) else urlsplit("")
    if not parts.hostname:
        shown = "" if any(sign in url for sign in "@?#") else f" {url!r}"  # which may hold a key or a password
        raise InputError(f"the base URL{shown} is no http or https address: give one like {OPENAI}")
    path = parts.path.rstrip("/")
    for end in ASKED_AT:
        path = path.removesuffix(end)
    if parts.hostname.endswith(AZURE_HOSTS) and "/deployments/" in path:
        raise InputError(
            f"the base URL of {parts.hostname} is of Azure's older API: give https://{parts.hostname}/openai/v1, and "
            "name the deployment with --model"
        )
    if parts.username or parts.password or _SECRET.search(parts.query):
        raise InputError(f"the base URL of {parts.hostname} carries more than an address: give the key in {KEY}")
    if parts.fragment:
        raise InputError(f"the base URL of {parts.hostname} carries more than an address: leave out # and what follows")
    return parts._replace(path=path)


def variable_of(address: SplitResult, *, of_recipe: bool, wanted: str = "", defaults: Defaults = OF_OPENAI) -> str:
    """Return the environment variable with the key for an address; "" for a server that gets none.

    of_recipe: whether only a recipe names the address. wanted: variable that the recipe names. Raise InputError for a
    recipe's host for which the user has named no key.
    """
    host = address.hostname or ""
    if named := _named().get(host):
        return named
    if not of_recipe or (host == urlsplit(defaults.url).hostname and address.scheme == "https"):
        return defaults.key
    if is_loopback(host):
        return ""
    variable = wanted or defaults.key
    raise InputError(
        f"base_url of the recipe is {address.geturl()!r}, which is sent no key that you did not name for it: if you "
        f"trust {host}, set {KEYS}={host}={variable}, or give the address with --base-url"
    )


@cache
def _warn_of_plain(scheme: str, host: str) -> None:
    """Warn, once per host, about a remote host without encryption."""
    if scheme == "http" and not is_loopback(host):
        log.warning("%s is asked over http: prompts, answers and the key can be read on the way; use https", host)


def _named() -> dict[str, str]:
    """Return host -> variable, as the user has set them."""
    named = {}
    for pair in os.environ.get(KEYS, "").replace(",", " ").split():
        host, _, variable = pair.partition("=")
        if not (host and variable.isidentifier()):
            raise InputError(f"{KEYS}: {pair!r} is not HOST=VARIABLE; write pairs such as api.example.org=EXAMPLE_KEY")
        named[host.casefold()] = variable
    return named
