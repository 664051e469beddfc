"""Maximum bipartite matching (Hopcroft and Karp 1973): how many answers find a gold object of their own.

Nothing here calls itself, so a chain of any length has a size, and the same one in whatever order it comes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

Matches = Sequence[Sequence[int]]
"""For each answer, the gold objects that it finds."""


def most_pairs(matches: Matches) -> int:
    """Return the size of a maximum matching of answers to gold objects."""
    owner: dict[int, int] = {}  # gold object -> answer
    taken: dict[int, int] = {}  # answer -> gold object
    for answer, found in enumerate(matches):
        free = next((index for index in found if index not in owner), None)
        if free is not None:
            owner[free], taken[answer] = answer, free
    while depth := _layers(matches, owner, taken):
        left = [iter(found) for found in matches]
        for root in [answer for answer, steps in depth.items() if not steps]:
            path = [root]
            while path:
                answer = path[-1]
                for index in left[answer]:
                    other = owner.get(index)
                    if other is None:
                        _shift(path, index, owner, taken)
                        path = []
                        break
                    if depth.get(other) == depth[answer] + 1:
                        path.append(other)
                        break
                else:
                    path.pop()
    return len(owner)


def _layers(matches: Matches, owner: Mapping[int, int], taken: Mapping[int, int]) -> dict[int, int]:
    """Return the answers that free ones reach, by their steps; none where none of them reaches a free object."""
    depth = {answer: 0 for answer, found in enumerate(matches) if found and answer not in taken}
    reached, ends = list(depth), False
    for answer in reached:
        for index in matches[answer]:
            other = owner.get(index)
            ends = ends or other is None
            if other is not None and other not in depth:
                depth[other] = depth[answer] + 1
                reached.append(other)
    return depth if ends else {}


def _shift(path: Sequence[int], free: int, owner: dict[int, int], taken: dict[int, int]) -> None:
    """Give the last answer of a path a free object, and each one before it what the next one had."""
    index: int | None = free
    for answer in reversed(path):
        if index is not None:
            before = taken.get(answer)
            owner[index], taken[answer] = answer, index
            index = before
