"""Reading TOML files of settings, every error with its place."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from datetime import date, time
from pathlib import Path
from typing import Any

from lmkbc.errors import InputError
from lmkbc.files.jsonl import read_bytes

MOST_BYTES = 1 << 20
"""Of a file, for which memory holds a hundred times as much."""


def read_toml(path: Path) -> dict[str, Any]:
    """A TOML file of settings. InputError says where it is wrong; a date is no setting, but the text for it may be."""
    try:
        table = tomllib.loads(read_bytes(path, MOST_BYTES).decode())
        dated = next((leaf for leaf in _leaves(table) if isinstance(leaf[1], date | time)), None)
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: not valid TOML: {error}") from None
    except RecursionError:
        raise InputError(f"{path}: nested too deep; write flat tables") from None
    if dated:
        raise InputError(f"{path}, field {dated[0]}: {dated[1]} is a date or a time; write it in quotes")
    return table


def _leaves(value: Any, place: str = "") -> Iterator[tuple[str, Any]]:
    """What stands at the ends of a nest of tables and lists, and where."""
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from _leaves(inner, f"{place}.{name}" if place else name)
    elif isinstance(value, list):
        for number, inner in enumerate(value):
            yield from _leaves(inner, f"{place}[{number}]")
    else:
        yield place, value
