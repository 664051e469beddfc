"""`lmkbc export`: a base in every format, by the command, whatever a model wrote; nothing of a damaged base."""

import csv
import io
import json
import re
import shutil
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import networkx
import polars as pl
import pytest
from bases import Base, answered, failed, written
from bases import fact as fact_row
from command import Command
from hypothesis import given
from hypothesis import strategies as st
from opened import recipe_file
from pyoxigraph import Literal, NamedNode, RdfFormat, Store, Triple, parse
from small_disk import small_disk
from wikidata_readers import comma_separated, items, version_1

import lmkbc
from lmkbc import InputError, registry
from lmkbc.files import tables
from lmkbc.files.tables import InputTable
from lmkbc.kb.base.knowledge import Knowledge
from lmkbc.testing import CandidateSet, Query
from lmkbc.testing.exports import exported, fact

RELATIONS = ("country-borders", "children")
WD = "http://www.wikidata.org/entity/"


def answer(query: Query) -> CandidateSet:
    if query.relation == "CountryBordersCountry":
        return answered(query, ("Libya", "Q1016", 0.9), ('the "north"\n */ |', None, 0.6))
    return answered(query, ("4", None, 0.7))


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    base = Base(tmp_path_factory.mktemp("base"), ["Chad", "Mali", "Niger"])
    with base.file.open("a") as file:
        file.write("Nowhere,\n")
    with pytest.MonkeyPatch.context() as patch:
        base.build(patch, answer, RELATIONS)
    return base.out


@pytest.fixture
def run(made: Path, command: Command) -> Command:
    shutil.copytree(made, "kb")
    return command.under("export")


def test_triples_and_statements(run: Command, tmp_path: Path) -> None:
    assert run("kb", "--format", "ntriples", "--out", "t.nt")[0] == 0
    assert run("kb", "--format", "ntriples", "--out", "sure.nt", "--least", "0.7")[0] == 0
    assert run("kb", "--format", "statements", "--out", "s.nt", "--date", "2026-11-01")[0] == 0
    truthy, sure, statements = (
        [(quad.predicate.value, quad.object.value) for quad in parse(path=tmp_path / name, format=RdfFormat.N_TRIPLES)]
        for name in ("t.nt", "sure.nt", "s.nt")
    )
    direct = [p for p, _ in truthy if "/direct/" in p]
    assert (direct.count("http://www.wikidata.org/prop/direct/P47"), len(direct)) == (8, 12)
    assert sum("/direct/" in p for p, _ in sure) == 8
    confidences = [float(o) for p, o in statements if p.endswith("confidence")]
    assert sorted(confidences) == [0.6] * 4 + [0.7] * 4 + [0.9] * 4
    assert {o for p, o in statements if p.endswith("created")} == {"2026-11-01"}


def test_python_writes_what_the_command_writes_and_refuses_what_it_refuses(run: Command, tmp_path: Path) -> None:
    run.done("kb", "--format", "ntriples", "--out", "command.nt", "--least", "0.7")
    made = lmkbc.export("kb", "ntriples", "python.nt", least=0.7)
    assert (tmp_path / "python.nt").read_bytes() == (tmp_path / "command.nt").read_bytes()
    assert (made.count, made.left_out["confidence below 0.7"]) == (
        len((tmp_path / "python.nt").read_bytes().splitlines()),
        4,
    )
    for wrong, told in (
        ({"format": "triples"}, "did you mean 'ntriples'"),
        ({"least": 70}, "least is 70: give 0 to 1"),
        ({"batch": 0}, "batch is 0: give at least 1"),
    ):
        with pytest.raises(InputError, match=told):
            lmkbc.export(**{"knowledge": "kb", "format": "quickstatements", "out": "x"} | wrong)


