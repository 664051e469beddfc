"""Precision of a built base on known subjects, per relation and bin of confidence, as 'lmkbc audit --known' prints it.

    python eval/bench/known.py [--data DIR] [--edition 2023] [--system NAME] [--least 0.1] [--figures FILE]

'lmkbc build' asks every relation about every subject of the edition's labelled held-out split. The split's gold then
marks each fact. The system has seen train only, and nothing is tuned. "checked" counts the facts of queries that are in
the split and have an object. Precision is the share of them in the gold, beside their mean confidence. "empty" counts
the facts of queries whose gold is empty, which are all wrong; "exact" is precision with these among the checked ones.
"""

from __future__ import annotations

import argparse
import csv
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import figures
import numpy as np
import polars as pl

import lmkbc
from lmkbc.audit.sample import BINS
from lmkbc.cli.terminal import error_status
from lmkbc.relation import Relation
from lmkbc.report.panels import wilson
from lmkbc.types import Example
from lmkbc.workspace import Workspace

COLUMNS = ("facts", "checked", "precision", "95 % interval", "confidence", "empty", "exact")
ALL = "all"


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="directory of the official splits (default: $LMKBC_DATA)")
    parser.add_argument("--edition", default="2023", help="an edition whose answers are QIDs")
    parser.add_argument("--system", default="smollm2-embedded")
    parser.add_argument("--least", type=float, default=0.1, help="smallest confidence of a fact")
    figures.option(parser)
    given = parser.parse_args(argv)
    workspace, start = Workspace(data=given.data), time.process_time()
    edition = workspace.edition(given.edition)
    examples = workspace.examples(edition, edition.held_out)
    relations = {example.query.relation: workspace.relation(example.query.relation) for example in examples}
    with tempfile.TemporaryDirectory() as directory:
        place = Path(directory)
        subjects, known, marked = place / "subjects.csv", place / "known.csv", place / "marked.csv"
        _write(subjects, ("name", "id", "class"), _subjects(examples, relations))
        _write(known, ("subject", "property", "object"), _gold(examples, relations))
        options = {"edition": given.edition, "system": given.system, "data": given.data}
        base = lmkbc.build(subjects, place / "base", least=given.least, untuned=True, **options)
        print(f"{base.counts['facts']} facts of {base.counts['subjects']} subjects", flush=True)
        lmkbc.audit(place / "base", known=known, out=marked, data=given.data)
        facts = pl.read_csv(marked, infer_schema_length=None)
    values = _rows(facts, examples, relations)
    print(f"{'relation, confidence':40}  {'  '.join(COLUMNS)}")
    for name, cells in values.items():
        print(f"{name:40}  {'  '.join(cells.values())}")
    print(f"{time.process_time() - start:.0f} CPU-seconds")
    figures.record(given.figures, "known", values)


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


def _rows(
    facts: pl.DataFrame, examples: Iterable[Example], relations: Mapping[str, Relation]
) -> dict[str, dict[str, str]]:
    """Return the cells of each bin over all relations, of each relation, and of its bins."""
    gold = {(one.query.subject_id, relations[one.query.relation].name): bool(one.objects) for one in examples}
    keys = zip(facts["subject_id"], facts["relation"], strict=True)
    facts = facts.with_columns(
        state=pl.Series([gold.get(key) for key in keys], dtype=pl.Boolean),
        at=(pl.col("confidence") * BINS).floor().clip(0, BINS - 1).cast(pl.Int64),
    )
    made = {}
    for name in (ALL, *sorted(set(facts["relation"]))):
        own = facts if name == ALL else facts.filter(pl.col("relation") == name)
        made[name] = _cells(own)
        for at in sorted(set(own["at"])):
            made[f"{name}, from {at / BINS:.1f}"] = _cells(own.filter(pl.col("at") == at))
    return made


def _cells(facts: pl.DataFrame) -> dict[str, str]:
    checked, empty = facts.filter(pl.col("state")), len(facts.filter(~pl.col("state")))
    right = len(checked.filter(pl.col("mark") == "known"))
    cells = [str(len(facts)), str(len(checked)), *["-"] * 3, str(empty), "-"]
    if len(checked):
        low, high = (float(end[0]) for end in wilson(np.array([right]), np.array([len(checked)])))
        mean = float(np.mean(checked["confidence"].to_numpy()))
        cells[2:5] = f"{right / len(checked):.3f}", f"{low:.3f} to {high:.3f}", f"{mean:.3f}"
    if len(checked) + empty:
        cells[6] = f"{right / (len(checked) + empty):.3f}"
    return dict(zip(COLUMNS, cells, strict=True))


if __name__ == "__main__":
    with error_status():
        main()
