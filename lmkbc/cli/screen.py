"""What people see: results on stdout, everything else on stderr; model output is shown as plain text only."""

from __future__ import annotations

import json
import logging
import re
import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lmkbc.edition import Edition

_STEERING = re.compile(r"[\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")
"""Control characters that JSON may hold as they are, and marks that turn the direction of writing."""


def plain(text: str) -> str:
    """Text from a model, a file or a command line, safe for a terminal: what steers one is replaced."""
    return "".join(char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in text)


def show_error(sentence: str) -> None:
    """Write one sentence on what is wrong, where, and what to do."""
    note(f"error: {sentence}")


def note(sentence: str) -> None:
    """Write a line for people to stderr."""
    sys.stderr.write(plain(sentence) + "\n")


def note_published(edition: Edition, split: str, profile: str = "") -> None:
    """Write the best F1 that was published on a split by one scorer, where any was."""
    for best in edition.leaderboard(split, profile)[:1]:
        note(f"best published on {split}{f' by {profile}' if profile else ''}: {best.system}, F1 {best.f1:.3f}")


class _Notes(logging.Handler):
    """What the engine logs, as lines for people."""

    def emit(self, record: logging.LogRecord) -> None:
        note(record.getMessage())


def show_logs() -> None:
    """Show what the engine has to say: how many draws a file holds of each state, what a generator does without."""
    logger = logging.getLogger("lmkbc")
    logger.handlers = [_Notes()]
    logger.setLevel(logging.INFO)
    logger.propagate = False
    logging.getLogger("matplotlib").setLevel(logging.ERROR)  # where it keeps its own cache is no concern of the user's


def show_json(value: Any) -> None:
    """Write a result for machines to stdout."""
    sys.stdout.write(tame(json.dumps(value, ensure_ascii=False, indent=2)) + "\n")


def show_json_rows(value: dict[str, Any], name: str, rows: Iterable[dict[str, Any]]) -> None:
    """Write the same with a list as its last member, `name`, which is never in memory as a whole."""
    sys.stdout.write(tame(json.dumps(value, ensure_ascii=False, indent=2)).removesuffix("\n}") + f',\n  "{name}": [')
    before, after = "\n", "]"
    for row in rows:
        written = json.dumps(row, ensure_ascii=False, indent=2).replace("\n", "\n    ")
        sys.stdout.write(f"{before}    {tame(written)}")
        before, after = ",\n", "\n  ]"
    sys.stdout.write(f"{after}\n}}\n")


def tame(written: str) -> str:
    """JSON or TOML of the same meaning in which nothing steers a terminal: what does is written as an escape."""
    return _STEERING.sub(lambda char: f"\\u{ord(char[0]):04x}", written)