def test_low_confidence_is_left_out_and_counted_unless_it_is_asked_for(command: Command) -> None:
    Path("subjects.csv").write_text("id,name,class\nQ657,Chad,country\n")
    scored = [{"object": "Libya", "id": "Q1016", "score": 0.9}, {"object": "Niger", "id": "Q1032", "score": 0.4}]
    row = {"SubjectEntity": "Chad", "Relation": "CountryBordersCountry", "candidates": scored}
    Path("said.candidates.jsonl").write_text(json.dumps(row))
    recipe = recipe_file(Path("mine.toml"), {"component": "recorded"}, select={"rule": "cutoff", "threshold": 0.1})
    options = ("--edition", "mini", "--relation", "country-borders", "--from", "said.candidates.jsonl", "--offline")
    command.done("build", "--subjects", "subjects.csv", "--system", recipe, *options, "--out", "low", "--least", "0")
    Path("known").write_text("subject,property,object\nQ9,P47,Q1\nQ657,P1,Q1\n")
    for form in registry.EXPORTS:
        more = ("--known", "known", "--unreviewed") if form.startswith(("quickstatements", "worklist")) else ()
        _, told = command.done("export", "low", "--format", form, "--out", f"sure.{form}", *more)
        reasons = "confidence below 0.5 1; --least 0 writes facts of any confidence"
        assert f"sure.{form}: 1 fact left out, by reason: {reasons}" in told
        _, told = command.done("export", "low", "--format", form, "--out", f"all.{form}", "--least", "0", *more)
        assert "left out" not in told
        every, sure = (content(Path(f"{name}.{form}")) for name in ("all", "sure"))
        assert ("Q1032" in every, "Q1032" in sure, "Q1016" in sure) == (True, False, True), form


def content(path: Path) -> str:
    """Return the text of a file, or of all files of a directory."""
    if path.suffix in (".parquet", ".sqlite"):
        return pl.read_parquet(path).write_csv() if path.suffix == ".parquet" else path.read_bytes().decode("latin-1")
    return path.read_text() if path.is_file() else "".join(one.read_text() for one in sorted(path.iterdir()))


def test_wikidata_s_json_has_each_subject_once(run: Command, tmp_path: Path) -> None:
    assert run("kb", "--format", "wikidata-json", "--out", "e.json")[0] == 0
    text = (tmp_path / "e.json").read_text()
    entities = json.loads(text)
    assert [one.id for one in items(text)] == ["Q1", "Q2", "Q3", None]
    assert [one.get("id") for one in entities] == ["Q1", "Q2", "Q3", None]
    assert all(json.loads(line.rstrip(",")) in entities for line in text.splitlines()[1:-1])
    assert entities[3]["labels"] == {"mul": {"language": "mul", "value": "Nowhere"}}
    linked, unlinked = entities[0]["claims"]["P47"]
    assert linked == {
        "mainsnak": {
            "snaktype": "value",
            "property": "P47",
            "datavalue": {
                "type": "wikibase-entityid",
                "value": {"entity-type": "item", "numeric-id": 1016, "id": "Q1016"},
            },
            "datatype": "wikibase-item",
        },
        "type": "statement",
        "rank": "normal",
    }
    assert unlinked["mainsnak"] == {"snaktype": "somevalue", "property": "P47", "datatype": "wikibase-item"}
    (named,) = unlinked["qualifiers"]["P1932"]
    assert named["datavalue"] == {"type": "string", "value": 'the "north" */ |'}
    (children,) = entities[0]["claims"]["P1971"]
    assert children["mainsnak"]["datavalue"] == {"type": "quantity", "value": {"amount": "+4", "unit": "1"}}


def n_triples(written: str) -> set[str]:
    return {quad.subject.value.removeprefix(WD) for quad in parse(written, RdfFormat.N_TRIPLES)}


