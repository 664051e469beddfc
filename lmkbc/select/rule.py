"""Base of every selection rule: parameters with search ranges, and the way from scores to a prediction."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields, replace
from typing import Any, ClassVar, NamedTuple, TypeVar, cast

import numpy as np

from lmkbc.groups import grouped
from lmkbc.select.calibration import Calibration, PrecisionCurve
from lmkbc.select.ranking import Floats, Ints, Mask, Ranking
from lmkbc.types import CandidateSet, Prediction

Made = TypeVar("Made")
UNLIMITED = 1_000_000
AT_ONCE = 256
"""Queries whose candidates make one array: their lists are padded to the longest of them."""


def significant(value: float, digits: int = 4) -> float:
    """Return a value in few digits: tuning rounds before it scores, so that a file selects what was measured."""
    return float(f"{value:.{digits}g}")


class Real(NamedTuple):
    """A real parameter's search range; `log` where its scale is logarithmic."""

    low: float
    high: float
    log: bool = False


class Whole(NamedTuple):
    """A whole parameter's search range, both ends included."""

    low: int
    high: int


class Choice(NamedTuple):
    """The options of a parameter that has no order."""

    options: tuple[str, ...]


Range = Real | Whole | Choice
CUT = Real(1e-6, 2.0, log=True)
"""Range of a cut-off on scores; above 1 it keeps nothing."""


class Rule(ABC):
    """Decides which candidates of a query to keep. Subclasses are frozen dataclasses: parameters, and nothing else.

    name: how tables and thresholds files call the rule. search: parameter -> range, for those worth tuning.
    reads_others: whether candidates of other queries are evidence for it (see `read`).
    """

    name: ClassVar[str]
    search: ClassVar[Mapping[str, Range]] = {}
    reads_others: ClassVar[bool] = False

    @abstractmethod
    def select(self, candidates: CandidateSet) -> Prediction:
        """Keep objects of one query, best first. A query that no model answered stays failed."""

    def select_all(self, sets: Sequence[CandidateSet]) -> list[Prediction]:
        """Keep objects of each query, as `select` does, in their order."""
        return [self.select(candidates) for candidates in sets]

    def read(self, sets: Sequence[CandidateSet], every: Sequence[CandidateSet]) -> Sequence[CandidateSet]:  # noqa: ARG002
        """Return the sets as the rule is to see them, knowing all that the run asked; they are as they were."""
        return sets

    def to_table(self) -> dict[str, Any]:
        """Return the rule as a plain table, for TOML: its name and the parameters that differ from their defaults."""
        table: dict[str, Any] = {"rule": self.name}
        for own in fields(self):  # type: ignore[arg-type]
            value = getattr(self, own.name)
            default = own.default if own.default_factory is MISSING else own.default_factory()
            if value != default:
                table[own.name] = _plain(value)
        return table


def _plain(value: Any) -> Any:
    """Return a parameter as TOML holds it: a rule as its table."""
    if isinstance(value, Mapping):
        return {name: _plain(part) for name, part in value.items()}
    return value.to_table() if isinstance(value, Rule) else value


class BatchSelector(ABC):
    """Selector of many queries at once, in arrays; a single query is a batch of one."""

    @abstractmethod
    def select_all(self, sets: Sequence[CandidateSet]) -> list[Prediction]:
        """Keep objects of each query, in their order."""

    def select(self, candidates: CandidateSet) -> Prediction:
        """Keep objects of one query, best first. A query that no model answered stays failed."""
        return self.select_all([candidates])[0]


