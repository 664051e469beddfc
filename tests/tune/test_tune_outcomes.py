"""The fast core of tuning against the official scorers, and the exact sweep against brute force."""

from typing import Any

import numpy as np
import pytest
from hypothesis import strategies as st
from small import small_edition

from lmkbc import AliasScorer, Edition, IdScorer, MatchingScorer, Metric, ValueScorer
from lmkbc.testing import Candidate, CandidateSet, Example, GoldObject, Nil, Query
from lmkbc.tune.families import Task, fit
from lmkbc.tune.outcomes import Outcomes
from tests.candidates import candidate_set, sources

NAMES = ("Ada", "ADA", "Bo", "Cy", "Di")
SCORERS = {
    "alias": AliasScorer(),
    "ids": IdScorer(distinct=False),
    "distinct-ids": IdScorer(distinct=True),
    "values": ValueScorer(frozenset()),
    "matching": MatchingScorer(frozenset()),
}


def edition(scorer: Any) -> Edition:
    ids = isinstance(scorer, IdScorer)
    column, target = ("ObjectEntitiesID", "id") if ids else ("ObjectEntities", "string")
    return small_edition(["knows"], column=column, target=target, metric=Metric(scorer, average="relation"))


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


def test_a_plateau_resolves_to_the_middle_of_the_widest() -> None:
    found = [Candidate("Ada", 0.8, id="Ada"), Candidate("Bo", 0.02, id="Bo")]
    sets = [candidate_set(Query("s", "knows"), tuple(found))]
    examples = [Example(Query("s", "knows"), (GoldObject(("Ada",), "Ada"),))]
    outcomes = Outcomes(sets, examples, edition(SCORERS["ids"]))
    threshold = fit(Task("knows", outcomes, nullable=True), "cutoff", np.ones(1, dtype=np.bool_)).threshold
    assert threshold == pytest.approx((0.02 * 0.8) ** 0.5, rel=0.05)
    assert len(repr(threshold)) <= 5


def test_a_list_of_ten_thousand_candidates() -> None:
    found = tuple(Candidate(f"Q{i}", 1 / (i + 1), id=f"Q{i}") for i in range(10_000))
    gold = tuple(GoldObject((f"Q{i}",), f"Q{i}") for i in range(0, 40, 2))
    outcomes = Outcomes(
        [candidate_set(Query("s", "knows"), found)], [Example(Query("s", "knows"), gold)], edition(SCORERS["ids"])
    )
    rule = fit(Task("knows", outcomes, nullable=True), "cutoff", np.ones(1, dtype=np.bool_))
    assert outcomes.f1(rule).sum() == pytest.approx(2 * 20 / (39 + 20))
