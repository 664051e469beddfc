"""Precision of a built base on known subjects, per relation and bin of confidence, as 'lmkbc audit --known' prints it.

'lmkbc build' asks every relation about every subject of the edition's labelled held-out split. The split's gold then
marks each fact. The system has seen train only, and nothing is tuned. "checked" counts the facts of queries that are in
the split and have an object. Precision is the share of them in the gold, beside their mean confidence. Facts that rows
of train state come apart ("labels"), after those that no row states ("no labels"); then all facts.
"""

from __future__ import annotations

import argparse
import csv
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import lmkbc
from eval.bench import parsed, parser_of, timed
from eval.bench.figures import Table
from lmkbc.kb.audit.precision import LABELS, MODEL, KnownPrecision
from lmkbc.relation import Relation
from lmkbc.types import Example
from lmkbc.workspace import Workspace

DEFAULT = "smollm2-embedded"
COLUMNS = ("facts", "checked", "precision", "95 % interval", "confidence")


def main(argv: Sequence[str]) -> None:
    parser = parser_of(__doc__, figures=True)
    parser.add_argument("--edition", default="2023", help="an edition whose answers are QIDs")
    parser.add_argument("--system", default=DEFAULT)
    parser.add_argument("--least", type=float, default=0.1, help="smallest confidence of a fact")
    given = parsed(parser, argv, edition="mini", system="naive-bayes")
    found, cpu, _ = timed(measured, given)
    kept = "known" if given.system == DEFAULT else f"known-{given.system}"
    table = Table(kept, "relation, confidence", given.figures)
    for row in found:
        table.add(_name(row), _cells(row))
    print(f"{cpu:.0f} CPU-seconds")


def measured(given: argparse.Namespace) -> Sequence[KnownPrecision]:
    """Return the rows of the audit of a base that is built about the held-out split's subjects."""
    workspace = Workspace(data=given.data)
    edition = workspace.edition(given.edition)
    examples = workspace.examples(edition, edition.held_out)
    relations = {example.query.relation: workspace.relation(example.query.relation) for example in examples}
    with tempfile.TemporaryDirectory() as directory:
        place = Path(directory)
        subjects, known = place / "subjects.csv", place / "known.csv"
        _write(subjects, ("name", "id", "class"), _subjects(examples, relations))
        _write(known, ("subject", "property", "object"), _gold(examples, relations))
        options = {"edition": given.edition, "system": given.system, "data": given.data}
        base = lmkbc.build(subjects, place / "base", least=given.least, untuned=True, **options)
        print(f"{base.counts['facts']} facts of {base.counts['subjects']} subjects", flush=True)
        return lmkbc.audit(place / "base", known=known, data=given.data).known


def _write(path: Path, heads: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(heads)
        writer.writerows(rows)


def _subjects(examples: Iterable[Example], relations: Mapping[str, Relation]) -> Iterator[tuple[str, str, str]]:
    """Yield name, QID and class of each subject. Of several classes, a narrower one than a person's is taken."""
    found: dict[str, tuple[str, str]] = {}
    for query in (example.query for example in examples):
        relation = relations[query.relation]
        kind = (relation.subject_class or relation.subject_type).noun
        if query.subject_id and found.get(query.subject_id, ("", "person"))[1] == "person":
            found[query.subject_id] = query.subject, kind
    return ((name, qid, kind) for qid, (name, kind) in found.items())


def _gold(examples: Iterable[Example], relations: Mapping[str, Relation]) -> Iterator[tuple[str, str, str]]:
    for example in examples:
        for one in example.objects:
            value = one.id or next(iter(one.names))
            yield example.query.subject_id or "", relations[example.query.relation].property, value


def _name(row: KnownPrecision) -> str:
    origin = {MODEL: "no labels, ", LABELS: "labels, "}.get(row.origin or "", "")
    return origin + (row.relation or "all") + ("" if row.at_least is None else f", from {row.at_least:.1f}")


def _cells(row: KnownPrecision) -> dict[str, str]:
    cells = [str(row.facts), str(row.checked), *["-"] * 3]
    if row.precision is not None:
        cells[2:] = f"{row.precision:.3f}", f"{row.low:.3f} to {row.high:.3f}", f"{row.confidence:.3f}"
    return dict(zip(COLUMNS, cells, strict=True))
