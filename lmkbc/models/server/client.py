"""Clients of models: what a back end gives, a library in this process, and an HTTP API and the model that it serves.

The SDK sends and authenticates. It neither retries nor decodes, since servers differ in the fields that they omit.
Redirects are not followed, since a redirected POST may lose its body, and the user can give the right address once.
"""

from __future__ import annotations

import asyncio
import itertools
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, MutableMapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar, TypeVar
from urllib.parse import urljoin, urlsplit

import httpx2
import msgspec
import openai

from lmkbc.errors import UNDECODABLE, InputError, LmkbcError
from lmkbc.http import CallError, LateError, by_proxy, event_loop
from lmkbc.models.answers import Store
from lmkbc.models.base import Reply
from lmkbc.models.identity import model_name, same_model
from lmkbc.models.server.address import AZURE_HOSTS, OF_OPENAI, Defaults, Server
from lmkbc.models.server.body import TokenReport, decode, usage_in
from lmkbc.models.server.limits import TIMEOUT, Limits, Window
from lmkbc.models.server.refusal import (
    SHOWN,
    AbsentError,
    RejectedError,
    ServerError,
    UnreadError,
    WithheldError,
    described,
    error_in,
    is_error,
    refusal,
)
from lmkbc.web_client import RefusedBodyError, WebClient

JSON: openai.RequestOptions = {"headers": {"Content-Type": "application/json"}}
LANE = 8
"""Idle connections per pool. A pool checks all of them for each request, so large pools are slow."""

Result = TypeVar("Result")
Decode = Callable[[bytes], tuple[str, list[Result]]]

SOON = 10.0
"""Maximum number of seconds for a request of a server's metadata."""


class CompletionClient(ABC):
    """Asks a model, one request at a time. Use it on one event loop, and close it there.

    A subclass says how a request is answered (`answer`), and may say what else its API or library offers. The request
    is in OpenAI's format: `model`, `messages` or `prompt`, and, if they are set, `max_tokens`, `temperature`, `n`,
    `seed`, `stop` and others. Further requests complete fewer draws than `n`.

    defaults: address, key and variable of the API, unless the user names others; None for a model in this process.
    """

    defaults: ClassVar[Defaults | None] = None

    def __init__(self, server: Server, limits: Limits) -> None:
        self.server, self.limits = server, limits

    @abstractmethod
    async def answer(self, body: Mapping[str, Any]) -> Sequence[Reply]:
        """Return the draws of one request. Raise CallError for no draws, ServerError if all others would fail too."""

    async def models(self) -> Sequence[str]:
        """Return the names of the models that the server lists."""
        return ()

    async def describe(self) -> Window:
        """Return the model's context, as far as it is known."""
        return Window()

    async def slots(self) -> int | None:
        """Return the number of prompts that are kept in a cache; None if unknown."""
        return None

    async def tokens(self, text: str, *, special: bool = False) -> Sequence[int] | None:  # noqa: ARG002 -- of subclasses
        """Return a text in the model's tokens; None if unknown. special: whether to add those around a prompt."""
        return None

    async def rendered(self, messages: Sequence[Mapping[str, str]]) -> str | None:  # noqa: ARG002
        """Return a chat as the text that the model reads; None if unknown."""
        return None

    async def token_reports(self, body: Mapping[str, Any]) -> Sequence[TokenReport]:  # noqa: ARG002
        """Return the tokens of one request, as one report. Raise CallError and ServerError as `answer` does."""
        raise RejectedError("the server returns no log-probabilities of a given text")

    async def elsewhere(self) -> ServerError | None:
        """Return the error for an address at which the API is not, if it is found elsewhere."""
        return None

    async def ask(self, body: Mapping[str, Any]) -> Sequence[Reply]:
        """Return the draws of one request. A prompt that the provider's filter refuses gives withheld draws."""
        try:
            return await self.answer(body)
        except WithheldError:
            return [Reply("", "content_filter") for _ in range(body.get("n", 1))]
        except (AbsentError, CallError) as error:
            raise (None if self.server.seen.answered else await self.elsewhere()) or error from None

    async def close(self) -> None:  # noqa: B027 -- most libraries hold nothing
        """Free what is held, such as connections."""


