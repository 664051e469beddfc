"""Scoring speed: 200,000 rows of each edition against a literal reading of the official procedure, in the same run.

    python eval/bench/scoring.py [--rows 200000]

Both sides read the files from disk and end with the official averages. The literal side does what the organisers'
scripts do: json per line, dictionaries per row, a list of result dictionaries, sorted, then averaged per relation.
Memory is the peak of a fresh process for each side.
"""

from __future__ import annotations

import argparse
import json
import random
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests"))
TARGETS = {"2022": 3.5, "2023": 6.0, "2024": 6.0, "2025": None, "2026": 10.0}


def write_rows(edition: str, folder: Path, count: int) -> None:
    """Rows shaped like the edition's: aliases or ids, one to five objects, a third of the predictions wrong."""
    random_ = random.Random(0)
    nested = edition in {"2022", "2026"}
    column = "ObjectEntitiesID" if edition in {"2023", "2024"} else "ObjectEntities"
    relations = [f"relation{number}" for number in range(12)]
    names = [f"{first} {second}" for first in FIRST for second in SECOND]
    with (folder / "gold.jsonl").open("w") as gold, (folder / "pred.jsonl").open("w") as pred:
        for number in range(count):
            chosen = random_.sample(names, random_.randint(0, 5))
            if column == "ObjectEntitiesID":
                chosen = [f"Q{abs(hash_(name)) % 10**7}" for name in chosen]
            answer = [name if random_.random() < 0.66 else random_.choice(names) for name in chosen]
            row = {"SubjectEntity": f"subject {number}", "Relation": random_.choice(relations)}
            objects = [[name, name.upper(), f"the {name}", f"{name}."] for name in chosen] if nested else chosen
            gold.write(json.dumps(row | {column: objects}) + "\n")
            pred.write(json.dumps(row | {column: list(dict.fromkeys(answer))}) + "\n")


FIRST = "New Old Upper Lower North South East West Great Little Saint Fort Port Mount Lake Río São Côte Île Nö".split()
SECOND = "York Orleans Guinea Bridge Haven Castle Ford Field Wood Hill Valley Springs Falls Point Bay Zürich".split()


def hash_(text: str) -> int:
    """A stable number for a name."""
    return int.from_bytes(text.encode()[:6], "little")


def run_side(side: str, edition: str, folder: Path) -> None:
    """Score once in this process and print seconds, peak memory and the macro-F1."""
    start = time.perf_counter()
    if side == "literal":
        from literal_scorers import macro_f1  # type: ignore[import-not-found]

        score = macro_f1(edition, folder / "pred.jsonl", folder / "gold.jsonl")
    else:
        from lmkbc.evaluate import evaluate_file
        from lmkbc.workspace import Workspace

        chosen = Workspace().edition(edition)
        start = time.perf_counter()
        score = evaluate_file(folder / "pred.jsonl", folder / "gold.jsonl", chosen).table.overall.f1
    seconds = time.perf_counter() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps({"seconds": seconds, "peak_mb": peak, "f1": score}))


def measure(side: str, edition: str, folder: Path) -> dict[str, float]:
    command = [sys.executable, __file__, "--side", side, "--edition", edition, "--folder", str(folder)]
    result: dict[str, float] = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=200_000)
    parser.add_argument("--side", help=argparse.SUPPRESS)
    parser.add_argument("--edition", help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.side:
        run_side(arguments.side, arguments.edition, arguments.folder)
        return
    print("edition   literal s  lmkbc s  ratio  target  literal MB  lmkbc MB  equal")
    for edition, target in TARGETS.items():
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            write_rows(edition, folder, arguments.rows)
            ours, literal = [], []
            for _ in range(3):  # alternating, so that a busy machine slows both
                literal.append(measure("literal", edition, folder))
                ours.append(measure("lmkbc", edition, folder))
            old = min(run["seconds"] for run in literal)
            new = min(run["seconds"] for run in ours)
            memory = [min(run["peak_mb"] for run in runs) for runs in (literal, ours)]
            equal = abs(literal[0]["f1"] - ours[0]["f1"]) < 1e-9
            goal = f"{target:.1f}" if target else "-"
            times = f"{old:9.2f} {new:8.2f} {old / new:6.1f} {goal:>7}"
            print(f"{edition:9} {times} {memory[0]:11.0f} {memory[1]:9.0f}  {equal}")


if __name__ == "__main__":
    main()
