"""The fast core of tuning against the official scorers, and the exact sweep against brute force."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmkbc import AliasScorer, Download, Edition, IdScorer, MatchingScorer, Metric, ValueScorer
from lmkbc.run.submission import answers
from lmkbc.scoring.matchers import Scorer
from lmkbc.select.composed import AbstentionThreshold
from lmkbc.select.cutoffs import Cutoff, Quorum, Relative, Sticky, TopK
from lmkbc.select.numeric import Ball
from lmkbc.select.rule import Rule, SweptRule
from lmkbc.tune.outcomes import Curve, Outcomes, cutoff_steps, gate_steps, gated, swept_steps
from lmkbc.types import Candidate, CandidateSet, Example, GoldObject, Nil, Query
from tests.candidates import candidate_set, sources

NAMES = ("Ada", "ADA", "Bo", "Cy", "Di")
SPLITS = dict.fromkeys(("train", "val", "test"), Download("https://example.org", "0" * 64))
SCORERS = {
    "alias": AliasScorer(),
    "ids": IdScorer(distinct=False),
    "distinct-ids": IdScorer(distinct=True),
    "values": ValueScorer(frozenset()),
    "matching": MatchingScorer(frozenset()),
}


def edition(scorer: Scorer) -> Edition:
    ids = isinstance(scorer, IdScorer)
    return Edition(
        name="test",
        folder="test",
        relations=("knows",),
        splits=SPLITS,
        column="ObjectEntitiesID" if ids else "ObjectEntities",
        target="id" if ids else "string",
        metric=Metric(scorer, average="relation"),
    )


SCORE = st.sampled_from((0.0, 0.1, 0.25, 0.25001, 0.5, 1.0))


@st.composite
def problems(draw: st.DrawFn) -> tuple[list[CandidateSet], list[Example]]:
    sets, examples = [], []
    for i in range(draw(st.integers(1, 4))):
        query = Query(f"s{i}", "knows")
        found = draw(st.lists(st.tuples(st.sampled_from(NAMES), SCORE, st.integers(1, 3)), max_size=5))
        gold = draw(st.lists(st.lists(st.sampled_from(NAMES), min_size=1, max_size=2), max_size=3))
        nothing = draw(st.none() | SCORE)
        made = [Candidate(name, s, sources(*(f"m{j}#1" for j in range(n))), id=name) for name, s, n in found]
        sets.append(candidate_set(query, tuple(made + ([] if nothing is None else [Nil(nothing)]))))
        unique = {names[0]: GoldObject(tuple(names), names[0]) for names in gold}
        examples.append(Example(query, tuple(unique.values())))
    return sets, examples


RULES: list[Rule] = [
    Cutoff(threshold=0.2),
    TopK(k=2),
    Relative(ratio=0.5),
    Quorum(models=2),
    Quorum(models=2, min_score=0.2),
    AbstentionThreshold(inner=Quorum(models=1), threshold=0.3, evidence="lead"),
    AbstentionThreshold(inner=Cutoff(threshold=0.1), threshold=0.25),
    Ball(),
]


@pytest.mark.parametrize("name", SCORERS)
@given(problem=problems())
def test_f1_is_the_official_one(name: str, problem: tuple[list[CandidateSet], list[Example]]) -> None:
    sets, examples = problem
    made = edition(SCORERS[name])
    outcomes = Outcomes(sets, examples, made)
    gold = {(f"s{i}", "knows"): made.gold_column(example) for i, example in enumerate(examples)}
    for rule in RULES:
        predicted = {(f"s{i}", "knows"): answers(made, rule.select(found)) for i, found in enumerate(sets)}
        table = made.metric.evaluate(predicted, gold, rows=True)
        official = {pair[0]: score.f1 for pair, score in table.rows}
        assert outcomes.f1(rule) == pytest.approx([official[f"s{i}"] for i in range(len(sets))]), rule


SCORES = (0.1, 0.25, 0.25001, 0.5, 1.0)
RATIOS = tuple(high / low * (1 - 1e-9) for high in SCORES for low in SCORES if high <= low)  # just reached
THRESHOLDS = (0.0, 1e-6, 0.05, 0.1, 0.2, 0.25, 0.250005, 0.25001, 0.4, 0.5, 0.7, 1.0, 1.5, 2.0, *RATIOS)


@given(problem=problems(), relative=st.booleans(), least=st.integers(0, 1))
def test_the_sweep_is_exact(problem: tuple[list[CandidateSet], list[Example]], relative: bool, least: int) -> None:
    outcomes = Outcomes(*problem, edition(SCORERS["ids"]))
    rows = np.ones(len(outcomes), dtype=np.bool_)
    curve = Curve.of(cutoff_steps(outcomes, least, relative=relative), rows)

    def rule(threshold: float) -> Rule:
        return Relative(ratio=threshold, min=least) if relative else Cutoff(threshold=threshold, min=least)

    threshold, total = curve.best()
    assert outcomes.f1(rule(threshold)).sum() == pytest.approx(total)
    assert total == pytest.approx(max(outcomes.f1(rule(t)).sum() for t in THRESHOLDS))
    if not relative:
        for t in THRESHOLDS:
            assert curve.total(t) == pytest.approx(outcomes.f1(rule(t)).sum())


SWEPT: list[SweptRule] = [
    Cutoff(threshold=0.0, min=1),
    *(Relative(ratio=ratio, min=least) for ratio in (1e-3, 0.3, 1.0) for least in (0, 1)),
    *(Sticky(threshold=0.0, ratio=r, reference=to) for r in (0.05, 0.6, 1.0) for to in ("previous", "threshold")),
    *(Quorum(models=models) for models in (1, 2, 3)),
]


@given(problem=problems(), rule=st.sampled_from(SWEPT), opened=st.lists(st.booleans(), min_size=4, max_size=4))
def test_a_swept_parameter_is_exact_whatever_the_others_are(
    problem: tuple[list[CandidateSet], list[Example]], rule: SweptRule, opened: list[bool]
) -> None:
    outcomes = Outcomes(*problem, edition(SCORERS["ids"]))
    rows, silent = np.ones(len(outcomes), dtype=np.bool_), outcomes.empty.astype(float)
    open_rows = np.array(opened[: len(outcomes)])
    curve = Curve.of(gated(swept_steps(outcomes, rule), open_rows, silent), rows)

    def total(value: float) -> float:
        f1 = outcomes.f1(replace(rule, **{rule.swept: value}))
        return float(np.where(open_rows, f1, silent).sum())

    best, promised = curve.best()
    assert promised >= max(total(value) for value in THRESHOLDS) - 1e-9  # its plateau may lie between two of them
    assert total(best * (1 - 1e-12)) == pytest.approx(promised)  # a ratio times a quotient may miss by a bit


@given(problem=problems())
def test_the_gate_sweep_is_exact(problem: tuple[list[CandidateSet], list[Example]]) -> None:
    outcomes = Outcomes(*problem, edition(SCORERS["ids"]))
    inner = TopK(k=1)
    strength = AbstentionThreshold(inner=inner, threshold=1.0).strength(outcomes.ranking)
    steps = gate_steps(strength, outcomes.f1(inner), outcomes.empty.astype(float))
    threshold, total = Curve.of(steps, np.ones(len(outcomes), dtype=np.bool_)).best()
    assert outcomes.f1(AbstentionThreshold(inner=inner, threshold=threshold)).sum() == pytest.approx(total)
    assert total >= max(outcomes.f1(AbstentionThreshold(inner=inner, threshold=t)).sum() for t in THRESHOLDS) - 1e-9


def test_a_plateau_resolves_to_the_middle_of_the_widest() -> None:
    found = [Candidate("Ada", 0.8, id="Ada"), Candidate("Bo", 0.02, id="Bo")]
    sets = [candidate_set(Query("s", "knows"), tuple(found))]
    examples = [Example(Query("s", "knows"), (GoldObject(("Ada",), "Ada"),))]
    outcomes = Outcomes(sets, examples, edition(SCORERS["ids"]))
    threshold, _ = Curve.of(cutoff_steps(outcomes), np.ones(1, dtype=np.bool_)).best()
    assert threshold == pytest.approx((0.02 * 0.8) ** 0.5, rel=0.05)
    assert len(repr(threshold)) <= 5


def test_a_list_of_ten_thousand_candidates() -> None:
    found = tuple(Candidate(f"Q{i}", 1 / (i + 1), id=f"Q{i}") for i in range(10_000))
    gold = tuple(GoldObject((f"Q{i}",), f"Q{i}") for i in range(0, 40, 2))
    outcomes = Outcomes(
        [candidate_set(Query("s", "knows"), found)], [Example(Query("s", "knows"), gold)], edition(SCORERS["ids"])
    )
    _, total = Curve.of(cutoff_steps(outcomes), np.ones(1, dtype=np.bool_)).best()
    assert total == pytest.approx(2 * 20 / (39 + 20))
