"""Husbands and wives of a person. Tricky: fiancés and partners do not count, former spouses do."""

from lmkbc import EntityType, Relation, Shape

RELATION = Relation(
    name="spouse",
    names=("PersonHasSpouse",),
    property="P26",
    subject_type=EntityType("person", "Q5"),
    object_type=EntityType("person", "Q5"),
    kind="entity",
    may_be_empty=False,
    definition="Every person to whom the person is or was married, by the name under which the spouse is best known. "
    "Former and late spouses count; partners who were never married do not.",
    clozes=(
        "{subject} is married to {mask}.",
        "The spouse of {subject} is {mask}.",
        "{mask} is the husband or wife of {subject}.",
        "{subject} and {mask} are a married couple.",
    ),
    question="To whom is or was {subject} married?",
    triple="has the spouse",
    statement="{subject} is or was married to {object}.",
    symmetric=True,
    cardinality={"2023": (1, 3)},
    shape=Shape(
        stop=frozenset(
            "husband wife spouse partner married single unmarried divorced man woman actor singer jr jr. sr sr.".split()
        ),
    ),
)