READERS: dict[str, Callable[[str], set[Any]]] = {
    "ntriples": n_triples,
    "statements": n_triples,
    "wikidata-json": lambda text: {item.id for item in items(text)},
    "quickstatements": lambda text: {row[0] for row in version_1(text)},
    "quickstatements-csv": lambda text: {row[0] for row in comma_separated(text)},
    "csv": lambda text: {*pl.read_csv(io.StringIO(text))["subject_id"]},
    "graphml": lambda text: {*networkx.parse_graphml(text)},
}
"""Format -> reader of others' making, which returns the subjects."""


@pytest.mark.parametrize("form", READERS)
def test_a_part_is_written_alone_for_a_reader_of_each_format(run: Command, tmp_path: Path, form: str) -> None:
    Path("known").write_text("subject,property,object\nQ9,P47,Q1\nQ9,P1971,3\nQ1,P1,Q1\nQ2,P1,Q1\n")
    more = ("--known", "known", "--unreviewed") if form.startswith("quickstatements") else ()
    assert run("kb", "--format", form, "--out", "part", "-r", "children", "--limit", "2", *more)[0] == 0
    part = tmp_path / "part"
    written = part.read_text() if part.is_file() else next(part.glob("review-*")).read_text()
    assert {"Q1", "Q2"} <= READERS[form](written)
    assert ("P1971" in written, "P47" in written) == (True, False)
    assert ("Q2" in written, "Q3" in written) == (True, False)
    assert "no facts of 'childs': did you mean 'children'" in run.fails(
        "kb", "--format", form, "--out", "none", "--relation", "childs"
    )
    assert not (tmp_path / "none").exists()


def known(form: str, path: Path) -> None:
    """Wikidata has: that Q1 borders Q1016 and has 4 children, and something of another property."""
    rows = [("Q1", "P47", "Q1016"), (f"{WD}Q1", "P1971", "+4.0"), ("Q2", "P31", "Q1016")]
    if form == "csv":
        with path.open("w", newline="") as file:
            csv.writer(file).writerows([("subject", "property", "object"), *rows])
    elif form == "parquet":
        pl.DataFrame(rows, schema=["subject", "property", "object"], orient="row").write_parquet(path)
    else:
        direct = "http://www.wikidata.org/prop/direct/"
        path.write_text(
            f"# a dump\n<{WD}Q1> <{direct}P47> <{WD}Q1016> .\n"
            f'<{WD}Q1> <{direct}P1971> "+4.0"^^<http://www.w3.org/2001/XMLSchema#decimal> .\n'
            f'<{WD}Q1> <http://www.w3.org/2000/01/rdf-schema#label> "x \\" y"@en .\n'
            f"<{WD}Q2> <{direct}P31> <{WD}Q1016> .\n"
        )


@pytest.mark.parametrize(
    ("form", "written"), [("csv", "quickstatements"), ("parquet", "quickstatements"), ("nt", "quickstatements-csv")]
)
def test_only_linked_facts_that_are_not_known_are_for_review(
    run: Command, tmp_path: Path, form: str, written: str
) -> None:
    known(form, tmp_path / "known")
    assert (
        "never ready for upload"
        in run.done("kb", "--format", written, "--unreviewed", "--known", "known", "--out", "review", "--batch", "1")[1]
    )
    notice, contradicting, uncovered, _, *files = sorted((tmp_path / "review").iterdir())
    read, ending = (version_1, "txt") if written == "quickstatements" else (comma_separated, "csv")
    assert [path.name for path in files] == [f"review-00001.{ending}", f"review-00002.{ending}"]
    assert "a model is no source" in notice.read_text()
    batches = [read(path.read_text()) for path in files]
    assert [len(each) for each in batches] == [1, 1]
    assert (contradicting.name, contradicting.read_text().count("\n")) == ("contradicting.csv", 1)
    assert uncovered.name == "not-covered.csv"
    assert [row["subject_id"] for row in csv.DictReader(uncovered.read_text().splitlines())] == ["Q3", "Q3"]
    commands = [one for each in batches for one in each]
    assert [one[:4] for one in commands] == [
        ("Q2", "P47", "Q1016", ()),
        ("Q2", "P1971", "4", ()),
    ]
    assert all(one.summary.startswith("unchecked, for review: ") for one in commands)


