"""F1 of the embedded default on train, out of fold, by each model of its blend and by both.

    python eval/bench/blend.py [--data DIR] [--editions 2022 2023 ...] [--systems NAME ...] [--figures FILE]

A train query is scored by models that were fitted without the fold of its subject. Choose between models by this table:
the held-out splits play no part in it. Each system has its recipe's own rule and the edition's official scorer.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from statistics import fmean
from unittest.mock import patch

import figures
import numpy as np
import numpy.typing as npt
from recorded import untuned

from lmkbc.cli.terminal import error_status
from lmkbc.generate.embedded.blend import Blend
from lmkbc.recipe import read_recipe
from lmkbc.select.ranking import Floats, Mask
from lmkbc.workspace import Workspace

MODELS: dict[str, Callable[[Blend, npt.NDArray[np.float32], Mask], Floats]] = {
    "trees": lambda blend, features, _: blend.trees.log_odds(features),
    "regression": lambda blend, features, nothing: blend.logistic.log_odds(features, nothing),
    "both": Blend.log_odds,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="directory of the official splits (default: $LMKBC_DATA)")
    parser.add_argument("--editions", nargs="+", default=["2022", "2023", "2024", "2025", "2026"])
    parser.add_argument("--systems", nargs="+", default=["smollm2-embedded", "embedded"], metavar="NAME")
    figures.option(parser)
    given = parser.parse_args()
    workspace = Workspace(data=given.data)
    values: dict[str, dict[str, str]] = {}
    print(f"{'train, out of fold':26}" + "".join(f"{model:>12}" for model in MODELS))
    for system in given.systems:
        recipe = read_recipe(workspace, system)
        scores: dict[str, list[float]] = {model: [] for model in MODELS}
        for name in given.editions:
            edition = workspace.edition(name)
            train = workspace.examples(edition, "train")
            for model, log_odds in MODELS.items():
                with patch.object(Blend, "log_odds", log_odds):
                    scores[model].append(untuned(workspace, edition, train, recipe))
            _show(values, f"{system}, {name}", {model: rows[-1] for model, rows in scores.items()})
        _show(values, f"{system}, mean", {model: fmean(rows) for model, rows in scores.items()})
    figures.record(given.figures, "blend", values)


def _show(values: dict[str, dict[str, str]], row: str, scores: dict[str, float]) -> None:
    values[row] = {model: f"{score:.3f}" for model, score in scores.items()}
    print(f"{row:26}" + "".join(f"{score:12.4f}" for score in scores.values()), flush=True)


if __name__ == "__main__":
    with error_status():
        main()
