"""LM-KBC 2022: twelve relations, objects as strings, each gold object with a list of accepted aliases.

Score: any alias matches its object, so one string may match several; mean F1 per relation, then over relations. The
profile 2022-legacy is an earlier script. In it, an empty answer to a non-empty gold has precision 0, and an answer to
an empty gold has recall 0. F1 is the same by both. ProP's dev figures are by the earlier script, test figures of the
official server by today's. Its dev files have the same F1 by today's script, so they lead that split.

Ning and Celebi have two pairs of P and R on test. Those of their paper are the means over its table of relations; the
overview prints a higher P and a lower R. The earlier script lowers both, so these are two sets of predictions. BL-1's R
on test is the mean over its relations. ProP's test F1 with looked-up aliases, .689, is outside the rules.
"""

from lmkbc import AliasScorer, Download, Edition, Metric, Published

RELATIONS = """
    ChemicalCompoundElement CompanyParentOrganization CountryBordersWithCountry CountryOfficialLanguage
    PersonCauseOfDeath PersonEmployer PersonInstrument PersonLanguage PersonPlaceOfDeath PersonProfession
    RiverBasinsCountry StateSharesBorderState
""".split()

UNKNOWN = "No recipe: its authors published no paper"

EDITION = Edition(
    name="2022",
    folder="lmkbc2022",
    relations=tuple(RELATIONS),
    splits=Download.github(
        "lm-kbc/dataset2022",
        train="98de64087e2f1d3710a6062d85cc12a5d77ce925b6386a8b3b5b0c56dd7d1c7c",
        dev="74de05ca5001a49c499cc0ef5352faf40b3e15686df434eeb5b596ed756390d9",
        test="2ca651e8b6937517345b4023965ada8d45d6e9df51d63ab49ab3f162830d6d3e",
    ),
    column="ObjectEntities",
    target="string",
    metric=Metric(AliasScorer(), average="relation"),
    profiles={"2022-legacy": Metric(AliasScorer(), average="relation", vacuous=0.0)},
    held_out="dev",
    published=(
        Published("BL-1 (organisers)", "dev", 0.309, 0.958, 0.304, recipe="bl22"),
        Published(
            "BL-1, thresholds per relation (Li T. et al.)",
            "dev",
            0.447,
            0.488,
            0.455,
            model="bert-large-cased",
            retrieval="none",
        ),
        Published("Li T. et al.", "dev", 0.543, 0.745, 0.547, model="bert-large-cased", retrieval="none"),
        Published("Li T. et al., sticky thresholds", "dev", 0.546, 0.767, 0.551, recipe="li22"),
        Published(
            "BL-1 (organisers)",
            "dev",
            0.309,
            0.349,
            0.295,
            profile="2022-legacy",
            model="bert-large-cased",
            retrieval="none",
        ),
        Published(
            "BL-1, facts checked (ProP)",
            "dev",
            0.317,
            profile="2022-legacy",
            model="bert-large-cased",
            retrieval="none",
        ),
        Published(
            "ProP, questions alone", "dev", 0.634, profile="2022-legacy", model="text-davinci-002", retrieval="none"
        ),
        Published(
            "ProP, triples alone", "dev", 0.66, profile="2022-legacy", model="text-davinci-002", retrieval="none"
        ),
        Published(
            "ProP", "dev", 0.697, 0.736, 0.699, profile="2022-legacy", model="text-davinci-002", retrieval="none"
        ),
        Published("ProP, facts checked", "dev", 0.698, 0.741, 0.692, profile="2022-legacy", recipe="prop22"),
        Published(
            "ProP, its file scored today", "dev", 0.697, 0.783, 0.708, model="text-davinci-002", retrieval="none"
        ),
        Published(
            "ProP, facts checked, its file scored today",
            "dev",
            0.698,
            0.802,
            0.697,
            model="text-davinci-002",
            retrieval="none",
        ),
        Published("BL-1 (organisers)", "test", 0.311, 0.96, 0.317, recipe="bl22"),
        Published("BL-2, nothing (organisers)", "test", 0.18, 1.0, 0.18, recipe="bl22-empty"),
        Published("Li T. et al.", "test", 0.55, 0.765, 0.566, recipe="li22"),
        Published("ProP, facts not checked", "test", 0.679, 0.782, 0.701, model="text-davinci-002", retrieval="none"),
        Published("ProP, facts checked (submitted)", "test", 0.676, 0.798, 0.69, recipe="prop22"),
        Published("Ning and Celebi, by their paper", "test", 0.494, 0.638, 0.51, recipe="ning22"),
        Published("Ning and Celebi, by the overview", "test", 0.494, 0.693, 0.508, recipe="ning22"),
        Published("Fang et al.", "test", 0.493, 0.734, 0.533, recipe="fang22"),
        Published("Dalal et al.", "test", 0.337, 0.631, 0.438, recipe="dalal22"),
        Published("First entrant without a paper", "test", 0.456, about=UNKNOWN),
        Published("Second entrant without a paper", "test", 0.337, about=UNKNOWN),
        Published("Third entrant without a paper", "test", 0.28, about=UNKNOWN),
    ),
)
