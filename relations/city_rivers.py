"""Rivers on which a city lies. Tricky: "River" is part of some names only, and seas, lakes and canals creep in."""

from lmkbc import EntityType, Relation, Shape

RELATION = Relation(
    name="city-rivers",
    names=("CityLocatedAtRiver",),
    property="P206",
    subject_type=EntityType("city", "Q515", ("Q486972",)),
    object_type=EntityType("river", "Q4022"),
    kind="entity",
    may_be_empty=False,
    definition="Every river or stream that flows through the city or along its edge, under its usual English name. "
    "Lakes, seas, bays and canals do not count, nor do rivers that only pass through the wider region.",
    clozes=(
        "{subject} is a city on the {mask}, which is a river.",
        "The city of {subject} lies on the banks of the {mask} River.",
        "The river {mask} flows through the city of {subject}.",
        "{subject} is located at the river {mask}.",
    ),
    question="On which rivers does the city of {subject} lie?",
    triple="is located at the river",
    statement="The city of {subject} lies on the river {object}.",
    cardinality={"2023": (1, 9)},
    shape=Shape(
        stop=frozenset("river rivers stream creek canal lake sea ocean bay coast city town bank water valley".split()),
        link_suffixes=("River",),
    ),
)
