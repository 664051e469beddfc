"""Comparison of facts with known ones by kind: a base and its own exports, precisions, calendars, bounds, mergers."""

import contextlib
import json
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import polars as pl
import pytest
from bases import fact as row
from bases import written
from command import Command
from space import SPACE

from lmkbc import registry
from lmkbc.testing.exports import exported, fact
from tests.small import small_relation

WD, XSD = "http://www.wikidata.org/", "http://www.w3.org/2001/XMLSchema#"
KNOWN = "known already"
REFINING = "a less precise value is known (refining.csv lists them)"
CONTRADICTING = "another value is known, or that there is none (contradicting.csv lists them)"
UNDECIDED = "what --known names does not cover them (not-covered.csv lists them)"
DATES = (
    *("15 March 44 BC", "12 October 1492", "4 October 1582", "15 October 1582", "1 January 1500", "29 February 1500"),
    *("1 January 1 AD", "1 BC", "March 1500", "1980s", "1900s (decade)", "19th century", "5th century BC", "40s BC"),
    *("12 May 1850", "c. 1850", "1066", "28 December 1065", "31 December 1999", "1 January 2000", "1 January 1900"),
)


def dated(text: str, subject: str = "Q1", **about: Any) -> Any:
    literal, _ = registry.KINDS.get("date").literal([text])
    return fact(text, kind="date", property="P569", subject_id=subject, literal=literal, one_object=True, **about)


def reason(of: Any, known: str) -> str:
    """Why a fact is no proposal; "" if it is one."""
    return next(iter(exported("quickstatements", [of], known=known).left_out), "")


def table(value: str, name: str = "P569") -> str:
    return f'subject,property,object\nQ1,{name},"{value}"\n'


def time(text: str, precision: int, calendar: str = "Q1985727") -> str:
    value = {"time": text, "precision": precision, "calendarmodel": f"{WD}entity/{calendar}"}
    return entity("P569", value)


def entity(name: str, value: Any, **more: Any) -> str:
    return json.dumps({"id": "Q1", "claims": {name: [{"mainsnak": {"datavalue": {"value": value}}, **more}]}})


@pytest.mark.parametrize("form", ["ntriples", "statements", "wikidata-json", "csv"])
def test_every_fact_of_a_base_is_known_by_its_own_export(form: str) -> None:
    numbers = [
        fact(text, kind="number", property="P2046", literal=text, unit="km2", unit_id=item, subject_id=f"Q9{at}")
        for at, (text, item) in enumerate([("1234.5", "Q712226"), ("100", "Q712226"), ("-7", None), ("0.001", None)])
    ]
    others = [
        fact("https://example.org/a", kind="url", property="P856"),
        fact("ab-1", kind="identifier", property="P213"),
        fact("Say x; and y", kind="text", property="P1451", language="fr"),
        fact("45.5, -73.6", kind="coordinates", property="P625", literal="45.5, -73.6"),
        fact("Chad", "Q657", subject_id="Q96"),
    ]
    every = [*(dated(text, f"Q{at}") for at, text in enumerate(DATES, 1)), *numbers, *others]
    facts = [
        one._replace(subject_row=at, subject=f"s{at}", subject_id=f"Q{at + 1000}", relation=f"of {at}")
        for at, one in enumerate(every)
    ]
    known = exported(form, facts)
    assert not known.left_out
    made = exported("quickstatements", facts, known=known.text)
    assert dict(made.left_out) == {KNOWN: len(facts)}


