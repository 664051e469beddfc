"""Scores of other generators for a relation's closed set, used as further signals of the embedded default."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import chain

import numpy as np

from lmkbc.groups import grouped
from lmkbc.names import folded_key
from lmkbc.progress import Report, silent
from lmkbc.select.ranking import Floats
from lmkbc.types import Candidate, CandidateSet, Generator, Query, Source

ASKING = "language models (answers)"
"""Name of the step in progress reports."""
UNKNOWN = -1.0
"""Score of an object that a source did not name; it is below all scores of named objects."""
Scores = dict[str, float]
"""Object -> score. Keys are QIDs, folded names, and "" for no object."""


class OtherSources:
    """Scores of generators, by name, for queries. Each query is asked once.

    failed: queries that some generator failed to answer.
    """

    def __init__(self, generators: Mapping[str, Generator], report: Report = silent) -> None:
        self._generators, self._report = generators, report
        self._scores: dict[str, dict[Query, Scores]] = {name: {} for name in generators}
        self.failed: set[Query] = set()

    def __bool__(self) -> bool:
        return bool(self._generators)

    def ask(self, *groups: Sequence[Query]) -> None:
        """Ask the sources about new queries.

        groups: asked one after the other, since the last digits of a local model's scores depend on the batch. Within a
        group, relations are asked in turn, so that a model encodes the common prefix of a relation's prompts once.
        """
        total, done = self.lacking([*chain.from_iterable(groups)]), 0
        if total:
            self._report(ASKING, 0, total)
        by_relation = (grouped((query.relation, query) for query in dict.fromkeys(group)) for group in groups)
        for members in chain.from_iterable(one.values() for one in by_relation):
            for name, generator in self._generators.items():
                known = self._scores[name]
                new = [query for query in members if query not in known and query not in self.failed]
                for answer in generator.generate(new) if new else ():
                    if answer.draws and answer.failed:
                        self.failed.add(answer.query)
                    else:
                        known[answer.query] = _scores(answer)
                    self._report(ASKING, done := done + 1, total)

    def lacking(self, queries: Sequence[Query]) -> int:
        """Return the number of answers that are missing."""
        return sum(
            query not in known and query not in self.failed
            for known in self._scores.values()
            for query in dict.fromkeys(queries)
        )

    def forget(self, queries: Sequence[Query]) -> None:
        """Delete the scores of queries."""
        for known in self._scores.values():
            for query in queries:
                known.pop(query, None)
        self.failed.difference_update(queries)

    def scores(self, queries: Sequence[Query]) -> dict[str, list[Scores]]:
        """Return source -> its scores, by query. They are part of the key of a stored fit."""
        return {name: [known.get(query, {}) for query in queries] for name, known in self._scores.items()}

    def signals(self, queries: Sequence[Query], candidates: Sequence[Candidate]) -> dict[str, Floats]:
        """Return source -> its scores of a closed set, (m, c + 1); UNKNOWN if it gives none."""
        names = [(candidate.id or "", folded_key(candidate.text)) for candidate in candidates]
        return {
            name: np.array([[_score(scores, *keys) for keys in names] for scores in rows])
            for name, rows in self.scores(queries).items()
        }


def _scores(answer: CandidateSet) -> Scores:
    """Return the mean, over the draws that answered, of each draw's best score; a draw without the object counts 0."""
    by_draw: defaultdict[str, defaultdict[tuple[Source, ...], float]] = defaultdict(lambda: defaultdict(float))
    for candidate in answer.candidates:
        for key in filter(None, (candidate.id, folded_key(candidate.text))):
            by_draw[key][candidate.sources] = max(candidate.score, by_draw[key][candidate.sources])
    for nil in answer.nothing:
        by_draw[""][nil.sources] = nil.score
    draws = max(sum(state.is_answer for state in answer.draws), 1)
    return {key: sum(scores.values()) / draws for key, scores in by_draw.items()}


def _score(scores: Scores, id_: str, name: str) -> float:
    return scores.get(id_, scores.get(name, UNKNOWN)) if id_ else scores.get(name, UNKNOWN)
