"""Organisations a person works or worked for. Tricky: names hold commas and "and", and models name the industry."""

from lmkbc import EntityType, Relation, Shape

VARIANTS = {
    "NASA": "National Aeronautics and Space Administration",
    "UN": "United Nations",
    "NYU": "New York University",
    "MIT": "Massachusetts Institute of Technology",
    "UCL": "University College London",
    "HP": "Hewlett-Packard",
    "UCLA": "University of California, Los Angeles",
    "UC Berkeley": "University of California, Berkeley",
    "CIA": "Central Intelligence Agency",
    "Apple": "Apple Inc.",
    "British Broadcasting Corporation": "BBC",
}
RELATION = Relation(
    name="employer",
    names=("PersonEmployer", "PersonHasEmployer"),
    property="P108",
    subject_type=EntityType("person", "Q5"),
    object_type=EntityType("organisation", "Q43229"),
    kind="entity",
    may_be_empty=False,
    definition="Every organisation, company, university, broadcaster or public body that employs or employed the "
    "person. Former employers count; clients and parties do not.",
    clozes=(
        "{subject} works for {mask}, which is a company.",
        "{subject} is employed by {mask}.",
        "{subject} used to work at {mask}.",
        "The employer of {subject} is the organisation {mask}.",
    ),
    question="Which organisations employ or employed {subject}?",
    triple="has the employer",
    statement="{subject} works or worked for {object}.",
    cardinality={"2022": (1, 8), "2023": (1, 6)},
    shape=Shape(
        separators=(";", "\n"),
        conjunction=False,
        variants=VARIANTS,
        stop=frozenset("self-employed freelance freelancer himself herself company university retired".split()),
    ),
)
