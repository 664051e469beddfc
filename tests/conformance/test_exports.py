"""Every export is read by a reader of others' making: a new one in the registry needs its reader here."""

import csv
import io
import sqlite3
from collections.abc import Callable
from contextlib import closing

import networkx
import polars as pl
import pytest
import rdflib
from pyoxigraph import RdfFormat, parse

from lmkbc import registry
from lmkbc.testing.exports import check_exporter
from tests.wikidata_readers import comma_separated, items, version_1

STATEMENT = "http://wikiba.se/ontology#Statement"
DIRECT = "/direct/"


def n_triples(content: bytes) -> int:
    """Count truthy triples; every line is one for two readers."""
    made = [quad.triple for quad in parse(content, RdfFormat.N_TRIPLES)]
    assert len(made) == content.count(b"\n")
    graph = rdflib.Graph().parse(data=content, format="nt")
    assert len(graph) == len({*made})
    return sum(DIRECT in one.predicate.value for one in made)


def statements(content: bytes) -> int:
    """Count statement nodes of facts; equal facts share a node."""
    n_triples(content)
    lines = [quad.triple for quad in parse(content, RdfFormat.N_TRIPLES)]
    return sum(getattr(one.object, "value", "") == STATEMENT for one in lines)


def turtle(content: bytes) -> int:
    """Count statement nodes of Turtle, which two libraries read as the same graph."""
    ours = {quad.triple for quad in parse(content, RdfFormat.TURTLE)}
    assert len(rdflib.Graph().parse(data=content, format="turtle")) == len(ours)
    return sum(getattr(one.object, "value", "") == STATEMENT for one in ours)


def json_ld(content: bytes) -> int:
    """Count statement nodes of JSON-LD."""
    graph = rdflib.Graph().parse(data=content, format="json-ld")
    return len([*graph.subjects(rdflib.RDF.type, rdflib.URIRef(STATEMENT))])


def sqlite(content: bytes) -> int:
    """Count facts of a database without a broken reference."""
    with closing(sqlite3.connect(":memory:")) as db:
        db.deserialize(content)
        assert db.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        assert db.execute("PRAGMA foreign_key_check").fetchall() == []
        assert [*db.execute("SELECT count(*) FROM facts_fts WHERE facts_fts MATCH 'chad'")] != [(0,)]
        ((count,),) = db.execute("SELECT count(*) FROM facts JOIN entities ON subject_id = entities.id")
        return int(count)


READERS: dict[str, Callable[[bytes], int]] = {
    "ntriples": n_triples,
    "statements": statements,
    "turtle": turtle,
    "jsonld": json_ld,
    "sqlite": sqlite,
    "wikidata-json": lambda content: sum(len(some) for one in items(content.decode()) for some in one.claims.values()),
    "quickstatements": lambda content: len(version_1(content.decode())),
    "quickstatements-csv": lambda content: len(comma_separated(content.decode())),
    **dict.fromkeys(
        ("csv", "worklist"), lambda content: len([*csv.DictReader(io.StringIO(content.decode(), newline=""))])
    ),
    "parquet": lambda content: len(pl.read_parquet(io.BytesIO(content))),
    "graphml": lambda content: networkx.parse_graphml(content.decode(), force_multigraph=True).number_of_edges(),
}
"""Format -> number of facts that a reader of others' making finds."""


@pytest.mark.filterwarnings("ignore:ConjunctiveGraph is deprecated")  # rdflib's own reader of JSON-LD
@pytest.mark.parametrize("form", [*registry.EXPORTS])
def test_another_reader_finds_every_fact_that_a_format_wrote(form: str) -> None:
    assert form in READERS, f"{form} needs a reader in {__name__}"
    check_exporter(form, READERS[form])
