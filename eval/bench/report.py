"""Cost of a large report: memory and time to make it, size, and time until Chromium paints it and shows its rows.

    python eval/bench/report.py [ROWS ...] [--candidates 10]
    python eval/bench/report.py --screenshot docs/report.png --page submissions/mini-val-embedded/report.html

A run of edition 2023 is generated: its val queries, repeated under new names, with candidates of random scores. The
command runs in a process of its own, whose peak memory is measured. Paint is measured without a browser's cache, from
disk, in the installed Chromium.
"""

from __future__ import annotations

import argparse
import gzip
import json
import random
import shutil
import subprocess
import sys
import tempfile
import time
from itertools import cycle
from pathlib import Path
from typing import Any

from playwright.sync_api import sync_playwright

from lmkbc.cli.terminal import error_status
from lmkbc.workspace import Workspace

SIZES = (2_000, 20_000, 100_000)
ALONE = """
import re, sys, lmkbc
run, gold, out = sys.argv[1:]
lmkbc.report(run, out, gold=gold, edition="2023")
peak = re.search(r"VmHWM:\\s+(\\d+) kB", open("/proc/self/status").read())
print(int(peak[1]) * 1024 // 10**6)
"""
"""A process that makes a report, and prints its peak memory in MB."""


def made_up(folder: Path, rows: list[dict[str, Any]], candidates: int) -> tuple[Path, Path]:
    """Write a run's directory and its gold, and return both paths."""
    draw = random.Random(0)
    ids = [
        (name, one) for row in rows for name, one in zip(row["ObjectEntities"], row["ObjectEntitiesID"], strict=False)
    ]
    answers, pools = [], []
    for row in rows:
        query = {"SubjectEntity": row["SubjectEntity"], "Relation": row["Relation"]}
        pool = {name: one for name, one in draw.sample(ids, candidates) if name and one}
        own = zip(row["ObjectEntities"], row["ObjectEntitiesID"], strict=False)
        pool |= {name: one for name, one in own if one and draw.random() < 0.6}
        listed: list[dict[str, Any]] = [
            {"object": name, "id": one, "score": round(draw.random(), 6), "source": "model#0"}
            for name, one in pool.items()
        ]
        pools.append({**query, "candidates": listed, "pooled": True})
        answers.append({**query, "ObjectEntitiesID": list({one["id"]: 0 for one in listed if one["score"] > 0.7})})
    run = folder / "run"
    run.mkdir()
    for path, lines in ((run / "predictions.jsonl", answers), (folder / "gold.jsonl", rows)):
        path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    (run / "candidates.jsonl.gz").write_bytes(gzip.compress("".join(json.dumps(x) + "\n" for x in pools).encode()))
    return run, folder / "gold.jsonl"


def paint(path: Path) -> tuple[float, float]:
    """Return the seconds until the first contentful paint, and until the rows are shown."""
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        opened = browser.new_page()
        opened.goto(path.as_uri())
        opened.wait_for_selector("body[data-ready]", timeout=120_000)
        ready = opened.evaluate("performance.now()") / 1000
        first = opened.evaluate("performance.getEntriesByName('first-contentful-paint')[0].startTime") / 1000
        browser.close()
    return float(first), float(ready)


def screenshot(page_path: Path, out: Path) -> None:
    """Save a screenshot of the page's head and an open row."""
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        opened = browser.new_page(viewport={"width": 1200, "height": 690}, color_scheme="light")
        opened.goto(page_path.resolve().as_uri())
        opened.wait_for_selector("body[data-ready]")
        opened.screenshot(path=out)
        browser.close()


def measured(rows: list[dict[str, Any]], candidates: int) -> None:
    """Make a run and its report, and print the cost."""
    with tempfile.TemporaryDirectory() as name:
        run, gold = made_up(Path(name), rows, candidates)
        out, start = Path(name) / "report.html", time.perf_counter()
        alone = [sys.executable, "-c", ALONE, *map(str, (run, gold, out))]
        memory = int(subprocess.run(alone, check=True, stdout=subprocess.PIPE).stdout)
        wall, size = time.perf_counter() - start, out.stat().st_size / 1e6
        print(f"{len(rows):,} rows: at most {memory} MB of memory, {wall:.0f} s; page of {size:.1f} MB", flush=True)
        if shutil.which("chromium"):
            first, ready = paint(out)
            print(f"  first paint after {first:.2f} s, rows there after {ready:.2f} s", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("rows", nargs="*", type=int, default=SIZES, metavar="ROWS", help="fewest first")
    parser.add_argument("--candidates", type=int, default=10)
    parser.add_argument("--screenshot", type=Path, help="write a picture of --page, and measure nothing")
    parser.add_argument("--page", type=Path, help="a run's report.html")
    arguments = parser.parse_args()
    if arguments.screenshot:
        screenshot(arguments.page, arguments.screenshot)
        return
    space = Workspace()
    lines = space.split_path(space.edition("2023"), "val").read_text(encoding="utf-8").splitlines()
    base, key = [json.loads(line) for line in lines], "SubjectEntity"
    for count in arguments.rows:
        whole = zip(range(count), cycle(base), strict=False)
        measured([{**row, key: f"{row[key]} {place}"} for place, row in whole], arguments.candidates)


if __name__ == "__main__":
    with error_status():
        main()
