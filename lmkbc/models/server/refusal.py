"""Refusals: what the body of an error says, in the formats of several providers, and what it means.

The lengths that a refusal names are of a prompt, of the server's context, and of the longest answer.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from lmkbc.errors import LmkbcError
from lmkbc.http import CallError, by_proxy, printable, retry_after
from lmkbc.models.base import ONE_TURN, OWN_FIELDS
from lmkbc.models.server.address import KEY, KEYS, Server
from lmkbc.models.server.body import values
from lmkbc.patterns import patterns_beside

WORDS = patterns_beside(__file__)
"""Words of refusals by what they mean, from words.toml."""
SHOWN = 200
"""Maximum number of characters of a server's message in errors."""

FIELDS = ("message", "msg", "detail", "error", "reason", "status_msg", "title", "description")
"""Fields that hold an error's words, the most telling ones first."""

STATUSES = {
    "invalid_api_key": 401,
    "authentication_error": 401,
    "insufficient_quota": 402,
    "model_not_found": 404,
    "rate_limit_exceeded": 429,
    "overloaded_error": 503,
    "server_error": 500,
}
"""Code or type of an error -> the status that it should have had."""

DEEPEST = 20
"""Maximum number of levels of an error's JSON that are read."""

LONGEST = 4_000
"""Maximum number of characters of a server's message, and of a web page before the end of its title."""


def error_in(raw: bytes) -> dict[str, Any]:
    """Return the fields of the error in a response's body; {} if it names none.

    An error may be a text or an object, stand alone, in a list, in a choice, in an event of a stream, or under any of
    several names.
    """
    return _error(_shallow(_decoded(raw)))


def words(fields: Any) -> str:
    """Return the words of an error, on one line, without invisible characters."""
    if isinstance(fields, Mapping):
        if "msg" in fields and isinstance(fields.get("loc"), list):  # of pydantic, which most servers in Python use
            return f"{'.'.join(map(str, fields['loc']))}: {words(fields['msg'])}"
        text = next((words(fields[name]) for name in FIELDS if fields.get(name)), "")
        metadata = fields.get("metadata")
        if isinstance(metadata, Mapping) and isinstance(raw := metadata.get("raw"), str):  # of the provider behind
            text += f" ({words(error_in(raw.encode())) or raw})"
        return text or printable(json.dumps(fields, ensure_ascii=False)) if fields else ""
    if isinstance(fields, list) and fields and all(isinstance(one, Mapping) for one in fields):
        return "; ".join(map(words, fields))
    return printable(str(fields))


def is_error(fields: Mapping[str, Any]) -> bool:
    """Return whether the fields of a body hold the words of an error; a message with a role is a turn of a chat."""
    told = [fields.get(name) for name in FIELDS]
    return any(one and not (isinstance(one, Mapping) and "role" in one) for one in told)


def status_of(fields: Mapping[str, Any]) -> int:
    """Return the status that an error names, in a body whose own status is another; 400 if it names none."""
    for name in ("code", "status", "status_code", "statusCode"):
        code = str(fields.get(name))
        if len(code) == 3 and code.isascii() and code.isdigit() and 400 <= int(code) < 600:
            return int(code)
    return next(
        (STATUSES[name] for name in (str(fields.get("code")), str(fields.get("type"))) if name in STATUSES), 400
    )


def described(raw: bytes) -> str:
    """Return what a body is that is neither JSON nor an event stream; "" for these."""
    text = raw.decode(errors="replace").strip()
    if text[:1] == "<":
        title = WORDS.title.search(text[: 4 * LONGEST])
        return f"a web page, {printable(title[1])[:SHOWN]!r}" if title else "a web page"
    if not text:
        return "an empty body"
    return "" if text.startswith(("{", "[", "data:", "event:", ":")) else f"the text {printable(text)[:60]!r}"


def _decoded(raw: bytes) -> Any:
    """Return a body's JSON: its first value that holds an error, else its first; else its text, or its title."""
    try:
        found = values(raw)
        return next((value for value in found if isinstance(value, Mapping) and value.get("error")), found[0])
    except (ValueError, IndexError):
        what = described(raw)
    if not what:  # JSON that was cut off
        return {}
    return what if what.startswith("a web page") else raw.decode(errors="replace")


def _shallow(value: Any, levels: int = DEEPEST) -> Any:
    """Return a value of JSON without what is nested more deeply than some levels."""
    if isinstance(value, Mapping):
        return {name: _shallow(inner, levels - 1) for name, inner in value.items() if levels}
    return [_shallow(inner, levels - 1) for inner in value if levels] if isinstance(value, list) else value


