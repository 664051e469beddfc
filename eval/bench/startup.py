"""Cost of whole commands in CPU-seconds and wall seconds: `lmkbc --help`, and `lmkbc evaluate`.

With --official, `evaluate` is compared with the organisers' script. DIR is a clone of their lm-kbc/dataset2023. PYTHON
is an interpreter with pandas, which their evaluate.py needs. Both score the gold of the 2023 validation split (1,940
rows) as if it were predicted. "its libraries" is a process that imports the modules of others that `evaluate` loads,
and does nothing. Commands alternate, so that load on the machine affects all. The median is shown. Bytecode is compiled
before the first run that counts, as it is in an installation.
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

LOADED = """
import runpy, sys
sys.argv = ["lmkbc", *sys.argv[1:]]
try:
    runpy.run_module("lmkbc", run_name="__main__")
finally:
    print(*(name for name in sys.modules if name.partition(".")[0] not in ("lmkbc", "__main__")), file=sys.stderr)
"""
"""Program that runs a command and prints the modules that it has loaded, but for those of the engine."""


def libraries(arguments: Sequence[str]) -> list[str]:
    """Return the command that imports what a command of the engine loads of others. CalledProcessError if it fails."""
    line = [sys.executable, "-c", LOADED, *arguments]
    loaded = subprocess.run(line, check=True, capture_output=True, text=True).stderr.splitlines()[-1].split()
    return [sys.executable, "-c", f"import importlib\nfor name in {loaded}: importlib.import_module(name)"]


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
    ours, evaluate = [sys.executable, "-m", "lmkbc"], ["evaluate", gold, "--edition", given.edition]
    commands = {
        "lmkbc --help": [*ours, "--help"],
        "lmkbc evaluate": [*ours, *evaluate],
        "its libraries": libraries(evaluate),
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
