"""Rules over sources: a vote in two stages, some of the sources alone, one that only denies, and a second rule."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmkbc.errors import InputError
from lmkbc.select.ranking import Ranking
from lmkbc.select.registry import build
from lmkbc.types import Candidate, CandidateSet, Nil, Query, State

CITY = {"rule": "abstention-threshold", "evidence": "lead", "threshold": 0.5, "inner": {"rule": "top-k", "k": 1}}
HALF = {"rule": "cutoff", "threshold": 0.5}
AGREED = {"rule": "cutoff", "threshold": 0.6}
MEDIAN = {"rule": "weighted-median", "between": True}


def pooled(**sources: Mapping[str, float]) -> CandidateSet:
    """A pooled set by what each source makes of each object, "" being that there is none."""
    names = dict.fromkeys(name for said in sources.values() for name in said)
    shares = {name: tuple((s, said[name]) for s, said in sources.items() if name in said) for name in names}
    objects = [
        Candidate(name, sum(share for _, share in given) / len(sources), by_model=given)
        for name, given in shares.items()
        if name
    ]
    objects.sort(key=lambda one: (-one.score, one.text))
    nothing = tuple(
        Nil(sum(share for _, share in given) / len(sources), by_model=given)
        for name, given in shares.items()
        if not name
    )
    return CandidateSet(Query("s", "r"), tuple(objects), (State.ANSWERED,), nothing=nothing)


def kept(table: Mapping[str, Any], **sources: Mapping[str, float]) -> list[str]:
    return [one.text for one in build(table).select(pooled(**sources)).objects]


def test_each_source_has_one_vote_for_what_it_selects_itself() -> None:
    table = {"rule": "two-stage", "within": HALF, "across": AGREED}
    a, b, c = {"x": 0.9, "y": 0.4}, {"x": 0.5, "y": 1.0}, {"y": 0.6, "z": 1.0}
    assert kept(table, a=a, b=b, c=c) == ["y", "x"]  # two of three, however many draws of one model name it
    assert kept(table, a=a, b=b) == ["x"]  # both of two
    assert kept(table, a=a) == ["x"]
    assert kept({**table, "each": {"c": {"rule": "top-k", "k": 0}}}, a=a, b=b, c=c) == ["x"]
    assert kept(table, a={"x": 1.0}, b={"": 1.0}) == []  # a source that says nothing has a vote too


def test_a_leading_city_stands_against_what_its_source_says_of_nothing() -> None:
    table = {"rule": "two-stage", "within": CITY, "across": AGREED}
    assert kept(table, a={"x": 0.5, "y": 0.1, "": 0.4}) == ["x"]
    assert kept(table, a={"x": 0.5, "": 0.5}) == []


def test_numbers_meet_in_the_median_of_medians() -> None:
    across = {"rule": "abstention-threshold", "threshold": 0.4, "inner": MEDIAN}
    table = {"rule": "two-stage", "within": MEDIAN, "across": across}
    a, b, c = {"10": 0.4, "20": 0.2, "1000": 0.4}, {"30": 0.5, "50": 0.5}, {"7": 1.0}
    assert kept(table, a=a) == ["20"]
    assert kept(table, b=b) == ["40"]  # between two votes
    assert kept({**table, "within": {"rule": "weighted-median"}}, b=b) == ["30"]
    assert kept(table, a=a, b=b) == ["30"]
    assert kept(table, a=a, b=b, c=c) == ["20"]
    assert kept(table, a=a, b={"": 1.0}) == []
    assert kept(table, a=a, b=b, c={"": 1.0}) == ["30"]


def test_some_sources_are_listened_to_and_the_others_are_left_out() -> None:
    a, b, c = {"x": 0.9, "y": 0.4}, {"x": 0.1, "": 0.9}, {"z": 1.0}
    table = {"rule": "source-filter", "inner": HALF, "sources": ["a", "b"]}
    assert kept(table, a=a, b=b, c=c) == ["x"]
    assert kept({**table, "sources": ["c"]}, a=a, b=b, c=c) == ["z"]
    assert kept({**table, "sources": ["a", "d"]}, a=a, b=b) == ["x"]  # who is not heard counts nothing
    assert kept({**table, "sources": ["d"]}, a=a, b=b) == []
    with pytest.raises(InputError, match="sources of rule source-filter is empty: name at least one source"):
        build({**table, "sources": []})


@given(st.dictionaries(st.sampled_from("abcd"), st.dictionaries(st.sampled_from("uvwxyz"), st.floats(0.01, 1))))
def test_of_all_sources_each_counts_alike(sources: dict[str, dict[str, float]]) -> None:
    heard = {name: said for name, said in sources.items() if said}
    found = pooled(**heard)
    rule = {"rule": "source-filter", "inner": {"rule": "top-k", "k": 9}, "sources": list("abcd")}
    assert build(rule).select(found).objects == found.candidates
    if heard and len(heard) > 1:
        left = {**rule, "sources": sorted(heard)[1:]}
        assert {one.text for one in build(left).select(found).objects} == {
            name for source in sorted(heard)[1:] for name in heard[source]
        }


def test_a_source_may_deny_and_say_no_more() -> None:
    inner = {"rule": "source-filter", "inner": HALF, "sources": ["a"]}
    table = {"rule": "abstention-threshold", "evidence": "lead", "source": "land", "threshold": 0.5, "inner": inner}
    assert kept(table, a={"x": 1.0}, land={"": 0.6, "y": 0.4}) == []
    assert kept(table, a={"x": 1.0}, land={"": 0.4, "y": 0.6}) == ["x"]
    assert kept(table, a={"x": 0.5, "": 0.5}) == ["x"]  # silence is no denial
    with pytest.raises(InputError, match="'draws', of all sources: with a source, use 'nothing'"):
        build({**table, "evidence": "draws"})


def test_an_abstention_is_reversed_where_several_signals_agree() -> None:
    sure = {"rule": "abstention-threshold", "threshold": 0.26, "inner": {"rule": "relative", "ratio": 1.0, "best": 0.3}}
    table = {"rule": "fallback", "first": HALF, "then": sure}
    assert kept(table, a={"x": 0.6, "y": 0.4}) == ["x"]
    assert kept(table, a={"x": 0.4, "y": 0.3, "": 0.2}) == ["x"]
    assert kept(table, a={"x": 0.4, "": 0.3}) == []
    assert kept(table, a={"x": 0.2, "": 0.2}) == []
    assert build(table).select(CandidateSet(Query("s", "r"), draws=(State.MISSING,))).failed


def test_one_bound_decides_whether_to_answer_and_another_how_much() -> None:
    table = {"rule": "relative", "ratio": 0.5, "best": 0.35}
    assert kept(table, a={"x": 0.35, "y": 0.2, "z": 0.1}) == ["x", "y"]
    assert kept(table, a={"x": 0.34, "y": 0.33}) == []


def test_what_a_source_does_not_say_is_known_to_be_unsaid() -> None:
    ranking = Ranking.of([pooled(a={"x": 1.0}), pooled(b={"": 1.0})])
    assert ranking.nil["a:nothing"].tolist() == [0.0, -1.0]
    assert ranking.nil["b:nothing"].tolist() == [-1.0, 1.0]