@given(st.text(), st.text(st.sampled_from('a*|/",\r ')), st.text(), st.sampled_from(["entity", "string", "number"]))
def test_any_text_is_one_line_of_review_and_of_json(subject: str, value: str, model: str, kind: str) -> None:
    made = fact(value, "Q2", subject=subject, subject_id="Q1", literal="4", model=model, property="P1", kind=kind)
    bare = made._replace(subject_row=1, subject_id=None, object_id=None, literal=None)
    written = exported("wikidata-json", [made, bare]).text
    entities = json.loads(written)
    assert len(items(written)) == len(entities)
    assert len(written.split("\n")) == 3 + len(entities)
    line = exported("quickstatements", [made]).text
    if kind == "string" and (
        not value or " ".join(value.split()) != value or any(mark in value for mark in ('"', "|", "/*", "*/"))
    ):
        assert line == ""
        return
    assert (line.count("\t"), line.count("\n"), line.count("*/"), line.count("|")) == (2, 1, 1, 0)
    assert len(line.splitlines()) == 1
    assert version_1(line) == comma_separated(exported("quickstatements-csv", [made]).text)
    assert version_1(line)[0][:4] == ("Q1", "P1", {"entity": "Q2", "number": "4"}.get(kind, f'"{value}"'), ())


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("kb", "--format", "quickstatements", "--out", "x"), "give those that it has with --known"),
        (("kb", "--format", "quickstatements", "--out", "kb", "--known", "known"), "kb holds files already"),
        (("kb", "--format", "quickstatements", "--out", "x", "--known", "empty"), "empty holds no statement"),
        (
            ("kb", "--format", "quickstatements", "--out", "x", "--known", "wrong"),
            "wrong, line 2: 'country-border' is no property, such as P31, and no relation of this base; did you mean "
            "'country-borders'?",
        ),
        (("kb", "--format", "ntriples", "--out", "kb"), "kb is a directory: name a file"),
        (("kb", "--format", "ntriples", "--out", "empty"), "empty is there already"),
        (
            ("kb", "--format", "wikidata-json", "--out", "known"),
            "known is there already, and this command replaces nothing",
        ),
        (("kb", "--format", "ntriples", "--out", "x", "--base", "kb"), "--base is 'kb'"),
        (("kb", "--format", "statements", "--out", "x", "--date", "soon"), "--date is 'soon'"),
        (("absent", "--format", "ntriples", "--out", "x"), "absent is no directory: give one of 'lmkbc build'"),
    ],
)
def test_what_cannot_be_is_one_sentence(run: Command, tmp_path: Path, arguments: tuple[str, ...], told: str) -> None:
    known("csv", tmp_path / "known")
    (tmp_path / "empty").write_text("subject,property,object\n")
    (tmp_path / "wrong").write_text("subject,property,object\nParis,country-border,Q1\n")
    error = run.fails(*arguments)
    assert (error.count("\n"), told in error) == (1, True)
    assert not (tmp_path / "x").exists()


def damaged(kb: Path, what: str) -> str:
    """Damage a base; what is said of it."""
    manifest = json.loads((kb / "manifest.json").read_text())
    shard: dict[str, Any] = manifest
    name = next(name for name in shard["outputs"] if name.startswith("facts"))
    if what == "part":
        (kb / name).write_bytes((kb / name).read_bytes()[:-1] + b"x")
        return "is damaged, since it is not what the manifest says"
    if what == "gone":
        (kb / name).unlink()
        return "does not exist"
    if what == "outside":
        shard["outputs"] = {name.replace("part", "../../part"): "0" * 64 for name in shard["outputs"]}
    elif what == "schema":
        manifest["schema"] = "9"
    elif what == "property":
        manifest["relations"]["children"]["property"] = "P1> <x:y"
    (kb / "manifest.json").write_text(json.dumps(manifest) if what != "json" else "{")
    return {"schema": "is of schema 9", "outside": ""}.get(what, "is no manifest of a build")


