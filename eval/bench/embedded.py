"""What the embedded default reaches on each edition's labelled held-out split, beside its floors.

    python eval/bench/embedded.py [--data DIR] [--editions 2022 2023 ...] [--no-encoder] [--cache DIR] [--seed N]

Fitted on train only. All three columns have the edition's official scorer; default and prior have the same rule.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from pathlib import Path

from lmkbc.generate.embedded import EmbeddedGenerator, find_encoder
from lmkbc.generate.prior import ClassPrior
from lmkbc.select.expected_f1 import ExpectedF1
from lmkbc.types import Edition, Example, Generator
from lmkbc.workspace import Workspace


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="directory of the official splits (default: $LMKBC_DATA)")
    parser.add_argument("--editions", nargs="+", default=["2022", "2023", "2024", "2025", "2026"])
    parser.add_argument("--no-encoder", action="store_true", help="strings only, as on a machine without the encoder")
    parser.add_argument("--cache", type=Path, help="where fitted state is kept (default: the user's cache)")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args(argv)
    workspace = Workspace(data=given.data)
    encoder = None if given.no_encoder else find_encoder()
    print(f"sentence encoder: {'yes' if encoder else 'no'}")
    print("edition split  default   prior   empty  seconds")
    for name in given.editions:
        edition = workspace.edition(name)
        train, held_out = (workspace.examples(edition, split) for split in ("train", edition.held_out))
        start = time.monotonic()
        embedded = EmbeddedGenerator(edition, workspace.relations, train, encoder, given.cache, given.seed)
        default = macro_f1(edition, embedded, held_out)
        seconds = time.monotonic() - start
        prior = macro_f1(edition, ClassPrior(edition, workspace.relations, train), held_out)
        empty = macro_f1(edition, None, held_out)
        print(f"{name}    {edition.held_out:5} {default:8.4f} {prior:7.4f} {empty:7.4f} {seconds:8.1f}", flush=True)


def macro_f1(edition: Edition, generator: Generator | None, examples: Sequence[Example]) -> float:
    """The official average over a split, of a generator's sets with the highest expected F1, or of the empty file."""
    gold = {}
    for example in examples:
        names = [edition.accepted(gold_object) for gold_object in example.objects]
        gold[example.query.subject, example.query.relation] = names
    queries = [example.query for example in examples]
    kept = {(query.subject, query.relation): [] for query in queries}
    for candidates in generator.generate(queries) if generator else ():
        objects = ExpectedF1().select(candidates).objects
        kept[candidates.query.subject, candidates.query.relation] = [edition.value(found) for found in objects]
    return edition.metric.evaluate(kept, gold).overall.f1


if __name__ == "__main__":
    main()