@pytest.mark.parametrize(
    ("own", "known", "expected"),
    [
        ("12 May 1850", table("1850"), REFINING),
        ("12 May 1850", table("May 1850"), REFINING),
        ("12 May 1850", table("1850s"), REFINING),
        ("12 May 1850", table("19th century"), REFINING),
        ("1854", table("1850s"), REFINING),
        ("1850s", table("1854"), KNOWN),
        ("1850", table("12 May 1850"), KNOWN),
        ("12 May 1850", table("13 May 1850"), CONTRADICTING),
        ("12 May 1850", table("1851"), CONTRADICTING),
        ("12 May 1850", table("1860s"), CONTRADICTING),
        ("10 November 2009", table("2009"), REFINING),
        ("19th century", time("+1900-00-00T00:00:00Z", 7), KNOWN),
        ("1850", time("+1900-00-00T00:00:00Z", 7), REFINING),
        ("1850", time("+2000-00-00T00:00:00Z", 6), UNDECIDED),
        # the calendar is that of the statement, not of its year
        ("12 October 1492", time("+1492-10-12T00:00:00Z", 11, "Q1985786"), KNOWN),
        ("12 October 1492", time("+1492-10-21T00:00:00Z", 11), KNOWN),
        ("12 October 1492", time("+1492-10-12T00:00:00Z", 11), CONTRADICTING),
        ("7 November 1917", time("+1917-10-25T00:00:00Z", 11, "Q1985786"), KNOWN),
        ("25 October 1917", time("+1917-10-25T00:00:00Z", 11, "Q1985786"), CONTRADICTING),
        ("October 1917", time("+1917-10-25T00:00:00Z", 11, "Q1985786"), KNOWN),
        ("November 1917", time("+1917-10-25T00:00:00Z", 11, "Q1985786"), KNOWN),
        ("1065", time("+1066-01-03T00:00:00Z", 11), KNOWN),
        ("15 March 44 BC", time("-0044-03-15T00:00:00Z", 11, "Q1985786"), KNOWN),
        ("44 BC", time("-0044-00-00T00:00:00Z", 9, "Q1985786"), KNOWN),
        ("45 BC", time("-0044-00-00T00:00:00Z", 9, "Q1985786"), CONTRADICTING),
    ],
)
def test_dates_of_two_precisions_and_calendars(own: str, known: str, expected: str) -> None:
    assert reason(dated(own), known) == expected


@pytest.mark.parametrize(
    ("own", "value", "expected"),
    [
        ("15 March 44 BC", "-0043-03-13", KNOWN),  # triples are Gregorian, and have a year 0
        ("12 October 1492", "1492-10-21", KNOWN),
        ("12 May 1850", "1850-01-01", REFINING),  # perhaps the year alone: truthy triples have no precision
        ("1 January 1850", "1850-01-01", REFINING),
        ("1850", "1850-01-01", KNOWN),
        ("1854", "1850-01-01", UNDECIDED),  # perhaps the decade
        ("1820", "1900-01-01", UNDECIDED),  # perhaps the century
        ("1820", "1850-01-01", CONTRADICTING),
        ("1854", "1851-01-01", CONTRADICTING),
        ("1854", "1850-05-12", CONTRADICTING),
    ],
)
def test_times_of_truthy_triples(own: str, value: str, expected: str) -> None:
    triple = f'<{WD}entity/Q1> <{WD}prop/direct/P569> "{value}T00:00:00Z"^^<{XSD}dateTime> .\n'
    assert reason(dated(own), triple) == expected
    assert reason(dated(own), table(f"{value}T00:00:00Z")) == expected  # as a query service writes it


def area(text: str, **about: Any) -> Any:
    about = {"unit": "km2", "unit_id": "Q712226", "one_object": True, **about}
    return fact(text, kind="number", property="P2046", subject_id="Q1", literal=text, **about)


@pytest.mark.parametrize(
    ("own", "expected"), [("101", KNOWN), ("98", KNOWN), ("104", KNOWN), ("97.9", CONTRADICTING), ("1", CONTRADICTING)]
)
def test_numbers_within_the_bounds_of_wikidata_are_known(own: str, expected: str) -> None:
    value = {"amount": "+101", "unit": f"{WD}entity/Q712226", "lowerBound": "+98", "upperBound": "+104"}
    assert reason(area(own), entity("P2046", value)) == expected
    hectares = {"amount": "+10100", "unit": f"{WD}entity/Q35852", "lowerBound": "+9800", "upperBound": "+10400"}
    assert reason(area(own), entity("P2046", hectares)) == expected


@pytest.mark.parametrize(("tolerance", "expected"), [(0.05, KNOWN), (0.005, CONTRADICTING), (0.0, CONTRADICTING)])
@pytest.mark.parametrize("known", [table("101", "P2046"), entity("P2046", {"amount": "+101", "unit": "1"})])
def test_numbers_within_the_relation_s_tolerance_are_known(tolerance: float, expected: str, known: str) -> None:
    assert reason(area("100", tolerance=tolerance), known) == expected
    assert reason(area("100", absolute_tolerance=1.0), known) == KNOWN


