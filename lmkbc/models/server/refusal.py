"""Refusals: the meaning of responses with an error status, in the formats of several providers."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any
from urllib.parse import urljoin, urlsplit

import openai

from lmkbc.errors import LmkbcError
from lmkbc.http import CallError, retry_after
from lmkbc.models.server.address import KEYS, Server
from lmkbc.models.server.body import TooLong, too_long

SHOWN = 200
"""Maximum number of characters of a server's message in errors."""


class RejectedError(CallError):
    """The server refuses this request permanently (400 and the like)."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason, transient=False)


class TooLongError(RejectedError):
    """A prompt exceeds the server's context. lengths: of both, if the server reports them; None for our estimate."""

    def __init__(self, reason: str, lengths: TooLong | None = None) -> None:
        super().__init__(reason)
        self.lengths = lengths


class WithheldError(RejectedError):
    """The provider's content filter refuses this prompt."""


class ServerError(LmkbcError):
    """The server refuses all requests: the key, the model or the account is wrong."""


class OtherModelError(ServerError):
    """The server's name for its model differs from the requested one."""


def refusal(server: Server, error: openai.APIStatusError) -> LmkbcError:
    """Return the error for a status and a body."""
    status, body = error.status_code, _body(error.body)
    whole = " ".join(str(body.get("message") or body.get("detail") or error.message).split())
    message = server.without_key(whole)[:SHOWN]
    if 300 <= status < 400:
        return ServerError(_redirected(server, status, error.response.headers.get("location", "")))
    if status in (401, 403) or "API_KEY_INVALID" in _details(body, "reason"):
        reason = f"({status}: {message})"
        refused = f"{server.base_url} refuses the key in {server.key_variable} {reason}: set the right one"
        keyless = f"{server.base_url} was sent no key and wants one {reason}: set {KEYS}=HOST=VARIABLE for its host"
        return ServerError(refused if server.key else keyless)
    if status == 404:
        hint = "check --model and --base-url"
        return ServerError(f"{server.base_url} has no model {server.name!r} ({message}): {hint}")
    if status == 402 or "insufficient_quota" in (body.get("code"), error.code):
        return ServerError(f"the account at {server.base_url} has no quota left ({message}): the run can resume")
    if status in (408, 409, 425, 429) or status >= 500:
        wait = retry_after(error.response.headers.get("retry-after"))
        return CallError(f"{status}: {message}", wait=_delay(body) if wait is None else wait)
    if body.get("code") == "content_filter":
        return WithheldError(f"{status}: {message}")
    if lengths := too_long(body, whole):
        return TooLongError(f"{status}: {message}", lengths)
    return RejectedError(f"{status}: {message}")


def _body(body: Any) -> Mapping[str, Any]:
    """Return an error's fields. Gemini puts the error into a list; other servers send only a sentence."""
    if isinstance(body, list) and body and isinstance(body[0], dict):
        body = body[0].get("error", body[0])
    return body if isinstance(body, dict) else {"message": body} if body else {}


def _details(body: Mapping[str, Any], name: str) -> list[str]:
    """Return the texts with a given name in the details of a Google error."""
    details = body.get("details")
    found = [one.get(name) for one in details if isinstance(one, dict)] if isinstance(details, list) else []
    return [text for text in found if isinstance(text, str)]


def _delay(body: Mapping[str, Any]) -> float | None:
    """Return the seconds that Google's servers ask a client to wait, as in "35.5s"."""
    for text in _details(body, "retryDelay"):
        try:
            seconds = float(text.removesuffix("s"))
        except ValueError:
            continue
        return seconds if 0 <= seconds < math.inf else None
    return None


def _redirected(server: Server, status: int, location: str) -> str:
    """Return the error message for a redirect, which is not followed."""
    try:
        target = urlsplit(urljoin(server.base_url, server.without_key(location)))
        place = f"{target.scheme}://{target.netloc.rpartition('@')[2]}"
    except ValueError:
        place = "nowhere"
    return (
        f"{server.base_url} redirects to {place[:SHOWN]} ({status}), where no prompt was sent: "
        "if you trust it, give the address that answers itself with --base-url"
    )
