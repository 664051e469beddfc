"""Classes: a river is not asked for its spouse, and what nobody knows is asked everything."""

from __future__ import annotations

import pytest

from lmkbc.build.classes import Classes
from lmkbc.workspace import Workspace

RELATIONS = {one.name: one for one in Workspace().relations.values()}
CLASSES = Classes(RELATIONS)


@pytest.mark.parametrize(
    ("named", "asked", "spared"),
    [
        ("Q4022", {"river-countries"}, {"spouse", "country-borders", "area"}),
        ("river", {"river-countries"}, {"spouse"}),
        ("River ", {"river-countries"}, {"spouse"}),
        ("Q5", {"spouse", "profession", "footballer-position"}, {"river-countries", "area"}),
        ("football player", {"spouse", "footballer-position"}, {"band-members"}),
        ("Q3624078", {"country-borders", "country-states", "area"}, {"spouse", "capacity"}),
        ("Q23442", {"area"}, {"country-borders", "spouse"}),
        ("Q486972", {"city-rivers", "area"}, {"spouse", "company-parent"}),
        ("Q6881511", {"stock-exchange", "company-parent"}, {"spouse"}),
        ("Q483110", {"capacity"}, {"spouse"}),
        ("Q28640", set(), set(RELATIONS)),
    ],
)
def test_a_class_is_asked_what_fits_it(named: str, asked: set[str], spared: set[str]) -> None:
    found = set(CLASSES.relations(named))
    assert asked <= found
    assert not spared & found


@pytest.mark.parametrize("named", ["", "Q747074", "wizard", "Q99999999999"])
def test_a_class_that_tells_nothing_is_asked_everything(named: str) -> None:
    assert CLASSES.qid(named) is None
    assert [*CLASSES.relations(named)] == [*RELATIONS]


@pytest.mark.parametrize("name", RELATIONS)
def test_every_relation_is_asked_of_its_own_subjects(name: str) -> None:
    kind = RELATIONS[name].subject_type
    for named in (kind.noun, kind.qid, *kind.classes):
        assert name in CLASSES.relations(named)
