"""Members of a band, past and present. Tricky: stage names, sidemen, and solo artists mistaken for bands."""

from lmkbc import EntityType, Relation, Shape

RELATION = Relation(
    name="band-members",
    names=("BandHasMember",),
    property="P527",
    subject_type=EntityType("band", "Q215380", ("Q2088357", "Q5741069")),
    object_type=EntityType("musician", "Q5"),
    kind="entity",
    may_be_empty=False,
    definition="Every person who is or was an official member of the band, by full name or by the stage name they are "
    "best known under. Former members count; producers, managers and guests who only toured or recorded do not.",
    clozes=(
        "{mask} is a member of the band {subject}.",
        "The musician {mask} plays in the band {subject}.",
        "{subject} is a band whose members include the musician {mask}.",
        "{mask} was one of the founding members of {subject}, which is a band.",
    ),
    question="Who are or were the members of the band {subject}?",
    triple="has the member",
    statement="{object} is or was a member of the band {subject}.",
    cardinality={"2023": (2, 15)},
    shape=Shape(
        stop=frozenset(
            "band group music musician singer vocalist guitarist bassist drummer keyboardist vocals guitar bass drums "
            "keyboards lead".split()
        )
        | {"member 1", "member 2", "member 3", "member 4", "member 5", "lead vocals", "lead singer", "various"},
    ),
)