@pytest.mark.parametrize("what", ["part", "gone", "outside", "schema", "property", "json"])
def test_a_damaged_base_is_told_and_no_file_is_left(run: Command, tmp_path: Path, what: str) -> None:
    told = damaged(tmp_path / "kb", what)
    status, _, error = run("kb", "--format", "ntriples", "--out", "x.nt")
    if what == "outside":  # no part of the relation's directory: it is not read
        assert status == 0
        return
    assert (status, error.count("\n"), told in error) == (2, 1, True), error
    assert [path.name for path in tmp_path.iterdir()] == ["kb"]


def test_a_base_that_is_not_finished_is_not_exported(run: Command, tmp_path: Path) -> None:
    (tmp_path / "kb" / "unfinished").mkdir()
    (tmp_path / "kb" / "manifest.json").rename(tmp_path / "kb" / "unfinished" / "manifest.json")
    assert "run 'lmkbc build' again" in run.fails("kb", "--format", "ntriples", "--out", "x.nt")


def test_facts_come_by_subject_whatever_shards_they_lie_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    base = Base(tmp_path, [f"land {n}" for n in range(11)], shard=3)
    base.build(monkeypatch, lambda query: failed(query) if query.subject == "land 5" else answer(query), RELATIONS)
    found = [(facts[0].subject_row, len(facts)) for facts in Knowledge(base.out).by_subject()]
    assert found == [(row, 3) for row in range(11) if row != 5]


def quantity(unit: str | None, item: str | None, literal: str = "250", **more: Any) -> Any:
    about = {"property": "P2046", "kind": "number", "unit": unit, "unit_id": item}
    return fact(literal, subject="X", subject_id="Q1", literal=literal, relation="area", **about, **more)


@pytest.mark.parametrize(
    ("unit", "item", "amount", "unit_of_amount"),
    [
        ("km2", "Q712226", "250", "Q712226"),
        ("ha", "Q712226", "2.5", "Q712226"),
        ("square miles", "Q712226", "647.497", "Q712226"),
        ("hectares", None, "250", "Q35852"),
        ("°F", "Q25267", "121.1111", "Q25267"),
        ("spectators", None, "250", None),
        ("US dollars", None, "250", "Q4917"),
        ("furlongs", "Q12345", "250", "Q12345"),
    ],
)
def test_numbers_are_exported_in_the_unit_of_the_relation_s_item(
    unit: str, item: str | None, amount: str, unit_of_amount: str | None
) -> None:
    row = quantity(unit, item)
    (proposal,) = version_1(exported("quickstatements", [row]).text)
    assert proposal.value == amount + (unit_of_amount or "").replace("Q", "U")
    (claim,) = json.loads(exported("wikidata-json", [row]).text)
    value = claim["claims"]["P2046"][0]["mainsnak"]["datavalue"]["value"]
    assert value == {"amount": f"+{amount}", "unit": f"{WD}{unit_of_amount}" if unit_of_amount else "1"}
    triples = exported("statements", [row]).text
    assert f'"+{amount}"' in triples
    assert f"quantityUnit> <{WD}{unit_of_amount or 'Q199'}>" in triples
    assert f'"+{amount}"' in exported("ntriples", [row]).text
    (cells,) = csv.DictReader(io.StringIO(exported("csv", [row._replace(precision="1")]).text, newline=""))
    assert (cells["value"], cells["unit_id"]) == (amount, unit_of_amount or "")
    in_own = {"Q712226": "kilometer ** 2", "Q25267": "degree_Celsius"}
    assert (cells["unit"], cells["precision"]) == ((unit, "1") if amount == "250" else (in_own[item or ""], ""))


