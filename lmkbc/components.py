"""Components in the code of systems: what one paper does alone, under names that begin with the system's.

A system is a folder with `recipe.toml`, and perhaps `system.py`, whose COMPONENTS are a dictionary of "SYSTEM/NAME" ->
component. The code of a bundled system is imported when one of its names is used.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

CODE = "system.py"
"""File with the code of a system, beside its recipe."""
SYSTEMS = Path(__file__).with_name("systems")
"""Folder of the bundled systems."""
_OF_SYSTEMS: dict[str, Mapping[str, Any]] = {}
"""System -> the components of its code, for systems that have been used."""
_DIGESTS: dict[str, str] = {}
"""System -> SHA-256 of its code."""


def register(system: str, components: Mapping[str, Any], code: bytes) -> None:
    """Add the components of a system's code, in place of those of another system with its name."""
    _OF_SYSTEMS[system], _DIGESTS[system] = components, hashlib.sha256(code).hexdigest()


def components_of(system: str) -> Mapping[str, Any]:
    """Return the components of a system's code, by their names; none for an unknown system."""
    if system not in _OF_SYSTEMS and system in systems_with_code():
        module = import_module(f"lmkbc.systems.{system}.system")
        register(system, module.COMPONENTS, (SYSTEMS / system / CODE).read_bytes())
    return _OF_SYSTEMS.get(system, {})


def code_of(tables: Any) -> dict[str, str]:
    """Return system -> SHA-256 of its code, for the components that the tables of a recipe name."""
    if isinstance(tables, Mapping):
        return code_of([*tables.values()])
    if isinstance(tables, str):
        system = tables.partition("/")[0]
        return {system: _DIGESTS[system]} if tables in components_of(system) else {}
    parts = tables if isinstance(tables, list | tuple) else ()
    return {system: digest for part in parts for system, digest in code_of(part).items()}


@cache
def systems_with_code() -> list[str]:
    """Return the bundled systems that have code of their own."""
    return sorted(path.parent.name for path in SYSTEMS.glob(f"*/{CODE}"))
