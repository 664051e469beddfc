"""Base classes of selection rules: parameters with search ranges, and selection from scores."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, dataclass, fields, replace
from typing import Any, ClassVar, NamedTuple, TypeVar, cast

import numpy as np

from lmkbc.errors import InputError
from lmkbc.registry import RULES
from lmkbc.select.ranking import Floats, Ints, Mask, Ranking
from lmkbc.settings import ReadBy, checked
from lmkbc.types import Candidate, CandidateSet, Prediction

Made = TypeVar("Made")
UNLIMITED = 1_000_000
LEARNED = ReadBy("a rule that 'lmkbc tune' has learned", lambda *_: False)
"""Mark of a parameter that stands in thresholds files, but in no recipe."""
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


class Rule(ABC):
    """Decides which candidates of a query to keep. Subclasses are frozen dataclasses of parameters.

    name: name in recipes and thresholds files.
    search: parameter -> range, for parameters that tuning searches, because it does not find them in another way.
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

    def keep(self, ranking: Ranking) -> Mask | None:  # noqa: ARG002
        """Return which candidates of each query to keep, (n, m); None if the rule makes objects of its own."""
        return None

    def read(self, sets: Sequence[CandidateSet], every: Sequence[CandidateSet]) -> Sequence[CandidateSet]:  # noqa: ARG002
        """Return the sets as the rule uses them; by default unchanged. every: all sets of the run."""
        return sets

    @property
    def reads_verification(self) -> bool:
        """Return whether verification scores may change what the rule keeps; here, what a rule within it keeps."""
        parts = (getattr(self, parameter.name) for parameter in fields(self))  # type: ignore[arg-type]
        return any(part.reads_verification for part in parts if isinstance(part, Rule))

    @property
    def models_needed(self) -> int:
        """Return the number of models below which the rule keeps nothing."""
        return 1

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


@dataclass(frozen=True, kw_only=True)
class PrefixRule(MaskRule):
    """Rule that keeps a number of the best candidates, at least `min` and at most `max`."""

    min: int = 0
    max: int = UNLIMITED

    @abstractmethod
    def wanted(self, ranking: Ranking) -> Ints:
        """Return how many candidates of each query the rule would keep without `min` and `max`, (n,)."""

    def bounded(self, wanted: Ints, sizes: Ints) -> Ints:
        """Return how many candidates to keep if so many are wanted. sizes: numbers of candidates, of the same shape."""
        return np.minimum(np.minimum(np.maximum(wanted, self.min), self.max), sizes)

    def keep(self, ranking: Ranking) -> Mask:
        """Return which candidates of each query to keep, (n, m)."""
        kept = self.bounded(self.wanted(ranking), ranking.sizes)
        return np.arange(ranking.scores.shape[1]) < kept[:, None]


class _Reordered(Sequence[tuple[Candidate, ...]]):
    """Lists of candidates in another order. Each is made when a rule reads it; most rules read scores alone."""

    def __init__(self, ranked: Sequence[tuple[Candidate, ...]], order: Ints, sizes: Ints) -> None:
        self._ranked, self._order, self._sizes = ranked, order, sizes

    def __len__(self) -> int:
        return len(self._ranked)

    def __getitem__(self, row: Any) -> Any:
        return tuple(map(self._ranked[row].__getitem__, self._order[row, : self._sizes[row]].tolist()))


def kept_of(rule: MaskRule, ranking: Ranking, scores: Floats) -> Mask:
    """Return which candidates a rule keeps when they have other scores, (n, m).

    Candidates with scores below 0 are excluded.
    """
    order = np.argsort(-scores, axis=1, kind="stable")
    ranked = _Reordered(ranking.ranked, order, (scores >= 0).sum(axis=1))
    inner = rule.keep(replace(ranking, ranked=ranked, scores=np.take_along_axis(scores, order, axis=1)))
    mask = np.zeros(scores.shape, dtype=np.bool_)
    np.put_along_axis(mask, order, inner, axis=1)
    return mask


def rule_class(name: str) -> type[Rule]:
    """Return the rule of a name, of the engine or of a plug-in. Raise InputError with the nearest name."""
    return cast(type[Rule], RULES.get(name))


def build(table: Mapping[str, Any]) -> Rule:
    """Return a rule from a table with `rule` (its name) and its parameters. Raise InputError for a wrong table."""
    if not isinstance(table.get("rule"), str):
        raise InputError(f"a selection table needs rule = NAME, one of {', '.join(sorted(RULES))}")
    kind = rule_class(table["rule"])
    parameters = {name: value for name, value in table.items() if name != "rule"}
    rule = checked(kind, parameters, f"rule {kind.name}", inner_rule)
    for field in fields(kind):  # type: ignore[arg-type]
        value = getattr(rule, field.name)
        for inner in value.values() if isinstance(value, Mapping) else (value,):
            if isinstance(inner, Rule) and inner.reads_others:
                raise InputError(f"rule {kind.name}: {inner.name!r} reads other queries: put it round this rule")
    return rule


def inner_rule(kind: type, value: Any) -> Any:
    """Return the rule for a table within a rule's table. Raise TypeError if it is not of the declared kind."""
    if isinstance(value, kind):  # made when its type was checked
        return value
    if not (isinstance(value, Mapping) and issubclass(kind, Rule)):
        raise TypeError(f"give a table with its own rule, not {value!r}")
    rule = build(value)
    if not isinstance(rule, kind):
        raise TypeError(f"rule {rule.name!r} keeps no candidates as they are: give a rule that keeps candidates")
    return rule