def test_two_facts_with_one_value_have_two_nodes_in_graphml() -> None:
    drawn = networkx.parse_graphml(exported("graphml", [quantity("km2", "Q712226")] * 2).text)
    assert sorted(data["label"] for _, data in drawn.nodes(data=True)) == ["250", "250", "X"]


def test_a_unit_and_an_item_of_different_dimensions_are_named() -> None:
    with pytest.raises(InputError, match="relation area: its unit 'km2' cannot be converted into its unit_id Q11573"):
        exported("csv", [quantity("km2", "Q11573")])


def test_a_statement_that_is_known_in_another_unit_is_not_proposed() -> None:
    known = "subject,property,object\nQ1,P2046,25000U35852\nQ2,P2046,7\n"
    facts = [quantity("km2", "Q712226"), quantity("km2", "Q712226", "25000")]
    made = exported("quickstatements", facts, known=known)
    assert ([one.value for one in version_1(made.text)], made.left_out) == (["25000U712226"], {"known already": 1})


WDT = "http://www.wikidata.org/prop/direct/"


def read(written: str) -> list[Triple]:
    """Return the triples of a file as a strict reader gives them. Every line is one."""
    made = [quad.triple for quad in parse(written, RdfFormat.N_TRIPLES)]
    assert len(made) == written.count("\n")
    return made


@given(st.text(min_size=1))
def test_any_name_is_an_iri_and_a_label_of_its_own(name: str) -> None:
    triple, label = read(exported("ntriples", [fact(object_id="Q1016", subject=name, subject_id=None)]).text)
    assert unquote(triple.subject.value.removeprefix("urn:lmkbc:entity/")) == name
    assert (label.subject, label.object) == (triple.subject, Literal(name))


BORDERS = fact(object_id="Q1016", sources=["gpt#0"], model="gpt", relation="country-borders")
LARGE = fact(
    "1,284,000",
    literal="1284000",
    sources=["gpt#0"],
    model="gpt",
    relation="area",
    property="P2046",
    kind="number",
    unit="km2",
    unit_id="Q712226",
)
NAMED = BORDERS._replace(subject="A b", subject_id=None)
OWN = "urn:lmkbc:entity/"


def test_truthy_triples_are_wikidata_s() -> None:
    unlinked = BORDERS._replace(object='"N"\n', object_id=None)
    written = exported("ntriples", [BORDERS, NAMED, unlinked, LARGE, LARGE._replace(literal=None)])
    made = read(written.text)
    assert (written.facts, written.left_out) == (4, {"no readable number": 1})
    chad, borders = NamedNode(f"{WD}Q657"), NamedNode(f"{WDT}P47")
    label = NamedNode("http://www.w3.org/2000/01/rdf-schema#label")
    assert {(one.subject, one.predicate, one.object) for one in made} == {
        (chad, borders, NamedNode(f"{WD}Q1016")),
        (NamedNode(f"{OWN}A%20b"), borders, NamedNode(f"{WD}Q1016")),
        (NamedNode(f"{OWN}A%20b"), label, Literal("A b")),
        (chad, borders, NamedNode(f"{OWN}%22N%22%0A")),
        (NamedNode(f"{OWN}%22N%22%0A"), label, Literal('"N"\n')),
        (
            chad,
            NamedNode(f"{WDT}P2046"),
            Literal("+1284000", datatype=NamedNode("http://www.w3.org/2001/XMLSchema#decimal")),
        ),
    }