FULL = (
    '{s} <{p}P2046> <{e}statement/a> .\n<{e}statement/a> <{p}statement/P2046> "+39"^^<{x}decimal> .\n'
    "<{e}statement/a> <{w}rank> <{w}{rank}Rank> .\n<{e}statement/a> <{p}statement/value/P2046> <{v}> .\n"
    '<{v}> <{w}quantityAmount> "+39"^^<{x}decimal> .\n<{v}> <{w}quantityUnit> <{e}Q232291> .\n'
    '{s} <{p}direct/P2046> "+39"^^<{x}decimal> .\n{s} <{p}direct/P47> <{e}Q2> .\n'
)


def full(rank: str = "Normal") -> str:
    space = {"e": f"{WD}entity/", "p": f"{WD}prop/", "w": "http://wikiba.se/ontology#", "x": XSD, "v": f"{WD}value/b"}
    return FULL.format(s=f"<{WD}entity/Q1>", rank=rank, **space)


@pytest.mark.parametrize("order", [1, -1])
def test_full_triples_have_units_and_ranks_in_any_order(order: int) -> None:
    lines = full().splitlines(keepends=True)[::order]
    assert reason(area("101"), "".join(lines)) == KNOWN  # 39 square miles; truthy triples have no unit
    assert reason(area("39"), "".join(lines)) == CONTRADICTING
    truthy = [line for line in lines if "direct" in line]
    assert reason(area("101"), "".join(truthy)) == CONTRADICTING
    deprecated = [line for line in full("Deprecated").splitlines(keepends=True) if "direct/P2046" not in line]
    assert reason(area("101"), "".join(deprecated[::order])) == ""  # of a known subject, and nothing of its area


@pytest.mark.parametrize(
    "known",
    [
        f"<{WD}entity/Q1> <http://www.w3.org/2002/07/owl#sameAs> <{WD}entity/Q5> .\n"
        f"<{WD}entity/Q5> <{WD}prop/direct/P47> <{WD}entity/Q10> .\n",
        json.dumps(
            {
                "id": "Q5",
                "redirects": {"from": "Q1", "to": "Q5"},
                "claims": {"P47": [{"mainsnak": {"datavalue": {"value": {"id": "Q10"}}}}]},
            }
        ),
    ],
    ids=["triples", "JSON"],
)
def test_facts_about_a_merged_item_are_those_of_the_item_that_it_became(known: str) -> None:
    assert reason(fact("Niger", "Q10", subject_id="Q1"), known) == KNOWN
    assert reason(fact("Mali", "Q11", subject_id="Q1", one_object=True), known) == CONTRADICTING


@pytest.mark.parametrize("value", [f"<{WD}.well-known/genid/0a>", "_:b1"])
def test_an_unknown_value_decides_nothing(value: str) -> None:
    triple = f"<{WD}entity/Q1> <{WD}prop/direct/P569> {value} .\n"
    assert reason(dated("1850"), triple) == UNDECIDED


def marks(command: Command, known: Sequence[str]) -> dict[str, str]:
    command.done("audit", "kb", *(word for place in known for word in ("--known", place)), "--out", "marked.csv")
    rows = pl.read_csv("marked.csv", infer_schema=False).iter_rows(named=True)
    return {found["object"]: found["mark"] for found in rows}


def test_a_base_of_one_s_own_is_known(command: Command) -> None:
    facts = [
        row(0, "country-borders", "Niger", 0.9, object_id="Q10"),
        row(0, "area", "100", 0.9, literal="100"),
        row(1, "country-borders", "nowhere", 0.9),
    ]
    written(Path("other"), facts)
    written(Path("kb"), [*facts, row(0, "country-borders", "Mali", 0.9, object_id="Q11")])
    assert marks(command, ["other"]) == {"Niger": "known", "100": "known", "nowhere": "known", "Mali": "new"}
    for form, known in (("quickstatements", "other"), ("worklist", "other")):
        command.done("export", "kb", "--format", form, "--known", known, "--unreviewed", "--out", form)
    (line,) = Path("quickstatements/review-00001.txt").read_text().splitlines()
    assert line.startswith("Q1\tP47\tQ11 ")
    assert "names the base other and more" in command.fails("audit", "kb", "--known", "other", "--known", "kb")


