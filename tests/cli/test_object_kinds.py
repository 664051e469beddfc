"""A workspace whose relations have dates, addresses, identifiers and degrees: from replies to scores and exports."""

import json
from pathlib import Path

import duckdb
import networkx
import pyoxigraph
import pytest
import rdflib
from command import Command
from opened import recipe_file
from wikidata_readers import comma_separated, items, version_1

from lmkbc import registry

RELATION = '''"""What it is."""
from lmkbc import EntityType, Relation
RELATION = Relation(
    name="{name}", names=("has_{name}",), property="{property}", subject_type=EntityType("micronation", "Q188443"),
    object_type=EntityType("thing", "Q35120"), kind="{kind}", may_be_empty=True, definition="The {name}.",
    clozes=("{{subject}} has {{mask}}.",), question="What is the {name} of {{subject}}?", triple="has",
    statement="{{subject}} has {{object}}.", {more}
)
'''
EDITION = '''"""What it is."""
from lmkbc import Edition
EDITION = Edition(
    name="mine", folder="mine",
    relations=("has_inception", "has_site", "has_code", "has_degrees", "has_motto", "has_head"),
    splits=dict.fromkeys(("train", "val", "test")), column="ObjectEntities", target="string",
)
'''
ROWS = [
    ("Chad", "inception", "It became independent on 11 August 1960.", "1960-08-11", "1960-08-11"),
    ("Mali", "inception", "c. 1960", "1960", "c. 1960"),
    ("Chad", "site", "[here](https://a.td/b,c)", "https://a.td/b,c", "https://a.td/b,c"),
    ("Mali", "site", "none", "", ""),
    ("Chad", "code", "007", "007", "007"),
    ("Mali", "code", "A, B and C", "A, B and C", "A, B and C"),
    ("Chad", "degrees", "32 °F", "0", "0"),
    ("Mali", "degrees", "5000", "-38.83", "5000"),
    ("Chad", "motto", 'Unity, "Work"', 'Unity, "Work"', 'Unity, "Work"'),
    ("Mali", "motto", "none", "", ""),
    ("Chad", "head", "Ada", "Ada", "Ada"),
    ("Mali", "head", "Bo", "Bo", "Bo"),
]
KINDS_OF_OBJECTS = {
    "inception": ("date", "P571"),
    "site": ("url", "P856"),
    "code": ("identifier", "P345"),
    "degrees": ("number", "P2076"),
    "motto": ("string", "P1451"),
    "head": ("entity", "P35"),
}
"""Relation -> kind of its objects, and property."""


@pytest.fixture
def options(tmp_path: Path) -> tuple[object, ...]:
    """Write a workspace, and return the options that name it."""
    for name in ("relations", "eval/mine"):
        (tmp_path / name).mkdir(parents=True)
    for name, (kind, number) in KINDS_OF_OBJECTS.items():
        more = 'unit="°C", unit_id="Q25267"' if kind == "number" else ""
        written = RELATION.format(name=name, kind=kind, property=number, more=more)
        (tmp_path / "relations" / f"{name}.py").write_text(written)
    (tmp_path / "eval" / "mine.py").write_text(EDITION)
    gold = [(s, f"has_{r}", [[true]] if true else []) for s, r, _, true, _ in ROWS]
    lines = [json.dumps({"SubjectEntity": s, "Relation": r, "ObjectEntities": true}) for s, r, true in gold]
    for split in ("train", "val", "test"):
        (tmp_path / "eval" / "mine" / f"{split}.jsonl").write_text("\n".join(lines) + "\n")
    told = [
        {"SubjectEntity": s, "Relation": f"has_{r}", "model": "m", "completions": [text]} for s, r, text, _, _ in ROWS
    ]
    (tmp_path / "told.jsonl").write_text("".join(json.dumps(one) + "\n" for one in told))
    recipe_file(tmp_path / "mine.toml", {"component": "recorded"}, select={"rule": "cutoff", "threshold": 0.1})
    (tmp_path / "subjects.csv").write_text("id,name,class\nQ657,Chad,Q188443\nQ912,Mali,Micronation\n")
    return ("--workspace", ".", "--edition", "mine")


