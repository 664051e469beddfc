"""A grid over the search ranges of a rule that no family fits, such as one of a plug-in: asked for by name alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import MISSING, fields
from functools import cache
from itertools import product
from typing import Any

import numpy as np

from lmkbc.errors import InputError
from lmkbc.select.registry import rule_class
from lmkbc.select.rule import Choice, Range, Real, Rule, significant

POINTS = 400
"""Of a whole grid, at most; a parameter has as many as the number of parameters leaves to it, at least two."""


@cache
def grid(name: str) -> Sequence[Rule]:
    """A rule's settings, in order of its parameters. InputError for a rule that says nothing of what to search."""
    kind = rule_class(name)
    if not kind.search:
        raise InputError(f"rule {name!r} cannot be tuned: it names no parameter to search")
    for field in fields(kind):  # type: ignore[arg-type]
        if field.default is MISSING and field.default_factory is MISSING and field.name not in kind.search:
            raise InputError(f"rule {name!r} cannot be tuned: {field.name!r} has neither a default nor a search range")
    most = max(2, int(POINTS ** (1 / len(kind.search))))
    axes = [_points(span, most) for span in kind.search.values()]
    return [kind(**dict(zip(kind.search, values, strict=True))) for values in product(*axes)]


def _points(span: Range, most: int) -> list[Any]:
    if isinstance(span, Choice):
        return list(span.options)
    if isinstance(span, Real):
        spaced = np.geomspace if span.log else np.linspace
        return [significant(float(value)) for value in spaced(span.low, span.high, most)]
    count = min(most, span.high - span.low + 1)
    return [int(value) for value in np.unique(np.linspace(span.low, span.high, count).round())]
