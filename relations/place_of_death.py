"""City in which a person died. Tricky: about half of all subjects are alive, and models add the state or country."""

from lmkbc import EntityType, Precondition, Relation, Shape

NAMES = {
    "New York City": ("New York", "NYC"),
    "Washington, D.C.": ("Washington DC",),
    "Kyiv": ("Kiev",),
    "Saint Petersburg": ("St. Petersburg",),
    "Kolkata": ("Calcutta",),
    "Mumbai": ("Bombay",),
    "Beijing": ("Peking",),
    "Kozhikode": ("Calicut",),
    "Ho Chi Minh City": ("Saigon",),
}
VARIANTS = {spelling: name for name, spellings in NAMES.items() for spelling in spellings}
STOP = "home hospital house prison bed office alive city town car sleep peace battle exile"
DEAD = Precondition(
    cloze="{subject} is {mask}.", answers=("dead", "alive"), vetoes=frozenset({"alive"}), neutral="The person"
)
RELATION = Relation(
    name="place-of-death",
    names=("PersonPlaceOfDeath", "PersonHasPlaceOfDeath", "personHasCityOfDeath"),
    property="P20",
    subject_type=EntityType("person", "Q5"),
    object_type=EntityType("city or town", "Q486972"),
    kind="entity",
    may_be_empty=True,
    functional=True,  # the single-value constraint of P20
    definition="The city, town or village in which the person died, by its name alone, without district, state or "
    "country. Nothing when the person is alive or the place is unknown.",
    clozes=(
        "{subject} died in {mask}, which is a city.",
        "{subject} died at home in the city of {mask}.",
        "The place of death of {subject} is {mask}.",
        "{subject} died in a hospital in {mask}.",
    ),
    question="In which city did {subject} die?",
    triple="died in the city",
    statement="{subject} died in {object}.",
    cardinality={"2022": (0, 1), "2023": (0, 1), "2024": (0, 1), "2025": (0, 2), "2026": (0, 1)},
    preconditions=(DEAD,),
    shape=Shape(separators=(";", "\n"), conjunction=False, variants=VARIANTS, stop=frozenset(STOP.split())),
)
