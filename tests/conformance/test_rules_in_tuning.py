"""Tuning scores what a run keeps: for every rule of the registry, at every threshold, and for held-out subjects."""

from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from space import SPACE

from lmkbc import registry
from lmkbc.plan import Origin
from lmkbc.run.submission import answers
from lmkbc.select.narrowings import AtPrecision
from lmkbc.select.selector import PerRelation
from lmkbc.testing import Candidate, CandidateSet, Example, GoldObject, Nil, Prediction, Query, State, build
from lmkbc.tune import choice, learn, tuned_rules
from lmkbc.tune.confidence import Facts, held_out
from lmkbc.tune.families import Task, fit
from lmkbc.tune.outcomes import Outcomes
from lmkbc.tune.studies import Joint
from lmkbc.tune.tuning_set import TuningOptions, TuningSet
from tests.candidates import candidate_set, sources
from tests.conformance.test_every_rule import tables
from tests.rules import rule_of
from tests.tune.test_tune_outcomes import SCORERS, edition
from tests.tuned import PLAIN, SELECTORS, tuned
from tests.tuned import official as official_table

RULES = {name: registry.RULES.get(name) for name in registry.RULES}

RELATION = "knows"
TEXTS = ("Ada", "ADA", "Bo", "Cy", "3", "7", "7.2", "40")
SCORE = st.sampled_from((0.0, 0.1, 0.25, 0.25001, 0.5, 0.9, 1.0))
Problem = tuple[list[CandidateSet], list[Example]]


@st.composite
def problems(draw: st.DrawFn) -> Problem:
    """Up to four queries, some about each other: ties, repeated answers, empty lists, empty gold, several models."""
    sets, examples = [], []
    for subject in draw(st.lists(st.sampled_from(("Ada", "Bo", "Cy", "Di")), min_size=1, max_size=4, unique=True)):
        query = Query(subject, RELATION)
        made = []
        for text in draw(st.lists(st.sampled_from(TEXTS), max_size=6)):
            models = draw(st.sampled_from((("m",), ("n",), ("m", "n"))))
            score, verification = draw(SCORE), draw(st.none() | SCORE)
            by_model = tuple((model, score) for model in models)
            made.append(Candidate(text, score, sources(*(f"{m}#0" for m in models)), text, by_model, verification))
        made.sort(key=lambda one: -one.score)
        nil = draw(st.none() | SCORE)
        draws = tuple(draw(st.lists(st.sampled_from((State.ANSWERED, State.ABSTAINED)), min_size=1, max_size=3)))
        sets.append(candidate_set(query, [*made, *([] if nil is None else [Nil(nil, sources("m#1"))])], draws))
        names = st.lists(st.sampled_from(TEXTS), min_size=1, max_size=2)
        gold = {texts[0]: GoldObject(tuple(texts), texts[0]) for texts in draw(st.lists(names, max_size=3))}
        examples.append(Example(query, tuple(gold.values())))
    return sets, examples


def official(predictions: list[Prediction], examples: list[Example], scorer: str) -> list[float]:
    """F1 of each query by the edition's scorer, as `lmkbc evaluate` computes it."""
    made = edition(SCORERS[scorer])
    gold = {x.query.pairs[0]: made.gold_column(x) for x in examples}
    predicted = {one.query.pairs[0]: answers(made, one) for one in predictions}
    scores = {pair: score.f1 for pair, score in made.metric.evaluate(predicted, gold, rows=True).rows}
    return [scores[pair] for pair in gold]


every = pytest.mark.parametrize("name", sorted(RULES))
swept = pytest.mark.parametrize("name", sorted(name for name in RULES if hasattr(RULES[name], "swept")))
narrowed = pytest.mark.parametrize(
    "selector", SELECTORS, ids=lambda one: "".join(type(less).__name__ for less in one.narrowings) or "plain"
)
SELECTOR = st.sampled_from(SELECTORS)