def test_kinds_of_objects_from_replies_to_exports(
    command: Command, options: tuple[object, ...], tmp_path: Path
) -> None:
    asked = (*options, "--system", "mine.toml", "--from", "told.jsonl", "--offline")
    command.done("predict", *asked, "--split", "val", "--out", "run")
    made = [json.loads(line) for line in (tmp_path / "run" / "predictions.jsonl").read_text().splitlines()]
    assert [one["ObjectEntities"] for one in made] == [[object_] if object_ else [] for *_, object_ in ROWS]
    scored = command.done("evaluate", "run/predictions.jsonl", *options, "--split", "val")[0]
    assert "*** Average ***  0.917  0.917  0.917" in scored
    command.done("build", *asked, "--subjects", "subjects.csv", "--least", "0", "--out", "kb")
    told = {}
    properties = (number for _, number in KINDS_OF_OBJECTS.values())
    known = [("Q657", "P345", "007"), ("Q912", "P1", "Q2"), *(("Q1", number, "Q2") for number in properties)]
    Path("known.csv").write_text("".join(",".join(row) + "\n" for row in (("subject", "property", "object"), *known)))
    for name in registry.EXPORTS:
        more = ("--known", "known.csv", "--unreviewed") if name.startswith(("quickstatements", "worklist")) else ()
        told[name] = command.done(
            "export", "kb", "--workspace", ".", "-r", "has_inception", *KINDS, "--format", name, "--out", name, *more
        )[1].splitlines()
    without_lines = {"parquet", "turtle", "jsonld", "sqlite"}
    for name in {*registry.EXPORTS} - {"quickstatements", "quickstatements-csv", "worklist"} - without_lines:
        lines = (tmp_path / name).read_bytes().count(b"\n")
        assert told[name] == [f"{name}: 10 facts in {lines} lines"], name
    assert all(told[name] == [f"{name}: 10 facts"] for name in without_lines)
    not_new = "known already 1"
    reasons = f"a text that the format does not accept 1, {not_new}, no QID of the object 2"
    for name in ("quickstatements", "quickstatements-csv"):
        assert told[name][0].startswith(f"{name}: 6 facts in 1 file to be checked"), name
        assert told[name][1] == f"{name}: 4 facts left out, by reason: {reasons}"
    check_no_property(command, asked)
    command.done("report", "kb")
    page = (tmp_path / "kb" / "report" / "index.html").read_text()
    assert ("<td>micronation</td>" in page, "unknown class" in page) == (True, False)
    check_graphs(tmp_path)
    check_tables(tmp_path)
    check_wikidata_s_formats(tmp_path)


KINDS = tuple(word for name in ("site", "code", "degrees", "motto", "head") for word in ("-r", name))


def check_no_property(command: Command, asked: tuple[object, ...]) -> None:
    """Build and export a base whose relation is of no property of Wikidata."""
    module = Path("relations/head.py")
    named = module.read_text()
    module.write_text(named.replace("P35", "the head of it"))
    command.done("build", *asked, "--subjects", "subjects.csv", "--least", "0", "--relation", "head", "--out", "own")
    for name in ("own-report", "own-audit"):
        command.done(*name.split("-")[::-1], *(("--sample", "10") if name == "own-audit" else ()))
    command.done("export", "own", "--format", "ntriples", "--out", "own.nt")
    command.done("export", "own", "--format", "statements", "--out", "nodes.nt")
    graph = rdflib.Graph()
    graph.parse("own.nt", format="nt")
    assert len([*graph.triples((None, rdflib.URIRef("urn:lmkbc:prop/direct/head"), None))]) == 2
    graph.parse("nodes.nt", format="nt")
    assert len([*graph.triples((None, rdflib.URIRef("urn:lmkbc:prop/statement/head"), None))]) == 2
    for form in ("wikidata-json", "quickstatements", "quickstatements-csv", "worklist"):
        told = command.fails("export", "own", "--format", form, "--out", f"own-{form}")
        assert "--format is of Wikidata, and no relation has a property there: head; give csv, sqlite or turtle" in told
        assert not Path(f"own-{form}").exists()
    assert "no relation of this base is of one" in command.fails("audit", "own", "--known", "wikidata")
    module.write_text(named)


