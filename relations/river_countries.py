"""Countries in a river's basin. Tricky: the basin reaches beyond the river's course, and models name states."""

from lmkbc import EntityType, Relation, Shape

NAMES = {
    "United States of America": ("USA", "US", "U.S.", "United States"),
    "People's Republic of China": ("China", "PRC"),
    "United Kingdom": ("UK", "Great Britain"),
    "Republic of Ireland": ("Ireland",),
    "Turkey": ("Türkiye",),
    "Ivory Coast": ("Côte d'Ivoire",),
    "Czech Republic": ("Czechia",),
    "Myanmar": ("Burma",),
    "Vietnam": ("Viet Nam",),
    "Eswatini": ("Swaziland",),
    "Democratic Republic of the Congo": ("DRC", "DR Congo"),
    "Republic of the Congo": ("Congo-Brazzaville",),
    "Russia": ("Russian Federation",),
    "North Macedonia": ("Macedonia",),
    "Bosnia and Herzegovina": ("Bosnia",),
}
VARIANTS = {spelling: name for name, spellings in NAMES.items() for spelling in spellings}
RELATION = Relation(
    name="river-countries",
    names=("RiverBasinsCountry",),
    property="P205",
    subject_type=EntityType("river", "Q4022"),
    object_type=EntityType("country", "Q6256"),
    kind="entity",
    may_be_empty=False,
    definition="Every country whose land the river drains: those along its course and those in its catchment. "
    "Countries only, no states, provinces or continents.",
    clozes=(
        "{subject} is a river in {mask}, which is a country.",
        "The river {subject} flows through the country of {mask}.",
        "The basin of the river {subject} lies partly in {mask}.",
    ),
    question="Which countries does the basin of the river {subject} reach into?",
    triple="has the basin country",
    statement="The basin of the river {subject} reaches into {object}.",
    cardinality={"2022": (1, 6), "2023": (1, 9)},
    shape=Shape(variants=VARIANTS, stop=frozenset({"country", "river", "europe", "asia", "africa"})),
)
