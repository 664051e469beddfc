"""Official languages of a country. Tricky: bilingual states list many, and one language has many names."""

from lmkbc import EntityType, Relation, Shape

NAMES = {
    "Standard Mandarin": ("Mandarin", "Mandarin Chinese", "Standard Chinese"),
    "Slovene": ("Slovenian",),
    "Persian": ("Farsi",),
    "Spanish": ("Castilian",),
    "Tswana": ("Setswana",),
    "Swazi": ("Siswati",),
    "Sámi": ("Sami",),
    "Xhosa": ("isiXhosa",),
    "Zulu": ("isiZulu",),
    "Southern Ndebele": ("isiNdebele",),
    "Northern Sotho": ("Sepedi",),
    "Sesotho": ("Sotho", "Southern Sotho"),
    "Tsonga": ("Xitsonga",),
    "Venda": ("Tshivenda",),
    "Swahili": ("Kiswahili",),
    "Chewa": ("Chichewa", "Nyanja"),
    "Sinhala": ("Sinhalese",),
    "Azerbaijani": ("Azeri",),
    "Khmer": ("Cambodian",),
    "Belarusian": ("Belarussian",),
    "Indonesian": ("Bahasa Indonesia",),
    "Malay": ("Bahasa Malaysia", "Malaysian"),
    "Bokmål": ("Norwegian Bokmål",),
    "Nynorsk": ("Norwegian Nynorsk",),
    "Romansh": ("Romansch",),
    "Māori": ("Maori",),
    "Irish": ("Irish Gaelic",),
    "Greenlandic": ("Kalaallisut",),
}
VARIANTS = {spelling: name for name, spellings in NAMES.items() for spelling in spellings}
RELATION = Relation(
    name="country-languages",
    names=("CountryOfficialLanguage", "CountryHasOfficialLanguage"),
    property="P37",
    subject_type=EntityType("country", "Q6256"),
    object_type=EntityType("language", "Q34770"),
    kind="entity",
    may_be_empty=False,
    definition="Every language with official status in the country by law, national or regional, sign languages "
    "included. A language that is merely widely spoken does not count.",
    clozes=(
        "The official language of {subject} is {mask}.",
        "{mask} is an official language in {subject}.",
        "The people and the government of {subject} speak {mask}, which is a language.",
    ),
    question="What are the official languages of {subject}?",
    triple="has the official language",
    statement="{object} is an official language of {subject}.",
    cardinality={"2022": (1, 4), "2023": (1, 16)},
    shape=Shape(variants=VARIANTS, stop=frozenset({"language", "languages", "official", "local", "native", "creole"})),
)
