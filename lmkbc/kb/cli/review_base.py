"""`lmkbc review`: what persons decided becomes part of a knowledge base."""

from __future__ import annotations

from typing import Any

from lmkbc.commands.terminal import note
from lmkbc.commands.typed import made_from
from lmkbc.kb.api.reviewing import review as review_base

EXAMPLE = "Example: lmkbc review rivers labels.jsonl --reviewer 'Jane Doe'"


@made_from(review_base)
def review(**given: Any) -> None:
    """Make the decisions of persons part of a knowledge base. The same file again changes nothing."""
    for sentence in review_base(**given).sentences():
        note(sentence)
