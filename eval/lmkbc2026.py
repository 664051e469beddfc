"""LM-KBC 2026: six relations, objects as strings with aliases, two of the relations numeric.

Score: folded strings matched one to one with the gold, numbers within 5 % of it; mean F1 over all rows.
"""

from lmkbc import Download, Edition, MatchingScorer, Metric, Published

RELATIONS = """
    awardWonBy companyTradesAtStockExchange countryLandBordersCountry hasArea hasCapacity personHasCityOfDeath
""".split()
CHIRONK = "Qwen3.5-9B + Gemma-3-12B-it + Ministral-3-8B"
DECODED = "chironk26, with an evidence graph and learned decoders"

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
        Published("Qwen3.5-9B baseline (organisers)", "val", 0.313, recipe="bl26"),
        Published("Qwen3.5-9B baseline (organisers)", "test", 0.296, recipe="bl26"),
        Published("CS2", "test", 0.7121, recipe="cs2-26"),
        Published("thylinao1", "test", 0.706, recipe="thyl26"),
        Published("MAVE", "test", 0.6906, recipe="mave26"),
        Published("Chironk", "test", 0.4845, model=CHIRONK, retrieval="none", licence="Apache-2.0", about=DECODED),
        Published("MAVE", "val", 0.67, recipe="mave26"),
        Published("Chironk", "val", 0.528, model=CHIRONK, retrieval="none", licence="Apache-2.0", about=DECODED),
        Published("Chironk, two of three models, no graph", "val", 0.504, recipe="chironk26"),
        Published("Chironk, all three models, no graph", "val", 0.474, model=CHIRONK, draws=21, retrieval="none"),
        Published("Chironk, any of three models, no graph", "val", 0.446, model=CHIRONK, draws=21, retrieval="none"),
        Published("Chironk, Qwen alone", "val", 0.463, model="Qwen3.5-9B", draws=10, retrieval="none"),
        Published("Chironk, Ministral alone", "val", 0.442, model="Ministral-3-8B", draws=10, retrieval="none"),
        Published("Chironk, Gemma alone", "val", 0.425, model="Gemma-3-12B-it", draws=1, retrieval="none"),
        Published("MAVE", "train", 0.637, recipe="mave26"),
        Published(
            "dukesun99, as sent",
            "test",
            0.6743,
            model="Muse-Glimmer-30B",
            retrieval="none",
            licence="CC BY 4.0",
            about="duke26 with constants chosen on labels of test subjects",
        ),
        Published("V19 (acro-sasaki)", "test", 0.667, recipe="v19-26"),
        Published("CoRe", "val", 0.548, recipe="core26"),
        Published(
            "CoRe, exchanges reasoned too",
            "test",
            0.5408,
            model="Qwen3.5-27B",
            draws=1,
            retrieval="none",
            licence="Apache-2.0",
            about="core26, which answers exchanges directly, in another variant",
        ),
        Published("SetProbe", "val", 0.513, recipe="setprobe26"),
        Published(
            "REAP", "test", 0.62, about="No recipe: neither its paper nor its code can be had, only a note on both"
        ),
        Published(
            "andreea-cochintele",
            "val",
            0.531,
            model="gemma3:27b",
            retrieval="none",
            about="Some examples; covered by few-shot",
        ),
        Published(
            "minhaz-42",
            "val",
            0.46,
            model="Gemma-4-31B",
            draws=1,
            retrieval="none",
            about="One draw, .459 to .461; covered by few-shot",
        ),
    ),
)
