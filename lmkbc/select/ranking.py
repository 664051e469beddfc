"""Candidates of many queries as arrays, so that selection and tuning share one implementation of each rule."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from lmkbc.types import Candidate, CandidateSet, State

PRIOR_DRAWS = 0.5
"""Draws against each object before any is read: a share of few draws is not yet certain."""
Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Ranking:
    """Candidates of `n` queries, each list best first and padded to the longest length `m`.

    ranked: the proposed objects, without NIL.
    scores: (n, m), clipped to [0, 1], -1 for padding.
    nothing: (n,), score of NIL, 0 if not proposed.
    abstained: (n,), share of abstentions among the answers.
    nil_probability: (n,), 0.5 if not given.
    nil: scores of NIL and NIL probabilities per model, "MODEL:nothing" and "MODEL:nil_probability" -> (n,), -1 if not
    given.
    draws: number of draws of each query that are answers.
    """

    ranked: Sequence[tuple[Candidate, ...]]
    scores: Floats
    nothing: Floats
    abstained: Floats
    nil_probability: Floats
    nil: Mapping[str, Floats] = field(default_factory=dict)
    draws: Sequence[int] = ()

    @classmethod
    def of(cls, sets: Sequence[CandidateSet]) -> Ranking:
        """Return the candidates of each query, sorted (stable) and padded."""
        ranked = tuple(best_first(candidates) for candidates in sets)
        clipped = [[min(max(candidate.score, 0.0), 1.0) for candidate in candidates] for candidates in ranked]
        scores = table_of(clipped, max(map(len, ranked), default=0), -1.0)
        nothing = [max((nil.score for nil in candidates.nothing), default=0.0) for candidates in sets]
        nil = [0.5 if (p := candidates.existence) is None else 1 - p for candidates in sets]
        abstained = [_abstained(candidates.draws) for candidates in sets]
        shares = np.clip(np.array([nothing, abstained, nil], dtype=float), 0.0, 1.0)
        draws = [sum(state.is_answer for state in candidates.draws) for candidates in sets]
        return cls(ranked, scores, shares[0], shares[1], shares[2], _nil(sets), draws)

    @cached_property
    def sizes(self) -> Ints:
        """Return the number of objects of each query, (n,)."""
        return np.asarray((self.scores >= 0).sum(axis=1))

    @cached_property
    def best(self) -> Floats:
        """Return the best object's score, (n,); 0 if there is no object."""
        return np.asarray(self.scores.max(axis=1, initial=0.0))

    @cached_property
    def reference(self) -> Floats:
        """Return the score to which ratios refer: the best object's, or 1 if that is 0, (n,)."""
        return np.where(self.best > 0, self.best, 1.0)

    @cached_property
    def shares(self) -> Floats:
        """Return the score of each candidate, shrunk if it is a share of draws, (n, m); -1 for padding.

        One draw of one becomes 0.67, and ten of ten become 0.95.
        """
        draws = [
            [draws if any(source.draw for source in candidate.sources) else math.inf for candidate in candidates]
            for candidates, draws in zip(self.ranked, self.draws, strict=True)
        ]
        return self.scores / (1 + PRIOR_DRAWS / table_of(draws, self.scores.shape[1], math.inf))

    @cached_property
    def models(self) -> Ints:
        """Return the number of distinct models that propose each candidate, (n, m)."""
        counts = [[len({source.model for source in c.sources}) for c in candidates] for candidates in self.ranked]
        return table_of(counts, self.scores.shape[1], 0)

    @cached_property
    def verifications(self) -> Floats:
        """Return the verification score of each candidate, (n, m); -1 if there is none."""
        given = [[-1.0 if c.verification is None else c.verification for c in candidates] for candidates in self.ranked]
        return table_of(given, self.scores.shape[1], -1.0)

    @cached_property
    def by_model(self) -> dict[str, Floats]:
        """Return model -> its score of each candidate, (n, m), -1 if it does not propose it; models in order."""
        names = sorted(
            {model for candidates in self.ranked for candidate in candidates for model, _ in candidate.by_model}
        )
        tables = {name: np.full(self.scores.shape, -1.0) for name in names}
        for row, candidates in enumerate(self.ranked):
            for place, candidate in enumerate(candidates):
                for model, score in candidate.by_model:
                    tables[model][row, place] = score
        return tables


def table_of(rows: Sequence[Sequence[float]], width: int, fill: float) -> npt.NDArray[Any]:
    """Return rows of different lengths as an array, (n, width), of the type of `fill`, which pads the rows."""
    table = np.full((len(rows), width), fill)
    for line, row in zip(table, rows, strict=True):
        line[: len(row)] = row
    return table


def best_first(candidates: CandidateSet) -> tuple[Candidate, ...]:
    """Return the objects of a query by descending score; equal scores keep the set's order."""
    return tuple(sorted(candidates.candidates, key=lambda candidate: -candidate.score))


def _nil(sets: Sequence[CandidateSet]) -> dict[str, Floats]:
    """Return, by model, its score of NIL (0 if it only proposes objects) and its NIL probability."""
    columns: dict[str, Floats] = {}
    for row, candidates in enumerate(sets):
        scores = {f"{model}:nothing": 0.0 for candidate in candidates.candidates for model, _ in candidate.by_model}
        for kind, nils in (("nothing", candidates.nothing), ("nil_probability", candidates.nil_probabilities)):
            for model, score in (pair for nil in nils for pair in nil.by_model):
                scores[f"{model}:{kind}"] = max(scores.get(f"{model}:{kind}", 0.0), score)
        for name, score in scores.items():
            columns.setdefault(name, np.full(len(sets), -1.0))[row] = score
    return columns


def _abstained(draws: Sequence[State]) -> float:
    answers = [state for state in draws if state.is_answer]
    return answers.count(State.ABSTAINED) / len(answers) if answers else 0.0
