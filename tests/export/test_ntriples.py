"""N-Triples: read by a strict reader, whatever text a model wrote."""

from __future__ import annotations

from urllib.parse import unquote

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyoxigraph import Literal, NamedNode, RdfFormat, Store, Triple, parse

from lmkbc.build.manifest import About
from lmkbc.build.saved import FactRow
from lmkbc.errors import InputError
from lmkbc.export.ntriples import XSD, Triples, checked_base, iri, line, text

ENTITY, BORDERS, AREA = About("P47", "entity"), About("P47", "entity"), About("P2046", "number", "km2", "Q712226")
WD, WDT = "http://www.wikidata.org/entity/", "http://www.wikidata.org/prop/direct/"


def read(written: str) -> list[Triple]:
    """Return the triples of a file as a strict reader gives them. Every line is one."""
    made = [quad.triple for quad in parse(written, RdfFormat.N_TRIPLES)]
    assert len(made) == written.count("\n")
    return made


@given(st.text())
def test_any_text_round_trips(value: str) -> None:
    (triple,) = read(line("<a:a>", "<a:b>", text(value)))
    assert triple.object == Literal(value)


@given(st.text(min_size=1))
def test_any_name_is_an_iri_of_its_own(name: str) -> None:
    (triple,) = read(line(iri("urn:lmkbc:entity/", name), "<a:b>", "<a:c>"))
    assert unquote(triple.subject.value.removeprefix("urn:lmkbc:entity/")) == name


def fact(subject: str = "Chad", qid: str | None = "Q657", **more: object) -> FactRow:
    base = FactRow(0, subject, qid, "Libya", "Q1016", None, 0.875, ["gpt#0"], "gpt", "country-borders", BORDERS)
    return base._replace(**more)  # type: ignore[arg-type]


LARGE = fact(object="1,284,000", object_id=None, literal="1284000", relation="area", about=AREA)
OWN = "urn:lmkbc:entity/"


def test_truthy_triples_are_wikidata_s() -> None:
    facts = [fact(), fact("A b", None), fact(object='"N"\n', object_id=None), LARGE, LARGE._replace(literal=None)]
    made = read("".join(one for each in facts for one in Triples().truthy(each)))
    chad, borders = NamedNode(f"{WD}Q657"), NamedNode(f"{WDT}P47")
    label = NamedNode("http://www.w3.org/2000/01/rdf-schema#label")
    assert {(one.subject, one.predicate, one.object) for one in made} == {
        (chad, borders, NamedNode(f"{WD}Q1016")),
        (NamedNode(f"{OWN}A%20b"), borders, NamedNode(f"{WD}Q1016")),
        (NamedNode(f"{OWN}A%20b"), label, Literal("A b")),
        (chad, borders, NamedNode(f"{OWN}%22N%22%0A")),
        (NamedNode(f"{OWN}%22N%22%0A"), label, Literal('"N"\n')),
        (chad, NamedNode(f"{WDT}P2046"), Literal("+1284000", datatype=NamedNode(f"{XSD}decimal"))),
    }


def test_statement_nodes_carry_confidence_model_and_date_and_numbers_their_unit() -> None:
    triples = Triples(date="2026-11-22", run="0123456789abcdef")
    made = Store()
    written = "".join(one for each in (fact(model="gpt; bert"), LARGE) for one in triples.statement(each))
    made.load(written, RdfFormat.N_TRIPLES)
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
    counted = LARGE._replace(about=About("P1971", "number", "children"))
    assert f"{WD}Q199" in "".join(triples.statement(counted))


@given(st.text(), st.text(), st.text(), st.text(), st.sampled_from(["entity", "string", "number"]))
def test_whatever_a_model_wrote_every_line_is_a_triple(
    subject: str, value: str, model: str, source: str, kind: str
) -> None:
    hostile = fact(subject, None, object=value, object_id=None, model=model, sources=[source])._replace(
        about=About("P1", kind)  # type: ignore[arg-type]
    )
    for write in (Triples().truthy, Triples(date="2026-11-22", run="x").statement):
        read("".join(write(hostile)))


def test_the_same_fact_is_the_same_statement_and_another_another() -> None:
    nodes = {next(Triples().statement(one)) for one in (fact(), fact(confidence=0.1), fact(object_id="Q2"), LARGE)}
    assert len(nodes) == 3


@pytest.mark.parametrize("base", ["urn:x:", "https://example.org/kb/", "http://a.b#"])
def test_an_own_space_of_iris(base: str) -> None:
    assert checked_base(base) == base
    assert f"<{base}entity/A%20b>" in "".join(Triples(base).truthy(fact("A b", None)))


@pytest.mark.parametrize("base", ["", "kb/", "http://a.b/x", "http://a b/", "http://a>/", "urn:ü:"])
def test_what_is_no_space_of_iris_is_refused(base: str) -> None:
    with pytest.raises(InputError, match="give the beginning of an absolute IRI"):
        checked_base(base)