def check_graphs(folder: Path) -> None:
    """Read triples and the property graph."""
    wdt, graph = rdflib.Namespace("http://www.wikidata.org/prop/direct/"), rdflib.Graph()
    graph.parse(folder / "ntriples", format="nt")
    values = {(name.removeprefix(wdt), value.n3()) for _, name, value in graph if name.startswith(wdt)}
    xsd = "http://www.w3.org/2001/XMLSchema#"
    assert values == {
        ("P571", f'"1960-08-11"^^<{xsd}date>'),
        ("P571", f'"1960"^^<{xsd}gYear>'),
        ("P856", "<https://a.td/b,c>"),
        ("P345", '"007"'),
        ("P345", '"A, B and C"'),
        ("P2076", f'"0"^^<{xsd}decimal>'),
        ("P2076", f'"5000"^^<{xsd}decimal>'),
        ("P1451", '"Unity, \\"Work\\""'),
        ("P35", "<urn:lmkbc:entity/Ada>"),
        ("P35", "<urn:lmkbc:entity/Bo>"),
    }
    store = pyoxigraph.Store()
    store.load(path=folder / "statements", format=pyoxigraph.RdfFormat.N_TRIPLES)
    ask = """PREFIX wikibase: <http://wikiba.se/ontology#> PREFIX psv: <http://www.wikidata.org/prop/statement/value/>
        SELECT ?n ?of { ?s psv:P2076 ?v . ?v wikibase:quantityAmount ?n ; wikibase:quantityUnit ?of } ORDER BY ?n"""
    assert [(row["n"].value, row["of"].value[-6:]) for row in store.query(ask)] == [("0", "Q25267"), ("5000", "Q25267")]
    ask = "SELECT ?p { ?v <http://wikiba.se/ontology#timePrecision> ?p } ORDER BY ?p"
    assert [row["p"].value for row in store.query(ask)] == ["9", "11"]
    drawn = networkx.read_graphml(folder / "graphml")
    edges = {data["relation"]: (target, data) for _, target, data in drawn.out_edges("Q657", data=True)}
    assert {name: data["confidence"] for name, (_, data) in edges.items()} == dict.fromkeys(
        ("inception", "site", "code", "degrees", "motto", "head"), 0.666667
    )
    labels = {name: drawn.nodes[target]["label"] for name, (target, _) in edges.items()}
    assert (labels["motto"], labels["head"], drawn.nodes["Q657"]["label"]) == ('Unity, "Work"', "Ada", "Chad")
    assert drawn.nodes[edges["degrees"][0]] == {
        "label": "0",
        "kind": "number",
        "datatype": "xsd:decimal",
        "unit": "°C",
        "unit_id": "Q25267",
        "precision": "1",
    }
    assert drawn.nodes[edges["inception"][0]]["datatype"] == "xsd:date"


def check_tables(folder: Path) -> None:
    """Read CSV and Parquet, which hold the same."""
    columns = "subject_id, relation, value, datatype, unit, unit_id, precision, approximate"
    rows = [
        duckdb.sql(f"SELECT {columns} FROM {table} ORDER BY relation, subject_id").fetchall()
        for table in (f"read_csv('{folder}/csv', all_varchar = true)", f"read_parquet('{folder}/parquet')")
    ]
    assert [tuple(None if cell is None else str(cell).lower() for cell in row) for row in rows[1]] == [
        tuple(cell and cell.lower() for cell in row) for row in rows[0]
    ]
    assert rows[1] == [
        ("Q657", "code", "007", "xsd:string", None, None, None, None),
        ("Q912", "code", "A, B and C", "xsd:string", None, None, None, None),
        ("Q657", "degrees", "0", "xsd:decimal", "°C", "Q25267", "1", None),
        ("Q912", "degrees", "5000", "xsd:decimal", "°C", "Q25267", "1", None),
        ("Q657", "head", None, None, None, None, None, None),
        ("Q912", "head", None, None, None, None, None, None),
        ("Q657", "inception", "1960-08-11", "xsd:date", None, None, "day", False),
        ("Q912", "inception", "1960", "xsd:gYear", None, None, "year", True),
        ("Q657", "motto", 'Unity, "Work"', "xsd:string", None, None, None, None),
        ("Q657", "site", "https://a.td/b,c", "xsd:anyURI", None, None, None, None),
    ]


def check_wikidata_s_formats(folder: Path) -> None:
    """Read Wikidata's JSON and QuickStatements."""
    claims = {item.id: item.claims for item in items((folder / "wikidata-json").read_text())}
    texts = {name: claims["Q657"][name][0].mainsnak for name in ("P856", "P345", "P1451")}
    assert [texts[name].datatype for name in texts] == ["url", "external-id", "string"]
    (amount,) = claims["Q912"]["P2076"]
    assert amount.mainsnak.datavalue.value.unit.endswith("/Q25267")
    times = [claims[qid]["P571"][0].mainsnak.datavalue.value for qid in ("Q657", "Q912")]
    assert [(one.time, one.precision, one.calendarmodel[-8:]) for one in times] == [
        ("+1960-08-11T00:00:00Z", 11, "Q1985727"),
        ("+1960-00-00T00:00:00Z", 9, "Q1985727"),
    ]
    for name, read in (("quickstatements", version_1), ("quickstatements-csv", comma_separated)):
        (file,) = (folder / name).glob("review-*")
        assert {(one.item, one.property, one.value.replace('""', '"').strip()) for one in read(file.read_text())} == {
            ("Q657", "P571", "+1960-08-11T00:00:00Z/11"),
            ("Q912", "P571", "+1960-00-00T00:00:00Z/9"),
            ("Q657", "P856", '"https://a.td/b,c"'),
            ("Q912", "P345", '"A, B and C"'),
            ("Q657", "P2076", "0U25267"),
            ("Q912", "P2076", "5000U25267"),
        }
