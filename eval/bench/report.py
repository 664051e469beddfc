"""Cost of a large report: memory and time to make it, size, and time until Chromium paints it and shows its rows.

A run of edition 2023 is generated: its val queries, repeated under new names, with candidates of random scores. The
command runs in a process of its own, whose peak memory is measured. Paint is measured without a browser's cache, from
disk, in the installed Chromium.
"""

from __future__ import annotations

import gzip
import json
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import cycle
from pathlib import Path
from typing import Any

from eval.bench import parsed, parser_of
from eval.bench.figures import Table
from lmkbc.workspace import Workspace

ALONE = """
import re, sys, lmkbc
run, gold, out, edition = sys.argv[1:]
lmkbc.report(run, out, gold=gold, edition=edition)
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


@contextmanager
def page(path: Path, **settings: Any) -> Iterator[Any]:
    """Yield a report that is open in Chromium, with its rows."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        opened = browser.new_page(**settings)
        opened.goto(path.resolve().as_uri())
        opened.wait_for_selector("body[data-ready]", timeout=120_000)
        yield opened
        browser.close()


def paint(path: Path) -> tuple[float, float]:
    """Return the seconds until the first contentful paint, and until the rows are shown."""
    with page(path) as opened:
        ready = opened.evaluate("performance.now()") / 1000
        first = opened.evaluate("performance.getEntriesByName('first-contentful-paint')[0].startTime") / 1000
    return float(first), float(ready)


def measured(rows: list[dict[str, Any]], edition: str, candidates: int, *, browser: bool) -> dict[str, str]:
    """Make a run and its report, and return the cost."""
    with tempfile.TemporaryDirectory() as name:
        run, gold = made_up(Path(name), rows, candidates)
        out, start = Path(name) / "report.html", time.perf_counter()
        alone = [sys.executable, "-c", ALONE, *map(str, (run, gold, out)), edition]
        memory = int(subprocess.run(alone, check=True, stdout=subprocess.PIPE).stdout)
        cells = {"MB": str(memory), "s": f"{time.perf_counter() - start:.0f}"}
        cells["page, MB"] = f"{out.stat().st_size / 1e6:.1f}"
        if browser:
            first, ready = paint(out)
            cells |= {"first paint, s": f"{first:.2f}", "rows there, s": f"{ready:.2f}"}
    return cells


def main(argv: Sequence[str]) -> None:
    parser = parser_of(__doc__)
    parser.add_argument("--sizes", nargs="+", type=int, default=[2_000, 20_000, 100_000], help="rows, fewest first")
    parser.add_argument("--edition", default="2023")
    parser.add_argument("--candidates", type=int, default=10)
    parser.add_argument("--screenshot", type=Path, help="write a picture of --page, and measure nothing")
    parser.add_argument("--page", type=Path, help="a run's report.html")
    given = parsed(parser, argv, sizes=[20], edition="mini")
    if given.screenshot:
        with page(given.page, viewport={"width": 1200, "height": 690}, color_scheme="light") as opened:
            opened.screenshot(path=given.screenshot)
        return
    space = Workspace(data=given.data)
    lines = space.split_path(space.edition(given.edition), "val").read_text(encoding="utf-8").splitlines()
    base, key = [json.loads(line) for line in lines], "SubjectEntity"
    browser = bool(shutil.which("chromium")) and not given.small
    table = Table(given.figures, "report", "rows")
    for count in given.sizes:
        rows = [{**row, key: f"{row[key]} {place}"} for place, row in zip(range(count), cycle(base), strict=False)]
        table.add(f"{count:,}", measured(rows, given.edition, given.candidates, browser=browser))
