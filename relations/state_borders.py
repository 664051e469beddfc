"""Subdivisions that share a border. Tricky: neighbours abroad count, and names come with or without "Province"."""

from lmkbc import EntityType, Precondition, Relation, Shape

KIND = Precondition(  # what kind of place the subject is: Li T. et al. 2022
    cloze="{subject} is a {mask}, which is a place.",
    answers=("state", "province", "department", "city", "region"),
    clozes=("The {answer} of {subject} shares a border with the {answer} of {mask}.",),
)
STOP = """state states province provinces region regions department district county municipality border borders north
south east west country city sea ocean coast"""
RELATION = Relation(
    name="state-borders",
    names=("StateSharesBorderState", "StateBordersState"),
    property="P47",
    subject_type=EntityType("state", "Q56061"),
    object_type=EntityType("state", "Q56061"),
    kind="entity",
    may_be_empty=False,
    definition="Every administrative division of the same level (state, province, region, department, county, "
    "district, municipality) that shares a border with the given one, in the same country or across its border.",
    clozes=(
        "{subject} shares a border with the state of {mask}.",
        "{mask} is a state that borders {subject}.",
        "The province of {subject} is bordered by the province of {mask}.",
        "{subject} and {mask} are neighbouring regions.",
    ),
    question="Which states or provinces share a border with {subject}?",
    triple="shares a border with",
    statement="{subject} shares a border with {object}.",
    symmetric=True,
    cardinality={"2022": (1, 14), "2023": (1, 16)},
    preconditions=(KIND,),
    shape=Shape(
        conjunction=False,
        stop=frozenset(STOP.split()),
        link_suffixes=("Province", "Region", "Department", "District", "Governorate", "County", "State"),
    ),
)
