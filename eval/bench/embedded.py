"""Scores of the embedded default on each edition's labelled held-out split, beside its baselines.

    python eval/bench/embedded.py [--data DIR] [--editions 2022 2023 ...] [--no-encoder] [--system NAME]
        [--figures FILE]

It is fitted on train only. All three columns use the edition's official scorer and their recipe's own rule.
--system: another bundled system in place of the embedded default.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import figures
from recorded import untuned

from lmkbc.cli.terminal import error_status
from lmkbc.generate.embedded.spec import Embedded
from lmkbc.recipe import Recipe, read_recipe
from lmkbc.workspace import Workspace

BASELINES = {"class prior": "prior", "all-empty file": "bl22-empty"}
"""Column -> system."""


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="directory of the official splits (default: $LMKBC_DATA)")
    parser.add_argument("--editions", nargs="+", default=["2022", "2023", "2024", "2025", "2026"])
    parser.add_argument("--no-encoder", action="store_true", help="strings only, as on a machine without the encoder")
    parser.add_argument("--system", default="embedded", help="a bundled system in place of the embedded default")
    figures.option(parser)
    given = parser.parse_args(argv)
    workspace = Workspace(data=given.data)
    recipe = read_recipe(workspace, given.system)
    recipe = _without_encoder(recipe) if given.no_encoder else recipe
    column = "without the sentence encoder" if given.no_encoder else given.system
    values: dict[str, dict[str, str]] = {}
    print("edition split  default   prior   empty  seconds")
    for name in given.editions:
        edition = workspace.edition(name)
        examples = workspace.examples(edition, edition.held_out)
        start = time.monotonic()
        scores = {column: untuned(workspace, edition, examples, recipe)}
        seconds = time.monotonic() - start
        for baseline, system in BASELINES.items():
            scores[baseline] = untuned(workspace, edition, examples, read_recipe(workspace, system))
        values[name] = {shown: f"{score:.3f}" for shown, score in scores.items()}
        default, prior, empty = scores.values()
        print(f"{name}    {edition.held_out:5} {default:8.4f} {prior:7.4f} {empty:7.4f} {seconds:8.1f}", flush=True)
    figures.record(given.figures, "embedded-no-encoder" if given.no_encoder else given.system, values)


def _without_encoder(recipe: Recipe) -> Recipe:
    """Return a recipe whose embedded generators use strings only."""
    generate = (replace(spec, encoder=False) if isinstance(spec, Embedded) else spec for spec in recipe.generate)
    return replace(recipe, generate=tuple(generate))


if __name__ == "__main__":
    with error_status():
        main()
