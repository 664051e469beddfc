"""Every selection rule keeps to this: a new one in the registry passes all of this."""

import pickle
import random
from dataclasses import MISSING, fields, replace
from typing import Any, Literal, get_args, get_origin, get_type_hints

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec import structs

from lmkbc import Real, Rule, registry
from lmkbc.select.selector import PerRelation
from lmkbc.testing import Candidate, CandidateSet, Nil, Prediction, Query, Ranking, State, build
from tests.candidates import candidate_set, sources

RULES = {name: registry.RULES.get(name) for name in registry.RULES.bundled()}

QUERY = Query("Ada", "PersonHasNumberOfChildren")
INNER = {"rule": "top-k", "k": 2}
DRAWN = {float: st.floats(0, 1), int: st.integers(0, 5), bool: st.booleans()}


def tables(name: str) -> st.SearchStrategy[dict[str, Any]]:
    """Tables of a rule: numbers and options of the declared types, what else it needs filled in."""
    drawn: dict[str, st.SearchStrategy[Any]] = {}
    for field in fields(RULES[name]):  # type: ignore[arg-type]
        kind = get_type_hints(RULES[name])[field.name]
        if kind in DRAWN or get_origin(kind) is Literal:
            drawn[field.name] = DRAWN[kind] if kind in DRAWN else st.sampled_from(get_args(kind))
        elif field.default is MISSING and field.default_factory is MISSING:
            drawn[field.name] = st.just(_filled(str(field.type)))
    return st.fixed_dictionaries({"rule": st.just(name), **drawn})


@pytest.mark.parametrize("name", RULES)
def test_ranges_over_orders_of_magnitude_are_searched_by_ratio(name: str) -> None:
    spans = {field: span for field, span in RULES[name].search.items() if isinstance(span, Real) and span.low > 0}
    assert [field for field, span in spans.items() if (span.high / span.low >= 50) and not span.log] == []


def _filled(declared: str) -> Any:
    """Something of a declared type."""
    if declared.endswith("Rule"):
        return INNER
    return {"Mapping[str, float]": {}, "tuple[str, ...]": ["m"], "str": "m"}.get(declared, 0.5)


@st.composite
def candidate_sets(draw: st.DrawFn) -> CandidateSet:
    """Pooled sets: numbers and names, distinct, best first, with what is said about nothing."""
    texts = draw(st.lists(st.sampled_from([*map(str, range(1, 40)), "Lima", "Oslo", "Rome"]), unique=True, max_size=8))
    scores = draw(st.lists(st.floats(0, 1), min_size=len(texts), max_size=len(texts), unique=True))
    found = [Candidate(t, s, sources("m#0"), None, (("m", s),)) for t, s in zip(texts, scores, strict=True)]
    if draw(st.booleans()):
        found.append(Nil(draw(st.floats(0, 1)), sources("m#1")))
    found.sort(key=lambda one: -one.score)
    draws = tuple(draw(st.lists(st.sampled_from([State.ANSWERED, State.ABSTAINED]), min_size=1, max_size=4)))
    return candidate_set(QUERY, tuple(found), draws)


