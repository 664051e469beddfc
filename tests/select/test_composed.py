"""Rules over sources: a vote in two stages, some of the sources alone, and a second rule."""

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmkbc.select.selector import PerRelation
from lmkbc.testing import Candidate, CandidateSet, Nil, Query, Ranking, Source, State, build

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


VOTED = {"rule": "chironk26/two-stage", "within": HALF, "across": AGREED}
OF_CITIES = {"rule": "chironk26/two-stage", "within": CITY, "across": AGREED}
ACROSS = {"rule": "abstention-threshold", "threshold": 0.4, "inner": MEDIAN}
OF_NUMBERS = {"rule": "chironk26/two-stage", "within": MEDIAN, "across": ACROSS}
FILTERED = {"rule": "source-filter", "inner": HALF, "source": ["a", "b"]}
SURE = {
    "rule": "abstention-threshold",
    "threshold": 0.26,
    "inner": {"rule": "relative", "ratio": 1.0, "threshold": 0.3},
}
REVERSED = {"rule": "fallback", "first": HALF, "then": SURE}
BOUNDS = {"rule": "relative", "ratio": 0.5, "threshold": 0.35}
COUNTS = {"rule": "expected-counts"}
WEIGHED = {"rule": "agreement", "inner": COUNTS, "then": HALF}
A, B, C = {"x": 0.9, "y": 0.4}, {"x": 0.5, "y": 1.0}, {"y": 0.6, "z": 1.0}
N, M, L = {"10": 0.4, "20": 0.2, "1000": 0.4}, {"30": 0.5, "50": 0.5}, {"7": 1.0}
NIL = {"": 1.0}


@pytest.mark.parametrize(
    ("table", "sources", "left"),
    [
        (VOTED, {"a": A, "b": B, "c": C}, "y x"),  # two of three, however many draws of one model name it
        (VOTED, {"a": A, "b": B}, "x"),  # both of two
        (VOTED, {"a": A}, "x"),
        (VOTED, {"a": {"x": 1.0}, "b": NIL}, ""),  # a source that says nothing has a vote too
        (OF_CITIES, {"a": {"x": 0.5, "y": 0.1, "": 0.4}}, "x"),  # where it leads what the source says of nothing
        (OF_CITIES, {"a": {"x": 0.5, "": 0.5}}, ""),
        (OF_NUMBERS, {"a": N}, "20"),
        (OF_NUMBERS, {"b": M}, "40"),  # between two votes
        (OF_NUMBERS, {"a": {"10": 0.5, "21": 0.5}}, "15.5"),  # exactly, though all votes are whole
        (OF_NUMBERS, {"a": {"401.812": 0.5, "401.813": 0.5}}, "401.8125"),
        ({**OF_NUMBERS, "within": {"rule": "weighted-median"}}, {"b": M}, "30"),
        (OF_NUMBERS, {"a": N, "b": M}, "30"),
        (OF_NUMBERS, {"a": N, "b": M, "c": L}, "20"),
        (OF_NUMBERS, {"a": N, "b": NIL}, ""),
        (OF_NUMBERS, {"a": N, "b": M, "c": NIL}, "30"),
        (FILTERED, {"a": A, "b": {"x": 0.1, "": 0.9}, "c": {"z": 1.0}}, "x"),
        ({**FILTERED, "source": ["c"]}, {"a": A, "b": {"x": 0.1, "": 0.9}, "c": {"z": 1.0}}, "z"),
        ({**FILTERED, "source": ["a", "d"]}, {"a": A, "b": {"x": 0.1, "": 0.9}}, "x"),  # an absent one counts nothing
        ({**FILTERED, "source": ["d"]}, {"a": A, "b": {"x": 0.1, "": 0.9}}, ""),
        (REVERSED, {"a": {"x": 0.6, "y": 0.4}}, "x"),
        (REVERSED, {"a": {"x": 0.4, "y": 0.3, "": 0.2}}, "x"),
        (REVERSED, {"a": {"x": 0.4, "": 0.3}}, ""),
        (REVERSED, {"a": {"x": 0.2, "": 0.2}}, ""),
        (BOUNDS, {"a": {"x": 0.35, "y": 0.2, "z": 0.1}}, "x y"),  # one bound whether to answer, another how much
        (BOUNDS, {"a": {"x": 0.34, "y": 0.33}}, ""),
        (COUNTS, {"a": {"x": 1.0, "y": 1.0, "z": 0.4}}, "x y"),
        (COUNTS, {"a": {"x": 0.2, "y": 0.16, "z": 0.01}}, "x y"),  # however low the scores are
        (COUNTS, {"a": {"x": 0.5, "": 0.5}}, "x"),  # 2 * .5 / (1 + .5) is more than .5
        (COUNTS, {"a": {"x": 0.3, "": 0.5}}, ""),
        (COUNTS, {"a": {"x": 1.0}, "b": {"x": 1.0, "y": 1.0}}, "x y"),  # 4/5 and 6/7
        (COUNTS, {"a": {"x": 1.0, "y": 0.0}}, "x"),
        (COUNTS, {"a": {"x": 1.0}, "b": {"x": 1.0}, "c": {"": 1.0}}, "x"),
        (COUNTS, {"a": NIL}, ""),
        (WEIGHED, {"a": {"x": 0.6, "y": 0.4}}, "x"),
        (WEIGHED, {"a": {"x": 0.4, "y": 0.3}}, ""),
        (WEIGHED, {"a": {"x": 0.4, "y": 0.3}, "b": {"x": 0.3, "y": 0.5}}, "y x"),
    ],
)
def test_what_rules_over_sources_keep(table: dict[str, Any], sources: dict[str, dict[str, float]], left: str) -> None:
    assert kept(table, **sources) == left.split()


