"""Slots of templates, and texts that fill them."""

from __future__ import annotations

import re
from collections.abc import Mapping

SLOT = re.compile(r"\{(\w+)\}")


def one_line(text: str) -> str:
    """Return a text on one line."""
    return " ".join(text.split())


def fill(template: str, values: Mapping[str, str]) -> str:
    """Return a template with its slots filled once. Inserted text is not searched for slots, and unknown slots stay."""
    return SLOT.sub(lambda slot: values.get(slot[1], slot[0]), template)
