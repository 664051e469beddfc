"""The guard of a reader: a text that it cannot read, by a fault of its own, counts as unread and ends no run.

Models write anything. A fault is named beside the query, and asks for a report. The variable LMKBC_RAISE of the
environment lets it through, so that tests find its cause.
"""

from __future__ import annotations

import logging
import os
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from lmkbc.errors import LmkbcError

RAISE = "LMKBC_RAISE"
"""Variable of the environment: if it is set, a fault of the reader is raised."""

Read = TypeVar("Read")
log = logging.getLogger(__name__)
_seen = set[str]()
"""Faults of this process; each is reported once."""


def guarded(read: Callable[[], Read], text: str, unread: Callable[[str, str], Read]) -> Read:
    """Return what a function reads in a text; if it raises, what `unread` makes of the text and the fault's name."""
    try:
        return read()
    except Exception as error:
        if isinstance(error, LmkbcError | MemoryError) or os.environ.get(RAISE):
            raise
        place = traceback.extract_tb(error.__traceback__)[-1]
        fault = f"fault: {type(error).__name__} in {Path(place.filename).name}, line {place.lineno}"
        if fault not in _seen:
            _seen.add(fault)
            log.error(
                "texts such as %r cannot be read and count as unread, by a fault of lmkbc (%s): please report it with "
                "the text",
                text[:200],
                fault.removeprefix("fault: "),
            )
        return unread(text, fault)
