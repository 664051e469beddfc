"""Turtle, JSON-LD and SQLite of a base that keeps its replies: provenance, evidence and full-text search."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from bases import Base, answered, written
from bases import fact as fact_row
from command import Command
from pyoxigraph import RdfFormat, Store

from lmkbc import registry
from lmkbc.testing import CandidateSet, Query
from lmkbc.testing.exports import exported, fact

REPLY = 'Libya, "Niger"\n\u2028'


def answer(query: Query) -> CandidateSet:
    return answered(query, ("Libya", "Q1016", 0.9), ("Niger", None, 0.6))


@pytest.fixture
def run(command: Command, tmp_path: Path) -> Command:
    base = Base(tmp_path, ["Chad"])
    base.file.write_text("name,id\nChad,Q657\nNowhere,\n")
    Path("a.json").write_text("{}")
    base.writes = lambda query: REPLY if query.subject == "Chad" else "none"
    with pytest.MonkeyPatch.context() as patch:
        base.build(patch, answer, ["country-borders"], system={"name": "mine"}, search_table="a.json")
    return command.under("export")


@pytest.mark.parametrize(("form", "of"), [("turtle", RdfFormat.TURTLE), ("jsonld", RdfFormat.JSON_LD)])
def test_a_fact_has_its_build_model_recipe_and_replies(run: Command, form: str, of: RdfFormat) -> None:
    assert "4 facts\n" in run.done("kb", "--format", form, "--out", "x")[1]
    store = Store()
    store.load(path="x", format=of)
    manifest = json.loads(Path("kb/manifest.json").read_text())
    prefixes = {"wd": "http://www.wikidata.org/entity/", "p": "http://www.wikidata.org/prop/"}
    prefixes |= {"prov": "http://www.w3.org/ns/prov#", "rdfs": "http://www.w3.org/2000/01/rdf-schema#"}
    prefixes |= {"ps": "http://www.wikidata.org/prop/statement/", "dct": "http://purl.org/dc/terms/"}
    (found,) = store.query(
        """SELECT ?model ?build ?reply ?ended ?recipe ?file ?asked ?name {
        wd:Q657 p:P47 ?s ; rdfs:label "Chad" . ?s ps:P47 wd:Q1016 ; prov:wasGeneratedBy ?question ;
          prov:wasAttributedTo [ a prov:SoftwareAgent ; rdfs:label ?model ] .
        wd:Q1016 rdfs:label ?name .
        ?question a prov:Activity ; dct:isPartOf ?run .
        ?run a prov:Activity ; rdfs:label ?build ; prov:endedAtTime ?ended ;
          prov:used [ a prov:Plan ; rdfs:label ?recipe ], [ a prov:Entity ; rdfs:label ?file ], ?relation .
        ?relation rdfs:label ?asked FILTER(?file = "a.json" && ?asked = "country-borders")
        ?text a prov:Entity ; prov:wasGeneratedBy ?question ; prov:value ?reply }""",
        prefixes=prefixes,
    )
    shown = {name: found[name].value for name in "model build reply recipe name".split()}
    assert shown == {
        "model": "model",
        "build": f"build {manifest['run']}",
        "reply": REPLY,
        "recipe": "mine",
        "name": "Libya",
    }
    assert found["ended"].datatype.value.endswith("#dateTime")


def test_triples_of_a_base_without_replies_name_the_build() -> None:
    made = exported("turtle", [fact(model="a; b")]).text
    assert "own:statement" in made
    assert made.count("prov:wasAttributedTo") == 2
    assert f"prov:wasGeneratedBy own:run\\/{'0' * 16}" in made


def test_a_database_has_evidence_and_is_searched(run: Command) -> None:
    run.done("kb", "--format", "sqlite", "--out", "x.db")
    run.done("kb", "--format", "ntriples", "--out", "x.nt")
    run.done("kb", "--format", "statements", "--out", "s.nt")
    with closing(sqlite3.connect("x.db")) as db:
        rows = db.execute(
            "SELECT s.node, r.name, o.node, confidence FROM facts JOIN entities s ON subject_id = s.id "
            "JOIN entities o ON object_id = o.id JOIN relations r ON relation_id = r.id ORDER BY facts.id"
        ).fetchall()
        assert rows == [
            ("Q657", "country-borders", "Q1016", 0.9),
            ("Q657", "country-borders", "entity/Niger", 0.6),
            ("entity/Nowhere", "country-borders", "Q1016", 0.9),
            ("entity/Nowhere", "country-borders", "entity/Niger", 0.6),
        ]
        assert all(f"statement/{key}>" in Path("s.nt").read_text() for (key,) in db.execute("SELECT key FROM facts"))
        kinds = db.execute("SELECT kind, count(*) FROM evidence GROUP BY kind ORDER BY kind").fetchall()
        assert kinds == [("draw", 4), ("model", 4), ("reply", 4)]
        search = "SELECT {} FROM {} WHERE {} MATCH ?"
        assert db.execute(search.format("name", "entities_fts", "entities_fts"), ("nowhere",)).fetchall() == [
            ("Nowhere",)
        ]
        assert db.execute(search.format("object", "facts_fts", "facts_fts"), ("nig*",)).fetchall() == [("Niger",)] * 2
        assert (
            db.execute(search.format("text", "evidence_fts", "evidence_fts"), ('"libya niger"',)).fetchall()
            == [(REPLY,)] * 2
        )
        assert db.execute("SELECT * FROM reviews").fetchall() == []
        plan = db.execute("EXPLAIN QUERY PLAN SELECT * FROM facts WHERE subject_id = 1").fetchall()
        assert "facts_subject" in str(plan)


def test_a_database_holds_typed_values_with_language_and_unit() -> None:
    area = fact(
        "1,284,000", literal="1284000", property="P2046", kind="number", unit="km2", unit_id="Q712226", relation="area"
    )
    motto = fact("Liberté", kind="text", relation="motto")
    with closing(sqlite3.connect(":memory:")) as db:
        db.deserialize(exported("sqlite", [area, motto]).content)
        rows = db.execute("SELECT object, value, datatype, language, unit_id, object_id FROM facts").fetchall()
    assert rows == [
        ("1,284,000", "1284000", "xsd:decimal", None, "Q712226", None),
        ("Liberté", "Liberté", "rdf:langString", "und", None, None),
    ]


def test_an_export_that_fails_leaves_no_file(run: Command, tmp_path: Path) -> None:
    (part,) = Path("kb").glob("facts/*/*.parquet")
    part.write_bytes(part.read_bytes()[:-1] + b"x")
    for form in registry.EXPORTS:
        if not form.startswith(("quickstatements", "worklist")):
            assert "is damaged" in run.fails("kb", "--format", form, "--out", "x")
    assert not Path("x").exists()


def test_decisions_and_quotes_are_in_rdf_and_in_the_database(command: Command) -> None:
    quote = {"quote": 'Chad "borders" \n<Niger>', "quote_file": "a b/ä.md", "quote_start": 3, "quote_end": 9}
    rows = [
        fact_row(0, "country-borders", "Niger", 0.9, object_id="Q1032", source="https://example.org/a?b=1", **quote),
        fact_row(0, "country-borders", "Mali", 0.9, object_id="Q912", **quote),
    ]
    written(Path("kb"), rows)
    Path("labels.csv").write_text("relation,subject,object,label,source\ncountry-borders,subject 0,Mali,right,Q42\n")
    command.done("review", "kb", "labels.csv", "--reviewer", 'Ann "A" <a@b>')
    found = json.loads(
        command.done("query", "kb", "SELECT ?fact ?source WHERE { ?fact prov:hadPrimarySource ?source }", "--json")[0]
    )
    assert sorted(row["source"].strip("<>") for row in found) == [
        "http://www.wikidata.org/entity/Q42",
        "https://example.org/a?b=1",
    ]
    quoted = (
        "SELECT ?text ?who WHERE { ?fact prov:wasDerivedFrom [ prov:value ?text ] ; "
        "prov:wasAttributedTo [ a prov:Person ; rdfs:label ?who ] }"
    )
    (row,) = json.loads(command.done("query", "kb", quoted, "--json")[0])
    assert (row["text"], row["who"]) == (quote["quote"], 'Ann "A" <a@b>')
    command.done("export", "kb", "--format", "sqlite", "--out", "kb.sqlite")
    with closing(sqlite3.connect("kb.sqlite")) as db:
        assert db.execute("SELECT verdict, source_address, reviewer FROM reviews").fetchall() == [
            ("right", "Q42", 'Ann "A" <a@b>')
        ]
        assert db.execute("SELECT count(*) FROM evidence WHERE kind = 'quote'").fetchone() == (2,)
