"""Maximum bipartite matching: how many answers find a gold object of their own, in whatever order they come."""

from __future__ import annotations

from collections.abc import Sequence

Matches = Sequence[Sequence[int]]
"""For each answer, the gold objects that it finds, each once: the search needs that."""


def most_pairs(matches: Matches) -> int:
    """Return the size of a maximum matching of answers to gold objects."""
    finding = [found for found in matches if found]
    taken: set[int] = set()
    for found in finding:
        taken |= {next((index for index in found if index not in taken), found[0])}
    within = {index for found in finding for index in found}
    if len(taken) == min(len(finding), len(within)):  # as nearly always: more there cannot be
        return len(taken)
    import numpy as np
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import maximum_bipartite_matching

    columns, ends = np.concatenate(finding), np.cumsum([0, *map(len, finding)])
    graph = csr_array((np.ones(len(columns)), columns, ends), shape=(len(finding), max(within) + 1))
    return int((maximum_bipartite_matching(graph) >= 0).sum())
