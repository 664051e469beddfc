"""The gates of a list: what prunes, what adds, and when neither does."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest

from lmkbc.errors import InputError
from lmkbc.select.cutoffs import Cutoff
from lmkbc.select.registry import build
from lmkbc.select.sources import Corroborated
from lmkbc.types import (
    Candidate,
    CandidateSet,
    Nil,
    Query,
    State,
)
from tests.candidates import candidate_set

RULE = Corroborated(inner=Cutoff(threshold=0.3), source="list", corroborating="years")


def row(**named: Mapping[str, float]) -> CandidateSet:
    """Candidates by what each source makes of them, "truth" being the verdict."""
    found = [
        Candidate(
            text,
            score=sum(said.values()) / 9,
            by_model=tuple((source, score) for source, score in said.items() if source != "truth"),
            truth=said.get("truth"),
        )
        for text, said in named.items()
    ]
    return candidate_set(Query("s", "r"), tuple(found))


def kept(found: CandidateSet, rule: Corroborated = RULE) -> str:
    return "".join(one.text for one in rule.select(found).objects)


def test_a_list_that_the_witness_attests_stays_as_it_is_however_few_draws_named_it() -> None:
    given = {"a": {"list": 0.4, "years": 0.9}, "b": {"list": 0.35, "years": 0.25}, "c": {"list": 0.3}}
    assert kept(row(**given, d={"years": 1.0})) == "abc"
    assert kept(row(**given, d={"years": 1.0, "truth": 1.0})) == "abcd"  # two of three are fewer than seven of ten
    assert kept(row(**given, d={"years": 1.0, "truth": 1.0}), replace(RULE, add_below=0.6)) == "abc"


def test_a_list_that_is_hardly_attested_loses_what_the_witness_never_names() -> None:
    assert kept(row(a={"list": 0.9}, b={"list": 0.8, "years": 0.1}, c={"years": 1.0})) == "b"
    assert kept(row(a={"list": 0.9}, c={"years": 1.0})) == ""
    assert kept(row(a={"list": 0.9}, b={"list": 0.8, "others": 1.0})) == "ab"  # the corroborating was not heard


def test_what_leads_back_joins_a_list_that_is_not_sure() -> None:
    given = {"a": {"list": 0.6}, "b": {"years": 0.1, "truth": 0.4}, "c": {"years": 0.9, "truth": 0.3}}
    assert kept(row(**given)) == "b"
    assert (
        kept(row(**given), Corroborated(inner=RULE.inner, source="list", corroborating="years", prune_below=0.0))
        == "ab"
    )
    assert kept(row(a={"list": 0.1}, b={"list": 0.4, "years": 0.1, "truth": 1.0})) == "b"  # once


def test_without_the_source_or_an_answer_the_inner_rule_decides() -> None:
    assert kept(row(a={"years": 9.0}, b={"years": 1.0})) == "a"
    failed = candidate_set(Query("s", "r"), draws=(State.MISSING,))
    assert RULE.select(failed).failed
    nothing = candidate_set(Query("s", "r"), (Nil(1.0, by_model=(("list", 1.0),)),), (State.ABSTAINED,))
    assert not RULE.select(nothing).objects


def test_the_source_is_named() -> None:
    assert build(RULE.to_table()) == RULE
    with pytest.raises(InputError, match="'source' is 3: give a string"):
        build({**RULE.to_table(), "source": 3})
