"""Rules by name, and the way back from the plain table of a recipe or a thresholds file."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import MISSING, fields
from typing import Any

from lmkbc.errors import InputError, did_you_mean
from lmkbc.select.attested import Attested
from lmkbc.select.calibrated import Calibrated
from lmkbc.select.cutoffs import (
    Cutoff,
    Relative,
    Sticky,
    TopK,
)
from lmkbc.select.expected_f1 import ExpectedF1
from lmkbc.select.gate import NoneGate
from lmkbc.select.numeric import (
    Ball,
    ExpectedScore,
    LogCluster,
    StabMid,
    WeightedMedian,
)
from lmkbc.select.quorum import Quorum
from lmkbc.select.rule import MaskRule, Rule
from lmkbc.select.verified import Verified

THRESHOLDS: list[type[Rule]] = [Cutoff, Relative, Sticky, TopK, Quorum, NoneGate, Verified, Attested]
EXPECTATIONS: list[type[Rule]] = [ExpectedF1, Calibrated]
NUMBERS: list[type[Rule]] = [StabMid, ExpectedScore, Ball, LogCluster, WeightedMedian]
RULES = {rule.name: rule for rule in THRESHOLDS + EXPECTATIONS + NUMBERS}
WANTED = {
    "float": "a number",
    "int": "a whole number",
    "str": "a name",
    "Rule": "a table with its own rule",
    "MaskRule": "a table with a rule that keeps candidates",
    "Mapping": "a table of numbers",
    "Literal": "a string",
    "Evidence": "a string",
    "Combine": "a string",
}


def rule_class(name: str) -> type[Rule]:
    """The rule of a name. InputError suggests the nearest."""
    if name not in RULES:
        raise InputError(f"unknown selection rule {name!r}: {did_you_mean(name, RULES)}")
    return RULES[name]


def build(table: Mapping[str, Any]) -> Rule:
    """A rule from a table with `rule` (its name) and its parameters. InputError for a wrong or missing one."""
    if not isinstance(table.get("rule"), str):
        raise InputError(f"a selection table needs rule = NAME, one of {', '.join(sorted(RULES))}")
    kind = rule_class(table["rule"])
    known = {field.name: field for field in fields(kind)}
    parameters: dict[str, Any] = {}
    for name, value in table.items():
        if name == "rule":
            continue
        if name not in known:
            raise InputError(f"rule {kind.name} has no parameter {name!r}: {did_you_mean(name, known)}")
        parameters[name] = _checked(kind, name, value, str(known[name].type))
    for name, field in known.items():
        if name not in parameters and field.default is MISSING and field.default_factory is MISSING:
            raise InputError(f"rule {kind.name} needs parameter {name!r}: give it a value")
    return kind(**parameters)


def _checked(kind: type[Rule], name: str, value: Any, declared: str) -> Any:
    if declared.endswith("Rule") and isinstance(value, Mapping):
        rule = build(value)
        if declared == "Rule" or isinstance(rule, MaskRule):
            return rule
    elif declared == "float" and _is_number(value):
        return float(value)
    elif declared == "int" and isinstance(value, int) and not isinstance(value, bool):
        return value
    elif declared.startswith("Mapping") and isinstance(value, Mapping) and all(map(_is_number, value.values())):
        return {str(key): float(number) for key, number in value.items()}
    elif declared.startswith(("str", "Literal", "Evidence", "Combine")) and isinstance(value, str):
        return value
    raise InputError(f"parameter {name!r} of rule {kind.name} is {value!r}: give {WANTED[declared.partition('[')[0]]}")


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and not math.isnan(value)
