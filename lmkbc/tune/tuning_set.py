"""Tuning set: everything on which the choice of rules depends, as one value; and the defaults of its options."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from lmkbc.errors import InputError, OptionError

if TYPE_CHECKING:  # the command line reads the defaults, and must not load arrays
    from lmkbc.edition import Edition
    from lmkbc.relation import Relation
    from lmkbc.select.selector import PerRelation
    from lmkbc.types import CandidateSet, Example

FOLDS = 5
SEED = 0
TRIALS = 40
"""Maximum number of Optuna trials per relation and fold."""
PATIENCE = 15
"""Trials without a gain after which a study ends."""
UNSCORED = -1
"""Fold of rows that all folds learn from, while no figure is of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TuningOptions:
    """Options of tuning; published figures use the defaults.

    rules: names of the families to try; None for all.
    trials: maximum Optuna trials per relation and fold, which end early without a gain; 0 for exact sweeps, grids and
    calibrations alone.
    """

    rules: tuple[str, ...] | None = None
    folds: int = FOLDS
    trials: int = TRIALS
    seed: int = SEED

    def __post_init__(self) -> None:
        """Raise InputError for too few folds, or a negative number of trials."""
        if self.folds < 2:
            raise OptionError("folds", f"is {self.folds}: give at least 2 folds")
        if self.trials < 0:
            raise OptionError("trials", f"is {self.trials}: give 0 for exact sweeps alone, or more")


@dataclass(frozen=True, eq=False)
class TuningSet:
    """Candidates with their gold, and all else on which the choice of rules depends.

    sets: pooled candidates, linked if the edition needs ids. examples: their gold, in the same order.
    relations: by the edition's spelling.
    selector: what a run keeps, without the tuned rules.
    unscored: number of rows at the end that are learned from, while no figure is of them. Their subjects have no other
    rows.
    """

    sets: Sequence[CandidateSet]
    examples: Sequence[Example]
    edition: Edition
    relations: Mapping[str, Relation]
    selector: PerRelation
    options: TuningOptions
    unscored: int = 0

    def __post_init__(self) -> None:
        """Raise InputError for candidates without gold, or if there is no answered query."""
        for candidates, example in zip(self.sets, self.examples, strict=False):
            pair = candidates.query.subject, candidates.query.relation
            if pair != (example.query.subject, example.query.relation):
                raise InputError(
                    f"{pair} has candidates but no gold: tune on the split that the candidates were made for"
                )
        if all(candidates.failed for candidates in self.sets):
            raise InputError("there is no answered query to tune on: give candidates of a labelled split")

    @property
    def scored(self) -> Sequence[Example]:
        """Return the rows that figures are of."""
        return self.examples[: len(self.examples) - self.unscored]

    @property
    def answered(self) -> TuningSet:
        """Return the set without the queries that no model answered."""
        rows = [row for row, found in enumerate(self.sets) if not found.failed]
        unscored = sum(row >= len(self.scored) for row in rows)
        sets, examples = [self.sets[row] for row in rows], [self.examples[row] for row in rows]
        return replace(self, sets=sets, examples=examples, unscored=unscored)
