"""Nobel prizes a person won. Tricky: most subjects have none, and models answer with the bare field or "No"."""

from lmkbc import EntityType, Relation, Shape

FIELDS = {
    "Nobel Prize in Physics": ("physics",),
    "Nobel Prize in Chemistry": ("chemistry",),
    "Nobel Prize in Physiology or Medicine": ("physiology or medicine", "medicine or physiology", "medicine"),
    "Nobel Prize in Literature": ("literature",),
    "Nobel Peace Prize": ("peace",),
    "Nobel Memorial Prize in Economic Sciences": ("economic sciences", "economics"),
}
FORMS = ("{}", "in {}", "for {}", "{} prize", "nobel {} prize", "nobel prize for {}", "nobel prize in {}")
CLOSED = {prize: tuple(form.format(field) for field in fields for form in FORMS) for prize, fields in FIELDS.items()}
RELATION = Relation(
    name="nobel-prize",
    names=("PersonHasNoblePrize",),
    property="P166",
    subject_type=EntityType("person", "Q5"),
    object_type=EntityType("Nobel Prize", "Q7191"),
    kind="entity",
    may_be_empty=True,
    definition="The Nobel Prize or Prizes that the person received, each with its field. Nothing when the person never "
    "received one; nominations and prizes won by an organisation do not count.",
    clozes=(
        "{subject} received the Nobel Prize in {mask}.",
        "{subject} is a laureate of the Nobel {mask} Prize.",
        "{subject} won the Nobel Prize for {mask}.",
    ),
    question="Which Nobel Prize did {subject} receive?",
    triple="received the Nobel Prize",
    statement="{subject} received the {object}.",
    cardinality={"2023": (0, 1)},
    shape=Shape(conjunction=False, closed=CLOSED),
)
