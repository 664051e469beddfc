"""Old names of settings and options. An old name is accepted for one version, with a warning."""

from __future__ import annotations

import logging
from collections.abc import Container, Mapping
from functools import cache

log = logging.getLogger(__name__)

NEW_NAMES: Mapping[str, tuple[str, ...]] = {
    "add": ("add_below",),
    "admit": ("min_verification",),
    "again": ("follow_up",),
    "among": ("source-filter",),
    "attest": ("min_score",),
    "attested": ("corroborated",),
    "closed": ("ranking",),
    "doubt": ("existence",),
    "draws": ("samples",),
    "floor": ("min_score", "min_prob"),
    "habits": ("label_priors",),
    "jury": ("aggregation",),
    "least": ("min",),
    "lenses": ("variants",),
    "most": ("max",),
    "most_sources": ("max_sources",),
    "none-gate": ("abstention-threshold",),
    "off": ("calibration",),
    "otherwise": ("fallback",),
    "own": ("use_train_features",),
    "prune": ("prune_below",),
    "reads": ("parse_as",),
    "signals": ("features",),
    "states": ("hidden_states",),
    "voice": ("source",),
    "witness": ("corroborating",),
}
"""Old name -> new names; each table has one of them."""


def renamed(name: str, known: Container[str]) -> str:
    """Return the new name of a setting if `known` holds only the new one; else the name as it is."""
    new = next((new for new in NEW_NAMES.get(name, ()) if new in known), name)
    if new == name or name in known:
        return name
    _warn(name, new)
    return new


@cache
def _warn(old: str, new: str) -> None:
    log.warning("%r is now called %r; the next version will not read the old name", old, new)
