"""The client: one request to an OpenAI-compatible server, and what came of it, whatever the server sent.

The SDK sends and authenticates; it neither retries nor decodes, since servers differ in what they leave out.
"""

from __future__ import annotations

import asyncio
import itertools
import math
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeVar
from urllib.parse import urljoin, urlsplit

import httpx2
import msgspec
import openai

from lmkbc.errors import LmkbcError
from lmkbc.http import HEADERS, CallError, Pace, read_body, retry_after, trusted
from lmkbc.models.base import Reply
from lmkbc.models.files import model_name, same_model
from lmkbc.models.server.address import KEYS, Server
from lmkbc.models.server.body import TokenReport, TooLong, decode, decode_tokens, too_long
from lmkbc.models.server.limits import Limits

JSON: openai.RequestOptions = {"headers": {"Content-Type": "application/json"}}
LANE = 8
"""Idle connections that a pool keeps: for each request it looks at all of them, so large pools are slow."""

Result = TypeVar("Result")
Request = Callable[[openai.AsyncOpenAI], Awaitable[Result]]
Decode = Callable[[bytes], tuple[str, list[Result]]]

MOST_BYTES = 16 * 2**20
"""Bytes of a response at most, unpacked: a hundred times the longest answer with its tokens' log-probabilities."""

SOON = 10.0
"""Seconds in which a server tells of itself, or is taken to tell nothing."""

SHOWN = 200
"""Characters of a server's own message that are passed on."""


class BoundedClient(openai.DefaultAsyncHttpxClient):
    """The transport under the SDK: reads whole responses, up to MOST_BYTES, and follows no redirect.

    Not even on the same host: answers are kept under the address that was asked, a POST that is redirected may lose its
    body, and a person can give the right address once. A good response that the caller streams is left to `read_body`.
    """

    def __init__(self, **settings: Any) -> None:
        super().__init__(follow_redirects=False, headers=HEADERS, verify=trusted(), **settings)

    async def send(self, request: httpx2.Request, *, stream: bool = False, **how: Any) -> httpx2.Response:
        """Return the response, read. CallError as of `read_body`."""
        response = await super().send(request, stream=True, **how)
        if stream and response.is_success:
            return response
        content = await read_body(response, MOST_BYTES)
        names = ("content-encoding", "content-length", "transfer-encoding")  # of what was sent, no more of what is here
        headers = [(name, value) for name, value in response.headers.multi_items() if name not in names]
        return httpx2.Response(response.status_code, headers=headers, content=content, request=request)


class RejectedError(CallError):
    """The server will not have this request (400 and the like), now or later."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason, transient=False)


class TooLongError(RejectedError):
    """A prompt exceeds the server's context. lengths: of both, as the server tells; None where we reckon so."""

    def __init__(self, reason: str, lengths: TooLong | None = None) -> None:
        super().__init__(reason)
        self.lengths = lengths


class ServerError(LmkbcError):
    """The server will have no request at all: the key, the model or the account is wrong."""


class OtherModelError(ServerError):
    """The server calls its model by another name than it was asked for."""


