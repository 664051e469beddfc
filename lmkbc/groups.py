"""Grouping of items by key, such as facts by relation."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable
from typing import TypeVar

Key = TypeVar("Key", bound=Hashable)
Item = TypeVar("Item")


def grouped(pairs: Iterable[tuple[Key, Item]]) -> defaultdict[Key, list[Item]]:
    """Return the items of each key, in order, with keys in order of first occurrence; [] for any other key."""
    groups: defaultdict[Key, list[Item]] = defaultdict(list)
    for key, item in pairs:
        groups[key].append(item)
    return groups
