"""Plug-ins of other distributions: generators, rules and relations that their entry points name.

What is here comes first; entry points are looked through for a name that is not, and of them that one alone is loaded,
so that a broken plug-in stops nobody who does not ask for it.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from functools import cached_property
from importlib.metadata import EntryPoint, entry_points

from lmkbc.errors import InputError
from lmkbc.relation import Relation
from lmkbc.settings import check_fields

GENERATORS, RULES, RELATIONS = "lmkbc.generators", "lmkbc.rules", "lmkbc.relations"
"""Groups of entry points: component -> class of its table; name -> class of a rule; name -> Relation."""


def names(group: str) -> list[str]:
    """Return what the entry points of a group are called."""
    return sorted({point.name for point in entry_points(group=group)})


def load(group: str, name: str) -> object | None:
    """Return what an entry point of a group stands for; None where there is none of this name.

    InputError names the plug-in and its distribution where it cannot be loaded, or where two have the name.
    """
    points = list({(point.value, _whose(point)): point for point in entry_points(group=group, name=name)}.values())
    if not points:
        return None
    if len(points) > 1:
        both = " and ".join(sorted(map(_whose, points)))
        raise InputError(f"{group} has the plug-in {name!r} twice, of {both}: uninstall one")
    try:
        found: object = points[0].load()
    except Exception as error:  # another's code may fail in any way; the person needs its name and the reason
        reason = f"{type(error).__name__}: {error}"
        raise InputError(f"{called(group, name)} cannot be loaded: {reason}; mend or uninstall it") from error
    return found


def called(group: str, name: str) -> str:
    """Return how a plug-in is named in an error."""
    whose = ", ".join(sorted({_whose(point) for point in entry_points(group=group, name=name)}))
    return f"the plug-in {name!r} of {whose} ({group})"


def _whose(point: EntryPoint) -> str:
    return f"{point.dist.name} {point.dist.version}" if point.dist else point.module


class Relations(Mapping[str, Relation]):
    """Relations by every spelling: those of a workspace, and behind them those of plug-ins.

    Of those behind, one that cannot be loaded is left out, and said, unless it is asked for by its own name.
    """

    def __init__(self, own: Mapping[str, Relation]) -> None:
        self._own = own

    def __getitem__(self, name: str) -> Relation:
        if name in self._own:
            return self._own[name]
        return _relation(name) or self._plugged[name]

    def __contains__(self, name: object) -> bool:
        if name in self._own:
            return True
        return isinstance(name, str) and (_relation(name) is not None or name in self._plugged)

    def __iter__(self) -> Iterator[str]:
        yield from self._own
        yield from self._plugged.keys() - self._own.keys()

    def __len__(self) -> int:
        return len(self._own.keys() | self._plugged.keys())

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
    """Return the relation that a plug-in brings under a name, None if none does. InputError for what is no relation."""
    found = load(RELATIONS, name)
    if found is not None and not isinstance(found, Relation):
        raise InputError(f"{called(RELATIONS, name)} is a {type(found).__name__}: it has to be a Relation")
    if found is not None:
        check_fields(found, called(RELATIONS, name))
    if found is not None and name not in found.spellings():
        raise InputError(f"{called(RELATIONS, name)} is the relation {found.name!r}: give the entry point its name")
    return found
