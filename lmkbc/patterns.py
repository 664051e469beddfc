"""Patterns as data: tables of a TOML file, so that a new way of writing is a line there."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

_NAME = re.compile(r"\{([a-z_]+)\}")
"""Name of a table within an expression, which stands for that table's own."""


class Patterns:
    """Patterns by the names of their tables; each is compiled when it is first used.

    A table holds lists of alternatives by language, and "frame", in which "%s" stands for all of them.
    """

    def __init__(self, tables: Mapping[str, Mapping[str, Any]]) -> None:
        self._tables = tables

    def __getattr__(self, name: str) -> re.Pattern[str]:
        if name not in self._tables:
            raise AttributeError(name)
        self.__dict__[name] = re.compile(self._expression(name))
        return self.__dict__[name]  # type: ignore[no-any-return]

    def of(self, name: str, language: str) -> re.Pattern[str]:
        """Return the pattern of a table with the alternatives of one language alone; without any, it finds nothing."""
        key = f"{name} {language}"
        if key not in self.__dict__:
            self.__dict__[key] = re.compile(self._expression(name, language))
        return self.__dict__[key]  # type: ignore[no-any-return]

    def _expression(self, name: str, only: str = "") -> str:
        """Return a table's frame with the alternatives of all languages, or of one; tables that it names have all."""
        table = self._tables[name]
        languages = [only] if only else [language for language in table if language != "frame"]
        ones = (one for language in languages for one in table.get(language, ["(?!)"]))
        return self.expanded(str(table.get("frame", "%s")).replace("%s", f"(?:{'|'.join(ones)})"))

    def expanded(self, text: str) -> str:
        """Return an expression with those of the tables that it names."""
        return _NAME.sub(lambda other: re.sub(r"\A\(\?[a-z]+\)", "", self._expression(other[1])), text)


def patterns_beside(module: str) -> Patterns:
    """Return the patterns of the file words.toml beside a module. module: its `__file__`."""
    return Patterns(tomllib.loads(Path(module).with_name("words.toml").read_text(encoding="utf-8")))
