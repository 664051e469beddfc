"""What keeps less than a relation's rule: a cap, a promised precision, or only what no labelled row states.

A selector applies its narrowings in order (see `PerRelation.kept`). A new one is a class here, and a line in the list
`NARROWINGS` of `lmkbc.tune.chooser` if an option asks for it.

The promise of a precision holds for facts that are already in the gold. Thresholds learned on such facts held for
missing facts in only 5 of 16 relations (Veseli et al., EMNLP Findings 2023). Check a sample by hand before facts enter
a knowledge base.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

from lmkbc.errors import counted
from lmkbc.select.calibration import PROMISES, SURE, Calibration, Point, PrecisionCurve
from lmkbc.select.cutoffs import Cutoff
from lmkbc.select.expected_f1 import Calibrated
from lmkbc.select.rule import UNLIMITED, Rule
from lmkbc.session.statements import Statements
from lmkbc.types import Candidate, CandidateSet, Prediction, Query, grouped

UNREACHED, UNSURE = "no confidence of its relation promises the precision", "no object is sure enough"
STATED = "labelled rows state all that would be kept"
"""Reasons for a withheld answer."""


class Narrowing(ABC):
    """Keeps less of each answer than its rule does.

    If objects were kept before it, and none is left, the answer is withheld, and not empty. chooses: whether it chooses
    among all candidates anew, so that it comes before those that take objects away.
    """

    chooses: ClassVar[bool] = False

    @abstractmethod
    def left(self, candidates: CandidateSet, objects: tuple[Candidate, ...]) -> tuple[Candidate, ...]:
        """Return what is left of an answer. candidates: all of the query."""

    def all_left(self, sets: Sequence[CandidateSet], made: Sequence[Prediction]) -> Sequence[tuple[Candidate, ...]]:
        """Return what is left of each answer, in order."""
        return [self.left(candidates, one.objects) for candidates, one in zip(sets, made, strict=True)]

    @property
    def words(self) -> str:
        """Return the end of the sentence that says how a run selects; "" if the rules' own description suffices."""
        return ""

    @property
    def suffix(self) -> str:
        """Return the end of the default name of a run's directory."""
        return ""

    @property
    def about(self) -> Mapping[str, Any]:
        """Return what a manifest records of it."""
        return {}

    def decides(self, relation: str) -> Any:  # noqa: ARG002
        """Return what it takes from the answers about a relation, so that a change of it is found."""
        return self.words

    def reason(self, query: Query) -> str:  # noqa: ARG002
        """Return why the answer to a query is withheld."""
        return "nothing is left of it"

    def applied(self, sets: Sequence[CandidateSet], made: Sequence[Prediction]) -> list[Prediction]:
        """Return the predictions with what is left of each, in order."""
        return [
            replace(
                one,
                objects=objects,
                withheld=self.reason(one.query) if one.objects and not objects and not one.failed else one.withheld,
            )
            for one, objects in zip(made, self.all_left(sets, made), strict=True)
        ]


@dataclass(frozen=True)
class AtMost(Narrowing):
    """The first objects of an answer. most: their maximum number, by every spelling of a relation."""

    most: Mapping[str, int]

    def left(self, candidates: CandidateSet, objects: tuple[Candidate, ...]) -> tuple[Candidate, ...]:
        """Return the first objects."""
        return objects[: self.most.get(candidates.query.relation)]

    def decides(self, relation: str) -> Any:
        """Return the maximum number of objects."""
        return self.most.get(relation)


