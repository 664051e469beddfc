"""Where an answer begins and ends in what a model wrote: behind its reasoning, behind a mark, within a fence."""

from __future__ import annotations

import re
from collections.abc import Sequence

from lmkbc.models.base import answer_of
from lmkbc.names import shown

SHORT = 60
"""Characters below which a text without a full stop is no broken-off reasoning."""


_ANSWER = re.compile(
    r"^[ \t>#*_-]{0,8}(?:so,? |thus,? |therefore,? |hence,? )?(?:the |my )?(?:final |correct |full )?answers?"
    r"(?: is| are)?[*_ ]{0,4}[:=](?:[*_]{1,3}(?=\s|$))?",
    re.IGNORECASE | re.MULTILINE,
)


_FENCE = re.compile(r"```[ \t]*\w*[ \t]*\n?(.*?)(?:```|\Z)", re.DOTALL)


def narrowed(text: str) -> tuple[str | None, bool]:
    """The part of a completion that holds its answer, None where it broke off before; and whether it was marked."""
    said = answer_of(text)
    if said is None:
        return None, False
    marks = list(_ANSWER.finditer(said))
    if marks:
        said = said[marks[-1].end() :]
    fences = [fence for fence in _FENCE.findall(said) if shown(fence)]
    return shown(shown(fences[-1] if fences else said).strip(" \t\r\n`")), bool(marks)


def broken_off(texts: Sequence[str | None]) -> list[bool]:
    """Which of a query's draws ended before their answer.

    Where others mark theirs behind their reasoning, one that is long, and marks none, is reasoning alone: what it names
    is what it thought of.
    """
    marks = [_ANSWER.search(answer_of(text) or "") if text else None for text in texts]
    if not any(mark and mark.start() > SHORT for mark in marks):
        return [False] * len(texts)
    return [text is not None and mark is None and len(text) > SHORT for text, mark in zip(texts, marks, strict=True)]
