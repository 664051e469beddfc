"""Scoring speed on 200,000 rows of each edition, compared with a literal implementation of the official procedure.

Both sides run in turns, read the files from disk, and end with the official averages. The literal side works as the
organisers' scripts: JSON per line, dictionaries per row, a sorted list of result dictionaries, averages per relation.
Memory is the peak of a fresh process for each side. "mixed" is ours on predictions in another order than the gold.
With --fuzz, `lmkbc evaluate` and the literal side read odd rows, and their differences are printed: there are none. The
command must refuse what stops the published script.
"""

from __future__ import annotations

import json
import random
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from scoring_cases import cases, disagreements

from eval.bench import EDITIONS, ROOT, one_of, parsed, parser_of, peak_mb, timed
from eval.bench.figures import Table

SIDES = ("literal", "lmkbc", "mixed")


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
    lines = (folder / "pred.jsonl").read_text().splitlines(keepends=True)
    random_.shuffle(lines)
    (folder / "mixed.jsonl").write_text("".join(lines))


FIRST = "New Old Upper Lower North South East West Great Little Saint Fort Port Mount Lake Río São Côte Île Nö".split()
SECOND = "York Orleans Guinea Bridge Haven Castle Ford Field Wood Hill Valley Springs Falls Point Bay Zürich".split()


def hash_(text: str) -> int:
    """Return a stable number for a name."""
    return int.from_bytes(text.encode()[:6], "little")


def score(side: str, edition: str, folder: str) -> None:
    """Score once in this process, and print seconds, peak memory and the macro-F1. side: literal, lmkbc or mixed."""
    pred, gold = Path(folder) / ("mixed.jsonl" if side == "mixed" else "pred.jsonl"), Path(folder) / "gold.jsonl"
    if side == "literal":
        from literal_scorers import macro_f1

        f1, _, seconds = timed(macro_f1, edition, pred, gold)
    else:
        from lmkbc.evaluation.official import evaluate
        from lmkbc.workspace import Workspace

        chosen = Workspace().edition(edition)
        f1, _, seconds = timed(lambda: evaluate(pred, gold, chosen).table.overall.f1)
    print(json.dumps({"seconds": seconds, "peak": peak_mb(), "f1": f1}))


def apart(side: str, edition: str, folder: Path) -> dict[str, float]:
    """Score in a process of its own."""
    code = "import sys; from eval.bench.scoring import score; score(*sys.argv[1:])"
    command = [sys.executable, "-c", code, side, edition, str(folder)]
    result: dict[str, float] = json.loads(subprocess.run(command, check=True, capture_output=True, cwd=ROOT).stdout)
    return result


def main(argv: Sequence[str]) -> None:
    parser = parser_of(__doc__, data=False)
    parser.add_argument("--rows", type=int, default=200_000)
    parser.add_argument("--editions", nargs="+", default=EDITIONS, type=one_of(EDITIONS))
    parser.add_argument("--sides", nargs="+", default=SIDES[:2], type=one_of(SIDES), help=f"of {', '.join(SIDES)}")
    parser.add_argument("--times", type=int, default=3)
    parser.add_argument("--fuzz", type=int, metavar="ROWS", help="random rows through the command, in place of speed")
    given = parsed(parser, argv, rows=100, editions=["2026"], times=1)
    table = Table("scoring", "edition")
    for edition in given.editions:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            if given.fuzz or given.small:
                rows = cases(edition, given.fuzz or 20)
                print(
                    edition, len(rows), "odd rows,", *(list(disagreements(folder, edition, rows)) or ["no difference"])
                )
            if given.fuzz:
                continue
            write_rows(edition, folder, given.rows)
            runs: dict[str, list[dict[str, float]]] = {side: [] for side in given.sides}
            for _ in range(given.times):  # alternating, so that a busy machine slows all
                for side in given.sides:
                    runs[side].append(apart(side, edition, folder))
            least = {side: {what: min(one[what] for one in own) for what in own[0]} for side, own in runs.items()}
            cells = {f"{side}, s": f"{best['seconds']:.2f}" for side, best in least.items()}
            cells |= {f"{side}, MB": f"{best['peak']:.0f}" for side, best in least.items()}
            cells["x"] = f"{max(best['seconds'] for best in least.values()) / least['lmkbc']['seconds']:.1f}"
            f1s = [best["f1"] for best in least.values()]
            table.add(edition, cells, equal=max(f1s) - min(f1s) < 1e-9)
