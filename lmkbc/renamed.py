"""Names of settings and options that changed. An old name is read for one version, with a warning."""

from __future__ import annotations

import logging
from collections.abc import Container, Mapping
from functools import cache

log = logging.getLogger(__name__)

NEW_NAMES: Mapping[str, str] = {
    "among": "source-filter",
    "attested": "corroborated",
    "none-gate": "abstention-threshold",
    "otherwise": "fallback",
    "voice": "source",
    "witness": "corroborating",
}
"""Old name -> new name."""


def renamed(name: str, known: Container[str]) -> str:
    """Return the new name of a setting if only its old name was given; else the name as it is."""
    new = NEW_NAMES.get(name)
    if new is None or name in known or new not in known:
        return name
    _warn(name, new)
    return new


@cache
def _warn(old: str, new: str) -> None:
    log.warning("%r is now called %r; the next version will not read the old name", old, new)
