"""Cost of a large report: size, time to make it, and time until Chromium paints it and shows its rows.

    python eval/bench/report.py [--rows 20000] [--candidates 10]
    python eval/bench/report.py --screenshot docs/report.png --page submissions/mini-val-embedded/report.html

A run of edition 2023 is generated: its val queries, repeated under new names, with candidates of random scores. Paint
is measured without a browser's cache, from disk, in the installed Chromium.
"""

from __future__ import annotations

import argparse
import gzip
import json
import random
import shutil
import tempfile
import time
from pathlib import Path
from typing import Any

from playwright.sync_api import sync_playwright

from lmkbc.cli.terminal import error_status
from lmkbc.report.run import ReportInput, page
from lmkbc.run.saved import SavedRun
from lmkbc.workspace import Workspace


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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--candidates", type=int, default=10)
    parser.add_argument("--screenshot", type=Path, help="write a picture of --page, and measure nothing")
    parser.add_argument("--page", type=Path, help="a run's report.html")
    arguments = parser.parse_args()
    if arguments.screenshot:
        screenshot(arguments.page, arguments.screenshot)
        return
    space = Workspace()
    edition = space.edition("2023")
    lines = space.split_path(edition, "val").read_text(encoding="utf-8").splitlines()
    base = [json.loads(line) for line in lines]
    keys = "SubjectEntity"
    rows = [
        {**base[place % len(base)], keys: f"{base[place % len(base)][keys]} {place}"} for place in range(arguments.rows)
    ]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        run, gold = made_up(folder, rows, arguments.candidates)
        start, cpu = time.perf_counter(), time.process_time()
        written = page(space, ReportInput(SavedRun.at(run), edition, "val", gold))
        wall, cpu = time.perf_counter() - start, time.process_time() - cpu
        path = folder / "report.html"
        path.write_text(written, encoding="utf-8")
        first, ready = paint(path)
        print(f"{arguments.rows} rows: {path.stat().st_size / 1e6:.1f} MB, made in {wall:.1f} s ({cpu:.1f} CPU-s)")
        print(f"first paint after {first:.2f} s, rows there after {ready:.2f} s")


if __name__ == "__main__":
    with error_status():
        main()
