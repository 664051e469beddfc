"""Cause of a person's death. Tricky: most subjects live or the cause is unknown; causes have lay and clinical names."""

from lmkbc import EntityType, Precondition, Relation, Shape

NAMES = {
    "myocardial infarction": ("heart attack", "acute myocardial infarction"),
    "Parkinson's disease": ("Parkinson's",),
    "ballistic trauma": ("gunshot", "gunshot wound", "gunshot wounds", "gunshot injury", "shooting"),
    "COVID-19": ("COVID", "coronavirus", "COVID-19 complications"),
    "chronic obstructive pulmonary disease": ("COPD",),
    "Alzheimer's disease": ("Alzheimer's",),
    "leukemia": ("leukaemia",),
    "kidney failure": ("renal failure",),
    "drug overdose": ("overdose",),
    "aircraft crash": ("plane crash", "airplane crash", "air crash"),
    "traffic collision": ("car accident", "car crash", "traffic accident"),
    "colorectal cancer": ("colon cancer",),
    "multiple organ dysfunction syndrome": ("multiple organ failure",),
    "surgical complications": ("complications of surgery",),
    "stroke": ("cerebrovascular accident", "hemorrhagic stroke"),
}
VARIANTS = {spelling: name for name, spellings in NAMES.items() for spelling in spellings}
CLOZES = ("{subject} died of {mask}.", "The cause of death of {subject} was {mask}.", "{subject} was killed by {mask}.")
DEAD = Precondition(
    cloze="{subject} is {mask}.", answers=("dead", "alive"), vetoes=frozenset({"alive"}), neutral="The person"
)
RELATION = Relation(
    name="cause-of-death",
    names=("PersonCauseOfDeath",),
    property="P509",
    subject_type=EntityType("person", "Q5"),
    object_type=EntityType("cause of death", "Q1931388"),
    kind="entity",
    may_be_empty=True,
    functional=True,  # the single-value constraint of P509
    definition="The medical cause or the event from which the person died, as a short term such as a disease or an "
    "accident. Nothing when the person is alive or the cause is not publicly known.",
    clozes=CLOZES,
    question="What did {subject} die of?",
    triple="has the cause of death",
    statement="{subject} died of {object}.",
    cardinality={"2022": (0, 3), "2023": (0, 1)},
    preconditions=(DEAD,),
    shape=Shape(conjunction=False, variants=VARIANTS, stop=frozenset({"natural causes", "old age", "illness"})),
)
