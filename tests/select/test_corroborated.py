"""A corroborated list: what prunes, what adds, and when neither does."""

from collections.abc import Mapping
from dataclasses import replace

import pytest

from lmkbc import Rule
from lmkbc.select.rule import build
from lmkbc.types import Candidate, CandidateSet, Nil, Query, State
from tests.candidates import candidate_set
from tests.rules import rule_of

RULE = rule_of("corroborated", inner=rule_of("cutoff", threshold=0.3), source="list", corroborating="years")


def row(**named: Mapping[str, float]) -> CandidateSet:
    """Candidates by what each source makes of them, "verification" being the verdict."""
    found = [
        Candidate(
            text,
            score=sum(said.values()) / 9,
            by_model=tuple((source, score) for source, score in said.items() if source != "verification"),
            verification=said.get("verification"),
        )
        for text, said in named.items()
    ]
    return candidate_set(Query("s", "r"), tuple(found))


def kept(found: CandidateSet, rule: Rule = RULE) -> str:
    return "".join(one.text for one in rule.select(found).objects)


SURE = {"a": {"list": 0.4, "years": 0.9}, "b": {"list": 0.35, "years": 0.25}, "c": {"list": 0.3}}
UNSURE = {"a": {"list": 0.6}, "b": {"years": 0.1, "verification": 0.4}, "c": {"years": 0.9, "verification": 0.3}}


@pytest.mark.parametrize(
    ("named", "changes", "left"),
    [
        ({**SURE, "d": {"years": 1.0}}, {}, "abc"),  # the other source corroborates it, however few draws named it
        ({**SURE, "d": {"years": 1.0, "verification": 1.0}}, {}, "abcd"),  # two of three are fewer than seven of ten
        ({**SURE, "d": {"years": 1.0, "verification": 1.0}}, {"add_below": 0.6}, "abc"),
        ({"a": {"list": 0.9}, "b": {"list": 0.8, "years": 0.1}, "c": {"years": 1.0}}, {}, "b"),
        ({"a": {"list": 0.9}, "c": {"years": 1.0}}, {}, ""),
        ({"a": {"list": 0.9}, "b": {"list": 0.8, "others": 1.0}}, {}, "ab"),  # nothing of the corroborating source
        (UNSURE, {}, "b"),
        (UNSURE, {"prune_below": 0.0}, "ab"),
        ({"a": {"list": 0.1}, "b": {"list": 0.4, "years": 0.1, "verification": 1.0}}, {}, "b"),  # once
        ({"a": {"years": 9.0}, "b": {"years": 1.0}}, {}, "a"),  # without the source, the inner rule decides
    ],
)
def test_what_is_pruned_and_added(named: dict[str, Mapping[str, float]], changes: dict[str, float], left: str) -> None:
    assert kept(row(**named), replace(RULE, **changes)) == left  # type: ignore[arg-type]


def test_without_an_answer_the_inner_rule_decides() -> None:
    assert RULE.select(candidate_set(Query("s", "r"), draws=(State.MISSING,))).failed
    nothing = candidate_set(Query("s", "r"), (Nil(1.0, by_model=(("list", 1.0),)),), (State.ABSTAINED,))
    assert not RULE.select(nothing).objects


def test_a_table_makes_it_again() -> None:
    assert build(RULE.to_table()) == RULE