def test_sources_weigh_as_the_square_of_how_much_they_agree() -> None:
    sets = [
        pooled(a={"x": 1.0}, b={"x": 1.0}, c={"z": 1.0}),
        pooled(a={"x": 1.0, "y": 0.5}, b={"x": 0.5, "": 1.0}, c={"": 0.5}),  # 1/3, 0 and 1/2
        pooled(a={"y": 1.0}, c={"z": 0.8}),
    ]
    a, b, c = (2 / 3 + 0) / 2, (2 / 3 + 1 / 4) / 2, (0 + 1 / 4) / 2
    selector = PerRelation(build(WEIGHED))
    read = selector.read(sets)
    assert selector.read(sets[::-1])[::-1] == read
    a, b, c = a * a, b * b, c * c
    total = a + b + c
    assert [one.score for one in read[1].candidates] == pytest.approx([(a + b / 2) / total, a / 2 / total])
    assert read[1].nothing[0].score == pytest.approx((b + c / 2) / total)
    assert [one.score for one in read[2].candidates] == pytest.approx([a / (a + c), 0.8 * c / (a + c)])
    assert [[one.text for one in made.objects] for made in selector.select_all(sets)] == [["x"], ["x"], ["y"]]
    lone = [pooled(a={"y": 0.4, "x": 0.3}), CandidateSet(Query("s", "r"), draws=(State.MISSING,))]
    assert selector.read(lone) == lone
    assert [(made.objects, made.failed) for made in selector.select_all(lone)] == [((), False), ((), True)]


@pytest.mark.parametrize(("ties", "left"), [("pool", "x"), ("draw", "y")])
def test_of_a_source_s_equal_candidates_the_one_of_an_earlier_draw_may_win(ties: str, left: str) -> None:
    draws = {"x": (Source("a", "10"), Source("b", "0")), "y": (Source("a", "9"),)}
    found = tuple(Candidate(name, 0.5, sources, by_model=(("a", 0.5),)) for name, sources in draws.items())
    rule = build({**OF_CITIES, "ties": ties})
    assert [one.text for one in rule.select(CandidateSet(Query("s", "r"), found, (State.ANSWERED,))).objects] == [left]


def test_a_query_without_an_answer_stays_failed() -> None:
    assert build(REVERSED).select(CandidateSet(Query("s", "r"), draws=(State.MISSING,))).failed


@given(st.dictionaries(st.sampled_from("abcd"), st.dictionaries(st.sampled_from("uvwxyz"), st.floats(0.01, 1))))
def test_of_all_sources_each_counts_alike(sources: dict[str, dict[str, float]]) -> None:
    heard = {name: said for name, said in sources.items() if said}
    found = pooled(**heard)
    rule = {"rule": "source-filter", "inner": {"rule": "top-k", "k": 9}, "source": list("abcd")}
    assert build(rule).select(found).objects == found.candidates
    if heard and len(heard) > 1:
        left = {**rule, "source": sorted(heard)[1:]}
        assert {one.text for one in build(left).select(found).objects} == {
            name for source in sorted(heard)[1:] for name in heard[source]
        }


def test_what_a_source_does_not_say_is_known_to_be_unsaid() -> None:
    ranking = Ranking.of([pooled(a={"x": 1.0}), pooled(b={"": 1.0})])
    assert ranking.best.tolist() == [1.0, 0.0]
    assert ranking.nil["a:nothing"].tolist() == [0.0, -1.0]
    assert ranking.nil["b:nothing"].tolist() == [-1.0, 1.0]


@pytest.mark.parametrize(
    "inner",
    [
        {"rule": "quorum", "models": 0},
        {"rule": "calibrated", "inner": {"rule": "cutoff", "threshold": 0.5}, "label_priors": {"A": 0.5}},
    ],
    ids=lambda rule: str(rule["rule"]),
)
def test_an_inner_rule_reads_evidence_of_fewer_candidates_than_were_ranked(inner: dict[str, Any]) -> None:
    rule = build({"rule": "source-filter", "source": ["one"], "inner": inner})
    kept = rule.select(pooled(one={"A": 0.9}, other={"A": 0.1, "B": 0.9, "C": 0.8}))
    assert [candidate.text for candidate in kept.objects] == ["A"]
