"""Which prompts share a beginning: prompts in tokens -> groups whose common tokens are encoded once.

Tokens, not texts, are compared, so that every prompt keeps exactly the tokens it has on its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

Tokens = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Group:
    """Prompts that begin alike: their first `shared` tokens, and who they are."""

    shared: int
    members: tuple[int, ...]


def common(first: Sequence[int], second: Sequence[int]) -> int:
    """How many leading tokens are the same."""
    for index, (one, other) in enumerate(zip(first, second, strict=False)):
        if one != other:
            return index
    return min(len(first), len(second))


def groups(prompts: Sequence[Tokens], spare: int = 1) -> list[Group]:
    """Prompts by shared beginning, each group leaving at least `spare` tokens of every member unshared.

    A prompt joins its neighbour's group where that means fewer tokens to encode than a group of its own.
    """
    found: list[Group] = []
    members: list[int] = []
    shared = 0
    for index in sorted(range(len(prompts)), key=prompts.__getitem__):
        longest = max(len(prompts[index]) - spare, 0)
        if members:
            alike = min(common(prompts[members[-1]], prompts[index]), shared, longest)
            if (len(members) - 1) * (shared - alike) <= alike:
                members, shared = [*members, index], alike
                continue
            found.append(Group(shared, tuple(members)))
        members, shared = [index], longest
    return [*found, Group(shared, tuple(members))] if members else []
