"""Instruments a person plays. Tricky: singing counts as one, "bass" means the guitar, and non-musicians have none."""

from lmkbc import EntityType, Relation, Shape

NAMES = {
    "voice": ("vocals", "vocal", "singing", "human voice", "lead vocals"),
    "drum kit": ("drums", "drum set", "drumkit"),
    "bass guitar": ("bass", "electric bass"),
    "keyboard instrument": ("keyboards", "keyboard"),
    "saxophone": ("sax",),
    "percussion instrument": ("percussion",),
    "synthesizer": ("synth", "synthesiser"),
    "ukulele": ("uke",),
    "cello": ("violoncello",),
    "double bass": ("upright bass", "contrabass"),
    "harmonica": ("mouth organ",),
    "piano": ("fortepiano", "grand piano"),
    "guitar": ("six-string guitar", "guitars"),
}
VARIANTS = {spelling: name for name, spellings in NAMES.items() for spelling in spellings}
RELATION = Relation(
    name="instrument",
    names=("PersonInstrument", "PersonPlaysInstrument"),
    property="P1303",
    subject_type=EntityType("person", "Q5"),
    subject_class=EntityType("musician", "Q639669", ("Q36834",)),
    object_type=EntityType("musical instrument", "Q34379"),
    kind="entity",
    may_be_empty=True,
    definition="Every musical instrument that the person plays, a singer's voice included. Nothing when the person is "
    "not known to play any.",
    clozes=(
        "{subject} plays the {mask}, which is an instrument.",
        "The musician {subject} plays the {mask} on stage.",
        "{subject} is known for playing the {mask}.",
    ),
    question="Which musical instruments does {subject} play?",
    triple="plays the instrument",
    statement="{subject} plays the {object}.",
    cardinality={"2022": (0, 7), "2023": (1, 8)},
    shape=Shape(
        variants=VARIANTS, stop=frozenset("music instrument instruments song songs game role band jazz".split())
    ),
)