def bounded(data: st.DataObject, rule: Any) -> Any:
    """The rule with bounds on the number of objects, if it has any."""
    if not hasattr(rule, "max") or not hasattr(rule, "min"):
        return rule
    least = data.draw(st.integers(0, 2))
    return replace(rule, min=least, max=data.draw(st.sampled_from((max(least, 1), 3, rule.max))))


@every
@given(selector=SELECTOR, data=st.data(), problem=problems(), scorer=st.sampled_from(sorted(SCORERS)))
def test_the_score_of_tuning_is_the_official_one_of_what_a_run_keeps(
    name: str, selector: PerRelation, data: st.DataObject, problem: Problem, scorer: str
) -> None:
    sets, examples = problem
    rule = bounded(data, build(data.draw(tables(name))))
    run = selector.under({RELATION: rule})
    outcomes = Outcomes(run.read(sets), examples, edition(SCORERS[scorer]), selector=selector)
    assert outcomes.f1(rule) == pytest.approx(official(run.select_all(sets), examples, scorer))


@swept
@given(
    selector=SELECTOR,
    data=st.data(),
    problem=problems(),
    scorer=st.sampled_from(sorted(SCORERS)),
    gate=st.none() | SCORE,
)
def test_a_sweep_finds_the_threshold_with_which_a_run_is_best(
    name: str, selector: PerRelation, data: st.DataObject, problem: Problem, scorer: str, gate: float | None
) -> None:
    sets, examples = problem
    rule = bounded(data, build(data.draw(tables(name))))
    task = Task(RELATION, Outcomes(sets, examples, edition(SCORERS[scorer]), selector=selector), nullable=True)
    closing = None if gate is None else rule_of("abstention-threshold", inner=rule, threshold=gate)
    joint = Joint(rule, closing)

    def scores(at: Any) -> Any:
        return np.array(official(selector.under({RELATION: at}).select_all(sets), examples, scorer))

    levels = rule.levels(task.outcomes.ranking).ravel()
    tried = sorted({0.0, 2.0, *levels[levels >= 0], *np.nextafter(levels[levels >= 0], 3)})
    swept_rules = [replace(rule, **{rule.swept: float(t)}) for t in tried]
    found = np.array([scores(replace(closing, inner=at) if closing else at) for at in swept_rules])
    steps = joint.steps(task)
    for chosen in product((False, True), repeat=len(sets)):
        rows = np.array(chosen)
        if rows.any():
            assert scores(joint.fit(steps, rows))[rows].sum() >= found[:, rows].sum(axis=1).max() - 1e-9


@given(selector=SELECTOR, problem=problems(), scorer=st.sampled_from(sorted(SCORERS)), least=st.integers(0, 1))
def test_no_other_threshold_is_better_than_the_one_that_is_fitted(
    selector: PerRelation, problem: Problem, scorer: str, least: int
) -> None:
    sets, examples = problem
    outcomes = Outcomes(sets, examples, edition(SCORERS[scorer]), selector=selector)
    task, rows = Task(RELATION, outcomes, nullable=not least), np.ones(len(sets), dtype=np.bool_)

    def total(rule: Any) -> float:
        return sum(official(selector.under({RELATION: rule}).select_all(sets), examples, scorer))

    cuts = (0.0, 0.05, 0.1, 0.2, 0.25, 0.250005, 0.25001, 0.4, 0.5, 0.7, 0.9, 0.95, 1.0, 1.5)
    fitted = {name: total(fit(task, name, rows)) for name in ("cutoff", "relative", "top-k")}
    assert fitted["cutoff"] >= max(total(rule_of("cutoff", threshold=cut, min=least)) for cut in cuts) - 1e-9
    assert fitted["top-k"] >= max(total(rule_of("top-k", k=k)) for k in range(least, 7)) - 1e-9
    assert fitted["relative"] >= max(total(rule_of("relative", ratio=cut + 1e-9, min=least)) for cut in cuts) - 1e-9
    gate = fit(task, "abstention-threshold", rows)
    if gate.name == "abstention-threshold":
        assert total(gate) >= max(total(replace(gate, threshold=cut)) for cut in cuts) - 1e-9


