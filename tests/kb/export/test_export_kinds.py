"""Exports of dates and of texts: XML Schema's, Wikidata's and QuickStatements' numbers of years, and datatypes."""

import csv
import datetime
import io
import json
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from pyoxigraph import RdfFormat, Store
from wikidata_readers import comma_separated, items, version_1

from lmkbc import registry
from lmkbc.kinds.dates import PartialDate, Precision, read_date
from lmkbc.testing import exports
from lmkbc.testing.exports import exported

XSD = "http://www.w3.org/2001/XMLSchema#"


ABOUT = exports.fact(property="P571", kind="date", one_object=True).about
FORMS = """
1985           | "1985"^^gYear          | 1985-01-01  | +1985-00-00 | 9
c. 1985        | "1985"^^gYear          | 1985-01-01  | +1985-00-00 | 9
1985-10        | "1985-10"^^gYearMonth  | 1985-10-01  | +1985-10-00 | 10
1985-10-12     | "1985-10-12"^^date     | 1985-10-12  | +1985-10-12 | 11
1980s          | "1980/1989"^^EDTF      | 1980-01-01  | +1980-00-00 | 8
19th century   | "1801/1900"^^EDTF      | 1801-01-01  | +1801-00-00 | 7
476            | "0476"^^gYear          | 0476-01-01  | +0476-00-00 | 9/J
1 BC           | "0000"^^gYear          | 0000-01-01  | -0001-00-00 | 9/J
44 BC          | "-0043"^^gYear         | -0043-01-01 | -0044-00-00 | 9/J
0044-03 BC     | "-0043-03"^^gYearMonth | -0043-03-01 | -0044-03-00 | 10/J
0044-03-15 BC  | "-0043-03-13"^^date    | -0043-03-13 | -0044-03-15 | 11/J
40s BC         | "-0048/-0039"^^EDTF    | -0039-01-01 | -0040-00-00 | 8/J
5th century BC | "-0499/-0400"^^EDTF    | -0400-01-01 | -0401-00-00 | 7/J
12000 BC       | "-11999"^^gYear        | -11999-01-01 | -12000-00-00 | 9/J
1500-02-29     | "1500-03-10"^^date     | 1500-03-10  | +1500-02-29 | 11/J
1582-10-04     | "1582-10-14"^^date     | 1582-10-14  | +1582-10-04 | 11/J
1582-10-15     | "1582-10-15"^^date     | 1582-10-15  | +1582-10-15 | 11
0001-01-01     | "0000-12-30"^^date     | 0000-12-30  | +0001-01-01 | 11/J
"""


def fact(kind: str, value: str, literal: str | None = None) -> Any:
    return exports.fact(
        value, literal=literal, subject="X", subject_id="Q1", property="P571", kind=kind, one_object=True
    )


def dated(text: str) -> Any:
    return fact("date", text, text)


@pytest.mark.parametrize("row", FORMS.strip().splitlines())
def test_each_format_counts_years_as_it_does(row: str) -> None:
    text, typed, first, written, precision = (cell.strip() for cell in row.split("|"))
    date = read_date(text)
    assert date is not None
    made = registry.KINDS.get(ABOUT.kind).exported(str(date), ABOUT)
    assert f'"{made.text}"^^{made.datatype.rpartition("/")[2]}' == typed
    assert made.node
    assert made.node[1][0] == ("timeValue", f"{first}T00:00:00Z", "dateTime")
    assert made.command == f"{written}T00:00:00Z/{precision}"
    assert made.wikidata[1]["value"] == {
        "time": f"{written}T00:00:00Z",
        "timezone": 0,
        "before": 0,
        "after": 0,
        "precision": int(precision.removesuffix("/J")),
        "calendarmodel": f"http://www.wikidata.org/entity/Q19857{86 if precision.endswith('J') else 27}",
    }


@given(st.dates(max_value=datetime.date(1582, 10, 1)))
def test_julian_days_are_ten_days_or_less_away(day: datetime.date) -> None:
    date = PartialDate(day.year, day.month, day.day, Precision.DAY) if day.day < 29 else None
    text = registry.KINDS.get(ABOUT.kind).exported(str(date), ABOUT).text if date else ""
    ahead = day.year // 100 - day.year // 400 - 2
    if text and not text.startswith("0000"):
        assert (datetime.date.fromisoformat(text) - day).days in (ahead, ahead - 1)


QUERY = """
    PREFIX psv: <http://www.wikidata.org/prop/statement/value/> PREFIX pq: <http://www.wikidata.org/prop/qualifier/>
    PREFIX wikibase: <http://wikiba.se/ontology#> PREFIX wd: <http://www.wikidata.org/entity/>
    SELECT ?time ?precision { ?s psv:P571 ?v ; pq:P1480 wd:Q5727902 . ?v a wikibase:TimeValue ;
    wikibase:timeValue ?time ; wikibase:timePrecision ?precision ;
    wikibase:timeTimezone 0 ; wikibase:timeCalendarModel wd:Q1985727 }
"""


def test_an_approximate_date_is_qualified_in_each_format() -> None:
    row, exact = dated("c. 1985"), dated("1990")
    store = Store()
    store.load(exported("statements", [row]).text, RdfFormat.N_TRIPLES)
    (found,) = store.query(QUERY)
    assert [found[name].value for name in ("time", "precision")] == ["1985-01-01T00:00:00Z", "9"]
    (item,) = items(exported("wikidata-json", [row, exact]).text)
    assert [[*claim.qualifiers] for claim in item.claims["P571"]] == [["P1480"], []]
    commands, table = (exported(form, [row, exact]).text for form in ("quickstatements", "quickstatements-csv"))
    assert [one.more for one in version_1(commands)] == [(("P1480", "Q5727902"),), ()]
    assert [one.more for one in comma_separated(table)] == [(("qal1480", "Q5727902"),), ()]
    alone = exported("quickstatements-csv", [exact]).text
    assert next(csv.reader(io.StringIO(alone))) == ["qid", "P571", "#"]


