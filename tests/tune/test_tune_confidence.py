"""Confidences out of fold: facts against the official counts, promises against their intervals, nothing seen before."""

import math
from dataclasses import astuple, replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs
from space import SPACE

from lmkbc.run.submission import answers
from lmkbc.select.calibration import PROMISES
from lmkbc.select.narrowings import AtPrecision
from lmkbc.select.selector import PerRelation
from lmkbc.testing import Candidate, CandidateSet, Example, GoldObject, Prediction, Query, State
from lmkbc.tune.confidence import Facts
from lmkbc.tune.outcomes import Outcomes
from lmkbc.tune.reliability import Reliability
from tests.candidates import candidate_set
from tests.tune.test_tune import EDITION, EPISODES, OTHER, RELATION, RELATIONS, example, scored, toy
from tests.tune.test_tune_outcomes import SCORERS, edition, problems
from tests.tuned import tuned as tune_all

PROMISED = 0.9
STEP = 0.01


CONFIDENCE = st.sampled_from((0.0, 0.25, 0.5, 0.75, 0.875, 1.0))


@pytest.mark.parametrize("scorer", SCORERS)
@given(problems(), st.data())
def test_facts_are_counted_as_the_scorer_counts_them(
    scorer: str, problem: tuple[list[CandidateSet], list[Example]], data: st.DataObject
) -> None:
    sets, examples = problem
    official = edition(SCORERS[scorer])
    outcomes = Outcomes(sets, examples, official)
    shape = outcomes.ranking.scores.shape
    drawn = data.draw(st.lists(CONFIDENCE, min_size=math.prod(shape), max_size=math.prod(shape)))
    p = np.where(outcomes.ranking.scores < 0, -1.0, np.array(drawn).reshape(shape))
    facts = Facts.of(outcomes, p, np.ones(len(sets), dtype=np.bool_))
    for threshold, right, kept in zip(*facts.prefixes(), strict=True):
        hits = predicted = 0
        for row, (ranked, made) in enumerate(zip(outcomes.ranking.ranked, examples, strict=True)):
            sure = tuple(candidate for candidate, own in zip(ranked, p[row], strict=False) if own >= threshold)
            values = list(dict.fromkeys(answers(official, Prediction(made.query, sure))))
            keys = {official.metric.scorer.key(value): value for value in reversed(values)}
            one = official.metric.scorer.score(list(keys.values()), official.gold_column(made), made.query.relation)
            hits, predicted = hits + one[0], predicted + one[1]
        assert (right, kept) == (hits, predicted)


