"""Answers of a system on other processors: seconds, memory, F1, and number of rows that differ from the first.

    python eval/bench/machines.py [--system embedded] [--edition mini] [--split val] [--after test] [--progress]
        [--figures FILE]

Processors are emulated: libraries are configured not to use some instructions (`tests/processors.py`). Each processor
starts with an empty cache, and the whole command is measured, unpacking of models included. --after first answers other
splits, so that their results are in the cache. The predictions should be the same. --progress prints each estimate of
the time left (every ten seconds), and the real time left.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import resource
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests"))

import figures
from processors import PROCESSORS

ESTIMATE = re.compile(r"^\s*(\d+)%, ([\d.]+) (s|min|h) left")
SECONDS = {"s": 1, "min": 60, "h": 3600}


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--system", help="the default where it is left out")
    parser.add_argument("--edition", default="mini")
    parser.add_argument("--split", default="val")
    parser.add_argument("--processors", nargs="+", default=list(PROCESSORS), choices=list(PROCESSORS))
    parser.add_argument("--after", nargs="*", default=[], help="splits that are answered before, with the same cache")
    parser.add_argument("--progress", action="store_true", help="print the estimated and the real time left")
    figures.option(parser)
    given = parser.parse_args(argv)
    print(f"{'processor':10} {'seconds':>8} {'CPU-s':>7} {'GB':>5} {'F1':>6}  rows that differ  SHA-256 of predictions")
    first: dict[Any, Any] | None = None
    values, apart = {}, []
    for name in given.processors:
        with TemporaryDirectory() as folder:
            out = Path(folder) / "run"
            words = ["predict", "--edition", given.edition, *(["--system", given.system] if given.system else [])]
            environment = {**os.environ, **PROCESSORS[name], "XDG_CACHE_HOME": str(Path(folder) / "cache")}
            command = [sys.executable, "-m", "lmkbc", *words]
            for split in given.after:
                other = [*command, "--split", split, "--out", f"{folder}/{split}"]
                subprocess.run(other, env=environment, stderr=subprocess.DEVNULL, check=True)
            start, before = time.monotonic(), _used()
            command += ["--split", given.split, "--out", str(out)]
            with subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True) as process:
                lines = [(time.monotonic() - start, line) for line in process.stderr or ()]
            if process.returncode:
                sys.exit("".join(line for _, line in lines))
            seconds, used = time.monotonic() - start, _used() - before
            memory = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1e6
            content = (out / "predictions.jsonl").read_bytes()
            rows = {_key(row): row for row in map(json.loads, content.splitlines())}
            first = first or rows
            differ = sum(rows[key] != first[key] for key in first)
            values[name] = f"{seconds:,.0f} / {used:,.0f} / {memory:.1f}"
            apart.append(differ)
            print(
                f"{name:10} {seconds:8.1f} {used:7.1f} {memory:5.2f} {_f1(out):>6}  {differ:4} of {len(rows):4}"
                f"      {hashlib.sha256(content).hexdigest()[:16]}",
                flush=True,
            )
            if given.progress:
                _print_progress(lines, seconds)
    if first is not None:
        values["rows that differ"] = f"{max(apart)} of {len(first):,}"
    system = given.system or "default"
    row = {f"{system}, {given.edition} {given.split}": values}
    figures.record(given.figures, f"machines-{system}-{given.edition}-{given.split}", row)


def _key(row: dict[str, Any]) -> tuple[Any, ...]:
    return row["SubjectEntity"], row.get("SubjectEntityID"), row["Relation"]


def _used() -> float:
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return children.ru_utime + children.ru_stime


def _f1(out: Path) -> str:
    """Return the official score of a run; "-" if the split has no gold."""
    shown = subprocess.run(
        [sys.executable, "-m", "lmkbc", "evaluate", str(out)], capture_output=True, text=True, check=False
    )
    rows = [line.split() for line in shown.stdout.splitlines() if line.startswith("*** Average")]
    return rows[0][5] if rows else "-"


def _print_progress(lines: Sequence[tuple[float, str]], seconds: float) -> None:
    """Print each estimate of the time left, which a run logs every ten seconds, beside the real time left."""
    for at, line in lines:
        if match := ESTIMATE.match(line):
            estimate = float(match[2]) * SECONDS[match[3]]
            print(f"    {match[1]:>3} % after {at:4.0f} s: estimate {estimate:5.0f} s, were {seconds - at:5.0f} s")


if __name__ == "__main__":
    main()
