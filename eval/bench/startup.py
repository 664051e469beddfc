"""Cost of whole commands in CPU-seconds and wall seconds: `lmkbc --help`, and `lmkbc evaluate`.

With --official, `evaluate` is compared with the organisers' script. DIR is a clone of their lm-kbc/dataset2023. PYTHON
is an interpreter with pandas, which their evaluate.py needs. Both score the gold of the 2023 validation split (1,940
rows) as if it were predicted. Commands alternate, so that load on the machine affects all. The median is shown.
Bytecode is compiled before the first run that counts, as it is in an installation.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median

from eval.bench import parsed, parser_of
from eval.bench.figures import Table
from lmkbc.workspace import Workspace


def cost(command: list[str], environment: dict[str, str]) -> tuple[float, float]:
    """Return CPU-seconds (user and system) and wall seconds of one run. CalledProcessError if it fails."""
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment)
    wall, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime, wall


def main(argv: Sequence[str]) -> None:
    parser = parser_of(__doc__)
    parser.add_argument("--edition", default="2023")
    parser.add_argument("--official", type=Path, help="clone of lm-kbc/dataset2023")
    parser.add_argument("--python", default=sys.executable, help="interpreter of the official script")
    parser.add_argument("--runs", type=int, default=7)
    given = parsed(parser, argv, edition="mini", runs=1)
    space = Workspace(data=given.data)
    edition = space.edition(given.edition)
    gold = str(space.split_path(edition, edition.held_out))
    ours = [sys.executable, "-m", "lmkbc"]
    commands = {
        "lmkbc --help": [*ours, "--help"],
        "lmkbc evaluate": [*ours, "evaluate", gold, "--edition", given.edition],
    }
    if given.official:
        commands["official script"] = [given.python, str(given.official / "evaluate.py"), "-p", gold, "-g", gold]
    with tempfile.TemporaryDirectory() as folder:
        plain = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
        environment = plain if given.small else plain | {"PYTHONPYCACHEPREFIX": folder}
        before = not given.small  # the first run of an installation compiles
        runs = [{name: cost(line, environment) for name, line in commands.items()} for _ in range(given.runs + before)]
    table = Table("startup", "command")
    for name in commands:
        cpu, wall = (median(values) for values in zip(*(run[name] for run in runs[before:]), strict=True))
        table.add(name, {"CPU s": f"{cpu:.3f}", "wall s": f"{wall:.3f}"})
