"""The candidates of many queries as arrays, so that one implementation of a rule serves selection and tuning."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from lmkbc.errors import InputError
from lmkbc.types import Candidate, CandidateSet, State

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Ranking:
    """Candidates of `n` queries, each best first, padded to the longest list `m`.

    ranked: the objects proposed, without the proposal to answer nothing. scores: (n, m), clipped to [0, 1], -1 where
    padded. nothing: (n,), score of answering nothing, 0 where none was proposed. abstained: (n,), share of the
    answers that were abstentions. nil_probability: (n,), 0.5 where none was given.
    nil: what each model says of nothing, "MODEL:nothing" and "MODEL:nil_probability" -> (n,), -1 where it says nothing.
    InputError for a score that is no number.
    """

    ranked: tuple[tuple[Candidate, ...], ...]
    scores: Floats
    nothing: Floats
    abstained: Floats
    nil_probability: Floats
    nil: Mapping[str, Floats] = field(default_factory=dict)

    @classmethod
    def of(cls, sets: Sequence[CandidateSet]) -> Ranking:
        """Sort (stable) and pad the candidates of each query."""
        ranked = tuple(_objects(candidates) for candidates in sets)
        clipped = [[min(max(candidate.score, 0.0), 1.0) for candidate in candidates] for candidates in ranked]
        scores = table_of(clipped, max(map(len, ranked), default=0), -1.0)
        nothing = [max((nil.score for nil in candidates.nothing), default=0.0) for candidates in sets]
        nil = [0.5 if (p := candidates.existence) is None else 1 - p for candidates in sets]
        abstained = [_abstained(candidates.draws) for candidates in sets]
        shares = np.clip(np.array([nothing, abstained, nil], dtype=float), 0.0, 1.0)
        return cls(ranked, scores, shares[0], shares[1], shares[2], _nil(sets))

    @cached_property
    def sizes(self) -> Ints:
        """Return how many objects each query has, (n,)."""
        return np.array([len(candidates) for candidates in self.ranked], dtype=np.int64)

    @cached_property
    def ended(self) -> Floats:
        """Return the scores with one more column, so that every query's list ends with -1, (n, m + 1)."""
        return np.pad(self.scores, ((0, 0), (0, 1)), constant_values=-1.0)

    @cached_property
    def best(self) -> Floats:
        """Return the best object's score, (n,); 0 where there is none."""
        return np.clip(self.scores[:, 0], 0.0, 1.0) if self.scores.shape[1] else np.zeros(len(self.ranked))

    @cached_property
    def reference(self) -> Floats:
        """Return what ratios refer to: the best object's score, 1 where that is 0, (n,)."""
        return np.where(self.best > 0, self.best, 1.0)

    @cached_property
    def models(self) -> Ints:
        """Return how many distinct models stand behind each candidate, (n, m)."""
        counts = [[len({source.model for source in c.sources}) for c in candidates] for candidates in self.ranked]
        return table_of(counts, self.scores.shape[1], 0)

    @cached_property
    def verifications(self) -> Floats:
        """Return what verification makes of each candidate, (n, m), -1 where nobody could tell."""
        given = [[-1.0 if c.verification is None else c.verification for c in candidates] for candidates in self.ranked]
        return table_of(given, self.scores.shape[1], -1.0)

    @cached_property
    def by_model(self) -> dict[str, Floats]:
        """Return what each model makes of each candidate, (n, m), -1 where it does not propose it; models in order."""
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
    """Return rows of different lengths as an array, (n, width); `fill`, whose type it has, stands behind their ends."""
    table = np.full((len(rows), width), fill)
    for line, row in zip(table, rows, strict=True):
        line[: len(row)] = row
    return table


def _objects(candidates: CandidateSet) -> tuple[Candidate, ...]:
    for candidate in candidates.candidates:
        if candidate.score != candidate.score:  # NaN has no rank
            pair = f"({candidates.query.subject!r}, {candidates.query.relation!r})"
            raise InputError(f"the score of candidate {candidate.text!r} of {pair} is not a number; give one in [0, 1]")
    return tuple(sorted(candidates.candidates, key=lambda candidate: -candidate.score))


def _nil(sets: Sequence[CandidateSet]) -> dict[str, Floats]:
    """Return by model its score of nothing, 0 where it only proposes objects; and its NIL probability."""
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
