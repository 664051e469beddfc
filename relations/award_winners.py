"""Everyone who received an award. Tricky: hundreds of laureates, of whom models list a recent few, then repeat."""

from lmkbc import EntityType, Relation, Shape

RELATION = Relation(
    name="award-winners",
    names=("awardWonBy",),
    property="P1346",
    subject_type=EntityType("award", "Q618779", ("Q38033430", "Q378427", "Q4220917", "Q1407225")),
    object_type=EntityType("person or organisation", "Q24229398"),
    kind="entity",
    may_be_empty=False,
    definition="Every recipient of the award itself, from its first year on, shared and posthumous awards included: "
    "persons, groups and organisations alike. Nominees, and winners of related awards, do not count.",
    clozes=(
        "{subject} was won by {mask}.",
        "{mask} is a recipient of {subject}, which is an award.",
        "{subject} was awarded to {mask}.",
        "Among the winners of {subject} is {mask}.",
    ),
    question="Who received {subject}?",
    triple="was won by",
    statement="{object} received {subject}.",
    cardinality={"2024": (9, 227), "2025": (9, 228), "2026": (9, 232)},
    shape=Shape(
        stop=frozenset(
            "winner winners laureate laureates recipient recipients award prize medal various others etc etc.".split()
        )
        | {"jr", "jr.", "sr", "sr.", "ii", "iii", "and others", "many others", "et al", "et al."},
    ),
)
