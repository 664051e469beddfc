"""Selection rules: what each keeps, and what it does with odd input."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmkbc import Rule
from lmkbc.testing import Candidate, CandidateSet, Nil, Query, Ranking, Source, State, build
from tests.candidates import candidate_set, sources
from tests.rules import rule_of

QUERY = Query("France", "borders")


def candidates(
    *scores: float, nothing: float | None = None, draws: tuple[State, ...] = (State.ANSWERED,)
) -> CandidateSet:
    """Candidates a, b, c, ... with the given scores."""
    found = [Candidate("abcdefghij"[i], score) for i, score in enumerate(scores)]
    return candidate_set(QUERY, (*found, *([] if nothing is None else [Nil(nothing)])), draws)


def kept(rule: Rule, found: CandidateSet) -> str:
    return "".join(candidate.text for candidate in rule.select(found).objects)


@pytest.mark.parametrize(
    ("rule", "scores", "expected"),
    [
        (rule_of("cutoff", threshold=0.5), (0.9, 0.5, 0.4), "ab"),
        (rule_of("cutoff", threshold=0.95), (0.9, 0.5), ""),
        (rule_of("cutoff", threshold=0.95, min=1), (0.9, 0.5), "a"),
        (rule_of("cutoff", threshold=0.1, max=1), (0.9, 0.5), "a"),
        (rule_of("cutoff", threshold=0.0), (0.9, 0.0), "ab"),
        (rule_of("relative", ratio=0.5), (0.4, 0.2, 0.1), "ab"),
        (rule_of("relative", ratio=0.5, threshold=0.3), (0.4, 0.2, 0.1), "ab"),
        (rule_of("relative", ratio=0.5, threshold=0.3), (0.2, 0.1), ""),
        (rule_of("sticky", threshold=0.5, ratio=0.8), (0.6, 0.49, 0.4, 0.1), "abc"),
        (rule_of("sticky", threshold=0.5, ratio=0.8), (0.45, 0.44), ""),
        (rule_of("sticky", threshold=0.5, ratio=0.8, reference="threshold"), (0.6, 0.41, 0.39), "ab"),
        (rule_of("sticky", threshold=0.5, ratio=0.8, reference="threshold"), (0.45, 0.44), ""),
        (rule_of("top-k", k=2), (0.6, 0.2, 0.1), "ab"),
        (rule_of("top-k", k=0), (0.6,), ""),
    ],
)
def test_cut_offs(rule: Rule, scores: tuple[float, ...], expected: str) -> None:
    assert kept(rule, candidates(*scores)) == expected


@pytest.mark.parametrize(("scores", "expected"), [((0.9, 0.6, 0.5), "ab"), ((0.5, 0.4), "a"), ((), "")])
def test_a_fallback_is_asked_where_the_first_rule_keeps_nothing(scores: tuple[float, ...], expected: str) -> None:
    rule = rule_of("fallback", first=rule_of("cutoff", threshold=0.6), then=rule_of("top-k", k=1))
    assert kept(rule, candidates(*scores)) == expected
    assert rule.select(candidates(*scores, draws=(State.MISSING,))).failed


TWO_MODELS = candidate_set(
    QUERY,
    (
        Candidate("a", 0.9, sources("gpt-4#1", "gpt-4#2", "gpt-4#3")),
        Candidate("b", 0.5, sources("gpt-4#1", "llama")),
    ),
)
VERIFIED = candidate_set(
    QUERY,
    (
        Candidate("a", 0.2, sources("m#1"), verification=0.7),
        Candidate("b", 0.2, sources("m#1"), verification=0.5),
        Candidate("c", 0.2, sources("m#1")),
        Candidate("d", 0.1, sources("m#1", "n#1"), verification=0.0),
    ),
)


def denied(probability: float) -> CandidateSet:
    """One candidate, and a model's own probability that there is no object, which the mean does not show."""
    nil = Nil(0.5, by_model=(("m", probability), ("n", 1 - probability)))
    return candidate_set(QUERY, (Candidate("a", 0.6),), nil_probabilities=(nil,))


BY_MODEL = rule_of("calibrated", inner=rule_of("expected-f1"), nothing={"m:nil_probability": 1.0})
BY_PRIOR = rule_of(
    "calibrated", inner=rule_of("top-k", k=1), weights={"score": 1.0, "label_prior": -1.0}, label_priors={"a": 0.5}
)


