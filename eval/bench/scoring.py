"""Scoring speed on 200,000 rows of each edition, compared with a literal implementation of the official procedure.

    python eval/bench/scoring.py [--rows 200000] [--editions 2022 ...]
    python eval/bench/scoring.py --memory [--rows 1000000]     # ours only: seconds and peak memory, rows in any order
    python eval/bench/scoring.py --fuzz 15000                  # by the command, odd rows included: differences (0)

Both sides run in turns, read the files from disk, and end with the official averages. The literal side works as the
organisers' scripts: JSON per line, dictionaries per row, a sorted list of result dictionaries, averages per relation.
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

from lmkbc.cli.terminal import error_status

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "scoring"))
EDITIONS = ("2022", "2023", "2024", "2025", "2026")


def write_rows(edition: str, folder: Path, count: int) -> None:
    """Write rows in the edition's format: aliases or ids, one to five objects, a third of the predictions wrong."""
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
    """Return a stable number for a name."""
    return int.from_bytes(text.encode()[:6], "little")


def peak_mb() -> float:
    """Return the peak memory of this program in MB. getrusage may include the process that started it."""
    status = Path("/proc/self/status")
    if status.exists():
        return next(int(line.split()[1]) for line in status.read_text().splitlines() if line.startswith("VmHWM")) / 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def run_side(side: str, edition: str, folder: Path) -> None:
    """Score once in this process, and print seconds, peak memory and the macro-F1."""
    start = time.perf_counter()
    if side == "literal":
        from literal_scorers import macro_f1

        score = macro_f1(edition, folder / "pred.jsonl", folder / "gold.jsonl")
    else:
        from lmkbc.evaluate import evaluate
        from lmkbc.workspace import Workspace

        chosen = Workspace().edition(edition)
        start = time.perf_counter()
        predictions = folder / ("mixed.jsonl" if side == "mixed" else "pred.jsonl")
        score = evaluate(predictions, folder / "gold.jsonl", chosen).table.overall.f1
    seconds = time.perf_counter() - start
    peak = peak_mb()
    print(json.dumps({"seconds": seconds, "peak_mb": peak, "f1": score}))


def measure(side: str, edition: str, folder: Path) -> dict[str, float]:
    command = [sys.executable, __file__, "--side", side, "--edition", edition, "--folder", str(folder)]
    result: dict[str, float] = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    return result


def peaks(editions: list[str], count: int) -> None:
    """Print seconds and peak memory of a fresh process, for predictions in the gold's order and in another order."""
    print("edition       rows  order  seconds  peak MB")
    for edition in editions:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            write_rows(edition, folder, count)
            lines = (folder / "pred.jsonl").read_text().splitlines()
            random.Random(0).shuffle(lines)
            (folder / "mixed.jsonl").write_text("\n".join(lines))
            del lines
            for side, order in (("lmkbc", "same"), ("mixed", "mixed")):
                run = measure(side, edition, folder)
                print(f"{edition:9}{count:9,}  {order:5}{run['seconds']:9.2f}{run['peak_mb']:9.0f}", flush=True)


def fuzz(editions: list[str], count: int) -> None:
    """Compare `lmkbc evaluate` with the literal side on random rows. It must refuse what stops the published script."""
    from scoring_cases import cases, disagreements

    print("edition  rows    stop  differences")
    for edition in editions:
        rows = cases(edition, count)
        with tempfile.TemporaryDirectory() as name:
            found = list(disagreements(Path(name), edition, rows))
        stop = sum(row.expected is None for row in rows)
        print(f"{edition:9}{len(rows):6}{stop:6}  {len(found)}", *found, sep="\n  ", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int)
    parser.add_argument("--editions", nargs="+", default=EDITIONS, choices=EDITIONS)
    parser.add_argument("--memory", action="store_true", help="seconds and peak memory alone, of a million rows")
    parser.add_argument("--fuzz", type=int, metavar="ROWS", help="random rows through the command")
    parser.add_argument("--side", help=argparse.SUPPRESS)
    parser.add_argument("--edition", help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.side:
        run_side(arguments.side, arguments.edition, arguments.folder)
        return
    if arguments.fuzz:
        fuzz(arguments.editions, arguments.fuzz)
        return
    if arguments.memory:
        peaks(arguments.editions, arguments.rows or 1_000_000)
        return
    print("edition   literal s  lmkbc s  ratio  literal MB  lmkbc MB  equal")
    for edition in arguments.editions:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            write_rows(edition, folder, arguments.rows or 200_000)
            ours, literal = [], []
            for _ in range(3):  # alternating, so that a busy machine slows both
                literal.append(measure("literal", edition, folder))
                ours.append(measure("lmkbc", edition, folder))
            old = min(run["seconds"] for run in literal)
            new = min(run["seconds"] for run in ours)
            memory = [min(run["peak_mb"] for run in runs) for runs in (literal, ours)]
            equal = abs(literal[0]["f1"] - ours[0]["f1"]) < 1e-9
            times = f"{old:9.2f} {new:8.2f} {old / new:6.1f}"
            print(f"{edition:9} {times} {memory[0]:11.0f} {memory[1]:9.0f}  {equal}")


if __name__ == "__main__":
    with error_status():
        main()
