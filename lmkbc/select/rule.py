"""Base classes of selection rules: parameters with search ranges, and selection from scores."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields, replace
from typing import Any, ClassVar, NamedTuple, TypeVar

import numpy as np

from lmkbc.select.calibration import Calibration, PrecisionCurve
from lmkbc.select.ranking import Floats, Ints, Mask, Ranking
from lmkbc.types import CandidateSet, Prediction, grouped

Made = TypeVar("Made")
UNLIMITED = 1_000_000
AT_ONCE = 256
"""Queries per array; their lists of candidates are padded to the longest."""


def significant(value: float, digits: int = 4) -> float:
    """Return a value rounded to significant digits. Tuning rounds before it scores, so files hold what was measured."""
    return float(f"{value:.{digits}g}")


class Real(NamedTuple):
    """Search range of a real parameter. log: whether its scale is logarithmic."""

    low: float
    high: float
    log: bool = False


class Whole(NamedTuple):
    """Search range of a whole-number parameter, both ends included."""

    low: int
    high: int


class Choice(NamedTuple):
    """Options of a parameter without an order."""

    options: tuple[str, ...]


Range = Real | Whole | Choice
CUT = Real(1e-6, 2.0, log=True)
"""Range of a cut-off on scores; above 1 it keeps nothing."""


class Rule(ABC):
    """Decides which candidates of a query to keep. Subclasses are frozen dataclasses of parameters.

    name: name in recipes and thresholds files.
    search: parameter -> range, for parameters worth tuning.
    reads_others: whether the rule uses candidates of other queries (see `read`).
    """

    name: ClassVar[str]
    search: ClassVar[Mapping[str, Range]] = {}
    reads_others: ClassVar[bool] = False

    @abstractmethod
    def select(self, candidates: CandidateSet) -> Prediction:
        """Return the kept objects of one query, best first. A query that no model answered stays failed."""

    def select_all(self, sets: Sequence[CandidateSet]) -> list[Prediction]:
        """Return the kept objects of each query, in order, as `select` does."""
        return [self.select(candidates) for candidates in sets]

    def read(self, sets: Sequence[CandidateSet], every: Sequence[CandidateSet]) -> Sequence[CandidateSet]:  # noqa: ARG002
        """Return the sets as the rule uses them; by default unchanged. every: all sets of the run."""
        return sets

    def to_table(self) -> dict[str, Any]:
        """Return the rule as a plain table for TOML: its name and the parameters that differ from their defaults."""
        table: dict[str, Any] = {"rule": self.name}
        for parameter in fields(self):  # type: ignore[arg-type]
            value = getattr(self, parameter.name)
            default = parameter.default if parameter.default_factory is MISSING else parameter.default_factory()
            if value != default:
                table[parameter.name] = _plain(value)
        return table


def _plain(value: Any) -> Any:
    """Return a parameter as TOML holds it; a rule becomes its table."""
    if isinstance(value, Mapping):
        return {name: _plain(part) for name, part in value.items()}
    return value.to_table() if isinstance(value, Rule) else value


class BatchSelector(ABC):
    """Selector of many queries at once, with arrays; a single query is a batch of one."""

    @abstractmethod
    def select_all(self, sets: Sequence[CandidateSet]) -> list[Prediction]:
        """Return the kept objects of each query, in order."""

    def select(self, candidates: CandidateSet) -> Prediction:
        """Return the kept objects of one query, best first. A query that no model answered stays failed."""
        return self.select_all([candidates])[0]


@dataclass(frozen=True)
class PerRelation(BatchSelector):
    """Selector with a rule per relation. general: the rule of all other relations.

    rules, calibrations, curves: by every spelling of a relation in queries.
    calibrations: fitted by tuning for rules without a calibration.
    curves: the precision that confidences promise.
    """

    general: Rule
    rules: Mapping[str, Rule] = field(default_factory=dict)
    calibrations: Mapping[str, Calibration] = field(default_factory=dict)
    curves: Mapping[str, PrecisionCurve] = field(default_factory=dict)

    @property
    def reads_others(self) -> bool:
        """Return whether a rule reads candidates of other queries, so that selection needs the whole run."""
        return any(rule.reads_others for rule in (self.general, *self.rules.values()))

    def select_all(self, sets: Sequence[CandidateSet]) -> list[Prediction]:
        """Return the kept objects of each query by its relation's rule, in order. sets: of a whole run."""
        return self.keep(self.read(sets))

    def read(self, sets: Sequence[CandidateSet]) -> Sequence[CandidateSet]:
        """Return the sets of a whole run as their rules use them, in order."""
        return self._each(sets, lambda rule, some: rule.read(some, sets)) if self.reads_others else sets

    def keep(self, sets: Sequence[CandidateSet]) -> list[Prediction]:
        """Return the kept objects of each set; the sets come from `read`."""
        return self._each(sets, lambda rule, some: rule.select_all(some))

    def _each(
        self, sets: Sequence[CandidateSet], of: Callable[[Rule, Sequence[CandidateSet]], Sequence[Made]]
    ) -> list[Made]:
        """Apply a function to the sets of each rule at once, and return the results in the order of the sets."""
        keys = [relation if (relation := one.query.relation) in self.rules else "" for one in sets]
        made: dict[int, Made] = {}
        for relation, places in grouped((relation, place) for place, relation in enumerate(keys)).items():
            rule = self.rules.get(relation, self.general)
            made.update(zip(places, of(rule, [sets[place] for place in places]), strict=True))
        return [made[place] for place in range(len(sets))]

    def under(self, rules: Mapping[str, Rule]) -> PerRelation:
        """Return the selector with some rules replaced."""
        return replace(self, rules={**self.rules, **rules})


