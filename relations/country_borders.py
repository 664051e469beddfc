"""Countries that share a land border. Tricky: islands have none, and the 2022 and 2023 gold holds sea borders too."""

from lmkbc import EntityType, Relation, Shape

# fmt: off
NAMES = {
    "United States of America": ("USA", "US", "U.S.", "United States"), "People's Republic of China": ("China", "PRC"),
    "United Kingdom": ("UK", "Great Britain"), "United Arab Emirates": ("UAE",), "Republic of Ireland": ("Ireland",),
    "Ivory Coast": ("Côte d'Ivoire", "Cote d'Ivoire"), "Czech Republic": ("Czechia",), "Myanmar": ("Burma",),
    "Democratic Republic of the Congo": ("DRC", "DR Congo"), "Turkey": ("Türkiye",), "Russia": ("Russian Federation",),
    "Republic of the Congo": ("Congo-Brazzaville",), "Eswatini": ("Swaziland",), "North Macedonia": ("Macedonia",),
    "East Timor": ("Timor-Leste",), "State of Palestine": ("Palestine",), "Vietnam": ("Viet Nam",),
    "The Gambia": ("Gambia",), "Federated States of Micronesia": ("Micronesia",), "Cape Verde": ("Cabo Verde",),
    "Brunei": ("Brunei Darussalam",), "Vatican City": ("Holy See", "Vatican"), "South Korea": ("Republic of Korea",),
}
# fmt: on
VARIANTS = {spelling: name for name, spellings in NAMES.items() for spelling in spellings}
RELATION = Relation(
    name="country-borders",
    names=("CountryBordersWithCountry", "CountryBordersCountry", "countryLandBordersCountry"),
    property="P47",
    subject_type=EntityType("country", "Q6256"),
    object_type=EntityType("country", "Q6256"),
    kind="entity",
    may_be_empty=True,
    definition="Every country with which the country shares a land border; maritime borders do not count. Nothing when "
    "it has no land neighbour, as with most island states.",
    clozes=(
        "{subject} shares a land border with {mask}.",
        "{subject} borders {mask}, which is a country.",
        "{mask} is a country that borders {subject}.",
    ),
    question="Which countries share a land border with {subject}?",
    triple="borders",
    statement="{subject} shares a land border with {object}.",
    symmetric=True,
    cardinality={"2022": (0, 17), "2023": (1, 17), "2024": (0, 9), "2025": (0, 9), "2026": (0, 9)},
    shape=Shape(conjunction=False, variants=VARIANTS, stop=frozenset({"country", "europe", "asia", "africa"})),
)
