"""LM-KBC 2024: five relations, objects as Wikidata QIDs; some awards have hundreds of winners.

Score: exact ids as sets, mean F1 over all rows, with micro averages. A missing query stops the official script.

Test figures are the final ranking of the challenge's page; systems without a description were not ranked.
"""

from lmkbc import Download, Edition, IdScorer, Metric, Published

RELATIONS = """
    awardWonBy companyTradesAtStockExchange countryLandBordersCountry personHasCityOfDeath seriesHasNumberOfEpisodes
""".split()

EDITION = Edition(
    name="2024",
    folder="lmkbc2024",
    relations=tuple(RELATIONS),
    splits=Download.github(
        "lm-kbc/dataset2024",
        train="f92789e2cd9f369565484379ee0c521fff76703364774c452a7b5bbd7a79f467",
        val="c20fec448f3637ead2750d00b62d50e63de2f41dc8a4749f9b51994a042a222a",
        test="7c14841765d87b196c15585e5837e0ba5f59c4e84451ca40a2a91ac1a6472880",
    ),
    column="ObjectEntitiesID",
    target="id",
    metric=Metric(IdScorer(distinct=True), average="row", missing="refuse", detailed=True),
    repeats=frozenset({("United Kingdom", "countryLandBordersCountry")}),
    licence="CC-BY-4.0",
    published=(
        Published("BERT baseline (organisers)", "val", 0.152, recipe="bl24-mlm"),
        Published("OPT-1.3b baseline (organisers)", "val", 0.188, recipe="bl24-completion"),
        Published("Llama-2-7b baseline (organisers)", "val", 0.291, model="Llama-2-7b", draws=1, retrieval="none"),
        Published("Llama-3-8B baseline (organisers)", "val", 0.351, model="Llama-3-8B", draws=1, retrieval="none"),
        Published("Llama-3-8B-Instruct baseline (organisers)", "val", 0.455, recipe="bl24"),
        Published(
            "Bara (retrieval of the property)",
            "test",
            0.9224,
            model="Llama-3-8B-Instruct",
            draws=1,
            retrieval="answer",
            licence="CC BY 4.0",
            about="Reads the asked property from Wikidata",
        ),
        Published(
            "Machado et al. (retrieval)",
            "test",
            0.9083,
            retrieval="passages",
            about="Reads pages that Wikidata links to",
        ),
        Published("Prabhong et al.", "test", 0.6977, about="No repository was found"),
        Published(
            "Das et al.", "test", 0.6529, model="Llama-3-8B-Instruct", about="Two prompts, with a role or a context"
        ),
        Published("Abi Akl (not ranked)", "test", 0.6872, about="No repository was found"),
        Published("Borista (not ranked)", "test", 0.9131, about="Its repository shows no run, but a query of Wikidata"),
        Published("Rajaa (not ranked)", "test", 0.5662),
        Published("aunsiels (not ranked)", "test", 0.5076),
    ),
)
