"""The scorer of kinds: quantities within a tolerance, dates at the precision of gold, texts folded or as written."""

from dataclasses import replace

import pytest
from small import THING, small_edition

from lmkbc import KindScorer
from lmkbc.edition import fault

RELATIONS = {
    "date": replace(THING, kind="date"),
    "area": replace(THING, kind="number", unit="km2"),
    "celsius": replace(THING, kind="number", unit="°C", absolute_tolerance=0.5),
    "seats": replace(THING, kind="number", unit="seats", tolerance=0.0),
    "name": THING,
    "string": replace(THING, kind="string"),
    "url": replace(THING, kind="url"),
    "identifier": replace(THING, kind="identifier"),
}
SOUND = KindScorer(relations=RELATIONS)
LOOSE = replace(SOUND, coarser="right")

DATES = """
1985             | 1985                   | right | right
1986             | 1985                   | wrong | wrong
12 October 1985  | 1985                   | right | right
12 October 1985  | 1985-10                | right | right
12 October 1985  | 1985-10-12             | right | right
October 12, 1985 | 1985-10-12             | right | right
12. Oktober 1985 | 1985-10-12             | right | right
13 October 1985  | 1985-10-12             | wrong | wrong
13 October 1985  | 1985-10                | right | right
November 1985    | 1985-10                | wrong | wrong
1985             | 1985-10-12             | wrong | right
October 1985     | 1985-10-12             | wrong | right
1984             | 1985-10-12             | wrong | wrong
September 1985   | 1985-10-12             | wrong | wrong
1985             | 1985-10                | wrong | right
c. 1985          | 1985                   | right | right
1985             | c. 1985                | right | right
1985             | 1980s                  | right | right
1980             | 1980s                  | right | right
1990             | 1980s                  | wrong | wrong
1980s            | 1985                   | wrong | right
1970s            | 1985                   | wrong | wrong
1850             | 19th century           | right | right
1900             | 19th century           | right | right
1901             | 19th century           | wrong | wrong
1900s            | 20th century           | right | right
19th century     | 1850                   | wrong | right
44 BC            | 44 BC                  | right | right
44               | 44 BC                  | wrong | wrong
44 AD            | 44 BC                  | wrong | wrong
44 v. Chr.       | 44 BC                  | right | right
-0043            | 44 BC                  | right | right
450 BC           | 5th century BC         | right | right
450              | 5th century BC         | wrong | wrong
15 March 44 BC   | -0044-03-15T00:00:00Z  | right | right
1985             | +1985-10-00T00:00:00Z  | wrong | right
03/04/1985       | 1985-04-03             | wrong | right
03/04/1985       | 1985                   | right | right
31/02/1985       | 1985                   | wrong | wrong
unknown          | 1985                   | wrong | wrong
"""

QUANTITIES = """
area    | 100       | 100     | right
area    | 105       | 100     | right
area    | 105.01    | 100     | wrong
area    | 95        | 100     | right
area    | 94.99     | 100     | wrong
area    | 1.05      | 1       | right
area    | -100      | 100     | wrong
area    | 1,000     | 1000    | right
area    | 1,5       | 15      | wrong
area    | 10000 ha  | 100     | right
area    | 100 ha    | 100     | wrong
area    | 100 kg    | 100     | wrong
area    | nan       | 100     | wrong
area    | inf       | 100     | wrong
area    | 0         | 0       | right
area    | 0.01      | 0       | wrong
celsius | 5000      | -38.83  | wrong
celsius | -38.83    | -38.83  | right
celsius | 38.83     | -38.83  | wrong
celsius | -37       | -38.83  | right
celsius | -36.8     | -38.83  | wrong
celsius | 0         | 0       | right
celsius | -0.5      | 0       | right
celsius | 0.6       | 0       | wrong
celsius | 32 °F     | 0       | right
celsius | 0         | 32 °F   | right
seats   | 41        | 40      | wrong
seats   | 40 seats  | 40      | right
seats   | 40 boats  | 40      | wrong
seats   | 1e3       | 1000    | right
"""


def rows(table: str) -> list[list[str]]:
    return [[cell.strip() for cell in line.split("|")] for line in table.strip().splitlines()]


def hits(scorer: KindScorer, value: str, gold: str, relation: str) -> int:
    counted = scorer.score([value], [[gold]], relation)
    assert counted == (len(scorer.matches(value, [[gold]], relation)), 1, 1)
    assert counted == scorer.score([[value]], [gold], relation)
    return counted[0]


@pytest.mark.parametrize(("value", "gold", "exact", "loose"), rows(DATES))
def test_dates(value: str, gold: str, exact: str, loose: str) -> None:
    assert hits(SOUND, value, gold, "date") == (exact == "right")
    assert hits(LOOSE, value, gold, "date") == (loose == "right")


@pytest.mark.parametrize(("relation", "value", "gold", "right"), rows(QUANTITIES))
def test_quantities(relation: str, value: str, gold: str, right: str) -> None:
    assert hits(SOUND, value, gold, relation) == (right == "right")


def test_the_tables_have_sixty_pairs() -> None:
    assert len(rows(DATES)) + len(rows(QUANTITIES)) >= 60


def test_answers_of_one_meaning_count_once_and_each_finds_one_gold_object() -> None:
    assert SOUND.score(["12 October 1985", "1985-10-12", "1990"], ["1985", "1986"], "date") == (1, 2, 2)
    assert SOUND.score(["1985-10-12", "1985-10-13"], ["1985"], "date") == (1, 2, 1)
    assert SOUND.score(["100", "100.0", "104"], [["100"], ["103"]], "area") == (2, 2, 2)
    assert SOUND.score(["?", " ?", "100", "0", "0.0"], ["100"], "area") == (1, 3, 1)
    assert SOUND.score([], ["100"], "area") == (0, 0, 1)
    assert SOUND.score(["100"], [], "area") == (0, 1, 0)


@pytest.mark.parametrize(
    ("relation", "value", "right"),
    [
        ("name", "SAO-Paulo", True),
        ("string", "sao paulo", True),
        ("string", "Sao Paolo", False),
        ("url", "sao paulo", False),
        ("identifier", " São Paulo", True),
        ("unknown", "são-paulo", True),
    ],
)
def test_texts_are_compared_folded_or_as_written(relation: str, value: str, right: bool) -> None:
    assert hits(SOUND, value, "São Paulo", relation) == right


EDITION = small_edition(RELATIONS)


def test_an_edition_without_a_metric_knows_its_relations_kinds() -> None:
    metric = EDITION.knowing(RELATIONS).metric
    table = metric.evaluate(
        {("a", "celsius"): ["5000"], ("b", "date"): ["c. 1985"]},
        {("a", "celsius"): ["-38.83"], ("b", "date"): ["1985"]},
    )
    assert [table.relations[name].f1 for name in ("celsius", "date")] == [0.0, 1.0]


@pytest.mark.parametrize(
    ("kind", "value", "told"),
    [
        ("date", "12 October 1985", ""),
        ("date", "soon", "is no date"),
        ("number", "0", ""),
        ("number", "-38.83", ""),
        ("number", "many", "is no number"),
        ("url", "no address", ""),
    ],
)
def test_a_value_that_cannot_match_is_told(kind: str, value: str, told: str) -> None:
    relation = replace(THING, kind=kind)
    edition = replace(EDITION, relations=("thing",)).knowing({"thing": relation})
    assert fault(edition, "thing", relation, value).startswith(told)
    assert bool(fault(edition, "thing", relation, value)) == bool(told)
