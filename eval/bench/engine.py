"""Cost of the engine itself: CPU-milliseconds per query of the steps after generation, and memory by number of queries.

    python eval/bench/engine.py [--edition 2023] [--system prior] [--times 1,10] [--candidates 50]

First table: pooling, linking of names that are ids already, selection by expected F1, and writing. The candidates are
generated sets of one generator and of three. Second table: a whole `lmkbc predict` of the edition's test split, with
its subjects repeated under other names. It shows CPU-seconds, wall seconds, and peak memory.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

from lmkbc.cli.terminal import error_status
from lmkbc.edition import Edition
from lmkbc.link.linker import Linker
from lmkbc.pipeline import Block
from lmkbc.run.files import RunFiles
from lmkbc.select.expected_f1 import ExpectedF1
from lmkbc.select.pool import Pool
from lmkbc.select.rule import PerRelation
from lmkbc.types import Candidate, CandidateSet, Query, Source
from lmkbc.workspace import Workspace

QUERIES = 2000


def made_up(edition: Edition, candidates: int, model: str, seed: int) -> list[CandidateSet]:
    """Return sets of `candidates` candidates with random scores, drawn from a closed list four times as long."""
    drawn = random.Random(seed)
    names = [Candidate(f"Object {place}", 1.0, (), f"Q{place + 1}") for place in range(4 * candidates)]
    source = (Source(model),)
    relation = edition.relations[0]
    return [
        CandidateSet(
            Query(f"Subject {row}", relation, f"Q{row}"),
            tuple(Candidate(one.text, drawn.random() ** 4, source, one.id) for one in drawn.sample(names, candidates)),
        )
        for row in range(QUERIES)
    ]


def shared(space: Workspace, edition: Edition, candidates: int, generators: int) -> dict[str, float]:
    """Return the CPU-milliseconds per query of each step."""
    groups = [made_up(edition, candidates, f"m{place}", place) for place in range(generators)]
    relations = {name: space.relation(name) for name in edition.relations}
    steps: dict[str, float] = {}

    def timed(step: str, since: float) -> float:
        now = time.process_time()
        steps[step] = (now - since) / QUERIES * 1000
        return now

    at = time.process_time()
    if edition.target == "id":
        linker = Linker(relations)
        groups = [list(linker.link(group)) for group in groups]
    at = timed("link", at)
    sets = Pool(edition).merge(groups)
    at = timed("pool", at)
    predictions = PerRelation(ExpectedF1()).select_all(sets)
    at = timed("select", at)
    with closing(RunFiles(edition)) as files:
        files.add(Block(tuple(one.query for one in sets), tuple(sets)), predictions)
        timed("write", at)
    return steps


def whole(edition: str, system: str, times: int, data: Path, folder: Path) -> tuple[int, float, float, float]:
    """Return queries, CPU-seconds, wall seconds and gigabytes of a run whose test split is `times` times as long."""
    space = Workspace(data=data)
    source = space.split_path(space.edition(edition), "test")
    mine = folder / f"{times}" / source.relative_to(source.parent.parent)
    mine.parent.mkdir(parents=True)
    for split in source.parent.glob("*.jsonl"):
        (mine.parent / split.name).write_bytes(split.read_bytes())
    rows = [json.loads(line) for line in source.read_text(encoding="utf-8").splitlines()]
    with mine.open("w", encoding="utf-8") as file:
        for copy in range(times):
            for row in rows:
                named = row if not copy else row | {"SubjectEntity": f"{row['SubjectEntity']} {copy}"}
                file.write(json.dumps(named, ensure_ascii=False) + "\n")
    command = [sys.executable, "-m", "lmkbc", "predict", "--edition", edition, "--split", "test", "--system", system]
    printed, start = folder / f"printed{times}", time.perf_counter()
    with printed.open("wb") as log:
        process = subprocess.Popen(
            [*command, "--out", str(folder / f"out{times}")],
            stdout=log,
            stderr=log,
            env=os.environ | {"LMKBC_DATA": str(folder / f"{times}")},
        )
        _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(printed.read_text(encoding="utf-8"))
    return len(rows) * times, used.ru_utime + used.ru_stime, time.perf_counter() - start, used.ru_maxrss / 1e6


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--edition", default="2023")
    parser.add_argument("--system", default="prior")
    parser.add_argument("--times", default="1,10", help="how many times as long, parted by commas; empty for none")
    parser.add_argument("--candidates", type=int, default=50)
    given = parser.parse_args(argv)
    space = Workspace()
    edition = space.edition(given.edition)
    print(f"CPU-milliseconds a query of {given.candidates} candidates, {QUERIES} queries")
    print("generators     link     pool   select    write      all")
    for generators in (1, 3):
        steps = shared(space, edition, given.candidates, generators)
        cells = [*steps.values(), sum(steps.values())]
        print(f"{generators:10}" + "".join(f"{cell:9.3f}" for cell in cells), flush=True)
    if not given.times:
        return
    print(f"\nlmkbc predict --edition {given.edition} --split test --system {given.system}, warm")
    print("   queries    CPU s   wall s       GB")
    source = space.split_path(edition, "test").parent.parent
    with tempfile.TemporaryDirectory() as folder:
        for place, times in enumerate([1, *map(int, given.times.split(","))]):
            printed = whole(given.edition, given.system, times, source, Path(folder) / str(place))
            if place:  # the first run fills caches
                print(f"{printed[0]:10}" + "".join(f"{cell:9.2f}" for cell in printed[1:]), flush=True)


if __name__ == "__main__":
    with error_status():
        main()