def test_statement_nodes_carry_confidence_model_and_date_and_numbers_their_unit() -> None:
    made = Store()
    facts = [BORDERS._replace(model="gpt; bert"), LARGE]
    made.load(exported("statements", facts, run="0123456789abcdef").text, RdfFormat.N_TRIPLES)
    query = """
        PREFIX p: <http://www.wikidata.org/prop/> PREFIX ps: <http://www.wikidata.org/prop/statement/>
        PREFIX psv: <http://www.wikidata.org/prop/statement/value/> PREFIX wd: <http://www.wikidata.org/entity/>
        PREFIX wikibase: <http://wikiba.se/ontology#> PREFIX own: <urn:lmkbc:> PREFIX dct: <http://purl.org/dc/terms/>
    """
    (borders,) = made.query(
        query
        + """SELECT ?o ?c ?d (GROUP_CONCAT(?m; separator=",") AS ?ms) { wd:Q657 p:P47 ?s . ?s a wikibase:Statement ;
        ps:P47 ?o ; wikibase:rank wikibase:NormalRank ; own:confidence ?c ; own:model ?m ; dct:created ?d ;
        own:source "gpt#0" ; own:run "0123456789abcdef" } GROUP BY ?o ?c ?d"""
    )
    assert [borders[name].value for name in "ocd"] == [f"{WD}Q1016", "0.875", "2026-11-22"]
    assert sorted(borders["ms"].value.split(",")) == ["bert", "gpt"]
    (area,) = made.query(
        query
        + """SELECT ?a ?u ?v { wd:Q657 p:P2046 ?s . ?s ps:P2046 ?v ; psv:P2046 ?n . ?n a wikibase:QuantityValue ;
        wikibase:quantityAmount ?a ; wikibase:quantityUnit ?u }"""
    )
    assert [area[name].value for name in "auv"] == ["1284000", f"{WD}Q712226", "1284000"]
    counted = fact("4", literal="4", property="P1971", kind="number", unit="children")
    assert f"{WD}Q199" in exported("statements", [counted]).text


def writable_texts() -> st.SearchStrategy[str]:
    """Return texts as columns hold them, without lone surrogates."""
    return st.text(st.characters(exclude_categories=("Cs",)))


@given(st.text(), st.text(), st.text(), st.text(), st.sampled_from([*registry.KINDS]))
def test_whatever_a_model_wrote_every_line_is_a_triple(
    subject: str, value: str, model: str, source: str, kind: str
) -> None:
    hostile = fact(
        value, subject=subject, subject_id=None, model=model, sources=[source], literal=value, property="P1", kind=kind
    )
    for form in ("ntriples", "statements"):
        with suppress(InputError):
            read(exported(form, [hostile]).text)


