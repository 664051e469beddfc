"""The organisation that owns a company. Tricky: half of all companies have none, and models name people instead."""

from lmkbc import EntityType, Relation, Shape

NAMES = {
    "General Motors": ("GM",),
    "Ford Motor Company": ("Ford", "Ford Motor"),
    "Fiat Chrysler Automobiles": ("FCA",),
    "Volkswagen Group": ("Volkswagen AG", "VW", "VW Group"),
    "Toyota": ("Toyota Motor Corporation",),
    "BMW": ("BMW AG", "BMW Group"),
    "Mercedes-Benz Group": ("Daimler AG",),
    "Sony Group": ("Sony Corporation",),
    "Groupe PSA": ("PSA Group", "PSA Peugeot Citroën"),
    "Honda": ("Honda Motor Company", "Honda Motor Co., Ltd."),
}
VARIANTS = {spelling: name for name, spellings in NAMES.items() for spelling in spellings}
RELATION = Relation(
    name="company-parent",
    names=("CompanyParentOrganization", "CompanyHasParentOrganisation"),
    property="P749",
    subject_type=EntityType("company", "Q4830453"),
    object_type=EntityType("organisation", "Q43229"),
    kind="entity",
    may_be_empty=True,
    definition="The organisation of which the company is or was a subsidiary: its direct owner, not the owner's owner. "
    "Nothing when the company is independent, publicly held, or owned by persons or a family.",
    clozes=(
        "{subject} is a subsidiary of {mask}, which is a company.",
        "The parent company of {subject} is {mask}.",
        "{subject} is owned by the company {mask}.",
    ),
    question="Which organisation is the parent organisation of {subject}?",
    triple="has the parent organisation",
    statement="{object} is or was the parent organisation of the company {subject}.",
    cardinality={"2022": (0, 5), "2023": (0, 5)},
    shape=Shape(
        separators=(";", "\n"),
        conjunction=False,
        variants=VARIANTS,
        stop=frozenset("company group parent subsidiary independent private public inc inc. ltd ltd. llc".split()),
    ),
)