@pytest.mark.parametrize("promise", PROMISES)
@given(made=st.lists(st.tuples(CONFIDENCE, st.booleans()), max_size=60), missed=st.integers(0, 30), asked=CONFIDENCE)
def test_a_curve_promises_what_its_bound_allows(
    promise: str, made: list[tuple[float, bool]], missed: int, asked: float
) -> None:
    made.sort(key=lambda fact: -fact[0])
    p, right = (np.array(column) for column in zip(*made, strict=True)) if made else (np.zeros(0), np.zeros(0))
    gold = np.array([int(right.sum()) + missed, 0])
    rows = np.arange(len(made)) % 2  # two subjects take turns
    facts = Facts(p, right.astype(np.int64), rows, gold)
    curve = facts.curve(PROMISES[promise])

    def bound(kept: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> float:
        return PROMISES[promise].bound(right[kept].sum(), kept.sum(), np.bincount(rows[kept], minlength=1).max())

    for threshold, promised, recall in zip(curve.threshold, curve.precision, curve.recall, strict=True):
        kept = p >= threshold
        assert promised <= bound(kept) + 1e-9
        assert recall == pytest.approx(right[kept].sum() / max(gold[0], 1), abs=1e-3)
    bounds = {t: bound(p >= t) for t in p.tolist()}
    point = curve.at(asked) if asked else None
    if point is not None:
        assert point.precision >= asked
        assert not any(share >= asked + STEP for t, share in bounds.items() if t < point.threshold)
    elif asked:
        assert not any(share >= asked + STEP for share in bounds.values())
    reached = [t for t in bounds if right[p >= t].mean() >= asked]
    found = right[p >= min(reached)].sum() if reached else 0
    assert facts.recall_at(asked) == pytest.approx(found / max(gold[0], 1))


def test_two_answers_that_match_one_gold_object_are_no_more_than_all() -> None:
    facts = Facts(np.array([0.9, 0.8]), np.ones(2, dtype=np.int64), np.zeros(2, dtype=np.int64), np.array([1]))
    assert (facts.curve(PROMISES["sure"]).recall, facts.recall_at(PROMISED)) == ((1.0,), 1.0)


@pytest.mark.parametrize(
    ("right", "of", "bound"), [(0, 0, 0.0), (0, 9, 0.0), (1, 1, 0.1486), (52, 52, 0.9007), (90, 100, 0.8052)]
)
def test_few_facts_promise_little(right: int, of: int, bound: float) -> None:
    assert PROMISES["sure"].bound(right, of, 1) == pytest.approx(bound, abs=1e-4)


@pytest.mark.parametrize(
    ("right", "of", "most", "promised"),
    [(0, 0, 1, 0.0), (9, 9, 1, 8 / 9), (10, 10, 1, 0.9), (10, 10, 3, 0.7), (18, 20, 1, 0.85), (0, 3, 1, 0.0)],
)
def test_on_average_one_more_subject_is_counted_as_wrong(right: int, of: int, most: int, promised: float) -> None:
    assert PROMISES["average"].bound(right, of, most) == pytest.approx(promised)


def test_reliability_by_hand() -> None:
    confidence = np.array([0.05, 0.05, 0.95, 0.95, 0.95, 0.95])
    right = np.array([0.0, 1.0, 1.0, 1.0, 1.0, 0.0])
    found = Reliability.of(confidence, right, np.arange(6))
    assert found.ece == pytest.approx((2 * 0.45 + 4 * 0.2) / 6)
    assert found.ace == pytest.approx(found.ece)  # candidates of one confidence are in one bin
    assert found.brier == pytest.approx((0.05**2 + 0.95**2 + 3 * 0.05**2 + 0.95**2) / 6)
    assert found.bins == ((2, 0.05, 0.5), (4, 0.95, 0.75))
    together = Reliability.of(confidence, right, np.zeros(6, dtype=np.int64))
    assert together == replace(found, ace_spread=0.0, brier_spread=0.0)  # one query, whatever is drawn
    assert found.brier_spread > 0.1
    none = Reliability.of(np.zeros(0), np.zeros(0), np.zeros(0, dtype=np.int64))
    assert set(astuple(none)) == {0.0, ()}


@given(st.lists(st.tuples(st.floats(0, 1), st.booleans()), min_size=1, max_size=50))
def test_errors_lie_between_that_of_the_mean_and_that_of_each(made: list[tuple[float, bool]]) -> None:
    confidence, right = (np.array(column, dtype=float) for column in zip(*made, strict=True))
    found = Reliability.of(confidence, right, np.arange(len(made)))
    for error in (found.ece, found.ace):
        assert abs(confidence.mean() - right.mean()) - 1e-9 <= error <= np.abs(confidence - right).mean() + 1e-9
    assert sum(one.candidates for one in found.bins) == len(made)


def world(rows: int = 60) -> tuple[list[CandidateSet], list[Example]]:
    """One relation whose candidates tell right from wrong, and one where nothing does."""
    sets, examples = toy(rows)
    for number in range(rows):
        made = example(f"s{number}", "Q1" if number % 2 else "Q2", relation=OTHER)
        examples.append(made)
        sets.append(scored(made, Q1=0.6, Q2=0.5))
    return sets, examples


def test_what_is_not_sure_is_withheld_and_a_failure_stays_one() -> None:
    sets, examples = world(150)
    tuned = tune_all(sets, examples, EDITION, relations=RELATIONS, trials=0, rules=["cutoff"])
    known = tuned.confidences.relations
    assert known[RELATION].recall > 0.5
    assert known[OTHER].recall == 0.0
    assert known[OTHER].curves["sure"].at(PROMISED) is None
    assert (
        tuned.confidences.reached
        == tuned.confidences.promising("sure")
        == tuned.confidences.kept["sure"].relations
        == 1
    )
    assert tuned.confidences.calibrated.brier < tuned.confidences.raw.brier
    usual = PerRelation(
        tuned.relations[RELATION].rule,
        {name: relation.rule for name, relation in tuned.relations.items()},
        {name: relation.calibration for name, relation in known.items()},
        {"sure": {name: relation.curves["sure"] for name, relation in known.items()}},
    )
    sure = AtPrecision.of(usual.curves["sure"], usual.calibration, PROMISED)
    assert list(sure.reached) == [RELATION]
    selector = usual.narrowed(sure)
    assert replace(sure, asked=0.9).suffix == "-precision-0.9"
    assert replace(sure, asked="best:0.1", promise="average").suffix == "-precision-best-0.1-average"
    made = [selector.select(found) for found in sets]
    right = wrong = 0
    for prediction, found, gold in zip(made, sets, examples, strict=True):
        accepted = {one.id for one in gold.objects}
        right += sum(kept.id in accepted for kept in prediction.objects)
        wrong += sum(kept.id not in accepted for kept in prediction.objects)
        assert bool(prediction.withheld) == (not prediction.objects and usual.select(found).objects != ())
    assert right > 50
    assert right / (right + wrong) > 0.85
    assert {prediction.withheld for prediction in made if prediction.query.relation == OTHER} == {
        "no confidence of its relation promises the precision"
    }
    assert {prediction.withheld for prediction in made if prediction.query.relation == RELATION} == {
        "",
        "no object is sure enough",
    }
    assert made == selector.select_all(sets)
    failed = candidate_set(Query("s", RELATION), (), (State.MISSING,))
    assert selector.select(failed) == Prediction(failed.query, failed=True)
    assert not selector.select(scored(example("s", relation=EPISODES), Q1=1.0)).objects


def test_relations_that_promise_too_little_alone_may_promise_it_together() -> None:
    def facts(wrong: int) -> Facts:
        right = np.array([1] * 7 + [0] * wrong)
        return Facts(np.r_[[0.9] * 7, [0.5] * wrong], right, np.arange(len(right)), np.ones(len(right), dtype=np.int64))

    apart = {"a": facts(2), "b": facts(5)}
    curves = Facts.curves_of(apart, {"a": None, "b": 1})
    assert [own["average"].at(PROMISED) for own in curves.values()] == [None, None]  # 6 / 7 each
    point = curves["a"]["overall"].at(PROMISED)
    assert point is not None
    assert (point.threshold, point.precision, point.recall) == (0.9, 0.92, 0.6667)  # 13 / 14, rounded down; 14 of 21
    assert curves["b"]["overall"] == replace(curves["a"]["overall"], max=1)


def test_facts_of_one_subject_are_counted_apart_in_each_relation() -> None:
    one = Facts(np.ones(2), np.ones(2, dtype=np.int64), np.zeros(2, dtype=np.int64), np.array([2]))
    both = Facts.together([one, one])
    assert both.row.tolist() == [0, 0, 1, 1]
    assert both.curve(PROMISES["overall"]).precision == (0.5,)  # the subject with the most has 2 of 4


def test_verdicts_are_evidence_for_confidences_whatever_the_rule() -> None:
    examples = [example(f"s{number}", "Q1") for number in range(60)]
    sets = []
    for number, made in enumerate(examples):
        judged = [Candidate(f"Q{own}", 0.5, id=f"Q{own}", verification=0.9 if own == 1 else 0.1) for own in (1, 2, 3)]
        sets.append(
            candidate_set(
                made.query,
                judged if number % 3 else [structs.replace(one, verification=None) for one in reversed(judged)],
            )
        )
    known = tune_all(sets, examples, EDITION, relations=RELATIONS, trials=0, rules=["cutoff"]).confidences
    relation = known.relations[RELATION]
    assert relation.calibration.weights["verification"] > 0.3
    assert relation.recall == pytest.approx(2 / 3, abs=0.02)  # of those that were judged
    low, high = known.recall_interval
    assert high - low == pytest.approx(2 * 1.96 * math.sqrt(2 / 9 / 60), rel=0.2)  # of a share of 60 subjects


def test_a_failed_query_s_objects_are_missed() -> None:
    sets, examples = toy(60)
    whole = tune_all(sets, examples, EDITION, relations=RELATIONS, trials=0, rules=["cutoff"]).confidences
    lost = replace(examples[1], query=Query("lost", RELATION), objects=(GoldObject(("Q9",), "Q9"),) * 40)
    sets.append(candidate_set(lost.query, (), (State.MISSING,)))
    tuned = tune_all(sets, [*examples, lost], EDITION, relations=RELATIONS, trials=0, rules=["cutoff"]).confidences
    assert 0 < tuned.relations[RELATION].recall < whole.relations[RELATION].recall * 0.6


def test_numbers_that_lie_near_each_other_are_one_fact() -> None:
    relations = SPACE.relations
    examples = [example(f"s{i}", "100", relation=EPISODES) for i in range(40)]
    sets = [scored(made, **{"100": 0.6, "101": 0.55}) for made in examples]
    known = tune_all(sets, examples, EDITION, relations=relations, trials=0, rules=["top-k"]).confidences
    assert known.relations[EPISODES].curves["average"].max == 1
    assert known.relations[EPISODES].recall == 1.0
