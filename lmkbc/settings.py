"""From a recipe's plain table to a frozen dataclass of settings: every wrong name or value is named."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any, TypeVar

import msgspec

from lmkbc.errors import InputError, did_you_mean

Settings = TypeVar("Settings")


def checked(kind: type[Settings], table: Mapping[str, Any], what: str) -> Settings:
    """The settings in a table. InputError names the setting; `what` names the thing that is set, as in "prompt"."""
    known = [field.name for field in fields(kind)]  # type: ignore[arg-type]
    for name in table:
        if name not in known:
            raise InputError(f"{what} has no setting {name!r}: {did_you_mean(name, known)}")
    try:
        return msgspec.convert(dict(table), kind)
    except msgspec.ValidationError as error:
        reason, _, place = str(error).partition(" - at `$.")
        if reason.startswith("Expected"):
            reason = reason.replace("object", "table").replace("array", "list")  # as TOML calls them
        given = table.get(place.rstrip("`").partition("[")[0])
        setting = f"setting {place.rstrip('`')!r}" if place else "a setting"
        raise InputError(f"{what}: {setting} is {given!r}: {reason.lower()}") from None
