"""`lmkbc query`: answers of every form, errors for people, and no server is asked."""

import csv
import json
import sys
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread

import pyoxigraph
import pytest
from bases import fact, written
from command import Command

import lmkbc
from lmkbc.kb.query import triple_store


@pytest.fixture
def run(command: Command) -> Command:
    borders = [fact(row, "country-borders", f"land {row}", 0.9 - row / 10, object_id=f"Q{row + 9}") for row in range(6)]
    written(
        Path("kb"), [*borders, fact(0, "children", "=4", 0.9, literal="4"), fact(0, "country-borders", "=1+1", 0.8)]
    )
    return command.under("query", "kb")


SURE = "SELECT ?s ?o ?c { ?s p:P47 ?n . ?n ps:P47 ?o ; own:confidence ?c FILTER(isIRI(?o) && ?c > 0.7) } ORDER BY ?c ?o"


def test_select_is_a_table_json_and_csv(run: Command) -> None:
    shown = run.done(SURE)[0].splitlines()
    assert shown[0].split() == ["s", "o", "c"]
    assert shown[-1].split() == ["http://www.wikidata.org/entity/Q1", "http://www.wikidata.org/entity/Q9", "0.9"]
    found = json.loads(run.done("--json", SURE)[0])
    assert [row["c"] for row in found] == [0.8, 0.8, 0.9]
    assert found[1]["o"] == "urn:lmkbc:entity/%3D1%2B1"
    assert run.done(SURE, "--out", "x.csv")[0] == ""
    assert [float(row["c"]) for row in csv.DictReader(Path("x.csv").read_text().splitlines())] == [0.8, 0.8, 0.9]
    run.done("SELECT ?name { own:entity\\/%3D1%2B1 rdfs:label ?name }", "--out", "formula.csv")
    assert Path("formula.csv").read_text() == "name\n'=1+1\n"
    assert "x.csv is there already" in run.fails(SURE, "--out", "x.csv")


@pytest.mark.parametrize(
    ("number", "shown"),
    [
        *(("1299.000", "1299"), ("12.50", "12.5"), ("-7.0", "-7"), ("0.1e0 + 0.2e0", "0.3"), ("1e3", "1000")),
        *(("1e300", "1e+300"), ("123456789012345678", "123456789012345678"), ("AVG(?c)", "0.75")),
    ],
)
def test_a_number_is_written_alike_in_every_form(run: Command, number: str, shown: str) -> None:
    query = f"SELECT (0 AS ?x) (({number}) AS ?n) {{ VALUES ?c {{ 0.5 1.0 }} }} {'' if 'AVG' in number else 'LIMIT 1'}"
    assert [line.split() for line in run.done(query)[0].splitlines()] == [["x", "n"], ["0", shown]]
    assert f'"n": {shown}\n' in run.done(query, "--json")[0]
    run.done(query, "--out", "n.csv")
    assert Path("n.csv").read_text() == f"x,n\n0,{shown}\n"


def test_whole_numbers_beside_others_have_no_zeros(run: Command) -> None:
    query = "SELECT ?n { VALUES ?n { 1299 12.5 -0.25 } }"
    assert run.done(query)[0].split() == ["n", "1299", "12.5", "-0.25"]
    run.done(query, "--out", "n.csv")
    assert Path("n.csv").read_text().split() == ["n", "1299", "12.5", "-0.25"]


@pytest.mark.parametrize(
    ("query", "rows"),
    [
        ("ASK { wd:Q1 wdt:P47 wd:Q9 }", [{"answer": True}]),
        ("ASK { wd:Q1 wdt:P47 wd:Q7 }", [{"answer": False}]),
        (
            "CONSTRUCT { ?o wdt:P47 ?s } WHERE { ?s wdt:P47 ?o FILTER(?o = wd:Q9) }",
            [
                {
                    "subject": "http://www.wikidata.org/entity/Q9",
                    "predicate": "http://www.wikidata.org/prop/direct/P47",
                    "object": "http://www.wikidata.org/entity/Q1",
                }
            ],
        ),
        ("DESCRIBE own:nothing", []),
        ("SELECT (COUNT(*) AS ?n) ?none { ?s wdt:P47 ?o } GROUP BY ?none", [{"n": 6, "none": None}]),
        ('SELECT ("a\\u202e" AS ?x) ("INF"^^xsd:double AS ?y) {}', [{"x": "a\u202e", "y": "INF"}]),
        ("SELECT (STRLEN(?text) AS ?n) { ?run a prov:Activity ; rdfs:label ?text }", [{"n": 22}]),
        ("SELECT ?m { wd:Q1 p:P1971/prov:wasAttributedTo ?a . ?a a prov:SoftwareAgent ; rdfs:label ?m }", [{"m": "m"}]),
    ],
)
def test_every_form_of_a_query_is_answered(run: Command, query: str, rows: list[dict[str, object]]) -> None:
    assert json.loads(run.done("--json", query)[0]) == rows