class ChatClient:
    """Sends single requests; use it on one event loop, and close it there."""

    def __init__(self, server: Server, limits: Limits) -> None:
        self.server, self._limits = server, limits
        pool = httpx2.Limits(max_connections=limits.concurrency, max_keepalive_connections=LANE)
        self._lanes = [
            openai.AsyncOpenAI(
                base_url=server.base_url,
                api_key=server.key or "none",
                max_retries=0,
                http_client=BoundedClient(limits=pool, timeout=limits.timeout),
            )
            for _ in range(math.ceil(limits.concurrency / LANE))
        ]
        self._turn = itertools.cycle(self._lanes)
        self._has_answered = False

    async def close(self) -> None:
        """Close all connections."""
        for lane in self._lanes:
            await lane.close()

    async def ask(self, body: Mapping[str, Any]) -> list[Reply]:
        """Return the draws of one request. CallError for none, ServerError if all further requests are in vain."""
        path = "/chat/completions" if "messages" in body else "/completions"
        return self.read(await self._sent(path, body))

    async def token_reports(self, body: Mapping[str, Any]) -> list[TokenReport]:
        """Return the tokens of one request, as one report. CallError and ServerError as of `ask`."""
        return self._decoded(await self._sent("/completions", body), decode_tokens)[1]

    async def metadata(self, path: str, kind: type[Result], body: Mapping[str, Any] | None = None) -> Result | None:
        """Return what the server answers at a path beside its API; None for nothing of that kind, or not soon."""
        url = urljoin(f"{self.server.base_url}/", path)
        try:
            return msgspec.json.decode(await self._sent(url, body, min(SOON, self._limits.timeout)), type=kind)
        except (CallError, ServerError, msgspec.DecodeError, UnicodeDecodeError):
            return None

    async def _sent(self, path: str, body: Mapping[str, Any] | None, within: float | None = None) -> bytes:
        """Return the body of a response to a request, which is a GET where it has none. Errors as of `through`."""

        def ask(sdk: openai.AsyncOpenAI) -> Awaitable[httpx2.Response]:
            if body is None:
                return sdk.get(path, cast_to=httpx2.Response)
            return sdk.post(path, cast_to=httpx2.Response, content=msgspec.json.encode(body), options=JSON)

        return (await self.through(ask, within)).content

    async def patiently(self, request: Request[Result], within: float | None = None) -> Result:
        """Return what a request brings, made again after failures that pass. Errors as of `through`."""
        return await Pace(self._limits).retrying(lambda: self.through(request, within))

    async def through(self, request: Request[Result], within: float | None = None) -> Result:
        """Return what a request through the SDK brings. CallError for nothing, ServerError if all others are in vain.

        within: seconds for all of it, where not those of one attempt: a dripping answer never stays silent.
        """
        try:
            async with asyncio.timeout(within or self._limits.timeout):
                answer = await request(next(self._turn))
                self.server.seen.reached = True
                return answer
        except (TimeoutError, openai.APITimeoutError):
            raise CallError(f"no whole answer within {within or self._limits.timeout:g} s") from None
        except openai.APIStatusError as error:
            self.server.seen.reached = True
            raise self._refusal(error) from None
        except openai.APIConnectionError as error:
            if isinstance(error.__cause__, httpx2.ConnectError) and not self.server.seen.reached:
                raise ServerError(
                    f"{self.server.base_url} cannot be reached ({error.__cause__}): start the server, or give its "
                    "address with --base-url"
                ) from None
            reason = type(error.__cause__).__name__ if error.__cause__ else "no connection"
            raise CallError(f"{self.server.base_url} broke off or cannot be reached ({reason})") from None
        except CallError as error:
            raise CallError(f"{self.server.base_url}: {error}", transient=error.transient) from None

    def read(self, raw: bytes) -> list[Reply]:
        """Decode the draws in a response's body. CallError for a body that holds none."""
        served, replies = self._decoded(raw, decode)
        for reply in replies:
            reply.text, reply.served = self.server.without_key(reply.text), served
            reply.finish = self.server.without_key(reply.finish)
            reply.logprobs = None if self.server.echoes(reply.logprobs) else reply.logprobs
            reply.first = None if self.server.echoes(reply.first) else reply.first
        return replies

    def _decoded(self, raw: bytes, decode: Decode[Result]) -> tuple[str, list[Result]]:
        """Decode the name that the server calls its model, and its answers. Errors as of `_recognised`."""
        try:
            served, answers = decode(raw)
        except ValueError as error:
            raise CallError(f"the answer is not what the API promises ({error})") from None
        return self._recognised(served), answers

    def _recognised(self, served: str) -> str:
        """Return the name that the server calls its model.

        OtherModelError, which ends all asking, for another model; CallError where ours has answered before.
        """
        server, served = self.server, model_name(self.server.without_key(served))
        if not server.takes(served) and not self._has_answered:
            raise OtherModelError(
                f"asked for model {server.name!r}, {server.base_url} answers as {served[:SHOWN]!r}: say --model "
                f"{served[:SHOWN]}, or --any-model to take what it serves"
            )
        if server.any_model:
            server.seen.name = server.seen.name or served
        wanted = server.seen.name or server.name
        if not server.takes(served) or (server.any_model and not same_model(wanted, served)):
            raise CallError(f"model {served[:SHOWN]!r} answered in place of {wanted[:SHOWN]!r}")
        self._has_answered = True
        return served

    def _refusal(self, error: openai.APIStatusError) -> LmkbcError:
        status, message = error.status_code, self.server.without_key(_message(error))[:SHOWN]
        if 300 <= status < 400:
            return ServerError(self._redirected(status, error.response.headers.get("location", "")))
        if status in (401, 403):
            server, reason = self.server, f"({status}: {message})"
            refused = f"{server.base_url} refuses the key in {server.key_variable} {reason}: set the right one"
            keyless = f"{server.base_url} was sent no key and wants one {reason}: set {KEYS}=HOST=VARIABLE for its host"
            return ServerError(refused if server.key else keyless)
        if status == 404:
            hint = "check --model and --base-url"
            return ServerError(f"{self.server.base_url} has no model {self.server.name!r} ({message}): {hint}")
        if status == 402 or error.code == "insufficient_quota":
            return ServerError(
                f"the account at {self.server.base_url} has no quota left ({message}): the run can resume"
            )
        if status in (408, 409, 425, 429) or status >= 500:
            return CallError(f"{status}: {message}", wait=retry_after(error.response.headers.get("retry-after")))
        if lengths := too_long(error.body if isinstance(error.body, dict) else {}, _message(error)):
            return TooLongError(f"{status}: {message}", lengths)
        return RejectedError(f"{status}: {message}")

    def _redirected(self, status: int, location: str) -> str:
        """Return the sentence about a redirect, which is not followed."""
        try:
            target = urlsplit(urljoin(self.server.base_url, self.server.without_key(location)))
            place = f"{target.scheme}://{target.netloc.rpartition('@')[2]}"
        except ValueError:
            place = "nowhere"
        return (
            f"{self.server.base_url} redirects to {place[:SHOWN]} ({status}), where no prompt was sent: "
            "if you trust it, give the address that answers itself with --base-url"
        )


def _message(error: openai.APIStatusError) -> str:
    body = error.body
    message = body.get("message") if isinstance(body, dict) else body
    return " ".join(str(message or error.message).split())