class LibraryClient(CompletionClient):
    """A model of a library in this process: no address, no key.

    `complete` runs in a thread of its own, one call at a time.
    """

    def __init__(self, server: Server, limits: Limits) -> None:
        super().__init__(server, limits)
        self._alone = asyncio.Lock()

    @abstractmethod
    def complete(
        self, prompt: str | Sequence[Mapping[str, str]], sampling: Mapping[str, Any], draws: int
    ) -> Sequence[str]:
        """Return the answers to a text or to the messages of a chat.

        sampling: temperature, top_p, max_tokens, stop, seed, those that are set. Raise CallError if the model fails.
        """

    async def answer(self, body: Mapping[str, Any]) -> Sequence[Reply]:
        """Return the draws of one request."""
        sampling = {name: value for name, value in body.items() if name not in ("model", "messages", "prompt", "n")}
        prompt = body["messages"] if "messages" in body else body["prompt"]
        async with self._alone:
            texts = await asyncio.to_thread(self.complete, prompt, sampling, body.get("n", 1))
        self.server.seen.answered = True
        return [Reply(text, served=self.server.name) for text in texts]


class ModelClient(CompletionClient):
    """Sends single requests to the API of a server. `send` and `read` report failures."""

    defaults: ClassVar[Defaults | None] = OF_OPENAI

    def __init__(self, server: Server, limits: Limits) -> None:
        super().__init__(server, limits)
        pool = httpx2.Limits(max_connections=limits.concurrency, max_keepalive_connections=LANE)
        self._lanes = [
            openai.AsyncOpenAI(
                base_url=server.root,
                default_query=server.query,
                api_key=server.key or "none",
                max_retries=0,
                default_headers=self.headers,
                http_client=WebClient(server.base_url, limits=pool, timeout=limits.timeout),
            )
            for _ in range(math.ceil(limits.concurrency / LANE))
        ]
        self._turn = itertools.cycle(self._lanes)

    @property
    def headers(self) -> Mapping[str, str]:
        """Return further headers of every request, such as one with the key; by default the key is a bearer token."""
        return {}

    async def close(self) -> None:
        """Close all connections."""
        for lane in self._lanes:
            await lane.close()

    async def metadata(self, path: str, kind: type[Result], body: Mapping[str, Any] | None = None) -> Result | None:
        """Return the server's answer at a path besides its API; None if it is of another type or late."""
        url = urljoin(f"{self.server.root}/", path)
        try:
            return msgspec.json.decode(await self.send(url, body, min(SOON, self.limits.timeout)), type=kind)
        except (CallError, ServerError, *UNDECODABLE):
            return None

    async def send(self, path: str, body: Mapping[str, Any] | None = None, within: float | None = None) -> bytes:
        """Return the body of a response, without our key. A request without a body is a GET.

        within: maximum seconds in all; by default those of one attempt. It also ends answers that arrive slowly. Raise
        CallError for no result, ServerError if all further requests would fail too.
        """
        try:
            async with asyncio.timeout(within or self.limits.timeout):
                sdk = next(self._turn)
                if body is None:
                    answer = await sdk.get(path, cast_to=httpx2.Response)
                else:
                    content = msgspec.json.encode(body)
                    answer = await sdk.post(path, cast_to=httpx2.Response, content=content, options=JSON)
                self.server.seen.reached = True
                is_utf8 = (answer.charset_encoding or "utf-8").casefold() in ("utf-8", "utf8")
                return self.server.without_key(answer.content if is_utf8 else answer.text.encode())
        except (TimeoutError, openai.APITimeoutError):
            limit = f"{within:g} s" if within else f"{self.limits.timeout:g} s ({TIMEOUT} sets it)"
            raise LateError(f"no whole answer within {limit}") from None
        except openai.APIStatusError as error:
            self.server.seen.reached = True
            raise refusal(self.server, error.status_code, error.response.content, error.response.headers) from None
        except openai.APIConnectionError as error:
            if isinstance(error.__cause__, httpx2.ConnectError | httpx2.ProxyError) and not self.server.seen.reached:
                raise ServerError(self._unreachable(error.__cause__)) from None
            if isinstance(error.__cause__, httpx2.DecodingError):
                raise CallError(
                    f"{self.server.base_url} sent what cannot be read: {error.__cause__}",
                    transient=not isinstance(error.__cause__, RefusedBodyError),
                ) from None
            reason = type(error.__cause__).__name__ if error.__cause__ else "no connection"
            raise CallError(f"{self.server.base_url} broke off or cannot be reached ({reason})") from None

    def _unreachable(self, cause: Exception) -> str:
        """Return the error message for a server that was never reached."""
        url = self.server.base_url
        hint = "start the server, or give its address with --base-url"
        if "CERTIFICATE_VERIFY_FAILED" in str(cause):
            hint = "name the file of the certificate that signs its own in SSL_CERT_FILE"
        elif by_proxy(url):
            hint = f"correct HTTP_PROXY or HTTPS_PROXY, or name {urlsplit(url).hostname} in NO_PROXY"
        return f"{url} cannot be reached ({cause}){by_proxy(url)}: {hint}"

    def read(self, raw: bytes, decode: Decode[Reply] = decode) -> list[Reply]:
        """Return the draws in a response's body. Raise CallError for a body without draws.

        decode: returns the model's name and the draws; raises ValueError for what is not the API's.
        """
        served, replies = self.decoded(raw, decode)
        for reply in replies:
            reply.served = served
        return replies

    def decoded(self, raw: bytes, decode: Decode[Result]) -> tuple[str, list[Result]]:
        """Return the model's name in an answer, and its draws. Raise errors as `_recognised` does.

        A web page or a plain text is asked for again only if the server has answered before.
        """
        try:
            served, answers = decode(raw)
        except ValueError as error:
            what = described(raw)
            fields = {} if what else error_in(raw)
            if is_error(fields):
                raise refusal(self.server, 200, raw) from None
            hint = ": check --base-url" if what and not self.server.seen.answered else ""
            raise UnreadError(
                f"the answer is not what the API promises ({what or error}){hint}",
                usage_in(raw),
                transient=self.server.seen.answered or not what,
            ) from None
        return self._recognised(served), answers

    def _recognised(self, served: str) -> str:
        """Return the model's name in an answer.

        Raise ServerError, which ends the session, for another model; CallError if the right model has answered
        before.
        """
        server, served = self.server, model_name(served)
        if not server.takes(served):
            if server.seen.answered:
                raise CallError(f"model {served[:SHOWN]!r} answered in place of {server.name!r}")
            raise ServerError(
                f"asked for model {server.name!r}, {server.base_url} answers as {served[:SHOWN]!r}: say --model "
                f"{served[:SHOWN]}, or --any-model to take what it serves"
            )
        server.seen.answered = True
        return served


