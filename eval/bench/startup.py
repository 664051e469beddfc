"""Cost of whole commands in CPU-seconds and wall seconds: `lmkbc --help`, and `lmkbc evaluate`.

    python eval/bench/startup.py [--official DIR [--python PYTHON]] [--runs 7]

With --official, `evaluate` is compared with the organisers' script. DIR is a clone of their lm-kbc/dataset2023. PYTHON
is an interpreter with pandas, which their evaluate.py needs. Both score the gold of the 2023 validation split (1,940
rows) as if it were predicted. Commands alternate, so that load on the machine affects all. The median is shown.
Bytecode is compiled before the first run that counts, as it is in an installation.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

from lmkbc.cli.terminal import error_status
from lmkbc.workspace import Workspace


def cost(command: list[str], environment: dict[str, str]) -> tuple[float, float]:
    """Return CPU-seconds (user and system) and wall seconds of one run. CalledProcessError if it fails."""
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment)
    wall, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime, wall


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--official", type=Path, help="clone of lm-kbc/dataset2023")
    parser.add_argument("--python", default=sys.executable, help="interpreter of the official script")
    parser.add_argument("--runs", type=int, default=7)
    arguments = parser.parse_args()
    space = Workspace()
    gold = str(space.split_path(space.edition("2023"), "val"))
    ours = [sys.executable, "-m", "lmkbc"]
    commands = {"lmkbc --help": [*ours, "--help"], "lmkbc evaluate": [*ours, "evaluate", gold, "--edition", "2023"]}
    if arguments.official:
        script = str(arguments.official / "evaluate.py")
        commands["official script"] = [arguments.python, script, "-p", gold, "-g", gold]
    with tempfile.TemporaryDirectory() as folder:
        plain = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
        environment = plain | {"PYTHONPYCACHEPREFIX": folder}
        runs = [{name: cost(line, environment) for name, line in commands.items()} for _ in range(arguments.runs + 1)]
    middle = {
        name: [median(values) for values in zip(*(run[name] for run in runs[1:]), strict=True)] for name in commands
    }
    print("command            CPU s  wall s")
    for name, (cpu, wall) in middle.items():
        print(f"{name:16} {cpu:7.3f} {wall:7.3f}")
    if arguments.official:
        ratios = [
            ours / theirs for ours, theirs in zip(middle["lmkbc evaluate"], middle["official script"], strict=True)
        ]
        print("evaluate / official script: {:.2f} CPU, {:.2f} wall".format(*ratios))
    else:
        print("give --official, a clone of lm-kbc/dataset2023, to compare with the official script")


if __name__ == "__main__":
    with error_status():
        main()
