"""First-level subdivisions of a country. Tricky: what they are called differs by country, and lists are long."""

from lmkbc import EntityType, Relation, Shape

RELATION = Relation(
    name="country-states",
    names=("CountryHasStates",),
    property="P150",
    subject_type=EntityType("country", "Q6256"),
    object_type=EntityType("first-level administrative division", "Q10864048"),
    kind="entity",
    may_be_empty=False,
    definition="Every administrative division at the first level below the country: its states, provinces, regions, "
    "departments, counties, districts, parishes or municipalities, by full name. Second-level divisions do not count.",
    clozes=(
        "{mask} is a state in {subject}.",
        "{mask} is one of the provinces of {subject}.",
        "The region of {mask} belongs to {subject}, which is a country.",
        "{subject} is divided into states, among them {mask}.",
    ),
    question="What are the first-level administrative divisions of {subject}?",
    triple="has the first-level administrative division",
    statement="{object} is a first-level administrative division of {subject}.",
    distinct_values=True,  # as P131, the inverse of P150 by its inverse constraint, has one country
    cardinality={"2023": (1, 20)},
    shape=Shape(
        conjunction=False,
        stop=frozenset(
            "state states province provinces region regions department departments district districts county counties "
            "parish parishes municipality municipalities governorate governorates canton cantons country city".split()
        )
        | {"no states", "no provinces", "administrative divisions"},
        link_suffixes=("Province", "Region", "Department", "District", "Governorate", "County", "State", "Parish"),
    ),
)
