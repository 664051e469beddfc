"""Confidences: the probability of each candidate, whoever is asked beside it and whatever rule keeps it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmkbc import Rule
from lmkbc.select.selector import PerRelation, confidences
from lmkbc.testing import Candidate, CandidateSet, Query, Ranking, Source, State
from tests.candidates import candidate_set
from tests.rules import rule_of

WEIGHTS = {"bias": -0.5, "score": 0.7, "share": 0.4, "lead": 0.3, "agreed": 0.2, "m:score": 0.6, "label_prior": -0.1}
CALIBRATED = rule_of("calibrated", inner=rule_of("expected-f1"), weights=WEIGHTS, label_priors={"a": 0.4})
SELECTOR = PerRelation(
    rule_of("top-k", k=1),
    {
        "own": CALIBRATED,
        "gated": rule_of("abstention-threshold", inner=CALIBRATED, threshold=0.9),
        "fitted": rule_of("cutoff", threshold=0.5),
    },
    {"fitted": CALIBRATED.calibration},
)

SCORES = st.sampled_from((0.0, 0.1, 0.3, 0.5, 1.0))
PROPOSALS = st.lists(
    st.builds(
        lambda text, score, models: Candidate(text, score, by_model=tuple((model, score) for model in sorted(models))),
        st.sampled_from("abcd"),
        SCORES,
        st.sets(st.sampled_from("mn")),
    ),
    max_size=4,
    unique_by=lambda candidate: candidate.text,
)
SETS = st.lists(st.tuples(st.sampled_from(("own", "gated", "fitted", "other")), PROPOSALS), max_size=6).map(
    lambda rows: [candidate_set(Query(f"s{row}", name), given) for row, (name, given) in enumerate(rows)]
)


@given(SETS, st.integers(1, 4))
def test_confidences_do_not_depend_on_the_block(sets: list[CandidateSet], size: int) -> None:
    whole = confidences(SELECTOR, sets)
    assert whole == [one for at in range(0, len(sets), size) for one in confidences(SELECTOR, sets[at : at + size])]
    for candidates, confidence in zip(sets, whole, strict=True):
        assert confidence.candidates == candidates.candidates
        assert confidence.calibrated == (candidates.query.relation != "other")
        assert all(0 <= p <= 1 for p in confidence.p)


@given(SETS)
def test_a_rule_keeps_the_same_of_a_query_whatever_stands_beside_it(sets: list[CandidateSet]) -> None:
    together = CALIBRATED.calibration.probabilities(Ranking.of(sets))
    for row, candidates in enumerate(sets):
        alone = CALIBRATED.calibration.probabilities(Ranking.of([candidates]))[0]
        assert together[row, : len(alone)].tolist() == alone.tolist()


@pytest.mark.parametrize("relation", ["own", "gated", "fitted"])
def test_a_confidence_is_the_calibration_s_in_the_order_of_the_set(relation: str) -> None:
    worse, better = Candidate("a", 0.2), Candidate("b", 0.6)
    found = candidate_set(Query("s", relation), (worse, better))
    (confidence,) = confidences(SELECTOR, [found])
    ranked = CALIBRATED.calibration.probabilities(Ranking.of([found]))[0]
    assert confidence.p == (ranked[1], ranked[0])
    assert confidence.of(better) == ranked[0]


def test_a_number_between_votes_is_as_sure_as_the_nearest() -> None:
    votes = (Candidate("100", 0.5), Candidate("120", 0.3), Candidate("-5", 0.1), Candidate("many", 0.1))
    found = candidate_set(Query("s", "other"), votes)
    (confidence,) = confidences(SELECTOR, [found])
    (kept,) = rule_of("weighted-median", quantile=0.5, between=True).select(found).objects
    assert confidence.of(kept) == 0.5
    assert confidence.of(Candidate("118")) == 0.3
    assert confidence.of(Candidate("unknown", 0.25)) == 0.25


@pytest.mark.parametrize(
    ("rule", "probable"),
    [
        (rule_of("expected-f1"), True),
        (rule_of("abstention-threshold", threshold=0.5, inner=rule_of("expected-f1")), True),
        (rule_of("cutoff", threshold=0.5), False),
        (rule_of("top-k", k=1), False),
    ],
)
def test_scores_are_probabilities_where_the_rule_reads_them_so(rule: Rule, probable: bool) -> None:
    found = CandidateSet(Query("a", "r"), tuple(Candidate(str(score), score) for score in (0.9, 0.2)))
    (sure,) = confidences(PerRelation(rule), [found])
    assert sure.calibrated is probable
    assert sure.p == (0.9, 0.2)


@pytest.mark.parametrize(
    ("named", "draws", "expected"),
    [(1, 1, 2 / 3), (1, 3, 2 / 7), (3, 3, 6 / 7), (10, 10, 20 / 21), (0, 2, 0.0)],
)
def test_a_share_of_few_samples_is_less_sure(named: int, draws: int, expected: float) -> None:
    sampled = Candidate("a", named / draws, (Source("m", "0"),))
    states = (State.ANSWERED,) * draws
    for unread in ((), (State.UNPARSED, State.MISSING)):  # these name nothing, and are no evidence for it
        found = CandidateSet(
            Query("s", "r"), (sampled, Candidate("b", 0.5, (Source("statistics"),))), (*states, *unread)
        )
        for rule, p, calibrated in (
            (rule_of("cutoff", threshold=0.5), expected, False),
            (rule_of("expected-f1"), min(named / draws, 0.999999), True),  # reads them as probabilities
        ):
            (made,) = confidences(PerRelation(rule), [found])
            assert (made.p, made.calibrated) == ((pytest.approx(p, abs=1e-9), 0.5), calibrated)
