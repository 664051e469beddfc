"""Reader of TOML files with settings. Every error names its place."""

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
"""Most bytes of a file. Reading takes a hundred times as much memory."""
PARTS = 20
"""Most parts of a dotted key: the parser's memory grows with the square of their number."""
_LONG_KEY = re.compile(
    rb"""(?P<key>(?<![A-Za-z0-9_-])(?:(?:[A-Za-z0-9_-]++|"[^"\n]*+"|'[^'\n]*+')[ \t]*+\.[ \t]*+){%d})"""
    rb"""|\#[^\n]*+|\"{3}(?:[^\\]|\\.)*?\"{3}|'{3}.*?'{3}|"(?:[^"\\\n]|\\.)*+"|'[^'\n]*+'""" % PARTS,
    re.DOTALL,
)
"""Pattern of a long key; or of a comment or string, which is skipped since it may have many dots."""


def read_toml(path: Path) -> dict[str, Any]:
    """Read a TOML file of settings. InputError names the place of an error. A date must be written as text."""
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
    """Yield the place and value of every leaf in nested tables and lists."""
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from leaves(inner, f"{place}.{name}" if place else name)
    elif isinstance(value, list):
        for number, inner in enumerate(value):
            yield from leaves(inner, f"{place}[{number}]")
    else:
        yield place, value