OWN = {
    "facts.csv": """subject,relation,object
widget,Supplier,Bolt & Co.
Widget,area,1255
Gadget,area,4
Gadget,supplier,
""",
    "facts.tsv": """Subject\tProperty\tObject
Widget\tsupplier\tThe BOLT & CO.
Widget\tarea\t1,255
Gadget\tarea\t4
Gadget\tsupplier\tnone
""",
    "rows.jsonl": """{"SubjectEntity": "Widget", "Relation": "supplier", "ObjectEntities": [["Bolt", "Bolt & Co."]]}
{"SubjectEntity": "Widget", "Relation": "area", "ObjectEntities": ["1,255"]}
{"SubjectEntity": "Gadget", "Relation": "area", "ObjectEntities": ["4"]}
{"SubjectEntity": "Gadget", "Relation": "supplier", "ObjectEntities": []}
""",
    "facts.jsonl": """{"subject": "Widget", "relation": "supplier", "object": "Bolt & Co."}
{"subject": "Widget", "relation": "area", "object": "1,255"}
{"subject": "Gadget", "relation": "area", "object": "4"}
{"subject": "Gadget", "relation": "supplier", "object": "none"}
""",
}
"""Facts of a workspace of one's own, by name, in each form of a table."""


def test_known_facts_about_relations_of_one_s_own(command: Command) -> None:
    command.done("init", "shop", "--relation", "supplier:entity", "--relation", "area:number")
    with contextlib.chdir("shop"):
        Path("subjects.csv").write_text("name\nWidget\nGadget\nGizmo\n")
        rows = ["Widget,supplier,Bolt & Co.", "Widget,area,1255", "Gadget,supplier,Nut Ltd", "Gadget,area,5"]
        rows += ["Gizmo,supplier,Cog", "Gizmo,area,7"]
        Path("answers.csv").write_text("\n".join(["subject,relation,object", *rows]))
        command.done("build", "--subjects", "subjects.csv", "--out", "kb", "--from", "answers.csv")
        for name, content in OWN.items():
            Path(name).write_text(content)
            assert marks(command, [name]) == {
                **{"Bolt & Co.": "known", "1255": "known", "Nut Ltd": "contradicting", "5": "contradicting"},
                **{"Cog": "not covered", "7": "not covered"},
            }, name
            Path("marked.csv").unlink()
        command.done("export", "kb", "--format", "csv", "--out", "kb.csv")
        assert {*marks(command, ["kb.csv"]).values()} == {"known"}
        Path("wrong.csv").write_text("subject,relation,object\nWidget,suplier,Bolt\n")
        error = command.fails("audit", "kb", "--known", "wrong.csv")
        assert "wrong.csv, line 2: 'suplier' is no property, such as P31, and no relation of this base" in error
        assert "did you mean 'supplier'?" in error
        Path("wrong.csv").write_text("subject,relation,object\nWidget,supplier,unbekannt\n")
        assert "wrong.csv, line 2: 'unbekannt' names no object" in command.fails("audit", "kb", "--known", "wrong.csv")
        assert "give a table of facts" in command.fails("audit", "kb", "--known", "wikidata", "--offline")


@pytest.mark.parametrize("unit", ["m", "Hektoliter"])  # Wikidata's item of the second is not known here
def test_known_numbers_of_one_s_own_have_the_unit_that_is_written(unit: str, command: Command) -> None:
    command.done("init", "shop", "--relation", "area:number")
    with contextlib.chdir("shop"):
        module = Path("relations/area.py")
        module.write_text(module.read_text().replace('kind="number",', f'kind="number",\n    unit="{unit}",'))
        Path("subjects.csv").write_text("name\nWidget\nGadget\n")
        Path("facts.csv").write_text(f"subject,relation,object\nWidget,area,23.75 {unit}\nGadget,area,37.5\n")
        command.done("trust", "--own", ".")
        command.done("build", "--subjects", "subjects.csv", "--out", "kb", "--from", "facts.csv")
        _, said = command.done("audit", "kb", "--known", "facts.csv")
        assert f"by mistake: 1 of area in {unit}" in said