BORDERS, SPOUSE, EPISODES = "CountryBordersCountry", "PersonHasSpouse", "SeriesHasNumberOfEpisodes"
LMKBC23 = SPACE.edition("2023")


def ring(relation: str, size: int, seed: int) -> Problem:
    """Subjects in a ring: each names its neighbours and others, verified; every third has no object, one failed."""
    rng = np.random.default_rng(seed)
    names = [f"Q{seed}{place}" for place in range(size)]
    sets, examples = [], []
    for place, name in enumerate(names):
        query = Query(name, relation, name)
        near = [names[place - 1], names[(place + 1) % size]]
        far = [names[(place + step) % size] for step in (3, 5)]
        if relation == EPISODES:
            near, far = [str(10 + place)], [str(40 + place), str(10 + place + 1)]
        gold = () if relation == SPOUSE and place % 3 == 0 else tuple(GoldObject((text,), text) for text in near)
        scores = {text: rng.uniform(0.3, 1) if gold else rng.uniform(0, 0.5) for text in near}
        scores |= {text: rng.uniform(0, 0.7) for text in far}
        found = [
            Candidate(text, round(score, 2), sources("m#0"), text, (("m", round(score, 2)),), rng.uniform(0.2, 1))
            for text, score in sorted(scores.items(), key=lambda item: -round(item[1], 2))
        ]
        draws = (State.MISSING,) if place == size - 1 else (State.ANSWERED,)
        sets.append(candidate_set(query, () if place == size - 1 else found, draws))
        examples.append(Example(query, gold))
    return sets, examples


SETS, EXAMPLES = (
    [*borders, *spouses, *numbers]
    for borders, spouses, numbers in zip(ring(BORDERS, 21, 1), ring(SPOUSE, 24, 2), ring(EPISODES, 16, 3), strict=True)
)


