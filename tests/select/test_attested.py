"""The row-wise gates: what prunes, what adds, and when neither does."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from lmkbc.errors import InputError
from lmkbc.select.attested import Attested
from lmkbc.select.cutoffs import Cutoff
from lmkbc.select.registry import build
from lmkbc.types import (
    Absence,
    Candidate,
    CandidateSet,
    Query,
    State,
)
from tests.candidates import candidate_set

RULE = Attested(inner=Cutoff(threshold=0.3), voice="list")


def row(**named: Mapping[str, float]) -> CandidateSet:
    """Candidates by what each voice makes of them, "truth" being the verdict."""
    found = [
        Candidate(
            text,
            score=sum(said.values()) / 9,
            by_model=tuple((voice, score) for voice, score in said.items() if voice != "truth"),
            truth=said.get("truth"),
        )
        for text, said in named.items()
    ]
    return candidate_set(Query("s", "r"), tuple(found))


def kept(found: CandidateSet, rule: Attested = RULE) -> str:
    return "".join(one.text for one in rule.select(found).objects)


def test_a_sure_row_is_the_voice_s_own() -> None:
    assert kept(row(a={"list": 0.9}, b={"list": 0.8}, c={"list": 0.2}, d={"slots": 1.0, "truth": 1.0})) == "ab"


def test_an_unsure_row_keeps_what_others_name_too() -> None:
    assert kept(row(a={"list": 0.5}, b={"list": 0.4, "slots": 0.1}, c={"slots": 1.0})) == "b"
    assert kept(row(a={"list": 0.5}, b={"list": 0.4})) == "ab"  # where no other voice speaks, none is missed


def test_what_verification_vouches_for_joins_a_row_that_is_not_sure() -> None:
    given = {"a": {"list": 0.6}, "b": {"slots": 0.1, "truth": 0.4}, "c": {"slots": 0.9, "truth": 0.3}}
    assert kept(row(**given)) == "ab"
    assert kept(row(**given), Attested(inner=RULE.inner, voice="list", add=0.6)) == "a"
    assert kept(row(a={"list": 0.1}, b={"list": 0.2, "truth": 1.0})) == "b"  # once


def test_without_the_voice_or_an_answer_the_inner_rule_decides() -> None:
    assert kept(row(a={"slots": 9.0}, b={"slots": 1.0})) == "a"
    failed = candidate_set(Query("s", "r"), draws=(State.MISSING,))
    assert RULE.select(failed).failed
    nothing = candidate_set(Query("s", "r"), (Absence(1.0, by_model=(("list", 1.0),)),), (State.ABSTAINED,))
    assert not RULE.select(nothing).objects


def test_the_voice_is_named() -> None:
    assert build(RULE.to_table()) == RULE
    with pytest.raises(InputError, match="'voice' is 3: give a string"):
        build({**RULE.to_table(), "voice": 3})
