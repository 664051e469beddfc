"""Numeric aggregation: the number that most draws support, never a mean."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmkbc import Rule
from lmkbc.testing import Candidate, CandidateSet, Query, build
from tests.rules import rule_of

RULES = [
    rule_of("stab-mid"),
    rule_of("ball"),
    rule_of("log-cluster"),
    rule_of("weighted-median"),
    rule_of("expected-score", max=1),
]


def votes(**scores: float) -> CandidateSet:
    return CandidateSet(Query("s", "r"), tuple(Candidate(text.strip("_"), score) for text, score in scores.items()))


def answer(rule: Rule, found: CandidateSet) -> str:
    (candidate,) = rule.select(found).objects
    return candidate.text


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_a_wild_draw_does_not_move_the_answer(rule: Rule) -> None:
    found = votes(**{"1000": 0.4, "1010": 0.4, "9000000": 0.2})
    assert 990 <= float(answer(rule, found)) <= 1020


def test_stab_mid_is_the_geometric_middle_of_the_deepest_region() -> None:
    found = votes(**{"90.5": 0.1, "100": 0.45, "110": 0.45})
    assert float(answer(rule_of("stab-mid"), found)) == pytest.approx((100 * 110) ** 0.5, rel=1e-5)


def test_ball_is_the_middle_of_what_makes_it_right() -> None:
    assert answer(rule_of("ball"), votes(**{"100": 0.2, "103": 0.2, "200": 0.5})) == "200"
    assert answer(rule_of("ball"), votes(**{"100": 0.3, "104": 0.3, "200": 0.5})) == "102"
    assert answer(rule_of("ball"), votes(**{"96": 0.2, "100": 0.2, "104": 0.2})) == "100"
    assert (
        answer(rule_of("ball"), votes(**{"95": 0.1, "100": 0.1, "110": 0.1})) == "98"
    )  # 100 makes 95 right, not 95 100
    assert answer(rule_of("ball"), votes(**{"0.43": 0.2, "0.44": 0.2})) == "0.435"


def test_log_cluster_takes_the_median_of_the_heaviest() -> None:
    assert answer(rule_of("log-cluster"), votes(**{"100": 0.1, "105": 0.3, "110": 0.1, "900": 0.4})) == "105"
    even = votes(**{"1000": 0.4, "1100": 0.4, "9000": 0.2})
    assert (answer(rule_of("log-cluster"), even), answer(rule_of("log-cluster", between=True), even)) == (
        "1000",
        "1050",
    )
    assert answer(rule_of("log-cluster", between=True), votes(**{"1000": 0.5, "1001": 0.5})) == "1000.5"


@pytest.mark.parametrize(
    ("rule", "kept"),
    [
        (rule_of("ball", take="mean"), "102"),
        (build({"rule": "mdv26/ball", "take": "mean", "support": 0.6}), "102"),
        (build({"rule": "mdv26/ball", "take": "mean", "support": 0.61}), None),
        (rule_of("ball", take="upper"), "104"),
        (rule_of("ball", take="highest"), "104"),
        (rule_of("log-cluster", take="highest"), "110"),
        (rule_of("log-cluster", take="mean"), "104"),
    ],
    ids=repr,
)
def test_another_number_of_the_group_is_taken_where_it_has_support(rule: Rule, kept: str | None) -> None:
    found = rule.select(votes(**{"100": 0.3, "104": 0.3, "110": 0.2, "900": 0.2})).objects
    assert [one.text for one in found] == ([kept] if kept else [])


def test_median_quantile() -> None:
    found = votes(**{"1": 0.25, "2": 0.25, "3": 0.25, "4": 0.25})
    assert answer(rule_of("weighted-median"), found) == "2"
    assert answer(rule_of("weighted-median", quantile=0.55), found) == "3"


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_odd_votes(rule: Rule) -> None:
    assert answer(rule, votes(**{"none": 0.9, "12": 0.1})) == "12"
    assert answer(rule, votes(**{"0": 0.9, "3": 0.1})) == "0"
    assert answer(rule, votes(**{"1,200": 0.9, "1200": 0.1})) in ("1,200", "1200")
    assert rule.select(votes(none=0.9, inf=0.1, nan=0.1)).objects == ()
    assert answer(rule, votes(**{"7": 0.0})) == "7"


def test_whole_votes_give_a_whole_number_that_is_its_own_id() -> None:
    (candidate,) = rule_of("stab-mid").select(votes(**{"100": 0.5, "104": 0.5})).objects
    assert candidate.text == candidate.id == "102"


@given(st.lists(st.tuples(st.floats(0.01, 1e9), st.floats(0, 1)), min_size=1, max_size=12))
def test_the_answer_lies_among_the_votes(drawn: list[tuple[float, float]]) -> None:
    found = CandidateSet(Query("s", "r"), tuple(Candidate(repr(value), weight) for value, weight in drawn))
    values = [value for value, _ in drawn]
    for rule in RULES:
        assert min(values) * 0.94 <= float(answer(rule, found)) <= max(values) * 1.06


def test_expected_score_gives_more_numbers_where_none_stands_out() -> None:
    def answers(**scores: float) -> list[str]:
        return [candidate.text for candidate in rule_of("expected-score").select(votes(**scores)).objects]

    assert answers(**{"100": 0.7, "200": 0.3}) == ["100"]  # one promises .7, two 2/3
    assert answers(**{"100": 0.6, "200": 0.4}) == ["100", "200"]  # one promises .6, two 2/3
    assert answers(**{"100": 0.2, "102": 0.2, "200": 0.3, "300": 0.3})[1:] == ["200", "300"]  # 101, and two more
    assert answers(**{"1": 0.25, "2": 0.25, "3": 0.25, "4": 0.25}) == ["1", "2", "3"]