@pytest.mark.whole(but=["plain"])
@narrowed
def test_held_out_predictions_are_those_of_runs_with_the_tuned_rules(
    selector: PerRelation, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    chosen: list[tuple[Any, dict[str, Any]]] = []

    def choose(tasks: Any, judged: Any, rows: Any, *rest: Any, **more: Any) -> dict[str, Any]:
        subjects = {
            task.outcomes.sets[row].query.subject for name, task in tasks.items() for row in np.flatnonzero(rows[name])
        }
        chosen.append((subjects, real(tasks, judged, rows, *rest, **more)))
        return chosen[-1][1]

    real = learn.choose
    monkeypatch.setattr(learn, "choose", choose)
    made = tuned(
        SETS,
        EXAMPLES,
        LMKBC23,
        relations=SPACE.relations,
        selector=selector,
        folds=3,
        trials=3,
        rules=("cutoff", "top-k", "abstention-threshold", "calibrated", "stab-mid"),
    )
    *folds, (everybody, final) = chosen
    answered = [found for found in SETS if not found.failed]
    assert everybody == {found.query.subject for found in answered}
    by_query = dict(zip((found.query for found in SETS), made.predictions, strict=True))
    held = []
    for subjects, choices in folds:
        rules = {name: one.rule for name, one in choices.items()}
        run = {one.query: one for one in selector.under(rules).select_all(SETS)}
        unseen = [found.query for found in answered if found.query.subject not in subjects]
        assert [by_query[query] for query in unseen] == [run[query] for query in unseen]
        held += unseen
    assert sorted(held, key=str) == sorted((found.query for found in answered), key=str)
    path = tmp_path / "t.toml"
    about = tuned_rules.Provenance.of(made, Origin(), edition="2023", system="s", data_sha256="", candidates_sha256="")
    tuned_rules.write(path, made, about)
    again = tuned_rules.read(path, selector).selector
    table = official_table({one.query: one for one in again.select_all(SETS)}, EXAMPLES, LMKBC23)
    assert made.insample_macro_f1 == table.overall.f1
    assert made.cv_macro_f1 == official_table(by_query, EXAMPLES, LMKBC23).overall.f1
    rules = {name: one.rule for name, one in final.items()}
    assert {name: one.rule for name, one in made.relations.items()} == rules == again.rules


@pytest.mark.whole(but=["plain"])
@narrowed
def test_facts_that_promise_a_precision_are_those_that_a_run_keeps(selector: PerRelation) -> None:
    made = tuned(SETS, EXAMPLES, LMKBC23, relations=SPACE.relations, selector=selector, trials=0, rules=("top-k",))
    whole = {name: one.calibration for name, one in made.confidences.relations.items()}
    curves = {name: one.curves["sure"] for name, one in made.confidences.relations.items()}
    sure = AtPrecision.of(curves, whole.get, 0.5)
    assert sure.reached
    run = selector.narrowed(sure)
    for name, point in sure.reached.items():
        sets = [found for found in SETS if found.query.relation == name and not found.failed]
        examples = [x for x in EXAMPLES if x.query in {found.query for found in sets}]
        outcomes = Outcomes(sets, examples, LMKBC23, selector=selector)
        p, rows = whole[name].probabilities(outcomes.ranking), np.ones(len(sets), dtype=np.bool_)
        facts = Facts.of(outcomes, p, rows, max_facts=curves[name].max)
        above = (p >= point.threshold).sum(axis=1)
        counts = [len(one.objects) for one in run.select_all(sets)]
        limited = len(selector.answer(sets[0], sets[0].candidates)) == 1
        assert counts == [min(int(n), 1) if limited or curves[name].max == 1 else int(n) for n in above]
        kept, right = facts.kept(np.full(len(sets), point.threshold))
        if not limited:
            assert kept.tolist() == counts
            table = official_table({one.query: one for one in run.select_all(sets)}, examples, LMKBC23)
            assert right.sum() / kept.sum() == pytest.approx(table.relations[name].micro_p)
        assert max(kept) <= max(counts)


def test_confidences_of_held_out_queries_do_not_know_their_gold() -> None:
    sets, examples = ring(SPOUSE, 24, 2)
    rows, fold = {SPOUSE: np.ones(23, dtype=np.bool_)}, {SPOUSE: np.arange(23) % 4}

    def confidence(flipped: int) -> Any:
        changed = [
            replace(x, objects=(GoldObject(("Q9",), "Q9"),)) if place % 4 == flipped else x
            for place, x in enumerate(examples[:-1])
        ]
        outcomes = Outcomes(sets[:-1], changed, LMKBC23)
        return held_out({SPOUSE: Task(SPOUSE, outcomes, nullable=True)}, rows, fold)[SPOUSE]

    before, after = confidence(-1), confidence(2)
    assert (before[2::4] == after[2::4]).all()
    assert (before[0::4] != after[0::4]).any()


def test_weights_of_all_relations_are_fitted_without_the_fold_that_they_score(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes: list[int] = []

    def recorded(some: Any) -> Any:
        sizes.append(sum(part.right.size for part in some))
        return real(some)

    real = choice.general
    monkeypatch.setattr(choice, "general", recorded)
    tuned(SETS, EXAMPLES, LMKBC23, relations=SPACE.relations, trials=0, folds=2, rules=("top-k",))
    each = learn.INNER_FOLDS + 1  # the last is of all training rows
    for first in range(0, len(sizes), each):
        *folds, whole = sizes[first : first + each]
        assert sum(folds) == (learn.INNER_FOLDS - 1) * whole


def test_a_relation_has_its_own_rule_or_the_general_one() -> None:
    run = PerRelation(rule_of("top-k", k=2), {SPOUSE: rule_of("top-k", k=0), EPISODES: rule_of("top-k", k=1)})
    some = [SETS[0], SETS[21], SETS[-2], SETS[1]]
    assert [len(made.objects) for made in run.select_all(some)] == [2, 0, 1, 2]


def data(**changes: Any) -> TuningSet:
    given = {
        "sets": SETS[:5],
        "examples": EXAMPLES[:5],
        "edition": LMKBC23,
        "relations": SPACE.relations,
        "selector": PLAIN,
        "options": TuningOptions(),
    }
    return TuningSet(**{**given, **changes})
