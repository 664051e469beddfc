"""Values that the shape of a relation allows."""

from __future__ import annotations

from decimal import Decimal

from lmkbc.kinds.kind import kind_of
from lmkbc.relation import Relation, Shape


def allowed_values(text: str, relation: Relation) -> tuple[list[str], str]:
    """Return the values in a text that the shape allows, and the rule that the last other one violates."""
    kept: list[str] = []
    rule, kind = "", kind_of(relation)
    for value in kind.read(text, relation):
        size = kind.size(value)
        if violated := "" if size is None else _violated_rule(Decimal(size), relation.shape):
            rule = violated
        else:
            kept.append(value)
    return kept, rule or f"no {relation.kind}"


def _violated_rule(value: Decimal, shape: Shape) -> str:
    """Return the rule that a number violates, "" if none."""
    if shape.minimum is not None and value < Decimal(str(shape.minimum)):
        return "minimum"
    if shape.maximum is not None and value > Decimal(str(shape.maximum)):
        return "maximum"
    return "integer" if shape.integer and value % 1 else ""
