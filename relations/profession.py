"""Professions of a person. Tricky: the gold is long and fine-grained; models give one broad term, gendered."""

from lmkbc import EntityType, Relation, Shape

NAMES = {
    "actor": ("actress",),
    "film actor": ("film actress",),
    "television actor": ("TV actor", "television actress"),
    "voice actor": ("voice actress", "voice artist"),
    "stage actor": ("stage actress",),
    "writer": ("author",),
    "children's writer": ("children's author",),
    "playwright": ("dramatist",),
    "statesperson": ("statesman",),
    "university teacher": ("professor", "university professor", "academic"),
    "physician": ("doctor", "medical doctor"),
    "businessperson": ("businessman", "businesswoman"),
    "lawyer": ("attorney",),
    "aircraft pilot": ("pilot",),
    "association football player": ("footballer", "soccer player", "football player"),
    "disc jockey": ("DJ",),
    "chief executive officer": ("CEO",),
    "television presenter": ("TV presenter", "television host"),
    "television producer": ("TV producer",),
    "film producer": ("movie producer",),
    "film director": ("movie director",),
    "theatrical director": ("theater director", "theatre director"),
    "radio personality": ("radio host",),
}
VARIANTS = {spelling: name for name, spellings in NAMES.items() for spelling in spellings}
RELATION = Relation(
    name="profession",
    names=("PersonProfession", "PersonHasProfession"),
    property="P106",
    subject_type=EntityType("person", "Q5"),
    object_type=EntityType("profession", "Q28640"),
    kind="entity",
    may_be_empty=False,
    definition="Every occupation the person is known for, each a short gender-neutral noun; not ranks or honours.",
    clozes=(
        "{subject} works as a {mask}.",
        "{subject} is a {mask} by profession.",
        "{subject} became a famous {mask}.",
    ),
    question="What are the professions of {subject}?",
    triple="has the profession",
    statement="{subject} is or was a {object} by profession.",
    cardinality={"2022": (1, 23), "2023": (1, 11)},
    shape=Shape(variants=VARIANTS, stop=frozenset("person man woman human profession job father mother".split())),
)
