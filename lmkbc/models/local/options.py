"""Tokens of prompts with their options; a long prompt is tokenised once, not once per option."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from lmkbc.models.local.prefixes import Tokens, common


class Option(NamedTuple):
    """Continuation of a prompt: the tokens of both, and the number of tokens of the prompt alone."""

    whole: Tokens
    first: int


def with_options(
    encode: Callable[[Sequence[str]], list[Tokens]], prompts: Sequence[str], options: Sequence[Sequence[str]]
) -> list[list[Option]]:
    """Return the tokens of each prompt with each option.

    No token crosses the beginning of a word. The tokens that an option adds are therefore equal for all prompts with
    the same last word. They are computed for the shortest of these prompts.
    """
    starts = encode(prompts)
    shortest: dict[str, int] = {}
    texts: dict[str, dict[str, None]] = {}
    for place, (prompt, choices) in enumerate(zip(prompts, options, strict=True)):
        last = _last_word(prompt)
        if last not in shortest or len(prompt) < len(prompts[shortest[last]]):
            shortest[last] = place
        texts.setdefault(last, {}).update(dict.fromkeys(choices))
    tails: dict[tuple[str, str], Tokens | None] = {}
    for last, place in shortest.items():
        start = starts[place]
        wholes = encode([prompts[place] + text for text in texts[last]])
        for text, whole in zip(texts[last], wholes, strict=True):
            tails[last, text] = whole[len(start) :] if whole[: len(start)] == start else None
    found: list[list[Option]] = []
    for prompt, start, choices in zip(prompts, starts, options, strict=True):
        added = [tails[_last_word(prompt), text] for text in choices]
        ends = [
            start + tail if tail is not None else encode([prompt + text])[0]
            for tail, text in zip(added, choices, strict=True)
        ]
        found.append([Option(whole, common(start, whole)) for whole in ends])
    return found


def _last_word(text: str) -> str:
    """Return the last word of a text, with the blank before it and the white space after it."""
    words = text.rstrip()
    return text[max(words.rfind(" "), words.rfind("\n"), 0) :]
