"""Refusals: the meaning of responses that hold an error, in the formats of several providers."""

from __future__ import annotations

import re
from collections.abc import Mapping
from urllib.parse import urlsplit

from lmkbc.errors import LmkbcError
from lmkbc.http import CallError, by_proxy, retry_after
from lmkbc.models.base import ONE_TURN
from lmkbc.models.server.address import KEY, KEYS, Server
from lmkbc.models.server.error_body import SHOWN, described, error_in, status_of, words
from lmkbc.models.server.lengths import TooLong, too_long

PROXY_REFUSES = 407
"""Status of a proxy that wants a password."""

_ROLES = re.compile(
    r"\broles must alternate|\broles are supported|\b(?:unexpected|unknown|unsupported|invalid) role\b"
    r"|\b(?:system|developer) (?:role|message|prompt|instruction)s?\b.*\b(?:not|unsupported)\b"
    r"|\bnot support.*\b(?:system|developer) (?:role|message|prompt|instruction)s?\b",
    re.IGNORECASE,
)
"""Words of a chat template, or of a server, that refuses the turns of a prompt."""

_DELAY = re.compile(r'"retryDelay": *"([0-9.]+)s"')
"""Seconds that Google's servers ask a client to wait, as in "35.5s"."""

_NO_TEMPLATE = re.compile(r"\b(?:no|provide a|does not have a|without a) chat template\b", re.IGNORECASE)


class RejectedError(CallError):
    """The server refuses this request permanently (400 and the like). said: the server's whole message."""

    def __init__(self, reason: str, said: str = "") -> None:
        super().__init__(reason, transient=False)
        self.said = said


class TooLongError(RejectedError):
    """A prompt exceeds the server's context. lengths: of both, if the server reports them; None for our estimate."""

    def __init__(self, reason: str, lengths: TooLong | None = None, said: str = "") -> None:
        super().__init__(reason, said)
        self.lengths = lengths


class WithheldError(RejectedError):
    """The provider's content filter refuses this prompt."""


class ServerError(LmkbcError):
    """The server refuses all requests: the key, the model or the account is wrong."""


class OtherModelError(ServerError):
    """The server's name for its model differs from the requested one."""


class AbsentError(ServerError):
    """The server has no such model, or no such path."""


def refusal(server: Server, status: int, raw: bytes, headers: Mapping[str, str] | None = None) -> LmkbcError:
    """Return the error for a response's status and body. The body of a response of status 200 names the status."""
    raw = server.without_key(raw)
    fields, header = error_in(raw), headers or {}
    whole = words(fields)
    codes = [str(one) for one in (fields.get("code"), fields.get("type")) if one]
    code = codes[0] if codes else ""
    named = str(status)
    if status < 300:
        status = status_of(fields)
        named = code if code == str(status) else f"{named}, {code[:SHOWN]}" if code else named
    message = whole[:SHOWN] or "no reason given"
    message += by_proxy(server.base_url) if described(raw) else ""  # it may be the proxy itself that answers
    reason = f"({named}: {message})"
    if 300 <= status < 400:
        place = header.get("location", "nowhere")[:SHOWN]
        return ServerError(
            f"{server.base_url} redirects to {place!r} ({status}), where no prompt was sent: "
            "if you trust it, give the address that answers itself with --base-url"
        )
    if "flagged_input" in str(fields.get("metadata")) or "content_filter" in codes:
        return WithheldError(f"{named}: {message}")
    if status in (403, PROXY_REFUSES) and described(raw):
        ways = "a proxy, a firewall or a login stands before it, or the key is missing"
        return ServerError(f"{server.base_url} answers with a web page {reason}: {ways}; check --base-url and the key")
    if status in (401, 403) or b"API_KEY_INVALID" in raw:  # of Google's servers
        return ServerError(_unauthorised(server, reason))
    if _ROLES.search(whole):
        return ServerError(f"{server.base_url} refuses the turns of a prompt {reason}: {ONE_TURN}")
    if _NO_TEMPLATE.search(whole):
        return ServerError(f"{server.base_url} has no chat template {reason}: use form = 'completion'")
    if status in (404, 405):
        hint = "check --model and --base-url, which ends in /v1 for most servers"
        return AbsentError(f"{server.base_url} has no model {server.name!r}, or is no API's address {reason}: {hint}")
    if status == 402 or "insufficient_quota" in codes:
        quota = f"the account at {server.base_url} has no quota left {reason}: the run can resume"
        return RejectedError(quota, whole) if "max_tokens" in whole else ServerError(quota)
    is_final = status == 501 or (status == 429 and "too large" in whole)  # larger than what a minute allows
    if not is_final and (status in (408, 409, 425, 429) or status >= 500):
        delay = _DELAY.search(raw.decode(errors="replace"))
        return CallError(f"{named}: {message}", wait=retry_after(header.get("retry-after") or (delay and delay[1])))
    if lengths := too_long(fields, whole):
        return TooLongError(f"{named}: {message}", lengths, whole)
    return RejectedError(f"{named}: {message}", whole)


def _unauthorised(server: Server, reason: str) -> str:
    """Return the error message for a missing or wrong key."""
    if server.key:
        return f"{server.base_url} refuses the key in {server.key_variable} {reason}: set the right one"
    host = urlsplit(server.base_url).hostname
    way = f"put it into the environment variable {server.key_variable or KEY}"
    if not server.key_variable:  # only a recipe names the server
        way += f" and give the address with --base-url, or set {KEYS}={host}=VARIABLE"
    return f"{server.base_url} was sent no key and wants one {reason}: {way}"
