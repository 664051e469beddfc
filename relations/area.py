"""Area of a country, island or lake. Tricky: square miles, thousands commas, and land area instead of total area."""

from lmkbc import EntityType, Relation, Shape

RELATION = Relation(
    name="area",
    names=("hasArea",),
    property="P2046",
    subject_type=EntityType(
        "place",
        "Q2221906",
        ("Q6256", "Q486972", "Q56061", "Q23442", "Q33837", "Q34763", "Q5107", "Q82794", "Q23397", "Q131681", "Q46169"),
    ),
    object_type=EntityType("number", "Q11563"),
    kind="number",
    may_be_empty=False,
    definition="The total area of the country, island, lake or other place in square kilometres, as one plain number "
    "without unit or thousands separators. Convert from square miles, acres or hectares where needed.",
    clozes=(
        "{subject} has an area of {mask} square kilometers.",
        "The area of {subject} is {mask} km2.",
        "{subject} covers {mask} square kilometers.",
    ),
    question="What is the area of {subject} in square kilometres?",
    triple="has the area in square kilometres",
    statement="The area of {subject} is {object} square kilometres.",
    unit="km2",
    unit_id="Q712226",
    cardinality={"2025": (1, 1), "2026": (1, 1)},
    # From a hundredth of a hectare to some times the surface of the Earth, since other planets have an area, too.
    shape=Shape(separators=(";", "\n"), conjunction=False, minimum=0.0001, maximum=1e10),
)