@pytest.mark.parametrize(
    ("query", "told"),
    [
        ("SELECT ?s { ?s ?p ", "the query has a fault at line 1, column 19: expected one of"),
        (
            "SELECT ?s {\n ?s foo:x ?o }",
            "the query has an unknown prefix at line 2, column 10: declare it, or use wd, wdt",
        ),
        ("INSERT DATA { <a:a> <a:b> 1 }", "expected SELECT, ASK, CONSTRUCT or DESCRIBE, since a query changes nothing"),
        ("LOAD <file:///etc/passwd>", "since a query changes nothing"),
        ("", "the query has a fault at line 1"),
        ("SELECT * { SERVICE ?where { ?s ?p ?o } }", "the query has a part SERVICE"),
    ],
)
def test_a_wrong_query_is_one_sentence(run: Command, query: str, told: str) -> None:
    error = run.fails(query)
    assert told in error
    assert error.count("\n") == 1


@pytest.fixture(scope="module")
def server() -> object:
    """An address on loopback, and the requests that came there."""
    came = list[str]()

    class Answer(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            came.append(self.path)
            self.send_error(500)

        do_GET = do_POST  # noqa: N815

        def log_message(self, *_: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Answer) as made:
        Thread(target=made.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{made.server_port}/", came
        made.shutdown()


FORMS = """
SELECT * { SERVICE <URL> { ?s ?p ?o } }
SELECT * { service silent <URL>{ ?s ?p ?o } }
SELECT * { FILTER(true)SERVICE<URL>{ ?s ?p ?o } }
SELECT * { VALUES ?z {5}SERVICESILENT<URL>{ ?s ?p ?o } }
PREFIX e: <URL> SELECT * { SERVICE e:sparql { ?s ?p ?o } }
PREFIX e: <URL> SELECT * { SERVICEe:sparql{ ?s ?p ?o } }
SELECT * { #|SERVICE #x {|#y|Silent #z|<URL> # {|{ ?s ?p ?o } }
SELECT * { BIND(<URL> AS ?x) SERVICE ?x { ?s ?p ?o } }
SELECT * { ?a ?b ?c FILTER(EXISTS { SERVICE <URL> { ?s ?p ?o } }) }
SELECT * { BIND("\\"#" AS ?a) SERVICE <URL> { ?s ?p ?o } }
SELECT * { { SELECT * { SERVICE <URL> { ?s ?p ?o } } } }
SELECT * FROM <URL> { ?s ?p ?o }
SELECT * FROM NAMED <URL> { GRAPH <URL> { ?s ?p ?o } }
SELECT * { GRAPH <URL> { ?s ?p ?o } }
DESCRIBE <URL>
BASE <URL> SELECT * { SERVICE <sparql> { ?s ?p ?o } }
""".strip().splitlines()


@pytest.mark.parametrize("form", FORMS)
def test_no_query_asks_a_server(run: Command, server: tuple[str, list[str]], form: str) -> None:
    url, came = server
    run(form.replace("URL", url).replace("|", "\n"))
    assert came == []


@pytest.mark.timeout(20)
@pytest.mark.parametrize(
    "text", ["service " + "#" * 50_000, "service" + " " * 50_000, "service <" * 5_000, "service:" * 1_000]
)
def test_a_long_text_is_searched_fast(run: Command, text: str) -> None:
    assert run(f'ASK {{ ?s ?p "{text}" }}')[:2] == (0, "answer\nFalse\n")


def test_a_large_base_is_asked_from_disk_and_a_changed_base_anew(
    run: Command, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(triple_store, "LARGE", 0)
    count = "SELECT (COUNT(*) AS ?n) { ?s wdt:P47 ?o }"
    for _ in range(2):
        assert lmkbc.query("kb", count).rows == [(6,)]
    assert lmkbc.query("kb", count, least=0.75).rows == [(3,)]
    written(tmp_path / "other", [fact(0, "country-borders", "land", 0.9)])
    assert lmkbc.query("other", count).rows == [(1,)]
    for part in Path("kb").glob("facts/*/*"):
        part.unlink()  # all comes from the cache
    assert lmkbc.query("kb", count).frame().to_dict(as_series=False) == {"n": [6]}


def test_a_decision_about_a_large_base_is_asked_too(run: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(triple_store, "LARGE", 0)
    count = "SELECT (COUNT(*) AS ?n) { ?s wdt:P47 ?o }"
    assert lmkbc.query("kb", count).rows == [(6,)]
    decided = {"relation": "country-borders", "subject": "subject 0", "object": "land 0", "label": "wrong"}
    Path("d.jsonl").write_text(json.dumps(decided))
    lmkbc.review("kb", "d.jsonl")
    assert lmkbc.query("kb", count).rows == [(5,)]


@pytest.fixture
def shop(command: Command, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Command:
    command.done("init", "shop", "--relation", "list-price:number")
    monkeypatch.chdir(tmp_path / "shop")
    Path("s.csv").write_text("name\nA lamp\n")
    row = {"SubjectEntity": "A lamp", "Relation": "list-price", "model": "m", "completions": ["1299"]}
    Path("a.jsonl").write_text(json.dumps(row))
    command.done("build", "--subjects", "s.csv", "--from", "a.jsonl", "--out", "kb")
    return command.under("query", "kb")


@pytest.mark.parametrize(
    "triple",
    [
        *("owne:A%20lamp ownt:list-price ?o", "?s own:prop\\/direct\\/list-price ?o"),
        *(
            "?s ownp:list-price [ ownps:list-price ?o ]",
            "?s ownp:list-price/ownpsv:list-price/wikibase:quantityAmount ?o",
        ),
    ],
)
def test_a_relation_of_ones_own_has_a_prefix_in_queries(shop: Command, triple: str) -> None:
    shown, told = shop.done(f"SELECT ?o {{ {triple} }}")
    assert (shown.split(), told) == (["o", "1299"], "")


@pytest.mark.parametrize("triple", ["?s <list-price> ?o", "?s list-price ?o", "?s lmkbc:list-price ?o"])
def test_the_error_says_how_a_relation_is_written(shop: Command, triple: str) -> None:
    told = shop.fails(f"SELECT ?o {{ {triple} }}")
    assert told.endswith("; write ownt:list-price for the relation list-price\n")
    assert "write" not in shop.fails("SELECT ?o { ?s ?p }")


@pytest.mark.parametrize("query", ["SELECT ?o { ?s wdt:list-price ?o }", "ASK { ?s <urn:x:list-price> ?o }"])
def test_where_nothing_is_found_the_relations_are_named_as_queries_have_them(shop: Command, query: str) -> None:
    _, told = shop.done(query, "--json")
    assert "nothing is found; the relations of kb are written so in a query: list-price is ownt:list-price\n" in told


def test_facts_that_a_query_leaves_out_are_counted(run: Command) -> None:
    query = "SELECT (COUNT(*) AS ?n) { ?s wdt:P47 ?o }"
    told = "3 facts have a confidence below 0.65 and were not asked; --least 0 asks all\n"
    assert run.done(query, "--least", "0.65") == ("n\n4\n", told)
    assert run.done(query, "--least", "0") == ("n\n7\n", "")


@pytest.mark.parametrize(
    ("name", "written"),
    [("P47", "wdt:P47"), ("a-b.c", "ownt:a-b.c"), ("-~a.", "ownt:\\-\\~a\\."), ("%C3%BC", "ownt:%C3%BC")],
)
def test_a_predicate_stands_for_the_relation_of_an_export(name: str, written: str) -> None:
    about = triple_store.About(property=name, kind="string")
    assert triple_store.predicate(about) == written
    found = pyoxigraph.Store().query(f"CONSTRUCT {{ <x:x> {written} 1 }} {{}}", prefixes={"wdt": "w:", "ownt": "o:"})
    assert [one.predicate.value[2:] for one in found] == [name]


def test_without_the_library_the_extra_is_named(run: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [one for one in sys.modules if one.startswith(("pyoxigraph", "lmkbc.kb.query", "lmkbc.kb.export.rdf"))]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "pyoxigraph", None)
    assert "pyoxigraph, which is not installed: install lmkbc[rdf]" in run.fails("ASK {}")