@pytest.mark.parametrize(
    ("kind", "datatype", "value", "triple"),
    [
        ("string", "string", "a b", '"a b"'),
        ("identifier", "external-id", "tt0111161", '"tt0111161"'),
        ("url", "url", "https://a.org/b?c=d", "<https://a.org/b?c=d>"),
        ("url", "url", "https://ä.org/café", "<https://ä.org/café>"),
        ("date", "time", "1985", f'"1985"^^<{XSD}gYear>'),
    ],
)
def test_values_have_the_datatype_of_their_property(kind: str, datatype: str, value: str, triple: str) -> None:
    row = fact(kind, value, value if kind == "date" else None)
    written = exported("wikidata-json", [row]).text
    assert items(written) != []
    assert json.loads(written)[0]["claims"]["P571"][0]["mainsnak"]["datatype"] == datatype
    assert exported("ntriples", [row]).text.endswith(f" {triple} .\n")
    (proposal,) = version_1(exported("quickstatements", [row]).text)
    assert proposal.value == ("+1985-00-00T00:00:00Z/9" if kind == "date" else f'"{value}"')


@pytest.mark.parametrize("value", ['a "b"', "a|b", "a  b", "a\tb", "a /* b", ""])
def test_a_text_that_no_command_can_hold_is_no_proposal(value: str) -> None:
    assert exported("quickstatements", [fact("string", value)]).text == ""


@pytest.mark.parametrize("value", ["a.org", "https://a b", "javascript:x", "https://a.org/\ue000"])
def test_no_address_is_no_iri(value: str) -> None:
    for form in ("ntriples", "statements"):
        assert (exported(form, [fact("url", value)]).text, exported(form, [fact("url", value)]).facts) == ("", 0)


def test_a_year_and_about_that_year_are_two_statements() -> None:
    written = [exported("statements", [dated(text)]).text.split()[2] for text in ("1835", "c. 1835")]
    assert written[0] != written[1]


@pytest.mark.parametrize(
    ("kind", "value", "written"),
    [
        ("url", "https://ä.org/café", "<https://ä.org/café>"),
        ("string", 'Lux "in" x', '"Lux \\"in\\" x"@la'),
        ("string", '"ä"\\\u2028', '"\\"ä\\"\\\\\u2028"'),
    ],
)
def test_addresses_and_texts_of_a_dump_are_read_as_they_are_written(kind: str, value: str, written: str) -> None:
    known = f"<{WD}> <{WDT}> {written} .\n".encode()
    assert exported("quickstatements", [fact(kind, value)], known=known).left_out["known already"] == (kind == "url")


@example("Je me souviens", "text", "")
@example("45.5° N, 73.6° W", "coordinates", "45.5, -73.6")
@given(st.text(), st.sampled_from([*registry.KINDS]), st.text())
def test_any_text_of_any_kind_is_accepted_by_the_readers(value: str, kind: str, literal: str) -> None:
    made = [fact(kind, value, literal if kind in ("date", "coordinates") else "4")]
    items(exported("wikidata-json", made).text)
    commands, table = (exported(form, made).text for form in ("quickstatements", "quickstatements-csv"))
    assert version_1(commands) == (comma_separated(table) if table else [])


WDT, WD = "http://www.wikidata.org/prop/direct/P571", "http://www.wikidata.org/entity/Q1"


@pytest.mark.parametrize(
    ("known", "is_known"),
    [
        ("+1985-10-12T00:00:00Z/11", ["1985-10-12", "1985-10", "1985", "c. 1985", "1980s", "20th century"]),
        ("1985-10-12T00:00:00Z", ["1985-10-12", "1985"]),
        ("1985", ["1985", "1980s"]),
        ("12 October 1985", ["1985-10"]),
    ],
)
def test_a_date_that_is_known_at_least_as_precise_is_not_proposed(known: str, is_known: list[str]) -> None:
    content = f"subject,property,object\nQ1,P571,{known}\n"
    texts = ["1985-10-12", "1985-10", "1985", "c. 1985", "1980s", "20th century", "1985-11", "1986"]
    marks = {text: mark_of(dated(text), content) for text in texts}
    assert {marks[text] for text in is_known} == {KNOWN}
    assert KNOWN not in (marks["1985-11"], marks["1986"])


KNOWN, CONTRADICTING = "known already", "another value is known, or that there is none (contradicting.csv lists them)"


def mark_of(row: Any, known: str) -> str:
    """Return why a fact is no proposal."""
    (reason,) = exported("quickstatements", [row], known=known).left_out or [""]
    return reason


def test_years_before_christ_of_rdf_and_of_json_are_the_same_year() -> None:
    (item,) = json.loads(exported("wikidata-json", [dated("44 BC")]).text)
    triple = f'<{WD}> <{WDT}> "-0043-01-01T00:00:00Z"^^<{XSD}dateTime> .\n'
    for known in (triple, json.dumps(item)):
        assert mark_of(dated("44 BC"), known) == KNOWN
        assert mark_of(dated("43 BC"), known) == CONTRADICTING


def test_known_texts_are_compared_as_texts() -> None:
    known = "subject,property,object\nQ1,P571,007\n"
    assert [mark_of(fact("identifier", text), known) for text in ("007", "7")] == [KNOWN, CONTRADICTING]
