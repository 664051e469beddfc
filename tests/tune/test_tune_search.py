"""Optuna's part of tuning: what it searches, when it ends, that it repeats itself, and what it brings."""

import random
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from space import SPACE

from lmkbc import IdScorer
from lmkbc.plan import Origin
from lmkbc.testing import Candidate, CandidateSet, Example, GoldObject, Nil, Query
from lmkbc.tune import tuned_rules
from lmkbc.tune.families import Task, fit
from lmkbc.tune.outcomes import Outcomes
from lmkbc.tune.studies import Joint, Space, is_over, search
from lmkbc.tune.tuning_set import TuningOptions
from tests.candidates import candidate_set, sources
from tests.rules import rule_of
from tests.tuned import tuned as tune_all

EDITION = SPACE.edition("2023")
RELATION = "CountryBordersCountry"
TIED, MIXED = (1.0, 1.0, 1.0), (0.9, 0.5, 0.1)


def problem(rows: int, relation: str = RELATION, seed: int = 0) -> tuple[list[CandidateSet], list[Example]]:
    """Queries of three scales: what scores at least half of its query's best is right, but nothing is below 0.02."""
    rng = random.Random(seed)
    sets, examples = [], []
    for row in range(rows):
        best = rng.choice((1.0, 0.1, 0.01))
        scores = [best, *(best * rng.uniform(0.05, 1.0) for _ in range(5))]
        found = [Candidate(f"Q{i}", score, sources("m#0"), f"Q{i}") for i, score in enumerate(scores)]
        gold = [one.text for one in found if one.score >= max(0.5 * best, 0.02)]
        query = Query(f"s{row}", relation)
        sets.append(candidate_set(query, (*found, Nil(rng.random()))))
        examples.append(Example(query, tuple(GoldObject((name,), name) for name in gold)))
    return sets, examples


def task_of(sets: list[CandidateSet], examples: list[Example], *, nullable: bool = False) -> Task:
    return Task(RELATION, Outcomes(sets, examples, EDITION), nullable)


def tuned(sets: list[CandidateSet], examples: list[Example], **options: Any) -> Any:
    return tune_all(sets, examples, EDITION, relations=SPACE.relations, **options)


def found(scores: tuple[float, ...], nothing: float | None = None) -> CandidateSet:
    said = [Candidate(f"Q{i}", score, id=f"Q{i}") for i, score in enumerate(scores)]
    return candidate_set(Query("s", RELATION), (*said, *([] if nothing is None else [Nil(nothing)])))


@pytest.mark.parametrize(
    ("scores", "nothings", "nullable", "rules", "kinds", "gates"),
    [
        (TIED, (None, None), False, None, [], []),  # one draw of one model: every rule is a cut-off
        (TIED, (None, None), True, None, [], []),
        (TIED, (0.1, 0.1), True, None, [], ["lead"]),
        (MIXED, (None, None), False, None, ["relative", "sticky"], []),
        (MIXED, (None, None), False, ["cutoff"], [], []),  # what an exact sweep covers is not searched
        (MIXED, (0.1, 0.7), True, None, ["cutoff", "relative", "sticky"], ["nothing", "lead"]),
        (MIXED, (0.1, 0.7), True, ["sticky"], ["sticky"], []),
        (MIXED, (0.1, 0.7), False, None, ["relative", "sticky"], []),
    ],
)
def test_only_what_hangs_together_is_searched(
    scores: tuple[float, ...],
    nothings: tuple[float | None, ...],
    nullable: bool,
    rules: list[str] | None,
    kinds: list[str],
    gates: list[str],
) -> None:
    sets = [found(tuple(score / (1 + row) for score in scores), nothing) for row, nothing in enumerate(nothings)]
    examples = [Example(one.query, (GoldObject(("Q0",), "Q0"),)) for one in sets]
    space = Space.of(task_of(sets, examples, nullable=nullable), np.ones(len(sets), dtype=np.bool_), rules)
    expected = ["cutoff"] if gates and not kinds else kinds
    assert (list(space.kinds), list(space.gates)) == (expected, gates)


def test_a_study_begins_with_what_the_families_found() -> None:
    task = task_of(*problem(40), nullable=True)
    rows, inner = np.ones(40, dtype=np.bool_), np.arange(40) % 4
    tried = list(search(task, rows, inner, TuningOptions(trials=4)))
    relative, sticky = fit(task, "relative", rows), fit(task, "sticky", rows)
    assert relative.name == "relative"
    assert sticky.name == "sticky"
    assert [one.rule.name for one in tried] == ["cutoff", "relative", "sticky", "cutoff"]
    assert [one.gate is None for one in tried] == [True, True, True, False]
    assert getattr(tried[1].rule, "ratio", None) == pytest.approx(relative.ratio, rel=1e-3)
    assert (getattr(tried[2].rule, "ratio", 0), getattr(tried[2].rule, "reference", "")) == (
        sticky.ratio,
        sticky.reference,
    )


