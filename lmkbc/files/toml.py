"""Reading TOML files of settings, every error with its place."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from datetime import date, time
from pathlib import Path
from typing import Any

from lmkbc.errors import InputError
from lmkbc.files.jsonl import read_bytes

MOST_BYTES = 1 << 20
"""Bytes of a file at most. Reading it takes a hundred times as much memory."""
PARTS = 20
"""Parts of a dotted key at most: the parser's memory grows with the square of their number."""
_LONG_KEY = re.compile(
    rb"""(?P<key>(?<![A-Za-z0-9_-])(?:(?:[A-Za-z0-9_-]++|"[^"\n]*+"|'[^'\n]*+')[ \t]*+\.[ \t]*+){%d})"""
    rb"""|\#[^\n]*+|\"{3}(?:[^\\]|\\.)*?\"{3}|'{3}.*?'{3}|"(?:[^"\\\n]|\\.)*+"|'[^'\n]*+'""" % PARTS,
    re.DOTALL,
)
"""A long key, or else a comment or a string, which is passed over whole: a text may have many dots."""


def read_toml(path: Path) -> dict[str, Any]:
    """Read a TOML file of settings. InputError says where it is wrong; a date is no setting, the text for it may be."""
    content = read_bytes(path, MOST_BYTES)
    if any(token["key"] for token in _LONG_KEY.finditer(content)):
        raise InputError(f"{path}: nested too deep, a key has more than {PARTS} parts; write flat tables")
    try:
        table = tomllib.loads(content.decode())
        dated = next((leaf for leaf in leaves(table) if isinstance(leaf[1], date | time)), None)
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: not valid TOML: {error}") from None
    except RecursionError:
        raise InputError(f"{path}: nested too deep; write flat tables") from None
    if dated:
        raise InputError(f"{path}, field {dated[0]}: {dated[1]} is a date or a time; write it in quotes")
    return table


def leaves(value: Any, place: str = "") -> Iterator[tuple[str, Any]]:
    """Yield what stands at the ends of a nest of tables and lists, and where."""
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from leaves(inner, f"{place}.{name}" if place else name)
    elif isinstance(value, list):
        for number, inner in enumerate(value):
            yield from leaves(inner, f"{place}[{number}]")
    else:
        yield place, value
