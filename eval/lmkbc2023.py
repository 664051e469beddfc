"""LM-KBC 2023: 21 relations, objects as Wikidata QIDs, counts as literals; an empty gold is written [""].

Score: exact ids. Repeated ids are counted each time, as in the official script (our writer repeats none); a missing
query is an error. The profile 2023-legacy is the scorer of the organisers' printed figures. In it, "no object" is an
object to be found.

Some published figures have no row. LLMKE's figures by setting are on a new gold of test that its authors made. Other
figures are on v0.9 of the data (the organisers' first page: OPT-1.3b with five examples .101 / .145 / .044). Yang et
al. chose val's thresholds on val.
"""

from lmkbc import Download, Edition, IdScorer, Metric, Published

RELATIONS = """
BandHasMember CityLocatedAtRiver CompanyHasParentOrganisation CompoundHasParts CountryBordersCountry
CountryHasOfficialLanguage CountryHasStates FootballerPlaysPosition PersonCauseOfDeath PersonHasAutobiography
PersonHasEmployer PersonHasNoblePrize PersonHasNumberOfChildren PersonHasPlaceOfDeath PersonHasProfession
PersonHasSpouse PersonPlaysInstrument PersonSpeaksLanguage RiverBasinsCountry SeriesHasNumberOfEpisodes
StateBordersState
""".split()
EDITION = Edition(
    name="2023",
    folder="lmkbc2023",
    relations=tuple(RELATIONS),
    splits=Download.github(
        "lm-kbc/dataset2023",
        train="f97db4d1c17c1c74b33aaecb679182cb22479c669d69e0e3f02ff857bb85771b",
        val="b64f5f2c0538effe5e2d73f60302a023e9ba6135deed65f5aa2a5243c90039fa",
        test="3148e35cd3fe64c3c354b6142bcce92c17aeb77915270aa3c7283dc62f8ce3a6",
    ),
    column="ObjectEntitiesID",
    target="id",
    metric=Metric(IdScorer(distinct=False), average="relation", missing="refuse"),
    profiles={
        "2023-legacy": Metric(IdScorer(distinct=False, none_is_object=True), average="relation", missing="refuse")
    },
    repeats=frozenset({("Daihatsu", "CompanyHasParentOrganisation"), ("Víctor Gómez Bergés", "PersonHasPlaceOfDeath")}),
    published=(
        Published("BERT baseline (organisers)", "val", 0.142, 0.368, 0.161, profile="2023-legacy", recipe="bl23-mlm"),
        Published(
            "GPT-3 baseline, linked (organisers)",
            "val",
            0.218,
            0.308,
            0.21,
            profile="2023-legacy",
            recipe="bl23-gpt-ned",
        ),
        Published(
            "GPT-3 baseline, ids (organisers)", "val", 0.061, 0.126, 0.06, profile="2023-legacy", recipe="bl23-gpt-ids"
        ),
        Published("OPT-1.3b baseline (Yang et al.)", "val", 0.039, recipe="bl23-opt"),
        Published("Yang et al., thresholds of val", "val", 0.34, 0.387, 0.424, recipe="yang23"),
        Published("Minimal Probe (GPT-4), relations reworded", "val", 0.63, recipe="minimal23"),
        Published("Minimal Probe (GPT-4), relations as named", "val", 0.612, model="gpt-4", draws=1, retrieval="none"),
        Published(
            "Minimal Probe (GPT-3.5), relations reworded",
            "val",
            0.523,
            model="gpt-3.5-turbo",
            draws=1,
            retrieval="none",
        ),
        Published("Minimal Probe (davinci-003)", "val", 0.476, model="text-davinci-003", draws=1, retrieval="none"),
        Published("Yang et al.", "test", 0.323, 0.395, 0.393, recipe="yang23"),
        Published("GESIS", "test", 0.14, 0.133, 0.232, recipe="gesis23"),
        Published("LLMKE", "test", 0.701, 0.715, 0.726, recipe="llmke23-best"),
        Published("Li X. et al.", "test", 0.674, 0.713, 0.689, recipe="lix23"),
        Published(
            "Li X. et al. (GPT-3.5)", "test", 0.586, 0.611, 0.649, model="gpt-3.5-turbo", draws=1, retrieval="none"
        ),
        Published("Biester et al.", "test", 0.625, 0.664, 0.658, recipe="biester23"),
        Published("LLM2KB, by its paper", "test", 0.619, 0.732, 0.599, recipe="llm2kb23"),
        Published("LLM2KB, on the board", "test", 0.612, model="Llama-2-13b-chat-hf", draws=1, retrieval="passages"),
        Published(
            "LLM2KB, method 2", "test", 0.602, 0.728, 0.581, model="Llama-2-13b-chat-hf", draws=1, retrieval="passages"
        ),
        Published(
            "LLM2KB (StableBeluga)", "test", 0.552, 0.777, 0.52, model="StableBeluga-13B", draws=1, retrieval="passages"
        ),
        Published("Minimal Probe (GPT-4)", "test", 0.609, 0.646, 0.626, recipe="minimal23"),
    ),
)
