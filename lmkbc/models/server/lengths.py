"""Lengths that a server names in a refusal: of a prompt, of its context, and of the longest answer."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

CODES = {"context_length_exceeded", "exceed_context_size_error"}
MOST_TOKENS = 10**9
"""Larger numbers of tokens in a server's message are ignored."""

_CONTEXT = re.compile(r"\b(?:context|model) (?:length|size|window|limit)\b", re.IGNORECASE)
_NUMBER = r"(\d{1,3}(?:,\d{3})+|\d{1,9})"
_WINDOW = re.compile(
    rf"(?:context (?:length|size|limit)|model length)(?: is| of)?(?: only)? \(?{_NUMBER}\b"
    rf"|\b{_NUMBER} maximum context",
    re.IGNORECASE,
)
_PROMPT = re.compile(
    rf"\b(?:request|input) \({_NUMBER} tokens|resulted in {_NUMBER} t|\({_NUMBER} (?:in |of text)|{_NUMBER} input t"
    rf"|[Pp]rompt contains {_NUMBER} t|{_NUMBER} tokens from the input|{_NUMBER} .inputs.|\b{_NUMBER} \+ \d+ >"
    rf"|length {_NUMBER}\)"
)

_INTEGER = re.compile(rf"(?<![\w.\-]){_NUMBER}(?!\w|[.\-]\w)")
_TOTAL = re.compile(rf"\brequested (?:about )?{_NUMBER}\b(?! (?:output|completion))", re.IGNORECASE)
_LENGTH = re.compile(r"max_?(?:new|completion|output)?_?tokens|\b(?:completion|output) tokens", re.IGNORECASE)
_LIMIT = re.compile(
    r"\btoo (?:large|big|high|many|long)|at most|maximum|exceed|(?:less|smaller|lower|more) than|range|afford|limit"
    r"|up to|[<>≤]",
    re.IGNORECASE,
)
"""Words of a server about a number that is too large."""

FEWEST = 16
"""Least limit on an answer's tokens that is taken from a message."""


class TooLong(NamedTuple):
    """Tokens of the prompt and of the context, if the server reports them."""

    prompt: int | None
    window: int | None


def too_long(body: Mapping[str, Any], message: str) -> TooLong | None:
    """Return the lengths in a refusal of a prompt that is too long; None for another refusal."""
    if not (CODES & {str(body.get("code")), str(body.get("type"))} or _CONTEXT.search(message)):
        return None
    return TooLong(
        _number(body.get("n_prompt_tokens"), _PROMPT.search(message)),
        _number(body.get("n_ctx"), _WINDOW.search(message)),
    )


class AnswerLimit(NamedTuple):
    """Limit on an answer's tokens: `answer` for any prompt, or what `window` leaves beside a prompt of `prompt`."""

    answer: int | None
    window: int | None
    prompt: int | None


def answer_limit(asked: int, message: str) -> AnswerLimit | None:
    """Return the limit that a refusal of an answer of `asked` tokens states; None for another refusal.

    Without a number in the message, it is half of `asked`.
    """
    numbers = {int(number.replace(",", "")) for number in _INTEGER.findall(message)}
    whole = _number(None, _TOTAL.search(message))
    prompt = _number(None, _PROMPT.search(message)) or (whole - asked if whole and whole > asked else None)
    rest = numbers - {asked, prompt, asked + (prompt or 0)}
    window = _number(None, _WINDOW.search(message))
    is_about = asked in numbers or bool(_LENGTH.search(message))
    if prompt or window:
        window = window or max(rest, default=None)
        fits = window is not None and (prompt or 0) < window
        return AnswerLimit(None, window, prompt) if fits and (prompt or is_about) else None
    if not (is_about and _LIMIT.search(message)) or asked <= FEWEST:
        return None
    least = max((number for number in rest if FEWEST <= number < asked), default=None)
    if least is None and (asked in numbers or not rest):
        least = asked // 2
    if least is not None and f"{least} (exclusive" in message:
        least -= 1
    return None if least is None else AnswerLimit(least, None, None)


def _number(field: Any, written: re.Match[str] | None) -> int | None:
    if isinstance(field, int) and 0 < field < MOST_TOKENS:
        return field
    return next((int(number.replace(",", "")) for number in written.groups() if number), None) if written else None
