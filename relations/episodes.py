"""Number of episodes of a series. Tricky: models give one season, the number of seasons, or a year."""

from lmkbc import EntityType, Relation, Shape

RELATION = Relation(
    name="episodes",
    names=("SeriesHasNumberOfEpisodes", "seriesHasNumberOfEpisodes"),
    property="P1113",
    subject_type=EntityType("series", "Q5398426", ("Q1259759", "Q581714", "Q117467246", "Q63952888")),
    object_type=EntityType("number", "Q11563"),
    kind="number",
    may_be_empty=False,
    definition="The total number of episodes of the series over all its seasons, as one whole number in digits. "
    "Not the number of seasons, and not the episodes of one season.",
    clozes=(
        "The series {subject} has {mask} episodes.",
        "{subject} is a television series that ran for {mask} episodes.",
        "A total of {mask} episodes of {subject} were broadcast.",
    ),
    question="How many episodes does the series {subject} have?",
    triple="has the number of episodes",
    statement="The series {subject} has {object} episodes in all.",
    unit="episodes",
    tolerance=0.05,
    cardinality={"2023": (1, 2), "2024": (1, 1)},
    shape=Shape(separators=(";", "\n"), conjunction=False, minimum=1, maximum=20000, integer=True),
)
