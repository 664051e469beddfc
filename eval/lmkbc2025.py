"""LM-KBC 2025: six relations, objects as exact strings without aliases, two of the relations numeric.

Score: exact after stripping, numbers within 5 %; mean F1 over all rows. Several numbers near one gold number all count,
as in the official script, so a row can exceed 1.0; our writer never exploits that. Test figures are the final ranking
of the challenge's page, all of Qwen3-8B. The organisers' baseline has .356 on val with its answers linked and scored as
ids, which is another score.
"""

from lmkbc import Download, Edition, Metric, Published, ValueScorer

RELATIONS = """
    awardWonBy companyTradesAtStockExchange countryLandBordersCountry hasArea hasCapacity personHasCityOfDeath
""".split()

EDITION = Edition(
    name="2025",
    folder="lmkbc2025",
    relations=tuple(RELATIONS),
    splits=Download.github(
        "lm-kbc/dataset2025",
        train="de23e98257222d1f54410c40023891b1a1ca30a5cbc2190cd2d97a76a2948af4",
        val="493423ee032adb1d911e26a1d1347d98ed698faa6fd8032cc6d72ddbaa826477",
        test="ddc99dd31a35bdf6127a71b2ea1d386ce4a779b231f98b58191a2143cc8d28ff",
    ),
    column="ObjectEntities",
    target="string",
    metric=Metric(ValueScorer(frozenset({"hasArea", "hasCapacity"})), average="row", detailed=True),
    repeats=frozenset({("United Kingdom", "countryLandBordersCountry")}),
    licence="CC-BY-4.0",
    published=(
        Published("Qwen3-8B baseline, strings (organisers)", "val", 0.2, recipe="bl25"),
        Published("Sam", "val", 0.224, recipe="sirenze25"),
        Published("Albert-Roulhac and Zouaq", "test", 0.444, recipe="rewise25"),
        Published("He and Razniewski", "test", 0.405, recipe="jhh25"),
        Published(
            "Creo et al., Soft Thinking",
            "test",
            0.398,
            model="Qwen3-8B",
            retrieval="none",
            about="No recipe: its text and code cannot be had",
        ),
        Published("Sam", "test", 0.241, recipe="sirenze25"),
        Published("Clay et al.", "test", 0.216, recipe="jge25"),
        Published("Qwen3-8B baseline (organisers)", "test", 0.212, model="Qwen3-8B", draws=1, retrieval="none"),
    ),
)
