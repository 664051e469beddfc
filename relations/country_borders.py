"""Countries that share a land border. Tricky: islands have none, and the 2022 and 2023 gold holds sea borders too."""

from lmkbc import EntityType, Relation, Shape

NAMES = {
    "United States of America": ("USA", "US", "U.S.", "United States"),
    "Republic of the Congo": ("Congo-Brazzaville",),
    "Democratic Republic of the Congo": ("DRC", "DR Congo"),
    "People's Republic of China": ("China", "PRC"),
    "United Kingdom": ("UK", "Great Britain"),
    "Vatican City": ("Holy See", "Vatican"),
    "Czech Republic": ("Czechia",),
    "South Korea": ("Republic of Korea",),
    "State of Palestine": ("Palestine",),
    "Myanmar": ("Burma",),
    "Bosnia and Herzegovina": ("Bosnia", "Bosnia-Herzegovina"),
    "Trinidad and Tobago": ("Trinidad",),
    "Antigua and Barbuda": ("Antigua",),
    "Saint Kitts and Nevis": ("St. Kitts and Nevis",),
    "Saint Vincent and the Grenadines": ("St. Vincent and the Grenadines",),
    "São Tomé and Príncipe": ("São Tomé", "Sao Tome & Principe"),
    "Republic of Ireland": ("Ireland",),
    "Ivory Coast": ("Côte d'Ivoire",),
    "Russia": ("Russian Federation",),
    "North Macedonia": ("Macedonia",),
    "United Arab Emirates": ("UAE",),
    "Brunei": ("Brunei Darussalam",),
    "East Timor": ("Timor-Leste",),
    "Cape Verde": ("Cabo Verde",),
    "Eswatini": ("Swaziland",),
    "The Gambia": ("Gambia",),
    "Vietnam": ("Viet Nam",),
    "Turkey": ("Türkiye",),
}
VARIANTS = {spelling: name for name, spellings in NAMES.items() for spelling in spellings}
RELATION = Relation(
    name="country-borders",
    names=(
        "CountryBordersWithCountry",
        "CountryBordersCountry",
        "countryLandBordersCountry",
        "country-borders-country",
    ),
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
    shape=Shape(variants=VARIANTS, stop=frozenset({"country", "europe", "asia", "africa"})),
)
