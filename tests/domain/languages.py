"""A small Wikidata about made-up programming languages, and clients of a stand-in that serves it."""

from typing import Any

from wikidata_server import JULIAN, Amount, Day, Json, NoValue, Ranked, Unknown, WikidataServer, item

from lmkbc import EntityType, Relation
from lmkbc.link.wikidata import Client

CONTACT = "Jane Doe, jane@example.org"
LANGUAGES = 450
"""Programming languages that state a designer, Q1001 and up: three pages."""


def client(address: str, **settings: Any) -> Client:
    return Client(CONTACT, address, **{"rate": 1000, "patience": 2.0, **settings})


def relation(name: str = "designed-by", prop: str = "P287", kind: str = "entity", **settings: Any) -> Relation:
    subject_type = EntityType("programming language", "Q9143")
    return Relation(
        **{
            "name": name,
            "names": (prop,),
            "property": prop,
            "subject_type": subject_type,
            "object_type": EntityType("person", "Q5"),
            "kind": kind,
            "may_be_empty": True,
            "definition": "Who designed it.",
            "clozes": ("{subject} was designed by {mask}.",),
            "question": "Who designed {subject}?",
            "triple": "was designed by",
            "statement": "{subject} was designed by {object}.",
            **settings,
        }
    )


DESIGNERS = relation()
DATES = relation("inception", "P571", "date")
WEIGHTS = relation("mass", "P2067", "number", unit="kilograms", unit_id="Q11570")


def languages() -> list[Json]:
    """Return the world: no designer for each ninth language, one for most, up to seven for some."""
    people = [item(f"Q{2000 + at}", f"Person {at}", aliases=[f"P. {at}", f"Dr {at}"]) for at in range(60)]
    made = []
    for at in range(LANGUAGES):
        number = 7 if at % 50 == 0 else 3 if at % 10 == 0 else 1
        designers = [f"Q{2000 + (at * 7 + step) % 60}" for step in range(number)]
        claims = {
            "P31": ["Q9143" if at % 2 else "Q99"],
            "P287": [NoValue] if at % 9 == 4 else designers,
            "P571": [Day(f"{1950 + at % 70}-03-05T00:00:00Z", 9 + at % 3)],
            "P2067": [Amount(f"+{at + 1}.50", "Q41803" if at % 2 else "Q11570")],
        }
        made.append(item(f"Q{1001 + at}", f"Lang {at}", claims, links=at % 40))
    kinds = [item("Q9143", "programming language"), item("Q99", "markup language", {"P279": ["Q9143"]})]
    return [*kinds, *people, *made, *odd()]


def odd() -> list[Json]:
    """Return subjects that cannot be gold, and some that only look so."""
    language = {"P31": ["Q9143"]}
    return [
        item("Q5001", "", {**language, "P287": ["Q2001"]}),
        item("Q5002", "Unknown designer", {**language, "P287": ["Q2001", Unknown]}),
        item("Q5003", "Nameless designer", {**language, "P287": ["Q5999"]}),
        item("Q5004", "Lang 1", {**language, "P287": ["Q2001"]}, links=99),
        item("Q5005", "Both", {**language, "P287": ["Q2001", NoValue]}),
        item("Q5006", "Deprecated", {**language, "P287": [Ranked("Q2001", "deprecated")]}),
        item("Q5007", "", {**language, "P287": ["Q2002"]}, mul="Every"),
        item("Q5008", "Preferred", {**language, "P287": ["Q2001", Ranked("Q2003", "preferred")]}),
        item("Q5009", "No statement", language),
        item("Q5010", "A river", {"P31": ["Q4022"], "P287": ["Q2001"]}),
        item("Q5011", "Old", {**language, "P571": [Day("-0043-01-01T00:00:00Z", 9)]}),
        item("Q5012", "Julian", {**language, "P571": [Day("1500-01-01T00:00:00Z", 11, JULIAN)]}),
        item("Q5013", "Century", {**language, "P571": [Day("1801-01-01T00:00:00Z", 7)]}),
        item("Q5014", "Feet", {**language, "P2067": [Amount("+3", "Q3710")]}),
    ]


def server(**settings: Any) -> WikidataServer:
    return WikidataServer(languages(), **settings)
