"""A tiny world for linking: four relations, and a linker's evidence to mix and match."""

import pytest
from small import small_relation

from lmkbc import EntityType, Relation, Shape
from lmkbc.testing import Example, GoldObject, Query


def relation(name: str, subject: str, obj: str, kind: str = "entity", suffixes: tuple[str, ...] = ()) -> Relation:
    types = {"subject_type": EntityType("subject", subject), "object_type": EntityType("object", obj)}
    return small_relation(name, names=(name.title(),), kind=kind, shape=Shape(link_suffixes=suffixes), **types)


@pytest.fixture(scope="session")
def relations() -> dict[str, Relation]:
    made = [
        relation("rivers", "Q515", "Q4022", suffixes=("River",)),
        relation("instruments", "Q5", "Q34379"),
        relation("spouses", "Q5", "Q5"),
        relation("children", "Q5", "Q11563", kind="number"),
        relation("causes", "Q5", "Q1931388"),
    ]
    return {name: one for one in made for name in (one.name, *one.names)}


@pytest.fixture
def examples() -> list[Example]:
    return [
        Example(Query("Passau", "rivers", "Q4190"), (GoldObject(("Inn",), "Q14369"), GoldObject(("Danube",), "Q1653"))),
        Example(Query("Innsbruck", "rivers", "Q1735"), (GoldObject(("Inn",), "Q14369"),)),
        Example(Query("Ufa", "rivers", "Q911"), (GoldObject(("Ufa",), "Q210870"),)),
        Example(Query("Brian May", "instruments", "Q15873"), (GoldObject(("guitar", "electric guitar"), "Q6607"),)),
        Example(Query("John Deacon", "spouses", "Q208081"), ()),
        Example(Query("Roger Taylor", "children", "Q43994"), (GoldObject(("5",), "5"),)),
    ]