@dataclass(frozen=True, kw_only=True)
class AtPrecision(Narrowing):
    """The facts that promise a precision out of fold.

    asked: as given, such as "best:0.1". precision: what that comes to, in (0, 1). promise: a name in `PROMISES`.
    reached: the relations that reach it, by every spelling, with their points on the curve. rules: of these relations.
    below: the other relations, sorted.
    """

    chooses: ClassVar[bool] = True
    asked: float | str
    precision: float
    promise: str
    reached: Mapping[str, Point]
    rules: Mapping[str, Rule]
    below: Sequence[str]

    @classmethod
    def of(
        cls,
        curves: Mapping[str, PrecisionCurve],
        calibration: Callable[[str], Calibration | None],
        precision: float,
        asked: float | str = "",
        promise: str = SURE,
    ) -> AtPrecision:
        """Return the narrowing to a precision. A relation that does not reach it, or was not tuned, keeps nothing."""
        reached: dict[str, Point] = {}
        rules: dict[str, Rule] = {}
        for name, curve in curves.items():
            point, fitted = curve.at(precision), calibration(name)
            if point is not None and fitted is not None:
                reached[name] = point
                rules[name] = Calibrated.by(fitted, Cutoff(threshold=point.threshold, max=curve.max or UNLIMITED))
        below = sorted(set(curves) - set(reached))
        return cls(
            asked=asked or precision, precision=precision, promise=promise, reached=reached, rules=rules, below=below
        )

    def left(self, candidates: CandidateSet, objects: tuple[Candidate, ...]) -> tuple[Candidate, ...]:
        """Return the candidates that are sure enough, whatever was kept before."""
        (left,) = self.all_left([candidates], [Prediction(candidates.query, objects)])
        return left

    def all_left(self, sets: Sequence[CandidateSet], made: Sequence[Prediction]) -> Sequence[tuple[Candidate, ...]]:
        """Return the candidates that are sure enough, one relation at a time."""
        left: list[tuple[Candidate, ...]] = [()] * len(made)
        for relation, places in grouped((one.query.relation, place) for place, one in enumerate(sets)).items():
            if rule := self.rules.get(relation):
                for place, sure in zip(places, rule.select_all([sets[place] for place in places]), strict=True):
                    left[place] = sure.objects
        return left

    def decides(self, relation: str) -> Any:
        """Return the precision, and the point on the relation's curve that reaches it."""
        return self.precision, self.reached.get(relation)

    @property
    def words(self) -> str:
        """Return the precision, and how many relations reach it."""
        relations, promise = counted(len(self.reached) + len(self.below), "relation"), PROMISES[self.promise]
        by = "all relations together" if promise.together else f"{len(self.reached)} of {relations}"
        return f", at precision {self.precision:g}{promise.words}, promised by {by}"

    @property
    def suffix(self) -> str:
        """Return the precision as it was given, and its promise if it is not the usual one."""
        return f"-precision-{self.asked}{'' if self.promise == SURE else f'-{self.promise}'}".replace(":", "-")

    @property
    def about(self) -> Mapping[str, Any]:
        """Return the precision, its promise, and the relations that do not reach it."""
        return {"precision": self.precision, "promise": self.promise, "below_precision": self.below}

    def reason(self, query: Query) -> str:
        """Return whether the relation does not reach the precision, or its objects are not sure enough."""
        return UNSURE if query.relation in self.reached else UNREACHED


def surest(curves: Collection[PrecisionCurve], share: float) -> float:
    """Return the highest precision at which relations keep a share of the recall that they have without a threshold.

    Recall is the mean over relations. The precision is 0 if there are no curves.
    """

    def recall(precision: float) -> float:
        return math.fsum(point.recall for curve in curves if (point := curve.at(precision)))

    promised = {precision for curve in curves for precision in curve.precision}
    return max((precision for precision in promised if recall(precision) >= share * recall(0.0)), default=0.0)


@dataclass(frozen=True)
class Unstated(Narrowing):
    """What no labelled row states."""

    statements: Statements = field(repr=False)

    def left(self, candidates: CandidateSet, objects: tuple[Candidate, ...]) -> tuple[Candidate, ...]:
        """Return the objects that no labelled row states of the subject."""
        return tuple(one for one in objects if not self.statements.stated_by(candidates.query, one))

    @property
    def words(self) -> str:
        """Return what is left out."""
        return ", without what labelled rows state"

    def reason(self, query: Query) -> str:  # noqa: ARG002
        """Return that labelled rows state everything."""
        return STATED
