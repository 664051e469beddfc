"""Number of a person's children. Tricky: models that do not know say two, and names may come back, not a count."""

from lmkbc import EntityType, Relation, Shape

RELATION = Relation(
    name="children",
    names=("PersonHasNumberOfChildren",),
    property="P1971",
    subject_type=EntityType("person", "Q5"),
    object_type=EntityType("number", "Q11563"),
    kind="number",
    may_be_empty=False,
    definition="The number of children of the person, as one whole number in digits: biological and adopted children, "
    "living or dead, of all partners. 0 when the person is known to have none.",
    clozes=(
        "{subject} has {mask} children.",
        "{subject} is a parent of {mask} children.",
        "{subject} and their spouse raised {mask} children.",
    ),
    question="How many children does {subject} have?",
    triple="has the number of children",
    statement="{subject} has {object} children in all.",
    unit="children",
    tolerance=0.05,
    cardinality={"2023": (1, 1)},
    shape=Shape(separators=(";", "\n"), conjunction=False, minimum=0, maximum=100, integer=True),
)