@given(writable_texts(), writable_texts(), writable_texts(), st.sampled_from([*registry.KINDS]))
def test_whatever_a_model_wrote_is_a_row_and_an_edge(subject: str, value: str, model: str, kind: str) -> None:
    hostile = fact(value, subject=subject, subject_id=None, model=model, property="P1", kind=kind)
    made, drawn = (exported(form, [hostile]) for form in ("csv", "graphml"))
    assert made.facts == (not registry.KINDS.get(kind).has_values)
    cells = [*csv.DictReader(io.StringIO(made.text, newline=""))]
    shown = [re.sub(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]", "\ufffd", text) for text in (subject, value, model)]
    columns = ("subject", "object", "model")
    assert [[row[name].removeprefix("'") for name in columns] for row in cells] == [
        [text.removeprefix("'") for text in shown]
    ] * made.facts
    edges = networkx.parse_graphml(drawn.text).edges(data=True)
    assert [data["relation"] for *_, data in edges] == ["relation"] * made.facts


def test_the_same_fact_is_the_same_statement_and_another_another() -> None:
    others = (BORDERS, BORDERS._replace(confidence=0.1), BORDERS._replace(object_id="Q2"), LARGE)
    assert len({exported("statements", [one]).text.split()[2] for one in others}) == 3


@pytest.mark.parametrize("base", ["urn:x:", "https://example.org/kb/", "http://a.b#"])
def test_an_own_space_of_iris(run: Command, base: str) -> None:
    run.done("kb", "--format", "ntriples", "--out", "x.nt", "--base", base)
    assert f"<{base}entity/Nowhere>" in Path("x.nt").read_text()


@pytest.mark.parametrize(
    "base",
    ["kb/", "http://a.b/x", "http://a b/", "http://a>/", "urn:ü:", "http://a.b/%zz/", "http://[/", "http://a:", ""],
)
def test_what_is_no_space_of_iris_is_refused(run: Command, base: str) -> None:
    told = run.fails("kb", "--format", "ntriples", "--out", "x.nt", "--base", base)
    assert "give the beginning of an absolute IRI" in told


@pytest.mark.parametrize(
    "form", [form for form in registry.EXPORTS if not form.startswith(("quickstatements", "worklist"))]
)
def test_a_full_disk_is_one_sentence_and_leaves_nothing(run: Command, tmp_path: Path, form: str) -> None:
    with small_disk(10):
        told = run.fails("kb", "--format", form, "--out", "x", status=1)
    assert re.search("x cannot be written: .*(File too large|disk).*; what was there before is untouched", told), told
    assert told.count("\n") == 1
    assert [path.name for path in tmp_path.iterdir()] == ["kb"]


FORMULAS = ("=1+1", "@SUM(A1)", "+cmd|' /C calc'!A0", "-2+3", "\t=1", "\r=1", "\uff1d1", "'=1", "''=1")


def test_texts_in_csv_are_no_formulas_and_are_read_back_as_they_were(command: Command) -> None:
    rows = [fact_row(0, "country-borders", text, 0.9) for text in FORMULAS]
    numbers = [fact_row(at, "children", text, 0.9, literal=text) for at, text in enumerate(("-5", "1.5"))]
    written(Path("kb"), [*rows, *numbers])
    command.done("export", "kb", "--format", "csv", "--out", "x.csv")
    cells = [row["object"] for row in csv.DictReader(io.StringIO(Path("x.csv").read_bytes().decode(), newline=""))]
    assert cells == [*(f"'{text}" for text in FORMULAS), "-5", "1.5"]
    read = [row.values[0] for row in InputTable(Path("x.csv"), ["object"], 1).rows()]
    assert read == [*FORMULAS, "-5", "1.5"]


def test_no_cell_of_a_table_is_a_formula_whatever_type_its_column_has() -> None:
    for kind in (pl.String, pl.Categorical, pl.Enum([*FORMULAS, "-5"])):
        frame = pl.DataFrame({"text": [*FORMULAS, "-5"]}).cast(kind)
        cells = [row["text"] for row in csv.DictReader(io.StringIO(tables.comma_separated(frame), newline=""))]
        assert cells == [*(f"'{text}" for text in FORMULAS), "-5"], kind


@given(st.sampled_from(FORMULAS) | st.text(st.sampled_from("=+-@1a\t\r'")), st.sampled_from([*registry.KINDS]))
def test_no_text_begins_a_cell_of_commands_as_a_formula(text: str, kind: str) -> None:
    literal = {"number": "-4", "date": "1985", "coordinates": "-45.5, -73.6"}.get(kind, text)
    made = exported("quickstatements-csv", [fact(text, kind=kind, literal=literal, property="P1", model=text)]).text
    for row in csv.reader(io.StringIO(made, newline="")):
        for cell in row:
            assert cell[:1] not in tuple("=+-@\t\r") or re.fullmatch(
                r"[+-]?[\d.]+|@[-\d./]+|\+[-\d]+T00:00:00Z/\d+", cell
            )


def test_control_characters_do_not_reach_a_cell(command: Command) -> None:
    texts = ("a\x1b[31m", "\x01=1", "=\x00\x07", "\x9b2J", "\x7f", "a\tb")
    written(Path("kb"), [fact_row(0, "country-borders", text, 0.9) for text in texts])
    command.done("export", "kb", "--format", "csv", "--out", "x.csv")
    cells = [row["object"] for row in csv.DictReader(Path("x.csv").read_text(encoding="utf-8").splitlines())]
    assert cells == ["a\ufffd[31m", "\ufffd=1", "'=\ufffd\ufffd", "\ufffd2J", "\ufffd", "a\tb"]