@dataclass(frozen=True)
class Narrowed(PerRelation):
    """Selector that keeps less than a usual one. usual: that selector, which also says how sets are read."""

    usual: PerRelation = field(kw_only=True)

    @property
    def reads_others(self) -> bool:
        """Return whether the usual rules read candidates of other queries; confidences then depend on these too."""
        return self.usual.reads_others

    def read(self, sets: Sequence[CandidateSet]) -> Sequence[CandidateSet]:
        """Return the sets as the usual rules read them."""
        return self.usual.read(sets)


class MaskRule(BatchSelector, Rule):
    """Rule that keeps some of the candidates, unchanged."""

    @abstractmethod
    def keep(self, ranking: Ranking) -> Mask:
        """Return which candidates of each query to keep, (n, m)."""

    def select_all(self, sets: Sequence[CandidateSet]) -> list[Prediction]:
        """Return the kept objects of each query, in order, computed with arrays of many queries."""
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
    """Rule with one parameter whose exact best value can be found by a sweep, for any values of the other parameters.

    swept: name of that parameter. It is a lower bound: the higher it is, the fewer candidates pass.
    """

    swept: ClassVar[str]

    @abstractmethod
    def levels(self, ranking: Ranking) -> Floats:
        """Return the highest swept value that each candidate passes, (n, m); below 0 if it passes none."""

    def passing(self, ranking: Ranking) -> Mask:
        """Return which candidates pass the swept parameter, (n, m)."""
        least: float = max(getattr(self, self.swept), 0.0)
        return self.levels(ranking) >= least

    @classmethod
    def joint(cls) -> dict[str, Range]:
        """Return the parameters that still need a search; the sweep finds the swept one."""
        return {name: span for name, span in cls.search.items() if name != cls.swept}


@dataclass(frozen=True, kw_only=True)
class PrefixRule(MaskRule):
    """Rule that keeps a number of the best candidates, at least `min` and at most `max`."""

    min: int = 0
    max: int = UNLIMITED

    @abstractmethod
    def wanted(self, ranking: Ranking) -> Ints:
        """Return how many candidates of each query the rule would keep without `min` and `max`, (n,)."""

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
    """Return which candidates a rule keeps when they have other scores, (n, m).

    Candidates with scores below 0 are excluded.
    """
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
