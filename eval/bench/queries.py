"""Seconds of queries on a knowledge base: by DuckDB on its Parquet files, by SPARQL on its export.

    python eval/bench/queries.py [--facts 1000000]

The base is generated: subjects and objects are items, relations are those of the workspace, and some symmetric facts
are stated in one direction only. Both engines must give the same answers. The time of a query is the least of three
runs, in this process, on loaded data.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import duckdb
import figures
import numpy as np
import polars as pl
import pyoxigraph

from lmkbc.build.build import settlement_of
from lmkbc.build.directory import Directory
from lmkbc.build.facts import FACTS, MISSING, NOTHING, Tables
from lmkbc.build.manifest import finished, started
from lmkbc.build.subjects import Classes
from lmkbc.cli.export import Format, export
from lmkbc.cli.terminal import error_status
from lmkbc.relation import Relation
from lmkbc.workspace import Workspace

SHARDS = 4
FACTS_OF_EACH = 10
ONE_WAY = 0.2
"""Share of the symmetric facts that are stated in one direction only."""
PREFIXES = """
PREFIX wd: <http://www.wikidata.org/entity/>
PREFIX wdt: <http://www.wikidata.org/prop/direct/>
"""
QUERIES = {
    "facts of one entity": (
        "SELECT property, object_id FROM facts WHERE subject_id = 'Q42'",
        PREFIXES + "SELECT ?property ?object { wd:Q42 ?property ?object }",
    ),
    "a symmetric relation stated in one direction": (
        "SELECT a.subject_id, a.object_id FROM facts a ANTI JOIN facts b ON a.property = b.property "
        "AND a.subject_id = b.object_id AND a.object_id = b.subject_id WHERE a.property = 'P47'",
        PREFIXES + "SELECT ?one ?other { ?one wdt:P47 ?other FILTER NOT EXISTS { ?other wdt:P47 ?one } }",
    ),
    "relations with the most facts": (
        "SELECT property, count(*) AS n FROM facts GROUP BY property ORDER BY n DESC, property LIMIT 10",
        "SELECT ?property (COUNT(*) AS ?n) { ?s ?property ?o } GROUP BY ?property ORDER BY DESC(?n) ?property LIMIT 10",
    ),
}


def pairs(relations: Sequence[Relation], facts: int, seed: int = 0) -> pl.DataFrame:
    """Return subject, index of the relation and object of `facts` facts, each once; early relations have the most."""
    draw, items = np.random.default_rng(seed), facts // FACTS_OF_EACH
    share = 1 / np.arange(1, len(relations) + 1)
    place = draw.choice(len(relations), facts * 2, p=share / share.sum())
    made = pl.DataFrame({"subject": draw.integers(items, size=2 * facts), "at": place})
    made = made.with_columns(object=pl.Series(draw.integers(items, size=2 * facts)), keep=draw.random(2 * facts))
    both = pl.col("at").is_in([at for at, one in enumerate(relations) if one.symmetric]) & (pl.col("keep") > ONE_WAY)
    other = made.filter(both).select(subject="object", at="at", object="subject", keep="keep")
    rows = made.select(other.columns).vstack(other).unique(["subject", "at", "object"], maintain_order=True)
    return rows.head(facts).sort("subject", "at", "object")


def tables(rows: pl.DataFrame, relations: Sequence[Relation], run: str, seed: int = 0) -> Tables:
    """Return facts as tables of a build."""
    of = {at: (one.name, one.property) for at, one in enumerate(relations)}
    made = rows.with_columns(
        subject_row="subject",
        subject_id=pl.format("Q{}", pl.col("subject") + 1),
        object_id=pl.format("Q{}", pl.col("object") + 1),
        relation=pl.col("at").replace_strict({at: name for at, (name, _) in of.items()}),
        property=pl.col("at").replace_strict({at: name for at, (_, name) in of.items()}),
        confidence=pl.Series(np.random.default_rng(seed).uniform(0.5, 1, len(rows)).round(6)),
        calibrated=True,
        sources=pl.lit(["model#0"]),
        model=pl.lit("model"),
        run=pl.lit(run),
    )
    made = made.with_columns(subject=pl.format("item {}", "subject_id"), object=pl.format("item {}", "object_id"))
    made = made.with_columns(pl.lit(None).alias(name) for name in FACTS if name not in made.columns)
    return Tables(
        made.select(pl.col(name).cast(type_) for name, type_ in FACTS.items()),
        pl.DataFrame(schema=NOTHING),
        pl.DataFrame(schema=MISSING),
    )


def written(out: Path, facts: int) -> int:
    """Write a base of about so many facts, and return their number."""
    known = sorted(Workspace().relations.values(), key=lambda one: (one.symmetric, one.name), reverse=True)
    relations = [*{one.property: one for one in known if one.kind == "entity"}.values()]
    start = started({"facts": facts}, {one.name: one for one in relations})
    rows, directory = pairs(relations, facts), Directory(out)
    each = -(-len(rows) // SHARDS)
    with directory.held():
        directory.begin(start)
        made = (tables(rows.slice(at * each, each), relations, start["run"]) for at in range(SHARDS))
        shards = [directory.write(at, part, 0, start["run"]) for at, part in enumerate(made)]
        by_name = {one.name: one for one in relations}
        settlement = settlement_of(directory, shards, by_name, Classes({}, relations))
        shards = [directory.settled(shard, settlement) for shard in shards]
        whole = finished(start, facts // FACTS_OF_EACH, shards, {})
        directory.finish(whole, {"finished": "2026-11-23T00:00:00Z"}, settlement)
    return len(rows)


def seconds(work: Callable[..., Any], *given: Any, times: int = 1) -> tuple[float, Any]:
    """Return the least time of some runs, and the result of the last one."""
    took = []
    for _ in range(times):
        begun = time.perf_counter()
        result = work(*given)
        took.append(time.perf_counter() - begun)
    return min(took), result


def loaded(store: pyoxigraph.Store, file: Path) -> None:
    store.bulk_load(path=file, format=pyoxigraph.RdfFormat.N_TRIPLES)


def by_duckdb(view: duckdb.DuckDBPyConnection, query: str) -> list[Any]:
    return view.execute(query).fetchall()


def by_sparql(store: pyoxigraph.Store, query: str) -> list[Any]:
    found = store.query(query)
    assert isinstance(found, pyoxigraph.QuerySolutions)
    return [*found]


def plain(rows: Sequence[Sequence[Any]]) -> set[tuple[str, ...]]:
    """Return the rows of an answer in a form that both engines share: an IRI's last part, a number's digits."""
    return {tuple(str(getattr(one, "value", one)).rpartition("/")[2] for one in row) for row in rows}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--facts", type=int, default=1_000_000)
    figures.option(parser)
    given = parser.parse_args()
    rows: dict[str, dict[str, str]] = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        count = written(folder / "kb", given.facts)
        stores = {}
        for form in ("ntriples", "statements"):
            file = folder / f"{form}.nt"
            stores[form] = pyoxigraph.Store(folder / f"{form}.store")
            took, _ = seconds(export, folder / "kb", Format(form), file)
            load, _ = seconds(loaded, stores[form], file)
            rows[f"export as {form}; load"] = {"DuckDB": "-", "SPARQL": f"{took:.1f}; {load:.1f}"}
        view = duckdb.connect()
        view.execute(f"CREATE VIEW facts AS FROM read_parquet('{folder}/kb/facts/*/*.parquet', hive_partitioning=true)")
        for question, (sql, sparql) in QUERIES.items():
            one, answer = seconds(by_duckdb, view, sql, times=3)
            other, same = seconds(by_sparql, stores["ntriples"], sparql, times=3)
            assert plain(answer) == plain(same), question
            rows[question] = {"DuckDB": f"{one:.2g}", "SPARQL": f"{other:.2g}"}
    print(f"| seconds, {count:,} facts | DuckDB | SPARQL |\n|---|---|---|")
    for row, cells in rows.items():
        print(f"| {row} | {cells['DuckDB']} | {cells['SPARQL']} |")
    figures.record(given.figures, "queries", rows)


if __name__ == "__main__":
    with error_status():
        main()