@dataclass(frozen=True)
class PerRelation(BatchSelector):
    """A selector with a rule per relation; `general` serves those that have none of their own.

    rules, calibrations, curves: by every spelling of a relation that queries use. calibrations: what tuning fitted
    beside rules that have none of their own. curves: what precision the confidences then promise.
    """

    general: Rule
    rules: Mapping[str, Rule] = field(default_factory=dict)
    calibrations: Mapping[str, Calibration] = field(default_factory=dict)
    curves: Mapping[str, PrecisionCurve] = field(default_factory=dict)

    @property
    def reads_others(self) -> bool:
        """Return whether a rule reads candidates of other queries, so that a run is selected of as a whole."""
        return any(rule.reads_others for rule in (self.general, *self.rules.values()))

    def select_all(self, sets: Sequence[CandidateSet]) -> list[Prediction]:
        """Keep objects of each query by its relation's own rule, in their order. sets: of a whole run."""
        return self.keep(self.read(sets))

    def read(self, sets: Sequence[CandidateSet]) -> Sequence[CandidateSet]:
        """Return the sets of a whole run as their rules are to see them, in their order."""
        return self._each(sets, lambda rule, own: rule.read(own, sets)) if self.reads_others else sets

    def keep(self, sets: Sequence[CandidateSet]) -> list[Prediction]:
        """Keep objects of some of the sets that were read."""
        return self._each(sets, lambda rule, own: rule.select_all(own))

    def _each(
        self, sets: Sequence[CandidateSet], of: Callable[[Rule, Sequence[CandidateSet]], Sequence[Made]]
    ) -> list[Made]:
        """Return what is made of each set by its relation's own rule, all of a rule at once."""
        own = [relation if (relation := one.query.relation) in self.rules else "" for one in sets]
        made: dict[int, Made] = {}
        for relation, its in grouped((relation, place) for place, relation in enumerate(own)).items():
            rule = self.rules.get(relation, self.general)
            made.update(zip(its, of(rule, [sets[place] for place in its]), strict=True))
        return [made[place] for place in range(len(sets))]

    def under(self, rules: Mapping[str, Rule]) -> PerRelation:
        """Return the selector with other rules laid over its own."""
        return replace(self, rules={**self.rules, **rules})


class MaskRule(BatchSelector, Rule):
    """A rule that keeps some of the candidates as they are."""

    @abstractmethod
    def keep(self, ranking: Ranking) -> Mask:
        """Return which candidates of each query to keep, (n, m)."""

    def select_all(self, sets: Sequence[CandidateSet]) -> list[Prediction]:
        """Keep objects of each query, as `select` does, in their order; many at once, so that arrays pay."""
        made: list[Prediction] = []
        for first in range(0, len(sets), AT_ONCE):
            some = sets[first : first + AT_ONCE]
            ranking = Ranking.of(some)
            for candidates, ranked, mask in zip(some, ranking.ranked, self.keep(ranking), strict=True):
                kept = () if candidates.failed else tuple(ranked[place] for place in np.flatnonzero(mask))
                made.append(Prediction(candidates.query, kept, candidates.failed))
        return made


@dataclass(frozen=True, kw_only=True)
class SweptRule(MaskRule):
    """A rule with one parameter whose exact best value a sweep finds, whatever its other parameters are.

    swept: that parameter. It is a bound: the higher, the fewer candidates pass.
    """

    swept: ClassVar[str]

    @abstractmethod
    def levels(self, ranking: Ranking) -> Floats:
        """Return the highest swept value that each candidate passes, (n, m); below 0 if it passes none."""

    @classmethod
    def joint(cls) -> dict[str, Range]:
        """Return the parameters that are left to search once the swept one is known to follow from them."""
        return {name: span for name, span in cls.search.items() if name != cls.swept}


@dataclass(frozen=True, kw_only=True)
class PrefixRule(MaskRule):
    """A rule that keeps the best so many candidates; at least `min` and at most `max` where there are as many."""

    min: int = 0
    max: int = UNLIMITED

    @abstractmethod
    def wanted(self, ranking: Ranking) -> Ints:
        """Return how many candidates of each query the rule itself would keep, (n,)."""

    def length(self, ranking: Ranking) -> Ints:
        """Return how many candidates of each query to keep, (n,)."""
        wanted = self.wanted(ranking)
        if self.min:
            wanted = np.maximum(wanted, self.min)
        if self.max < UNLIMITED:
            wanted = np.minimum(wanted, self.max)
        return np.minimum(wanted, ranking.sizes)

    def keep(self, ranking: Ranking) -> Mask:
        """Return which candidates of each query to keep, (n, m)."""
        return np.arange(ranking.scores.shape[1]) < self.length(ranking)[:, None]


def kept_of(rule: MaskRule, ranking: Ranking, scores: Floats) -> Mask:
    """Return what a rule keeps of candidates with other scores, in their order, (n, m); those below 0 are left out."""
    order = np.argsort(-scores, axis=1, kind="stable")
    sizes = (scores >= 0).sum(axis=1)
    ranked = tuple(
        tuple(candidates[place] for place in places[:size])
        for candidates, places, size in zip(ranking.ranked, order, sizes, strict=True)
    )
    inner = rule.keep(replace(ranking, ranked=ranked, scores=np.take_along_axis(scores, order, axis=1)))
    mask = np.zeros(scores.shape, dtype=np.bool_)
    np.put_along_axis(mask, order, inner, axis=1)
    return mask


def run_length(accepted: Mask) -> Ints:
    """Return how many are accepted before the first that is not; no list's end is."""
    return cast(Ints, np.argmin(accepted, axis=1))
