"""Languages a person speaks, signs or writes. Tricky: the gold lists far fewer than the person can speak."""

from lmkbc import EntityType, Relation, Shape

NAMES = {
    "Slovene": ("Slovenian",),
    "Odia": ("Oriya",),
    "Persian": ("Farsi",),
    "Spanish": ("Castilian",),
    "Dutch": ("Flemish",),
    "Punjabi": ("Panjabi",),
    "Swahili": ("Kiswahili",),
    "Xhosa": ("isiXhosa",),
    "Zulu": ("isiZulu",),
    "Tswana": ("Setswana",),
    "Belarusian": ("Belarussian",),
    "Azerbaijani": ("Azeri",),
    "Sinhala": ("Sinhalese",),
    "Indonesian": ("Bahasa Indonesia",),
    "Mandarin": ("Mandarin Chinese",),
    "Irish": ("Irish Gaelic",),
    "Kikuyu": ("Gikuyu",),
}
VARIANTS = {spelling: name for name, spellings in NAMES.items() for spelling in spellings}
RELATION = Relation(
    name="spoken-languages",
    names=("PersonLanguage", "PersonSpeaksLanguage"),
    property="P1412",
    subject_type=EntityType("person", "Q5"),
    object_type=EntityType("language", "Q34770"),
    kind="entity",
    may_be_empty=False,
    definition="Every language that the person speaks, writes or signs, the native language first; only those the "
    "person is known to use, not all languages of the home country.",
    clozes=(
        "{subject} speaks {mask}, which is a language.",
        "The native language of {subject} is {mask}.",
        "{subject} is fluent in the {mask} language.",
        "{subject} gives interviews in {mask}.",
    ),
    question="Which languages does {subject} speak?",
    triple="speaks the language",
    statement="{subject} speaks {object}.",
    cardinality={"2022": (1, 6), "2023": (1, 10)},
    shape=Shape(variants=VARIANTS, stop=frozenset({"language", "languages", "fluent", "fluently", "well", "native"})),
)