def test_a_small_base_has_one_table(command: Command) -> None:
    written(Path("kb"), [row(0, "area", "100", at / 10, literal="100") for at in (5, 7, 9)])
    Path("known").write_text("subject,property,object\nQ1,P2046,100\n")
    shown, _ = command.done("audit", "kb", "--known", "known")
    assert [line.split()[0] for line in shown.splitlines() if "  all  " in line] == ["area", "***"]
    assert "from 0" not in shown
    assert len(json.loads(command.done("audit", "kb", "--known", "known", "--json")[0])["known"]) > 2


NAMESAKES = [
    *(row(at, "area", str(at), 0.9, literal=str(at), subject="Dam", subject_id=f"Q{at}") for at in (1, 2, 3)),
    row(4, "area", "4", 0.9, literal="4", subject="Alone"),
]


@pytest.mark.parametrize(
    ("known", "expected", "is_told"),
    [
        ("Dam,,P2046,1", {"1": "known"}, True),
        ("Dam,,P2046,9", {}, True),
        ("Dam,,P2046,novalue", {}, True),
        ("Dam,,P47,Q5", {}, True),
        ("Dam,Q1,P2046,9", {"1": "contradicting"}, False),
        ("Dam,Q2,P2046,2\nDam,,P2046,9", {"2": "known"}, True),
        ("Alone,,P2046,9", {"4": "contradicting"}, False),
    ],
)
def test_a_known_fact_by_a_name_of_several_subjects_confirms_alone(
    command: Command, known: str, expected: dict[str, str], is_told: bool
) -> None:
    written(Path("kb"), NAMESAKES)
    Path("known.csv").write_text(f"subject,subject_id,property,object\n{known}\n")
    _, told = command.done("audit", "kb", "--known", "known.csv")
    sentence = (
        "by 1 name that several subjects of the base have, first 'Dam' (Q1, Q2, Q3): give them the column subject_id"
    )
    assert (sentence in told) == is_told, told
    assert marks(command, ["known.csv"]) == dict.fromkeys("1234", "not covered") | expected


@pytest.mark.parametrize(
    ("name", "content", "told"),
    [
        (
            "known.csv",
            "subject;relation;object\nQ9;begun;never\nsubject 0;Begun;1926\u20131935\nQ2;begun;im Krieg\n",
            "2 of begun; first known.csv, line 3, begun: '1926\u20131935' is no date that an answer",
        ),
        (
            "known.jsonl",
            '{"SubjectEntity": "subject 0", "Relation": "begun", "ObjectEntities": ["im Krieg"]}\n',
            "1 of begun; first known.jsonl, line 1, begun: 'im Krieg' is no date that an answer",
        ),
        (
            "known.csv",
            "subject,property,object\nQ1,P2046,5 Ellen\n",
            "1 of P2046; first known.csv, line 2, area: '5 Ellen' is not in km",
        ),
    ],
)
def test_a_known_value_that_cannot_be_read_is_named_with_its_line(
    command: Command, monkeypatch: pytest.MonkeyPatch, name: str, content: str, told: str
) -> None:
    monkeypatch.setitem(SPACE.relations.own, "begun", small_relation(name="begun", property="begun", kind="date"))
    written(Path("kb"), [row(at, "begun", "1935", 0.9, literal="1935") for at in (0, 1)] + [row(0, "area", "5", 0.9)])
    Path(name).write_text(content)
    assert told in command.done("audit", "kb", "--known", name)[1]


@pytest.mark.parametrize(
    ("own", "known", "match"),
    [
        ("Leitner", "Leitner AG", "compatible"),
        ("Leitner S.p.A.", "Leitner", "compatible"),
        ("Leitner AG", "Leitner AG", "same"),
        ("Leitner", "Doppelmayr AG", "contradicts"),
    ],
)
def test_a_legal_form_makes_no_other_firm(own: str, known: str, match: str) -> None:
    kind, relation = registry.KINDS.get("entity"), small_relation()
    assert kind.compare(own, kind.known(SimpleNamespace(text=known), relation), relation) == match
