"""Classes: a subject is asked what its class has, by label, alias, QID or what lies above; nobody guesses otherwise."""

from __future__ import annotations

from pathlib import Path

import pytest
from space import SPACE

from lmkbc.build.build import BuildPlan
from lmkbc.build.subjects import Classes, SubjectFile
from lmkbc.errors import InputError
from lmkbc.workspace import Workspace

RELATIONS = {one.name: one for one in SPACE.relations.values()}
CLASSES = Classes(RELATIONS, table=SPACE.classes)
NAMED = Classes(RELATIONS, table=SPACE.classes, named=True)
PERSON = {name for name, one in RELATIONS.items() if one.subject_type.qid == "Q5"}
PLAYERS = {"instrument"}
COUNTRY = {"country-borders", "country-languages", "country-states", "area"}


COMPANY = {"company-parent", "stock-exchange"}


@pytest.mark.parametrize(
    ("names", "asked"),
    [
        (["Q5", "human", "Human ", "person", "http://www.wikidata.org/entity/Q5", "politician"], PERSON - PLAYERS),
        (["Q937857", "football player", "soccer player"], PERSON - PLAYERS | {"footballer-position"}),
        (["Q639669", "musician", "singer", "composer"], PERSON),
        (["Q6256", "country", "sovereign state", "Q3624078", "Q112099", "republic", "federal republic"], COUNTRY),
        (["Q4022", "river", "main river"], {"river-countries"}),
        (["Q515", "city", "Q1549591", "big city", "Q486972", "town", "village"], {"city-rivers", "area"}),
        (["municipality", "commune of France", "Q747074"], {"city-rivers", "area", "state-borders"}),
        (["U.S. state", "Q35657", "province", "department of France"], {"state-borders", "area"}),
        (["Q215380", "band", "musical group", "rock band", "musical ensemble"], {"band-members"}),
        (["television series", "TV series", "Q63952888", "sitcom", "miniseries"], {"episodes"}),
        (
            ["business", "company", "enterprise", "Q6881511", "public company", "airline"],
            {"company-parent", "stock-exchange"},
        ),
        (["chemical compound", "Q11173", "organic compound"], {"compound-elements"}),
        (["award", "literary award", "class of award"], {"award-winners"}),
        (["stadium", "Q483110", "sports venue"], {"capacity"}),
        (["island", "lake", "Q23442"], {"area"}),
        (
            ["film", "written work", "taxon", "Q28640", "organization", "profession", "wizard", "", "Q99999999999"],
            set(),
        ),
    ],
)
def test_a_class_is_asked_what_fits_it_and_nothing_else(names: list[str], asked: set[str]) -> None:
    for named in names:
        assert {*CLASSES.relations(named)} == asked, named


@pytest.mark.parametrize(
    ("named", "asked"),
    [
        ("human", PERSON | {"footballer-position"}),
        ("organization", COMPANY),
        ("film", set()),
        ("river", {"river-countries"}),
        ("", set(RELATIONS)),
        ("wizard", set(RELATIONS)),
        ("Q99999999999", set(RELATIONS)),
    ],
)
def test_relations_that_are_named_are_asked_wherever_they_may_fit(named: str, asked: set[str]) -> None:
    assert {*NAMED.relations(named)} == asked


@pytest.mark.parametrize("name", RELATIONS)
def test_every_relation_is_asked_of_its_own_subjects(name: str) -> None:
    kind = RELATIONS[name].subject_class or RELATIONS[name].subject_type
    for named in (kind.noun, kind.qid, *kind.classes):
        assert name in CLASSES.relations(named)


@pytest.mark.parametrize(
    ("votes", "class_"),
    [
        ({"Q5": 1.0}, "Q5"),
        ({"Q5": 1.0, "Q6256": 1.5}, "Q6256"),
        ({"Q5": 1.0, "Q937857": 0.5, "Q6256": 1.2}, "Q937857"),
        ({"Q7": 1.0, "Q8": 1.0}, "Q7"),
    ],
)
def test_a_vote_for_a_class_is_for_those_below_it_too(votes: dict[str, float], class_: str) -> None:
    assert CLASSES.voted(votes) == class_


def test_every_class_is_found_by_each_of_its_names() -> None:
    for qid, one in SPACE.classes.items():
        assert {CLASSES.qid(name) for name in one.names} == {qid}
        assert all(CLASSES.qid(above) for above in one.below)


def remarks(tmp_path: Path, classes: Classes) -> str:
    (tmp_path / "s.csv").write_text("name,class\na,river\nb,film\nc,wizard\nd,\n")
    return "\n".join(BuildPlan(SubjectFile(tmp_path / "s.csv"), RELATIONS, classes).remarks())


def test_what_is_asked_nothing_is_told(tmp_path: Path) -> None:
    told = remarks(tmp_path, CLASSES)
    assert "since no relation is of their class: 1 of 4 subjects, first 'film'\n" in told
    assert "asked nothing, since nothing is known of their class: 1 of 4 subjects, first 'wizard'; give a class" in told
    assert "asked nothing, since they have no class: 1 of 4 subjects; give a class" in told
    told = remarks(tmp_path, NAMED)
    assert "asked all relations that are named, since nothing is known of their class: 1 of 4 subjects" in told
    assert "they have no class" not in told


def test_a_workspace_has_classes_of_its_own(tmp_path: Path) -> None:
    folder = tmp_path / "relations"
    folder.mkdir()
    assert Workspace(tmp_path).classes == SPACE.classes
    (folder / "classes.toml").write_text('Q42 = { names = ["wizard"], below = ["Q5"] }\n')
    own = Classes(RELATIONS, table=Workspace(tmp_path).classes)
    assert {*own.relations("Wizard")} == PERSON - PLAYERS
    for wrong, said in (
        ('wizard = { names = ["wizard"] }', "classes.toml: "),
        ('Q42 = { names = "wizard" }', "Expected `array`"),
        ('Q42 = { names = ["wizard"] }\nQ43 = { names = ["Wizard"] }', "Q43: Q42 is called 'wizard' too"),
    ):
        (folder / "classes.toml").write_text(wrong)
        with pytest.raises(InputError, match=said):
            _ = Workspace(tmp_path).classes
