"""LM-KBC 2026: six relations, objects as strings with aliases, two of the relations numeric.

Score: folded strings matched one to one with the gold, numbers within 5 % of it; mean F1 over all rows.
"""

from lmkbc import Download, Edition, MatchingScorer, Metric, Published

RELATIONS = """
    awardWonBy companyTradesAtStockExchange countryLandBordersCountry hasArea hasCapacity personHasCityOfDeath
""".split()

EDITION = Edition(
    name="2026",
    folder="lmkbc2026",
    relations=tuple(RELATIONS),
    splits=Download.github(
        "lm-kbc/dataset2026",
        train="ad37cd30d1ff4b9f1ef2579b25e64093b202c40da11e8c412e13386f1e5d332e",
        val="ba86b53ac38eb4b23b80391b291e5987ff4bbfe79827596fc09751b1bb0ce2be",
        test="67c31c8388c585634df55500612f522ad42da6735d4c89eb59a9ef5a39f043f1",
    ),
    column="ObjectEntities",
    target="string",
    metric=Metric(MatchingScorer(frozenset({"hasArea", "hasCapacity"})), average="row", detailed=True),
    licence="CC-BY-4.0",
    published=(
        Published("Qwen3.5-9B baseline (organisers)", "val", 0.313),
        Published("Qwen3.5-9B baseline (organisers)", "test", 0.296),
        Published("CS2", "test", 0.7121),
        Published("thylinao1", "test", 0.706),
        Published("MAVE", "test", 0.6906),
        Published("Chironk", "test", 0.4845),
        Published("MAVE", "val", 0.67),
        Published("Chironk", "val", 0.528),
        Published("Chironk, two of three models, no graph", "val", 0.504),
        Published("Chironk, all three models, no graph", "val", 0.474),
        Published("Chironk, any of three models, no graph", "val", 0.446),
        Published("Chironk, Qwen alone", "val", 0.463),
        Published("Chironk, Ministral alone", "val", 0.442),
        Published("Chironk, Gemma alone", "val", 0.425),
        Published("MAVE", "train", 0.637),
    ),
)
