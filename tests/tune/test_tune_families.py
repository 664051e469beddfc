"""Fits of families by hand: what a calibration learns, which grids are tried, and which rules can be tuned at all."""

import sys
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pytest

import lmkbc
from lmkbc import InputError, Real, Whole
from lmkbc.tune.calibrate import CalibrationData, logistic_fit
from lmkbc.tune.choice import Compared, shared_family
from lmkbc.tune.families import Task, grid
from lmkbc.tune.outcomes import Outcomes
from tests.rules import rule_of
from tests.tune.test_tune import EDITION, example, scored

LABEL_PRIOR = "label_prior"


@pytest.mark.parametrize("start", [0.5, 12.0])
@pytest.mark.parametrize("seed", range(4))
def test_a_fit_ends_where_the_gradient_is_zero(seed: int, start: float) -> None:
    """Far from its start, in few and in many rows, so that steps are halved on the way."""
    draw = np.random.default_rng(seed)
    n = (12, 400)[seed % 2]
    columns = {"bias": np.ones(n), "score": draw.normal(0, 4, n), "rank": draw.integers(0, 9, n).astype(float)}
    label = (draw.random(n) < 1 / (1 + np.exp(-3 * columns["score"] + columns["rank"]))).astype(float)
    weights = logistic_fit(columns, label, {"score": start})
    features, w = np.column_stack(list(columns.values())), np.array(list(weights.values()))
    shrunk = np.array([0.01, 1.0, 1.0]) * (w - np.array([0.0, start, 0.0]))
    gradient = features.T @ (1 / (1 + np.exp(-features @ w)) - label) + shrunk
    assert np.abs(gradient).max() < 0.02


def test_the_label_prior_of_a_candidate_leaves_out_its_own_score() -> None:
    examples = [example(name, "Q1") for name in ("a", "b", "c", "d")]
    sets = [scored(examples[0], Q1=0.8), scored(examples[1], Q1=0.4, Q2=0.2), *map(scored, examples[2:])]
    data = CalibrationData.of(Outcomes(sets, examples, EDITION), np.ones(4, dtype=np.bool_))
    assert data.columns[LABEL_PRIOR] == pytest.approx(np.log(np.array([0.1, 0.2, 0.0]) + 0.005))
    assert data.label_priors == {"Q1": 0.3, "Q2": 0.05}
    assert data.right.tolist() == [1.0, 1.0, 0.0]


def test_the_thirty_most_frequent_names_have_a_label_prior() -> None:
    examples = [example(name, "Q1") for name in ("a", "b")]
    sets = [scored(made, **{f"Q{place}": 1 - place / 32 for place in range(31)}) for made in examples]
    data = CalibrationData.of(Outcomes(sets, examples, EDITION), np.ones(2, dtype=np.bool_))
    assert list(data.label_priors) == [f"Q{place}" for place in range(30)]
    priors = [(1 - place / 32) / 2 for place in range(30)]
    assert data.columns[LABEL_PRIOR] == pytest.approx(np.log(np.array([*priors, 0.0] * 2) + 0.005))


def test_a_grid_has_every_whole_number_and_even_ratios(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        type(rule_of("expected-score")), "search", {"tolerance": Real(0.005, 0.3, log=True), "max": Whole(1, 3)}
    )
    tried = [rule for rule in grid.__wrapped__("expected-score") if rule.name == "expected-score"]
    assert {rule.max for rule in tried} == {1, 2, 3}
    widths = sorted({rule.tolerance for rule in tried})
    assert widths[0] == pytest.approx(0.005)
    assert widths[-1] == pytest.approx(0.3)
    assert np.ptp(np.diff(np.log(widths))) < 0.01


def test_a_relation_without_rows_does_not_move_the_shared_family() -> None:
    clear = Compared({"cutoff": np.array([0.5, 0.5]), "relative": np.array([0.9, 1.0])})
    empty = Compared(dict.fromkeys(clear.held_out, np.zeros(0)))
    assert shared_family([clear]) == shared_family([clear, empty]) == "relative"


def test_relations_share_the_family_that_is_best_over_all_of_them() -> None:
    few, many = np.array([0.9, 0.1]), np.array([0.5, 0.52, 0.48])
    one = Compared({"cutoff": few, "relative": few[::-1], "sticky": few - 0.02})
    other = Compared({"cutoff": many, "relative": many, "sticky": many + 0.03})
    assert shared_family([one]) == shared_family([one, Compared({**other.held_out, "sticky": many})]) == "cutoff"
    assert shared_family([one, other]) == "sticky"  # by less than a standard error


def test_a_parameter_without_default_and_range_cannot_be_tuned(monkeypatch: pytest.MonkeyPatch) -> None:
    @dataclass
    class Demanding:
        least: float
        needed: float
        search: ClassVar[dict[str, Any]] = {"least": Real(0.0, 1.0)}

    monkeypatch.setattr(sys.modules[grid.__module__], "rule_class", lambda _: Demanding)
    with pytest.raises(InputError, match="'needed' has neither a default nor a search range"):
        grid.__wrapped__("demanding")


def test_each_rule_is_looked_at_before_any_is_tuned() -> None:
    with pytest.raises(InputError, match="'nonsense' cannot be tuned"):
        lmkbc.tune(edition="mini", system="prior", rules=["relative", "cutoff", "nonsense"])


def test_a_query_is_judged_by_a_rule_that_no_query_of_its_fold_has_taught() -> None:
    examples = [example(f"s{i}", "Q1") for i in range(9)]
    outcomes = Outcomes([scored(one, Q1=0.9) for one in examples], examples, EDITION)
    rows, inner = np.arange(9) != 4, np.arange(9) % 3
    taught = dict[int, list[int]]()

    def fit(learned: Any, fold: int) -> Any:
        taught[fold] = np.flatnonzero(learned).tolist()
        return rule_of("cutoff", threshold=1.0 if fold == 1 else 0.5)

    f1 = Task("borders", outcomes, nullable=True).held_out(rows, inner, fit)
    assert taught == {0: [1, 2, 5, 7, 8], 1: [0, 2, 3, 5, 6, 8], 2: [0, 1, 3, 6, 7]}
    assert f1.tolist() == [1.0, 0.0, 1.0, 1.0, 1.0, 1.0, 0.0, 1.0]
