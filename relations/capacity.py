"""Number of spectators that a venue holds. Tricky: capacity changes with rebuilding; the gold takes the highest."""

from lmkbc import EntityType, Relation, Shape

RELATION = Relation(
    name="capacity",
    names=("hasCapacity",),
    property="P1083",
    subject_type=EntityType("sports venue", "Q1076486", ("Q483110", "Q641226")),
    object_type=EntityType("number", "Q11563"),
    kind="number",
    may_be_empty=False,
    definition="The highest number of spectators that the venue holds or has held, seats and standing room together, "
    "as one whole number in digits without thousands separators.",
    clozes=(
        "{subject} has a capacity of {mask} spectators.",
        "{subject} is a stadium that holds {mask} people.",
        "The capacity of {subject} is {mask}.",
    ),
    question="What is the highest spectator capacity of {subject}?",
    triple="has the spectator capacity",
    statement="{subject} holds up to {object} spectators.",
    unit="spectators",
    tolerance=0.05,
    cardinality={"2025": (1, 1), "2026": (1, 1)},
    shape=Shape(separators=(";", "\n"), conjunction=False, minimum=1, maximum=1_000_000, integer=True),
)
