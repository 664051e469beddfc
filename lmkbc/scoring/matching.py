"""Maximum bipartite matching: the most pairs of an answer and a gold object, independent of their order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

Matches = Sequence[Sequence[int]]
"""For each answer, the gold objects that it matches, without repetition."""


def most_pairs(matches: Matches) -> int:
    """Return the size of a maximum matching of answers to gold objects."""
    finding = [found for found in matches if found]
    taken: set[int] = set()
    for found in finding:
        taken |= {next((index for index in found if index not in taken), found[0])}
    within = {index for found in finding for index in found}
    if len(taken) == min(len(finding), len(within)):  # the upper bound, nearly always reached
        return len(taken)
    return len(_matched(sorted(finding, key=len)))


def _matched(matches: Matches) -> dict[int, int]:
    """Return gold object -> its answer, by augmenting paths from all free answers at once (Hopcroft and Karp 1973)."""
    owner: dict[int, int] = {}
    mate: dict[int, int] = {}
    grows = True
    while grows:
        queue = [answer for answer in range(len(matches)) if answer not in mate]
        root, parent, grown = {answer: answer for answer in queue}, dict[int, int](), set[int]()
        for answer in queue:  # breadth first; the queue grows in the loop
            for gold in matches[answer] if root[answer] not in grown else ():
                if gold in parent:
                    continue
                parent[gold] = answer
                if gold not in owner:
                    grown.add(root[answer])
                    _augment(gold, parent, owner, mate)
                    break
                root[owner[gold]] = root[answer]
                queue.append(owner[gold])
        grows = bool(grown)
    return owner


def _augment(gold: int | None, parent: Mapping[int, int], owner: dict[int, int], mate: dict[int, int]) -> None:
    """Follow an augmenting path back from a free gold object, and reassign the gold objects along it."""
    while gold is not None:
        answer = owner[gold] = parent[gold]
        mate[answer], gold = gold, mate.get(answer)
