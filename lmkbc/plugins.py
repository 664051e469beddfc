"""Plug-ins of other distributions: generators, rules, relations and clients of servers, found by entry points.

The engine's and the workspace's own names come first. Only an unknown name is searched among entry points, and only the
entry point of that name is loaded. A broken plug-in therefore affects only users who ask for it.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from functools import cached_property
from importlib.metadata import EntryPoint, entry_points

from lmkbc.errors import InputError
from lmkbc.relation import Relation
from lmkbc.settings import check_fields

GENERATORS, RULES, RELATIONS, CLIENTS = "lmkbc.generators", "lmkbc.rules", "lmkbc.relations", "lmkbc.clients"
"""Groups of entry points. They map a component to the class of its table, a rule's name to its class, and a relation's
name to the Relation. A back end's name is mapped to the class of its client."""


def names(group: str) -> list[str]:
    """Return the names of a group's entry points."""
    return sorted({point.name for point in entry_points(group=group)})


def load(group: str, name: str) -> object | None:
    """Return the object that an entry point names; None if the group has no such name.

    Raise InputError, with the plug-in and its distribution, if it cannot be loaded, or if two distributions use the
    name.
    """
    points = list({(point.value, _whose(point)): point for point in entry_points(group=group, name=name)}.values())
    if not points:
        return None
    if len(points) > 1:
        both = " and ".join(sorted(map(_whose, points)))
        raise InputError(f"{group} has the plug-in {name!r} twice, of {both}: uninstall one")
    try:
        found: object = points[0].load()
    except Exception as error:  # foreign code may fail in any way; the user needs its name and the reason
        reason = f"{type(error).__name__}: {error}"
        raise InputError(f"{called(group, name)} cannot be loaded: {reason}; mend or uninstall it") from error
    return found


def called(group: str, name: str) -> str:
    """Return the name of a plug-in for an error message."""
    whose = ", ".join(sorted({_whose(point) for point in entry_points(group=group, name=name)}))
    return f"the plug-in {name!r} of {whose} ({group})"


def _whose(point: EntryPoint) -> str:
    return f"{point.dist.name} {point.dist.version}" if point.dist else point.module


class Relations(Mapping[str, Relation]):
    """Relations by every spelling: those of the workspace, then those of plug-ins.

    own: those of the workspace. A plug-in that cannot be loaded is skipped with a warning, unless its own name is
    looked up.
    """

    def __init__(self, own: Mapping[str, Relation]) -> None:
        self.own = own

    def __getitem__(self, name: str) -> Relation:
        if name in self.own:
            return self.own[name]
        return _relation(name) or self._plugged[name]

    def __contains__(self, name: object) -> bool:
        if name in self.own:
            return True
        return isinstance(name, str) and (_relation(name) is not None or name in self._plugged)

    def __iter__(self) -> Iterator[str]:
        yield from self.own
        yield from self._plugged.keys() - self.own.keys()

    def __len__(self) -> int:
        return len(self.own.keys() | self._plugged.keys())

    @cached_property
    def _plugged(self) -> dict[str, Relation]:
        found: dict[str, Relation] = {}
        for name in names(RELATIONS):
            try:
                relation = _relation(name)
            except InputError as error:
                logging.getLogger(__name__).warning("%s", error)
                continue
            if relation is not None:
                found |= dict.fromkeys(relation.spellings(), relation)
        return found


def _relation(name: str) -> Relation | None:
    """Return the relation that a plug-in defines under a name; None if none does. Raise InputError for another type."""
    found = load(RELATIONS, name)
    if found is not None and not isinstance(found, Relation):
        raise InputError(f"{called(RELATIONS, name)} is a {type(found).__name__}: it has to be a Relation")
    if found is not None:
        check_fields(found, called(RELATIONS, name))
    if found is not None and name not in found.spellings():
        raise InputError(f"{called(RELATIONS, name)} is the relation {found.name!r}: give the entry point its name")
    return found
