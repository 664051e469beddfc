"""JSON schema of an answer. It is sent to servers that support it, and always checked, since some servers ignore it."""

from __future__ import annotations

from typing import Any

import msgspec

from lmkbc.relation import Kind


class _Names(msgspec.Struct, forbid_unknown_fields=True):
    objects: list[str]


class _Numbers(msgspec.Struct, forbid_unknown_fields=True):
    objects: list[float]


def answer_schema(kind: Kind) -> dict[str, Any]:
    """Return the schema of an object with one list, of numbers or of names."""
    item = {"type": "number" if kind == "number" else "string"}
    return {
        "type": "object",
        "properties": {"objects": {"type": "array", "items": item}},
        "required": ["objects"],
        "additionalProperties": False,
    }


def keeps_schema(text: str, kind: Kind) -> bool:
    """Return whether a text conforms to the schema."""
    try:
        msgspec.json.decode(text, type=_Numbers if kind == "number" else _Names)
    except msgspec.DecodeError:  # also for JSON of another shape
        return False
    return True
