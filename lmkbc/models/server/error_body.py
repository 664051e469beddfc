"""The body of an error: its words and its fields, in the shapes of many servers."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

import msgspec

SHOWN = 200
"""Maximum number of characters of a server's message in errors."""

WORDS = ("message", "msg", "detail", "error", "reason", "status_msg", "title", "description")
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

_TITLE = re.compile(r"<title[^>]*>(.*?)</title>", re.IGNORECASE | re.DOTALL)


def error_in(raw: bytes) -> dict[str, Any]:
    """Return the fields of the error in a response's body; {} if it names none.

    An error may be a text or an object, stand alone, in a list, in a choice, in an event of a stream, or under any of
    several names.
    """
    return _error(_decoded(raw))


def words(fields: Any) -> str:
    """Return the words of an error, on one line, without invisible characters."""
    if isinstance(fields, Mapping):
        if "msg" in fields and isinstance(fields.get("loc"), list):  # of pydantic, which most servers in Python use
            return f"{'.'.join(map(str, fields['loc']))}: {words(fields['msg'])}"
        text = next((words(fields[name]) for name in WORDS if fields.get(name)), "")
        metadata = fields.get("metadata")
        if isinstance(metadata, Mapping) and isinstance(raw := metadata.get("raw"), str):  # of the provider behind
            text += f" ({words(error_in(raw.encode())) or raw})"
        return text or _line(json.dumps(fields, ensure_ascii=False)) if fields else ""
    if isinstance(fields, list) and fields and all(isinstance(one, Mapping) for one in fields):
        return "; ".join(map(words, fields))
    return _line(str(fields))


def is_error(fields: Mapping[str, Any]) -> bool:
    """Return whether the fields of a body hold the words of an error; a message with a role is a turn of a chat."""
    told = [fields.get(name) for name in WORDS]
    return any(one and not (isinstance(one, Mapping) and "role" in one) for one in told)


def status_of(fields: Mapping[str, Any]) -> int:
    """Return the status that an error names, in a body whose own status is another; 400 if it names none."""
    for name in ("code", "status", "status_code", "statusCode"):
        code = str(fields.get(name))
        if code.isascii() and code.isdigit() and 400 <= int(code) < 600:
            return int(code)
    return next(
        (STATUSES[name] for name in (str(fields.get("code")), str(fields.get("type"))) if name in STATUSES), 400
    )


def described(raw: bytes) -> str:
    """Return what a body is that is neither JSON nor an event stream; "" for these."""
    text = raw.decode(errors="replace").strip()
    if text[:1] == "<":
        title = _TITLE.search(text)
        return f"a web page, {_line(title[1])[:SHOWN]!r}" if title else "a web page"
    if not text:
        return "an empty body"
    return "" if text.startswith(("{", "[", "data:", "event:", ":")) else f"the text {_line(text)[:60]!r}"


def _decoded(raw: bytes) -> Any:
    """Return a body's JSON, or that of the first event that holds an error; else its text, or the title of a page."""
    for part in (raw, *re.findall(rb"^data:(.*error.*)", raw, re.MULTILINE)):
        try:
            return msgspec.json.decode(part)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            continue
    what = described(raw)
    if not what:  # JSON that was cut off, or events without an error
        return {}
    return what if what.startswith("a web page") else raw.decode(errors="replace")


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


def _line(text: str) -> str:
    return " ".join("".join(char if char.isprintable() else " " for char in text).split())
