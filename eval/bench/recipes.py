"""Distance of the recipes from the published systems, as the recipes and docs/benchmarks.md state it. Nothing is run.

    python eval/bench/recipes.py [--shortcuts]

The column of prompts has five values:

- "fetched": the authors' own, by 'lmkbc systems fetch';
- "in part": the same, except for some that the recipe lists;
- "no licence": our words, since the authors' have no licence;
- "own": our words;
- "-": no prompts.

Replay: F1 of the authors' own answers in the recipe, less their reported F1, per row of the table of replays. N and S:
necessary differences, and shortcuts.
"""

from __future__ import annotations

import argparse
import re
from collections import defaultdict
from pathlib import Path

from lmkbc.cli.terminal import error_status
from lmkbc.recipe import RecipeFile, read_file
from lmkbc.workspace import Workspace

BENCHMARKS = Path(__file__).resolve().parents[2] / "docs" / "benchmarks.md"


def prompts(file: RecipeFile) -> str:
    ours = [one for one in (*file.differs, *file.shortcuts) if re.search(r"\b(in our (wording|words)|are ours)\b", one)]
    if file.source is not None:
        return "in part" if any("systems fetch" not in one for one in ours) else "fetched"
    return "no licence" if any("licence" in one for one in ours) else "own" if ours else "-"


def replays() -> dict[str, list[float]]:
    """Return recipe -> differences in F1 of its rows in the table of replays.

    Rows of a part of a recipe are left out.
    """
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in _table("| answers | recipe |")]
    off = defaultdict(list)
    for _, recipe, _, theirs, replayed, _ in rows:
        if re.fullmatch("`[^`]+`", recipe):
            off[recipe.strip("`")].append(float(replayed.split("/")[-1]) - float(theirs.split("/")[-1]))
    return off


def _table(head: str) -> list[str]:
    lines = BENCHMARKS.read_text(encoding="utf-8").splitlines()
    start = next(place for place, line in enumerate(lines) if line.startswith(head)) + 2
    end = next(place for place in range(start, len(lines)) if not lines[place].startswith("|"))
    return lines[start:end]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shortcuts", action="store_true", help="list the shortcuts below")
    given = parser.parse_args()
    space, off = Workspace(), replays()
    files = {name: read_file(space.recipe_path(name)) for name in space.system_names()}
    published = {name: file for name, file in files.items() if file.published}
    print(f"{'recipe':16} {'prompts':10} {'replay, F1 off by':24} {'N':>2} {'S':>2}")
    for name, file in published.items():
        distance = ", ".join(f"{one:+.3f}".replace("+0.000", "0").replace("-0.000", "0") for one in off[name]) or "-"
        print(f"{name:16} {prompts(file):10} {distance:24} {len(file.differs):2} {len(file.shortcuts):2}")
    for name, file in published.items() if given.shortcuts else ():
        print("".join(f"\n{name}: {one}" for one in file.shortcuts), end="")


if __name__ == "__main__":
    with error_status():
        main()
