"""Which of many wordings to listen to is tuned like every other rule."""

import random
from dataclasses import replace

import numpy as np
from msgspec import structs
from space import SPACE

from lmkbc.select.pool import Pool
from lmkbc.testing import Candidate, CandidateSet, Example, GoldObject, Query
from lmkbc.tune.families import Task, applicable, fit
from lmkbc.tune.outcomes import Outcomes
from tests.candidates import candidate_set, sources
from tests.tuned import tuned as tune_all

EDITION = SPACE.edition("2023")
RELATION = "CountryBordersCountry"
GOOD, BAD = ("clear", "plain"), ("loud", "vague", "odd")


def answers(rows: int) -> tuple[list[CandidateSet], list[Example]]:
    """Two wordings are right but for a slip of their own; three others agree on what is wrong, whatever is asked."""
    drawn = random.Random(0)
    groups: list[list[CandidateSet]] = [[] for _ in (*GOOD, *BAD)]
    examples = []
    for row in range(rows):
        query = Query(f"s{row}", RELATION)
        gold = [f"Q{10 + row}", f"Q{100 + row}"]
        examples.append(Example(query, tuple(GoldObject((name,), name) for name in gold)))
        for group, model in zip(groups, (*GOOD, *BAD), strict=True):
            named = [*gold, f"Q{drawn.randint(1000, 9999)}"] if model in GOOD else ["Q1", "Q2", gold[0]]
            group.append(candidate_set(query, tuple(Candidate(one, 1.0, sources(model), one) for one in named)))
    return Pool(EDITION).merge(groups), examples


def test_wordings_that_mislead_are_left_out() -> None:
    sets, examples = answers(40)
    task = Task(RELATION, Outcomes(sets, examples, EDITION), nullable=False)
    every = np.ones(len(sets), dtype=np.bool_)
    rule = fit(task, "source-filter", every)
    assert rule.name == "source-filter"
    assert set(rule.source) == set(GOOD)
    assert task.outcomes.f1(rule).mean() == 1.0
    assert task.outcomes.f1(fit(task, "cutoff", every)).mean() < 0.9
    tuned = tune_all(sets, examples, EDITION, relations=SPACE.relations, trials=0)
    assert tuned.relations[RELATION].rule.name == "source-filter"
    assert tuned.cv_macro_f1 == 1.0


def test_two_sources_are_no_choice() -> None:
    sets, examples = answers(6)
    few = [replace(one, candidates=tuple(c for c in one.candidates if c.sources[0].model in GOOD)) for one in sets]
    few = [
        replace(one, candidates=tuple(structs.replace(c, by_model=((GOOD[0], 1.0),)) for c in one.candidates))
        for one in few
    ]
    for found, chosen in ((sets, True), (few, False)):
        task = Task(RELATION, Outcomes(found, examples, EDITION), nullable=False)
        assert ("source-filter" in applicable(task, None)) == chosen


def test_two_that_are_good_together_alone_are_found_among_all_subsets_and_not_one_by_one() -> None:
    groups: list[list[CandidateSet]] = [[], [], []]
    examples = []
    for row in range(8):
        query, gold = Query(f"s{row}", RELATION), [f"Q{10 + row}", f"Q{100 + row}"]
        examples.append(Example(query, tuple(GoldObject((name,), name) for name in gold)))
        wrong = [[f"Q{row + 1}{digit}{place}" for place in range(5)] for digit in (3, 4)]
        said = {"half": gold[:1], "left": gold + wrong[0], "right": gold + wrong[1]}
        for group, (model, named) in zip(groups, said.items(), strict=True):
            group.append(candidate_set(query, tuple(Candidate(one, 1.0, sources(model), one) for one in named)))
    task = Task(RELATION, Outcomes(Pool(EDITION).merge(groups), examples, EDITION), nullable=False)
    every = np.ones(8, dtype=np.bool_)
    added, chosen = fit(task, "source-filter", every), fit(task, "source-subsets", every)
    assert added.name == "source-filter"
    assert chosen.name == "source-filter"
    assert added.source == ("half",)
    assert (set(chosen.source), task.outcomes.f1(chosen).mean()) == ({"left", "right"}, 1.0)
    assert "source-subsets" not in applicable(task, None)
    assert "source-subsets" in applicable(task, ["source-subsets"])
