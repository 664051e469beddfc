"""Scores of the embedded default on each edition's labelled held-out split, beside its baselines.

    python eval/bench/embedded.py [--data DIR] [--editions 2022 2023 ...] [--no-encoder] [--cache DIR] [--seed N]
        [--system NAME] [--figures FILE]

It is fitted on train only. All three columns use the edition's official scorer; default and prior have the same rule.
--system: another bundled system in place of the embedded default, with its recipe's own rule.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import figures
from recorded import untuned

from lmkbc.cli.terminal import error_status
from lmkbc.edition import Edition
from lmkbc.files.arrays import ArrayStore
from lmkbc.files.columns import read_column
from lmkbc.generate.embedded.generator import EmbeddedGenerator
from lmkbc.generate.prior import ClassPrior
from lmkbc.models.encoder import find_encoder
from lmkbc.run.base import Run
from lmkbc.scoring.table import Pair
from lmkbc.select.expected_f1 import ExpectedF1
from lmkbc.select.mutual import TrainSides
from lmkbc.types import Generator, Query
from lmkbc.workspace import Workspace


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="directory of the official splits (default: $LMKBC_DATA)")
    parser.add_argument("--editions", nargs="+", default=["2022", "2023", "2024", "2025", "2026"])
    parser.add_argument("--no-encoder", action="store_true", help="strings only, as on a machine without the encoder")
    parser.add_argument("--cache", type=Path, help="where fitted state is kept (default: the user's cache)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--system", help="a bundled system in place of the embedded default")
    figures.option(parser)
    given = parser.parse_args(argv)
    workspace = Workspace(data=given.data)
    encoder = None if given.no_encoder else find_encoder()
    column = given.system or ("embedded" if encoder else "without the sentence encoder")
    values: dict[str, dict[str, str]] = {}
    print(f"sentence encoder: {'yes' if encoder else 'no'}")
    print("edition split  default   prior   empty  seconds")
    for name in given.editions:
        edition = workspace.edition(name)
        train = workspace.examples(edition, "train")
        queries = workspace.queries(edition, edition.held_out)
        gold = read_column(workspace.split_path(edition, edition.held_out), edition.column)[0]
        start = time.monotonic()
        if given.system:
            default = untuned(workspace, edition, workspace.examples(edition, edition.held_out), given.system)
        else:
            store = ArrayStore(given.cache) if given.cache else None
            embedded = EmbeddedGenerator(edition, workspace.relations, train, encoder, store, given.seed)
            default = macro_f1(
                edition, gold, queries, embedded, TrainSides(train, Run(workspace=workspace, edition=edition).relations)
            )
        seconds = time.monotonic() - start
        prior = macro_f1(edition, gold, queries, ClassPrior(edition, workspace.relations, train))
        empty = macro_f1(edition, gold, queries, None)
        floors = {"class prior": prior, "all-empty file": empty}
        values[name] = {column: f"{default:.3f}"} | {floor: f"{score:.3f}" for floor, score in floors.items()}
        print(f"{name}    {edition.held_out:5} {default:8.4f} {prior:7.4f} {empty:7.4f} {seconds:8.1f}", flush=True)
    name = given.system or ("embedded" if encoder else "embedded-no-encoder")
    figures.record(given.figures, name, values)


def macro_f1(
    edition: Edition,
    gold: Mapping[Pair, Any],
    queries: Sequence[Query],
    generator: Generator | None,
    sides: TrainSides | None = None,
) -> float:
    """Return the official macro-F1 of a generator's sets with the highest expected F1; without one, of empty sets."""
    kept: dict[Pair, list[str]] = {(query.subject, query.relation): [] for query in queries}
    found = [*generator.generate(queries)] if generator else []
    for candidates in sides.read(found) if sides else found:
        objects = ExpectedF1().select(candidates).objects
        kept[candidates.query.subject, candidates.query.relation] = [edition.value(found) for found in objects]
    return edition.metric.evaluate(kept, gold).overall.f1


if __name__ == "__main__":
    with error_status():
        main()
