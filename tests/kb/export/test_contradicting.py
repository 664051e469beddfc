"""What is known decides what is proposed: other values, no value, an unknown value, and what is not covered."""

import csv
import json
from pathlib import Path
from typing import Any

import pytest
from bases import fact, written
from command import Command

WD = "http://www.wikidata.org/"
NOVALUE = "<{0}entity/Q{1}> <http://www.w3.org/1999/02/22-rdf-syntax-ns#type> <{0}prop/novalue/{2}> .\n"
KNOWN = [
    ("Q1", "P47", "Q10"),
    ("Q2", "P1971", "4"),
    ("Q3", "P47", "novalue"),
    ("Q4", "P1971", "novalue"),
    ("Q5", "P47", "somevalue"),
    ("Q6", "P1971", "somevalue"),
]
"""The base says of each that it borders Q20 and has 5 children. Q7 is not known at all."""
MARKS = {
    ("Q1", "P47"): "new",  # a country borders several
    ("Q1", "P1971"): "new",
    ("Q2", "P47"): "new",
    ("Q2", "P1971"): "contradicting",
    ("Q3", "P47"): "contradicting",
    ("Q3", "P1971"): "new",
    ("Q4", "P47"): "new",
    ("Q4", "P1971"): "contradicting",
    ("Q5", "P47"): "not covered",
    ("Q5", "P1971"): "new",
    ("Q6", "P47"): "new",
    ("Q6", "P1971"): "not covered",
    ("Q7", "P47"): "not covered",
    ("Q7", "P1971"): "not covered",
}


def table() -> str:
    return "".join(f"{','.join(row)}\n" for row in [("subject", "property", "object"), *KNOWN])


def triples() -> str:
    lines = []
    for subject, name, value in KNOWN:
        if value == "novalue":
            lines.append(NOVALUE.format(WD, subject[1:], name))
            continue
        nodes = {"Q5": "_:4f2", "Q6": f"<{WD}.well-known/genid/4f2>", "Q1": f"<{WD}entity/Q10>", "Q2": '"+4"'}
        lines.append(f"<{WD}entity/{subject}> <{WD}prop/direct/{name}> {nodes[subject]} .\n")
    return "".join(lines)


def dump() -> str:
    def snak(value: str) -> dict[str, Any]:
        if not value[1:].isdigit() and value != "4":
            return {"snaktype": value}
        return {"datavalue": {"value": {"id": value} if value[0] == "Q" else {"amount": f"+{value}", "unit": "1"}}}

    items = [
        {"type": "item", "id": subject, "claims": {name: [{"mainsnak": snak(value)}]}} for subject, name, value in KNOWN
    ]
    return "".join(f"{json.dumps(item)}\n" for item in items)


@pytest.mark.parametrize("audited", [True, False], ids=["by its audit", "by itself"])
@pytest.mark.parametrize("form", [table, triples, dump])
def test_only_new_facts_are_proposed_and_others_are_listed_apart(form: Any, audited: bool, command: Command) -> None:
    facts = [
        row
        for at in range(7)
        for row in (
            fact(at, "country-borders", "Niger", 0.9, object_id="Q20"),
            fact(at, "children", "5", 0.9, literal="5"),
        )
    ]
    written(Path("kb"), facts)
    Path("known").write_text(form())
    if audited:
        command.done("audit", "kb", "--known", "known", "--out", "marked.csv")
        rows = [*csv.DictReader(Path("marked.csv").read_text().splitlines())]
        assert {(row["subject_id"], row["property"]): row["mark"] for row in rows} == MARKS
    given = "marked.csv" if audited else "known"
    _, said = command.done(
        "export", "kb", "--format", "quickstatements", "--unreviewed", "--known", given, "--out", "review"
    )
    proposed = Path("review/review-00001.txt").read_text().splitlines()
    assert {tuple(line.split("\t")[:2]) for line in proposed} == {key for key, mark in MARKS.items() if mark == "new"}
    for name, mark in (("contradicting.csv", "contradicting"), ("not-covered.csv", "not covered")):
        rows = [*csv.DictReader(Path("review", name).read_text().splitlines())]
        assert {(row["subject_id"], row["property"]) for row in rows} == {key for key in MARKS if MARKS[key] == mark}
        assert f"({name} lists them) {len(rows)}" in said
