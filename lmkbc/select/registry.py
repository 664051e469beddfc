"""Rules by name, and their construction from the plain table of a recipe or a thresholds file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any

from lmkbc import plugins
from lmkbc.errors import InputError, did_you_mean
from lmkbc.select.composed import (
    AbstentionThreshold,
    Agreement,
    Corroborated,
    Fallback,
    SourceFilter,
    TwoStage,
    Verified,
)
from lmkbc.select.cutoffs import Cutoff, Quorum, Relative, Sticky, TopK
from lmkbc.select.expected_f1 import Calibrated, ExpectedCounts, ExpectedF1
from lmkbc.select.numeric import Ball, ExpectedScore, LogCluster, StabMid, WeightedMedian
from lmkbc.select.rule import Rule
from lmkbc.settings import checked

RULES: Mapping[str, type[Rule]] = {
    rule.name: rule
    for rule in (
        Cutoff,
        Relative,
        Sticky,
        TopK,
        Quorum,
        AbstentionThreshold,
        Verified,
        TwoStage,
        SourceFilter,
        Corroborated,
        Agreement,
        Fallback,
        ExpectedF1,
        ExpectedCounts,
        Calibrated,
        StabMid,
        ExpectedScore,
        Ball,
        LogCluster,
        WeightedMedian,
    )
}


def rule_class(name: str) -> type[Rule]:
    """Return the rule of a name, from this package or a plug-in. Raise InputError with the nearest name."""
    if name in RULES:
        return RULES[name]
    if (rule := plugins.load(plugins.RULES, name)) is None:
        known = [*RULES, *plugins.names(plugins.RULES)]
        raise InputError(f"unknown selection rule {name!r}: {did_you_mean(name, known, 'lmkbc rules list')}")
    called = plugins.called(plugins.RULES, name)
    if not (isinstance(rule, type) and issubclass(rule, Rule) and is_dataclass(rule)):
        raise InputError(f"{called} is {rule!r}: it has to be a Rule, and a dataclass")
    if rule.name != name:
        raise InputError(f"{called} is the rule {rule.name!r}: give the entry point its name")
    return rule


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