def test_a_trial_is_scored_on_queries_that_its_threshold_was_not_swept_on() -> None:
    sets, examples = problem(24)
    task, rows, inner = task_of(sets, examples), np.ones(24, dtype=np.bool_), np.arange(24) % 4
    joint = Joint(rule_of("relative", ratio=0.5, min=1))
    f1 = joint.held_out(task, rows, inner)
    for fold in range(4):
        rule = joint.fit(joint.steps(task), inner != fold)
        assert f1[inner == fold].tolist() == task.outcomes.f1(rule)[inner == fold].tolist()
    gated = replace(joint, gate=rule_of("abstention-threshold", inner=joint.rule, threshold=0.9))
    rule = gated.fit(gated.steps(task), rows)
    assert rule.name == "abstention-threshold"
    assert (rule.threshold, rule.evidence) == (0.9, "nothing")


def test_a_query_behind_a_closed_gate_does_not_move_the_threshold() -> None:
    sets = [found((0.3,), 0.1)] * 3 + [found((0.3,), 0.9)] * 9
    examples = [Example(one.query, (GoldObject(("Q0",), "Q0"),) * (row < 3)) for row, one in enumerate(sets)]
    task, rows = task_of(sets, examples, nullable=True), np.ones(12, dtype=np.bool_)
    joint = Joint(rule_of("cutoff", threshold=0.5))
    assert joint.fit(joint.steps(task), rows).threshold > 0.3
    gated = replace(joint, gate=rule_of("abstention-threshold", inner=joint.rule, threshold=0.5))
    assert gated.fit(gated.steps(task), rows).inner.threshold <= 0.3


@pytest.mark.parametrize(
    ("values", "trials", "patience", "over"),
    [
        ([], 0, 3, True),
        ([], 9, 3, False),
        ([0.5, 0.5, 0.5], 9, 3, False),
        ([0.5, 0.5, 0.5, 0.5], 9, 3, True),
        ([0.5, 0.5, 0.5, 0.6], 9, 3, False),
        ([0.5, 0.5, 0.5 + 1e-12, 0.5], 9, 3, True),  # the same F1 values added in another order
        ([0.1, 0.2, 0.3], 3, 3, True),
    ],
)
def test_a_study_ends_when_it_has_its_trials_or_gains_nothing(
    values: list[float], trials: int, patience: int, over: bool
) -> None:
    done: Any = [SimpleNamespace(value=value) for value in values]
    assert is_over(done, trials, patience) == over


def test_parameters_that_hang_together_are_found() -> None:
    made = tuned(*problem(200), rules=["relative", "sticky"])
    without = tuned(*problem(200), rules=["relative", "sticky"], trials=0)
    assert made.cv_macro_f1 > without.cv_macro_f1 + 0.005
    rule = made.relations[RELATION].rule
    assert rule.name == "relative"
    assert 0.4 < rule.ratio < 0.6
    assert 0.01 < rule.threshold < 0.1
    assert made.relations[RELATION].cv_f1 == made.cv_macro_f1


def test_the_gold_of_a_held_out_subject_does_not_move_its_prediction_with_a_search_either() -> None:
    sets, examples = problem(60)
    before = tuned(sets, examples, rules=["relative"], trials=8)
    examples[1] = Example(examples[1].query, (GoldObject(("Q5",), "Q5"),))
    assert tuned(sets, examples, rules=["relative"], trials=8).predictions[1] == before.predictions[1]


def written(folder: Path, made: Any) -> bytes:
    given = tuned_rules.Provenance.of(
        made, Origin(), edition="2023", system="s", data_sha256="0", candidates_sha256="0"
    )
    tuned_rules.write(folder / "it.toml", made, given)
    return (folder / "it.toml").read_bytes()


def test_the_same_seed_gives_the_same_file(tmp_path: Path) -> None:
    sets, examples = problem(60)
    options: dict[str, Any] = {"rules": ["relative"], "trials": 12, "folds": 2}
    first = written(tmp_path, tuned(sets, examples, **options))
    assert written(tmp_path, tuned(sets, examples, **options)) == first


def test_every_relation_and_fold_is_reported_and_their_number_is_known_before() -> None:
    told: list[tuple[str, int, int | None]] = []
    other = problem(30, "PersonPlaysInstrument", 1)
    sets, examples = problem(30)
    tuned([*sets, *other[0]], [*examples, *other[1]], trials=3, report=lambda *said: told.append(said))
    steps = [said for said in told if "folds" in said[0]]
    assert steps == [("tune (relations x folds)", done, 12) for done in range(13)]
    assert isinstance(EDITION.metric.scorer, IdScorer)
