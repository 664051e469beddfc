"""mini: the bundled edition, so that predicting and evaluating work before any download.

It has general-knowledge facts in LM-KBC 2023's format: eight relations of about 40 / 20 / 20 subjects. They are too few
and too well known to compare systems on. Objects are QIDs (numbers literal) in reverse alphabetical order of their
names. The test split has no gold, like the official ones. Scored like 2023: exact ids, mean over the relations.
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