Listings = MutableMapping[str, Sequence[str]]
"""Server -> models that it lists."""

LISTED = 5
"""Maximum number of models in an error."""


def as_served(
    server: Server, open_client: Callable[[], CompletionClient], store: Store, listings: Listings, *, offline: bool
) -> Server:
    """Return the server with the name of the model that it serves, if the recipe accepts any model.

    An Azure deployment keeps the name that its owner chose. Each server is asked once for the same listings. Offline,
    its last answer counts; without one, the requested name stays. Raise InputError if it serves several other models.
    """
    url = server.kept_as
    if not server.any_model or (urlsplit(url).hostname or "").endswith(AZURE_HOSTS):  # it lists what could be deployed
        return server
    note = f"models of {url}"
    if url not in listings and offline:
        listings[url] = tuple(store.note(note) or ())
    elif url not in listings:
        try:
            with event_loop() as (_, run):
                listings[url] = run(_listed(open_client))
        except ServerError as error:
            known = "; --offline takes what it has answered already" if store.note(note) else ""
            raise ServerError(f"{error}{known}") from None
        store.set_note(note, list(listings[url]))
    if not (server.model or listings[url]):
        raise InputError("no model is named, and --offline asks no server for its own: give one with --model")
    return replace(server, model=_chosen(server, listings[url])) if listings[url] else server


async def _listed(open_client: Callable[[], CompletionClient]) -> tuple[str, ...]:
    """Return the models that a server lists. Raise LmkbcError if it lists none."""
    client, reason, names = open_client(), "", list[str]()
    try:
        names = list(await client.models())
    except AbsentError:
        pass
    except (CallError, *UNDECODABLE) as error:
        reason = f" ({error})"
    finally:
        better = None if names else await client.elsewhere()
        await client.close()
    if not names:
        raise better or LmkbcError(
            f"{client.server.base_url} does not tell at /models which model it serves{reason}: "
            "name the model with --model in place of --any-model"
        )
    return tuple(dict.fromkeys(names))


def _chosen(server: Server, models: Sequence[str]) -> str:
    """Return the requested model if the server lists it, else the only one."""
    if server.model in models:
        return server.model
    alike = [model for model in models if same_model(server.model, model)] or models
    if len(alike) > 1:
        names = ", ".join(alike[:LISTED]) + (", ..." if len(alike) > LISTED else "")
        raise InputError(f"{server.base_url} serves {len(alike)} models ({names}): name one of them with --model")
    return alike[0]
