"""Cost of the report of a large knowledge base: time, memory and size when written, and delay in a browser.

    python eval/bench/browse.py [--facts 1000000] [--takes 20] [--folder FOLDER]

A base is generated and written in the way of a build. Its names are made of syllables, and half of the objects have no
QID. One entity is the object of every tenth fact, and one name has 10,000 characters. Each take opens the report from
disk in a new context of the installed Chromium, without a cache. Times of the browser are medians in seconds.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from resource import RUSAGE_CHILDREN, getrusage
from typing import Any

import numpy as np
import polars as pl
from playwright.sync_api import Browser, sync_playwright

from lmkbc.build.build import settlement_of
from lmkbc.build.directory import Directory
from lmkbc.build.facts import FACTS, MISSING, NOTHING, Tables
from lmkbc.build.manifest import Shard, finished, started
from lmkbc.build.subjects import Classes
from lmkbc.cli.terminal import error_status
from lmkbc.workspace import Workspace

SHARD, ASKED, OBJECTS = 16_384, 4, (0, 1, 1, 2, 4)
"""Queries of a shard, queries of a subject, and numbers of facts of a query, all equally frequent."""
HUB, LONG = 0, 1
"""Entities: the object of a tenth of all facts, and the one with a long name."""
SYLLABLES = (
    "an ber ca dor el fi gra ha in jo ka lin ma nor ol pe ra san tor ul ver wi xa yo zen sch ös ñe łu ée".split()
)
PAINTED = "performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? null"


def name(number: int) -> str:
    """Return a name of two words, different for each number."""
    if number == LONG:
        return "Long " + "name " * 2_000
    rest, made = number + len(SYLLABLES) ** 3, list[str]()
    while rest:
        rest, place = divmod(rest, len(SYLLABLES))
        made.append(SYLLABLES[place])
    return f"{''.join(made[:2])} {''.join(made[2:])}".title()


def tables(number: int, subjects: int, relations: Sequence[Any], run: str) -> Tables:
    """Return the rows of one shard."""
    draw, count = np.random.default_rng(number), SHARD // ASKED
    which = np.argsort(draw.random((count, len(relations))), axis=1)[:, :ASKED].ravel()
    most = np.array([1 if one.has_one_object() else max(OBJECTS) for one in relations])
    sizes = np.minimum(draw.choice(OBJECTS, SHARD), most[which])
    asked = [relations[at] for at in which.tolist()]
    row = np.repeat(np.arange(number * count, (number + 1) * count), ASKED)
    queries = pl.DataFrame({"subject_row": row, "at": which, "size": sizes}).with_columns(
        subject=pl.Series([name(n) for n in row.tolist()]),
        subject_id=pl.format("Q{}", pl.col("subject_row") + 1),
        relation=pl.Series([one.name for one in asked]),
        property=pl.Series([one.property for one in asked]),
        unit=pl.Series([one.unit for one in asked], dtype=pl.String),
        kind=pl.Series([one.kind for one in asked]),
        run=pl.lit(run),
        model=pl.lit("some/model-7b"),
        confidence=pl.lit(None, pl.Float64),
        reason=pl.lit("not kept"),
    )
    each = queries.filter(pl.col("size") > 0).select(pl.all().repeat_by("size").explode())
    objects = (draw.pareto(0.7, len(each)) * 1000).astype(np.int64) % (2 * subjects)
    objects[draw.random(len(each)) < 0.1] = HUB
    objects[0] = LONG
    is_number = pl.col("kind") == "number"
    facts = each.with_columns(
        object=pl.Series([name(n) for n in objects.tolist()]),
        object_id=pl.Series([f"Q{n + 1}" if n % 2 == 0 else None for n in objects], dtype=pl.String),
        literal=pl.when(is_number).then(pl.Series(objects).cast(pl.String)),
        confidence=pl.Series(draw.beta(2, 2, len(each))).round(6),
        calibrated=pl.lit(value=True),
        sources=pl.Series([["some/model-7b#0", "some/model-7b#1"][: 1 + n % 2] for n in objects]),
    ).with_columns(object_id=pl.when(pl.col("kind") == "entity").then("object_id"))
    nothing = queries.filter(pl.col("size") == 0)
    facts = facts.with_columns(pl.lit(None, FACTS[one]).alias(one) for one in FACTS if one not in facts.columns)
    return Tables(facts.select(*FACTS), nothing.select(*NOTHING), nothing.select(*MISSING).clear())


def made_up(path: Path, facts: int) -> None:
    """Write a base of at least `facts` facts."""
    relations = {one.name: one for one in Workspace().relations.values()}
    start, directory = started({"edition": "made up", "system": "made up"}, relations), Directory(path)
    subjects, shards, written = facts // 6, list[Shard](), 0
    with directory.held():
        directory.begin(start)
        while written < facts:
            made = tables(len(shards), subjects, [*relations.values()], start["run"])
            shards.append(directory.write(len(shards), made, 0, start["run"]))
            written += len(made.facts)
        settlement = settlement_of(directory, shards, relations, Classes({}, relations.values()))
        shards = [directory.settled(shard, settlement) for shard in shards]
        directory.finish(finished(start, len(shards) * SHARD // ASKED, shards, {}), {}, settlement)
    print(f"{written:,} facts of {len(shards) * SHARD // ASKED:,} subjects", flush=True)


def report(base: Path, out: Path) -> None:
    """Write the report in a new process, and print its cost."""
    command = [sys.executable, "-m", "lmkbc", "report", str(base), "--out", str(out)]
    began = time.perf_counter()
    subprocess.run(command, check=True, stderr=subprocess.DEVNULL, env=os.environ | {"POLARS_MAX_THREADS": "1"})
    seconds = time.perf_counter() - began
    usage = getrusage(RUSAGE_CHILDREN)
    sizes = [path.stat().st_size for path in out.rglob("*") if path.is_file()]
    print(
        f"written in {seconds:.1f} s ({usage.ru_utime + usage.ru_stime:.1f} CPU-s, one thread); at most "
        f"{usage.ru_maxrss / 1024:.0f} MB of memory; {sum(sizes) / 1e6:.0f} MB in {len(sizes):,} files, the largest "
        f"{max(sizes) / 1e6:.2f} MB; index.html {(out / 'index.html').stat().st_size / 1e3:.0f} kB",
        flush=True,
    )


def opened(browser: Browser, page: Path, act: Callable[[Any], float]) -> float:
    """Open the report, perform an action, and return the action's seconds."""
    context = browser.new_context(viewport={"width": 1400, "height": 900}, offline=True)
    view = context.new_page()
    view.goto(page.as_uri())
    view.wait_for_selector("body[data-ready]")
    seconds = act(view)
    context.close()
    return seconds