def _error(body: Any) -> dict[str, Any]:
    if isinstance(body, list):
        return _error(body[0]) if body else {}
    if isinstance(body, str):
        return {"message": body} if body.strip() else {}
    if not isinstance(body, dict):
        return {}
    choices = body.get("choices")
    if isinstance(choices, list) and choices and isinstance(choices[0], dict) and choices[0].get("error"):
        return _error(choices[0])
    for name in ("error", "errors", "base_resp"):
        if inner := body.get(name):
            outer = {key: value for key, value in body.items() if key != name}
            return _error(inner) | outer if isinstance(inner, str) else outer | _error(inner)
    return body


CODES = {"context_length_exceeded", "exceed_context_size_error"}
MOST_TOKENS = 10**9
"""Larger numbers of tokens in a server's message are ignored."""

_NUMBER = r"(\d{1,3}(?:,\d{3}){1,5}|\d{1,9})"


FEWEST = 16
"""Least limit on an answer's tokens that is taken from a message."""


class TooLong(NamedTuple):
    """Tokens of the prompt and of the context, if the server reports them."""

    prompt: int | None
    window: int | None


def too_long(body: Mapping[str, Any], message: str) -> TooLong | None:
    """Return the lengths in a refusal of a prompt that is too long; None for another refusal."""
    if not (CODES & {str(body.get("code")), str(body.get("type"))} or WORDS.context.search(message)):
        return None
    return TooLong(
        _number(body.get("n_prompt_tokens"), WORDS.prompt.search(message)),
        _number(body.get("n_ctx"), WORDS.window.search(message)),
    )


class _AnswerLimit(NamedTuple):
    """Limit on an answer's tokens: `answer` for any prompt, or what `window` leaves beside a prompt of `prompt`."""

    answer: int | None
    window: int | None
    prompt: int | None


def answer_limit(asked: int, message: str) -> _AnswerLimit | None:
    """Return the limit that a refusal of an answer of `asked` tokens states; None for another refusal.

    Without a number in the message, it is half of `asked`.
    """
    numbers = {int(number.replace(",", "")) for number in WORDS.integer.findall(message)}
    whole = _number(None, WORDS.total.search(message))
    prompt = _number(None, WORDS.prompt.search(message)) or (whole - asked if whole and whole > asked else None)
    rest = numbers - {asked, prompt, asked + (prompt or 0)}
    window = _number(None, WORDS.window.search(message))
    is_about = asked in numbers or bool(WORDS.length.search(message))
    if prompt or window:
        window = window or max(rest, default=None)
        fits = window is not None and (prompt or 0) < window
        return _AnswerLimit(None, window, prompt) if fits and (prompt or is_about) else None
    if not (is_about and WORDS.limit.search(message)) or asked <= FEWEST:
        return None
    least = max((number for number in rest if FEWEST <= number < asked), default=None)
    if least is None and (asked in numbers or not rest):
        least = asked // 2
    if least is not None and f"{least} (exclusive" in message:
        least -= 1
    return None if least is None else _AnswerLimit(least, None, None)


def _number(field: Any, written: re.Match[str] | None) -> int | None:
    if isinstance(field, int) and 0 < field < MOST_TOKENS:
        return field
    return next((int(number.replace(",", "")) for number in written.groups() if number), None) if written else None


PROXY_REFUSES = 407
"""Status of a proxy that wants a password."""


LONGEST_WAIT = 600.0
"""Maximum number of seconds that a run waits for a server; it ends if the server asks for more."""


_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}


class RejectedError(CallError):
    """The server refuses this request permanently (400 and the like). said: the server's whole message."""

    def __init__(self, reason: str, said: str = "") -> None:
        super().__init__(reason, transient=False)
        self.said = said


class UnreadError(CallError):
    """A response that is no answer of the API. It is asked for once more. used: prompt and answer tokens it reports."""

    def __init__(self, reason: str, used: tuple[int, int], *, transient: bool) -> None:
        super().__init__(reason, transient=transient)
        self.used = used


class TooLongError(RejectedError):
    """A prompt exceeds the server's context. lengths: of both, if the server reports them; None for our estimate."""

    def __init__(self, reason: str, lengths: TooLong | None = None, said: str = "") -> None:
        super().__init__(reason, said)
        self.lengths = lengths


class WithheldError(RejectedError):
    """The provider's content filter refuses this prompt."""


class ServerError(LmkbcError):
    """The server refuses all requests: the key, the model or the account is wrong."""


class AbsentError(ServerError):
    """The server has no such model, or no such path."""


