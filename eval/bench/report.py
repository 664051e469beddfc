"""Cost of a large report: memory and time to make it, size, and time until Chromium paints it and shows its rows.

A run of edition 2023 is generated: its val queries, repeated under new names, with candidates of random scores. The
command runs in a process of its own, whose peak memory is measured. Paint is measured without a browser's cache, from
disk, in the installed Chromium.
"""

from __future__ import annotations

import gzip
import json
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
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


CANDIDATES = 10
"""Drawn for each row, beside its gold."""


def made_up(folder: Path, rows: list[dict[str, Any]]) -> tuple[Path, Path]:
    """Write a run's directory and its gold, and return both paths."""
    draw = random.Random(0)
    ids = [
        (name, one) for row in rows for name, one in zip(row["ObjectEntities"], row["ObjectEntitiesID"], strict=False)
    ]
    answers, pools = [], []
    for row in rows:
        query = {"SubjectEntity": row["SubjectEntity"], "Relation": row["Relation"]}
        pool = {name: one for name, one in draw.sample(ids, CANDIDATES) if name and one}
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
    """Return the seconds until the first contentful paint in Chromium, and until the rows are shown."""
    from browsing import chromium

    with chromium() as browser:
        page = browser.new_page()
        page.goto(path.resolve().as_uri())
        page.wait_for_selector("body[data-ready]", timeout=120_000)
        ready = page.evaluate("performance.now()") / 1000
        first = page.evaluate("performance.getEntriesByName('first-contentful-paint')[0].startTime") / 1000
    return float(first), float(ready)


def measured(rows: list[dict[str, Any]], edition: str, *, browser: bool) -> dict[str, str]:
    """Make a run and its report, and return the cost."""
    with tempfile.TemporaryDirectory() as name:
        run, gold = made_up(Path(name), rows)
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
    from browsing import BROWSER

    parser = parser_of(__doc__)
    parser.add_argument("--sizes", nargs="+", type=int, default=[2_000, 20_000, 100_000], help="rows, fewest first")
    parser.add_argument("--edition", default="2023")
    given = parsed(parser, argv, sizes=[20], edition="mini")
    space = Workspace(data=given.data)
    edition = space.edition(given.edition)
    lines = space.split_path(edition, edition.held_out).read_text(encoding="utf-8").splitlines()
    base, key = [json.loads(line) for line in lines], "SubjectEntity"
    browser = BROWSER is not None and not given.small
    table = Table("report", "rows")
    for count in given.sizes:
        rows = [{**row, key: f"{row[key]} {place}"} for place, row in zip(range(count), cycle(base), strict=False)]
        table.add(f"{count:,}", measured(rows, given.edition, browser=browser))