def paint(view: Any) -> float:
    """Return the seconds until the first contentful paint."""
    return float(view.wait_for_function(PAINTED).json_value()) / 1000


def shown(key: str) -> Callable[[Any], float]:
    """Return an action that shows an entity, and measures the seconds until it is painted."""
    script = """key => new Promise((done) => {
      const began = performance.now();
      new MutationObserver(() => document.body.dataset.shown === key
        && requestAnimationFrame(() => setTimeout(() => done(performance.now() - began))))
        .observe(document.body, { attributes: true });
      location.hash = encodeURIComponent(key);
    })"""
    return lambda view: float(view.evaluate(script, key)) / 1000


def found(words: str) -> Callable[[Any], float]:
    """Return an action that searches, and measures the seconds until the names are painted."""
    script = """words => new Promise((done) => {
      const began = performance.now(), box = document.getElementById("search");
      new MutationObserver(() => document.body.dataset.found === words
        && requestAnimationFrame(() => setTimeout(() => done(performance.now() - began))))
        .observe(document.body, { attributes: true });
      box.value = words;
      box.dispatchEvent(new Event("input"));
    })"""
    return lambda view: float(view.evaluate(script, words)) / 1000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--facts", type=int, default=1_000_000)
    parser.add_argument("--takes", type=int, default=20)
    parser.add_argument("--folder", type=Path, help="keep the base and its report here")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder = arguments.folder or Path(scratch)
        base, out = folder / "kb", folder / "report"
        if not base.exists():
            made_up(base, arguments.facts)
        report(base, out)
        chromium = shutil.which("chromium")
        if chromium is None:
            return
        acts = {
            "first paint": paint,
            "an entity": shown("Q4711"),
            "the entity with most facts": shown("Q1"),
            "search of three letters": found(name(4711)[:3]),
            "search of a name": found(name(4711)),
        }
        with sync_playwright() as driver:
            browser = driver.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
            for what, act in acts.items():
                seconds = [opened(browser, out / "index.html", act) for _ in range(arguments.takes)]
                print(f"{what}: {statistics.median(seconds):.2f} s (at most {max(seconds):.2f} s)", flush=True)
            browser.close()


if __name__ == "__main__":
    with error_status():
        main()