def refusal(server: Server, status: int, raw: bytes, headers: Mapping[str, str] | None = None) -> LmkbcError:
    """Return the error for a response's status and body. The body of a response of status 200 names the status."""
    raw = server.without_key(raw)
    fields, header = error_in(raw), headers or {}
    whole = server.hidden(words(fields)[:LONGEST])  # once more, since JSON may write each letter as an escape
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
        place = server.hidden(printable(header.get("location", "nowhere")))[:SHOWN]
        return ServerError(
            f"{server.base_url} redirects to {place!r} ({status}), where no prompt was sent: "
            "if you trust it, give the address that answers itself with --base-url"
        )
    if "flagged_input" in str(fields.get("metadata")) or "content_filter" in codes:
        return WithheldError(f"{named}: {message}")
    if status in (403, PROXY_REFUSES) and described(raw):
        ways = "a proxy, a firewall or a login stands before it, or the key is missing"
        return ServerError(f"{server.base_url} answers with a web page {reason}: {ways}; check --base-url and the key")
    delay = _delay(whole, raw, header)
    if status == 402 or _is_spent(status, " ".join(codes), whole, raw):
        quota = f"the account at {server.base_url} has no quota left {reason}: the run can resume"
        return RejectedError(quota, whole) if "max_tokens" in whole else ServerError(quota)
    if status in (429, 503) and (delay or 0) > LONGEST_WAIT:
        return ServerError(f"{server.base_url} asks to wait {delay:,.0f} s {reason}: the run can resume then")
    if status in (401, 403) or b"API_KEY_INVALID" in raw:  # of Google's servers
        return ServerError(_unauthorised(server, reason))
    if WORDS.roles.search(whole):
        return ServerError(f"{server.base_url} refuses the turns of a prompt {reason}: {ONE_TURN}")
    if WORDS.no_template.search(whole):
        return ServerError(f"{server.base_url} has no chat template {reason}: use form = 'completion'")
    if status in (404, 405):
        hint = (
            "check --model and --base-url, which ends in /v1 for most servers; one that only chats needs a system that "
            "asks for answers, such as --system few-shot"
        )
        return AbsentError(f"{server.base_url} has no model {server.name!r}, or is no API's address {reason}: {hint}")
    is_final = status == 501 or (status == 429 and "too large" in whole)  # larger than what a minute allows
    if not is_final and (status in (408, 409, 425, 429) or status >= 500):
        return CallError(f"{named}: {message}", wait=delay)
    if lengths := too_long(fields, whole):
        return TooLongError(f"{named}: {message}", lengths, whole)
    return RejectedError(f"{named}: {message}{_line(whole)}", whole)


def _delay(message: str, raw: bytes, header: Mapping[str, str]) -> float | None:
    """Return the seconds that a server asks to wait, in a header or in words; None for none."""
    seconds = retry_after(header.get("retry-after"))
    written = WORDS.delay.search(message) or WORDS.delay.search(raw[:LONGEST].decode(errors="replace"))
    if seconds is not None or written is None:
        return seconds
    return sum(float(number) * _SECONDS[unit.casefold()] for number, unit in WORDS.time.findall(written[1]))


def _is_spent(status: int, codes: str, message: str, raw: bytes) -> bool:
    """Return whether a refusal says that the account has no quota left for long."""
    text = f"{codes} {message} {raw[:LONGEST].decode(errors='replace') if status == 429 else ''}"
    if status == 429 and (WORDS.long_quota.search(text) or WORDS.minute_quota.search(text)):
        return bool(WORDS.long_quota.search(text))
    return status < 500 and bool(WORDS.spent.search(text))


def _line(message: str) -> str:
    """Return the line of a recipe that sets a field which a refusal wants, for its end; "" if it names none."""
    found = WORDS.wanted.search(message)
    name = found and (found[1] or found[3])
    if not found or not name or name in OWN_FIELDS or name.endswith("_tokens"):
        return ""
    value = (found[2] or "...").casefold()
    return f"; the recipe sets it in its table sampling by extra = {{ {name} = {value} }}"


def _unauthorised(server: Server, reason: str) -> str:
    """Return the error message for a missing or wrong key."""
    if server.key:
        return f"{server.base_url} refuses the key in {server.key_variable} {reason}: set the right one"
    host = urlsplit(server.base_url).hostname
    way = f"put it into the environment variable {server.key_variable or KEY}"
    if not server.key_variable:  # only a recipe names the server
        way += f" and give the address with --base-url, or set {KEYS}={host}=VARIABLE"
    return f"{server.base_url} was sent no key and wants one {reason}: {way}"
