"""Tuning as tests call it: options by their names, under a selector that keeps all that its rules keep."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from lmkbc.edition import Edition
from lmkbc.progress import Report, silent
from lmkbc.relation import Relation
from lmkbc.select.selector import PerRelation
from lmkbc.tune.learn import Tuned, tune
from lmkbc.tune.outcomes import PLAIN
from lmkbc.tune.tuning_set import TuningOptions, TuningSet
from lmkbc.types import CandidateSet, Example


def tuned(
    sets: Sequence[CandidateSet],
    examples: Sequence[Example],
    edition: Edition,
    *,
    relations: Mapping[str, Relation],
    selector: PerRelation = PLAIN,
    storage: str | None = None,
    report: Report = silent,
    **options: Any,
) -> Tuned:
    how = TuningOptions(**options)
    data = TuningSet.of(sets, examples, edition, relations=relations, selector=selector, options=how)
    return tune(data, storage=storage, report=report)
