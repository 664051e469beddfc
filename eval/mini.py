"""mini: the bundled edition, so that predicting and evaluating work before anything is downloaded.

General-knowledge facts in LM-KBC 2023's format, eight relations of about 40 / 20 / 20 subjects, too few and too
well known to compare systems on. Objects are QIDs (numbers literal) in reverse alphabetical order of their names; the
test split carries no gold, as the official ones. Scored like 2023: exact ids, mean over the relations.
"""

from __future__ import annotations

from lmkbc import Edition, IdScorer, Metric

EDITION = Edition(
    name="mini",
    folder="mini",
    relations=(
        "CompanyHasParentOrganisation",
        "CountryBordersCountry",
        "CountryHasOfficialLanguage",
        "PersonHasNoblePrize",
        "PersonHasNumberOfChildren",
        "PersonHasPlaceOfDeath",
        "PersonPlaysInstrument",
        "RiverBasinsCountry",
    ),
    splits={"train": None, "val": None, "test": None},
    column="ObjectEntitiesID",
    target="id",
    metric=Metric(IdScorer(distinct=False), average="relation", missing="refuse"),
    licence="CC0-1.0",
)