@pytest.mark.parametrize(
    ("rule", "found", "expected"),
    [
        (rule_of("top-k", k=3), candidates(0.1, 0.9, 0.1), "bac"),  # by score, and ties in the given order
        (rule_of("quorum", models=2), TWO_MODELS, "b"),  # models count, not draws
        (rule_of("quorum", models=2, threshold=0.6), TWO_MODELS, ""),
        (rule_of("quorum", models=2), VERIFIED, "d"),
        (rule_of("quorum", models=2, min_verification=2 / 3), VERIFIED, "ad"),
        (rule_of("quorum", models=2, min_verification=0.0), VERIFIED, "abd"),  # not what has no verification score
        (rule_of("quorum", models=2, min_verification=2 / 3, threshold=0.15), VERIFIED, "a"),
        (BY_PRIOR, candidates(0.3, 0.25), "b"),
        (rule_of("calibrated", inner=rule_of("top-k", k=1)), candidates(0.3, 0.25), "a"),
        (BY_MODEL, denied(0.9), ""),
        (BY_MODEL, denied(0.1), "a"),
        (rule_of("calibrated", inner=rule_of("expected-f1")), candidates(0.3, nothing=0.6), ""),
        (rule_of("calibrated", inner=rule_of("expected-f1")), candidates(0.7, nothing=0.2), "a"),
    ],
)
def test_what_other_rules_keep(rule: Rule, found: CandidateSet, expected: str) -> None:
    assert kept(rule, found) == expected


@pytest.mark.parametrize(
    ("evidence", "found", "silent"),
    [
        ("nothing", candidates(0.3, nothing=0.6), True),
        ("nothing", candidates(0.3, nothing=0.4), False),
        ("lead", candidates(0.3, nothing=0.4), True),
        ("lead", candidates(0.5, nothing=0.4), False),
        ("lead", candidates(), False),
        ("existence", candidate_set(QUERY, (Candidate("a"),), nil_probabilities=(Nil(0.6),)), True),
        ("existence", candidate_set(QUERY, (Candidate("a"),), nil_probabilities=(Nil(0.4),)), False),
        ("nothing", candidate_set(QUERY, (Candidate("a"),), nil_probabilities=(Nil(0.6),)), False),
        ("draws", candidates(0.3, draws=(State.ABSTAINED, State.ANSWERED)), True),
        ("draws", candidates(0.3, draws=(State.ABSTAINED, State.ANSWERED, State.ANSWERED, State.MISSING)), False),
    ],
)
def test_evidence_for_answering_nothing(evidence: str, found: CandidateSet, silent: bool) -> None:
    rule = build(
        {"rule": "abstention-threshold", "threshold": 0.5, "evidence": evidence, "inner": {"rule": "top-k", "k": 1}}
    )
    assert (rule.select(found).objects == ()) == (silent or not found.candidates)


def test_each_model_is_weighed_by_itself() -> None:
    strong, weak = Candidate("a", 0.4, by_model=(("m", 0.8),)), Candidate("b", 0.5, by_model=(("n", 1.0),))
    rule = rule_of("calibrated", inner=rule_of("top-k", k=1), weights={"m:said": 1.0, "m:score": 1.0, "n:said": -1.0})
    alone, silent = candidate_set(QUERY, (strong, weak)), candidate_set(QUERY, (weak,))
    assert kept(rule, alone) == "a"
    together = rule.calibration.probabilities(Ranking.of([alone, silent]))
    assert together[1, 0] == rule.calibration.probabilities(Ranking.of([silent]))[0, 0] == together[0, 0]


def test_a_model_that_repeats_another_is_no_agreement_of_others() -> None:
    by = {"a": ("m", "copy"), "b": ("m", "n"), "c": ("n",)}
    found = candidate_set(
        QUERY,
        tuple(
            Candidate(text, 0.5, tuple(map(Source, models)), by_model=tuple((model, 1.0) for model in models))
            for text, models in by.items()
        ),
    )
    for name, agreed in (("copy:agreed", [1, 0, 0]), ("m:agreed", [1, 1, 0]), ("n:agreed", [0, 1, 0])):
        rule = rule_of("calibrated", inner=rule_of("top-k", k=1), weights={name: 1.0})
        p = rule.calibration.probabilities(Ranking.of([found]))[0]
        assert np.log(p / (1 - p)) == pytest.approx(agreed), name


@given(st.lists(st.floats(0, 1), max_size=8), st.floats(0, 1), st.floats(0, 1))
def test_cut_offs_keep_a_prefix_that_shrinks_with_the_threshold(scores: list[float], low: float, high: float) -> None:
    low, high = sorted((low, high))
    found = candidates(*scores)
    loose, tight = (kept(rule_of("cutoff", threshold=threshold), found) for threshold in (low, high))
    assert loose.startswith(tight)
    assert kept(rule_of("sticky", threshold=high, ratio=1.0), found).startswith(tight)