slow = settings(max_examples=settings.default.max_examples // 2, suppress_health_check=[HealthCheck.too_slow])
every = pytest.mark.parametrize("name", sorted(RULES))
masks = pytest.mark.parametrize("name", sorted(name for name in RULES if RULES[name].keep is not Rule.keep))


@every
@slow
@given(data=st.data())
def test_a_rule_keeps_what_was_proposed_in_no_matter_which_order(name: str, data: st.DataObject) -> None:
    rule, found = build(data.draw(tables(name))), data.draw(candidate_sets())
    kept = rule.select(found)
    shuffled = list(found.candidates)
    random.Random(0).shuffle(shuffled)
    again = rule.select(replace(found, candidates=tuple(shuffled)))
    assert rule.select(found) == kept
    assert [one.text for one in kept.objects] == [one.text for one in again.objects]
    assert not kept.failed
    assert all(one.text for one in kept.objects)
    assert len({one.text for one in kept.objects}) == len(kept.objects)


@every
@slow
@given(data=st.data())
def test_nothing_proposed_is_nothing_kept_and_failed_stays_failed(name: str, data: st.DataObject) -> None:
    rule = build(data.draw(tables(name)))
    assert rule.select(candidate_set(QUERY)) == Prediction(QUERY)
    assert rule.select(candidate_set(QUERY, (Nil(0.5),))) == Prediction(QUERY)
    missing = candidate_set(QUERY, draws=(State.MISSING, State.UNPARSED))
    assert rule.select(missing) == Prediction(QUERY, failed=True)


@every
@slow
@given(data=st.data())
def test_many_queries_at_once_are_each_of_them_alone(name: str, data: st.DataObject) -> None:
    rule, found = build(data.draw(tables(name))), data.draw(st.lists(candidate_sets(), max_size=4))
    sets = [*found, candidate_set(QUERY, draws=(State.MISSING,)), *found]
    assert rule.select_all(sets) == [rule.select(one) for one in sets]
    other = build({"rule": "top-k", "k": 1})
    both = PerRelation(rule, {"else": other})
    mixed = [replace(one, query=structs.replace(QUERY, relation=("else", "this")[i % 2])) for i, one in enumerate(sets)]
    assert both.select_all(mixed) == [both.select(one) for one in mixed]


@every
@slow
@given(data=st.data())
def test_a_rule_is_its_table_and_travels(name: str, data: st.DataObject) -> None:
    rule: Rule = build(data.draw(tables(name)))
    assert build(rule.to_table()) == rule
    assert pickle.loads(pickle.dumps(rule)) == rule


@masks
@slow
@given(data=st.data())
def test_a_batch_of_queries_is_each_of_them_alone_and_what_is_kept_was_proposed(name: str, data: st.DataObject) -> None:
    rule, sets = build(data.draw(tables(name))), data.draw(st.lists(candidate_sets(), min_size=1, max_size=4))
    ranking = Ranking.of(sets)
    together = rule.keep(ranking)
    for row, ranked, found in zip(together, ranking.ranked, sets, strict=True):
        kept = tuple(one for one, stays in zip(ranked, row, strict=False) if stays)
        assert not row[len(ranked) :].any()
        assert kept == rule.select(found).objects
        assert set(kept) <= set(found.candidates)


@masks
@slow
@given(data=st.data())
def test_a_score_out_of_range_counts_as_the_bound(name: str, data: st.DataObject) -> None:
    rule, found = build(data.draw(tables(name))), data.draw(candidate_sets())
    far, near = (
        replace(found, candidates=tuple(structs.replace(one, score=score(one.score)) for one in found.candidates))
        for score in (lambda p: p * 16 - 8, lambda p: min(max(p * 16 - 8, 0.0), 1.0))
    )
    assert [one.text for one in rule.select(far).objects] == [one.text for one in rule.select(near).objects]


LONG = tuple(Candidate(str(number + 1), 1 / (number + 1)) for number in range(10_000))


@every
@pytest.mark.parametrize("count", [1000, pytest.param(10_000, marks=pytest.mark.whole)])
@settings(max_examples=2)
@given(data=st.data())
def test_of_many_candidates_the_best_come_first_and_none_twice(name: str, count: int, data: st.DataObject) -> None:
    """A rule keeps the same of so many in another order, best first."""
    rule, many = build(data.draw(tables(name))), LONG[:count]
    kept = rule.select(CandidateSet(QUERY, many)).objects
    assert kept == rule.select(CandidateSet(QUERY, many[::-1])).objects
    assert len({one.text for one in kept}) == len(kept)
    if type(rule).keep is not Rule.keep:
        assert set(kept) <= set(many)
        assert [one.score for one in kept] == sorted((one.score for one in kept), reverse=True)
