"""Refusals of prompts that exceed a server's context, in the words of OpenAI, llama.cpp, vLLM and SGLang."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

CODES = {"context_length_exceeded", "exceed_context_size_error"}
MOST_TOKENS = 10**9
"""No context is larger, whatever a server says."""

_CONTEXT = re.compile(r"\bcontext (?:length|size|window)\b", re.IGNORECASE)
_WINDOW = re.compile(r"context (?:length|size)(?: is)?(?: only)? \(?(\d{1,9})\b", re.IGNORECASE)
_PROMPT = re.compile(
    r"\b(?:request|input) \((\d{1,9}) tokens|resulted in (\d{1,9}) t|\((\d{1,9}) in |(\d{1,9}) input t"
)


class TooLong(NamedTuple):
    """Tokens of the prompt and of the context, where the server tells them."""

    prompt: int | None
    window: int | None


def too_long(body: Mapping[str, Any], message: str) -> TooLong | None:
    """What a refusal tells of a prompt that is too long; None where it is about something else."""
    if not (CODES & {str(body.get("code")), str(body.get("type"))} or _CONTEXT.search(message)):
        return None
    return TooLong(
        _number(body.get("n_prompt_tokens"), _PROMPT.search(message)),
        _number(body.get("n_ctx"), _WINDOW.search(message)),
    )


def _number(field: Any, written: re.Match[str] | None) -> int | None:
    if isinstance(field, int) and 0 < field < MOST_TOKENS:
        return field
    return next((int(number) for number in written.groups() if number), None) if written else None
