"""Comparison of a build by Ray with one in this process. Run: python eval/bench/scale.py [overhead|workers|kills ...].

overhead: extra time of Ray for 1,000 pairs of look-ups in a table, and for any build; the bytes must be equal. workers:
eight workers against one, with a model server that answers in 200 ms. kills: ten kills of workers and drivers at random
moments. Each worker has a node of its own.
"""

from __future__ import annotations

import argparse
import itertools
import os
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path

from figures import Values, option, record
from quick_server import QuickServer, quick_server

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests"))
from loopback import Loopback  # noqa: E402 (the tests' own server and cluster, found beside them)
from ray_nodes import Nodes, nodes  # noqa: E402

RELATION = "country-borders"
DELAY = 0.2
CONCURRENCY = 8
WORKERS = 8
RECIPE = """
description = "A server is asked."
[[generate]]
component = "chat"
model = "stand-in"
shots = {{ k = 1 }}
sampling = {{ temperature = 0.0, max_tokens = 64 }}
limits = {{ concurrency = {concurrency}, attempts = 3, first_wait = 0.01, total_wait = 10.0, timeout = 20.0 }}
[select]
rule = "cutoff"
threshold = 0.5
"""


class Builds:
    """Builds in one folder. subjects: number of subjects; one relation is asked about each."""

    def __init__(self, folder: Path, subjects: int, cluster: Nodes) -> None:
        folder.mkdir()
        self._folder, self._cluster = folder, cluster
        (folder / "subjects.csv").write_text("name\n" + "".join(f"Land {n}\n" for n in range(subjects)))
        (folder / "chat.toml").write_text(RECIPE.format(concurrency=CONCURRENCY))

    def start(self, out: str, workers: int, server: Loopback | QuickServer | None = None) -> subprocess.Popen[bytes]:
        """Start a build. With 0 workers, the build runs in a single process."""
        of: list[object] = ["--subjects", self._folder / "subjects.csv", "--edition", "mini", "--relation", RELATION]
        how: list[object] = ["--system", "prior"]
        if server:
            how = ["--system", self._folder / "chat.toml", "--base-url", server.url]
            how += ["--store", self._folder / f"{out}.sqlite"]
        if workers:
            how += ["--engine", "ray", "--address", self._cluster.address, "--workers", workers]
        command = [sys.executable, "-m", "lmkbc", "build", *of, *how, "--out", self._folder / out]
        env = os.environ | {"PYTHONPATH": str(ROOT)}
        return subprocess.Popen([*map(str, command)], env=env, stderr=subprocess.DEVNULL)

    def seconds(self, out: str, workers: int, server: Loopback | QuickServer | None = None) -> float:
        """Return the seconds of a whole build."""
        began = time.perf_counter()
        assert self.start(out, workers, server).wait() == 0
        return time.perf_counter() - began

    def files(self, out: str) -> dict[str, bytes]:
        """Return the files that a build wrote, without the file that differs from run to run."""
        found = [path for path in (self._folder / out).rglob("*") if path.is_file()]
        kept = [path for path in found if path.name != "timing.json"]
        return {str(path.relative_to(self._folder / out)): path.read_bytes() for path in kept}


def overhead(folder: Path, cluster: Nodes, queries: int) -> Values:
    few, many = queries // 100, queries // 10
    builds = {size: Builds(folder / str(size), size, cluster) for size in (few, many)}
    kinds = {0: "in this process", 1: "Ray, 1 worker", 2: "Ray, 2 workers"}
    taken: dict[tuple[int, int], list[float]] = defaultdict(list)
    for take in range(2):  # in turns, so that a busy machine slows all
        for size, workers in itertools.product(builds, kinds):
            taken[size, workers].append(builds[size].seconds(f"{workers}-{take}", workers))
            assert builds[size].files(f"{workers}-{take}") == builds[size].files("0-0")
    rows = {}
    for workers, name in kinds.items():
        each = (min(taken[many, workers]) - min(taken[few, workers])) / (many - few) * 1000
        start = min(taken[few, workers]) - each * few / 1000
        rows[name] = {"seconds per 1,000 pairs": f"{each:.3f}", "seconds to start and end": f"{start:.1f}"}
    return rows


def workers(folder: Path, cluster: Nodes, queries: int) -> Values:
    rows, rates = {}, []
    for count, total in ((1, queries // 100), (WORKERS, queries)):
        with quick_server(DELAY) as server:
            whole = Builds(folder / str(count), total, cluster).seconds("kb", count, server)
        assert server.requests == total
        rates.append(total / server.seconds)
        peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024 // 10**6
        rows[f"{count} worker{'s' * (count > 1)}, {total:,} queries"] = {
            "answers per second": f"{rates[-1]:.1f}",
            "times one": f"{rates[-1] / rates[0]:.2f}",
            "whole command, s": f"{whole:.0f}",
            "driver, MB": str(peak),
        }
    return rows


def kills(folder: Path, cluster: Nodes, queries: int) -> Values:
    draw, total = random.Random(0), queries // 100
    with Loopback(delay=DELAY, keep=False) as server:
        builds = Builds(folder / "kb", total, cluster)
        builds.seconds("alone", 0, server)
        before = server.served
        assert before == total
        driver = builds.start("killed", WORKERS, server)
        done = {"worker": 0, "driver": 0}
        for moment in sorted(draw.sample(range(total), 10)):
            while server.served - before < moment and driver.poll() is None:
                time.sleep(0.005)
            time.sleep(draw.uniform(0, DELAY))
            target = draw.choice([*done])
            while target == "worker" and not cluster.kill_one(draw):
                time.sleep(0.05)
            assert driver.poll() is None, "it ended before it was killed"
            if target == "driver":
                driver.kill()
                driver.wait()
                driver = builds.start("killed", WORKERS, server)
            done[target] += 1
        assert driver.wait() == 0
        again = server.served - before - total
    most = (done["worker"] + WORKERS * done["driver"]) * CONCURRENCY
    assert builds.files("killed") == builds.files("alone")
    assert 0 <= again <= most
    found = {"pairs": f"{total:,}", "asked again": str(again), "in flight at most": str(most), "bytes": "the same"}
    return {f"{done['worker']} workers and {done['driver']} drivers": found}


def main() -> None:
    parts: dict[str, Callable[[Path, Nodes, int], Values]]
    parts = {"overhead": overhead, "workers": workers, "kills": kills}
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"Of {', '.join(parts)}; default: all.")
    parser.add_argument("--queries", type=int, default=200_000, help="of the eight workers; other parts have fewer")
    option(parser)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, nodes(Path(folder) / "cache", WORKERS) as cluster:
        for name in given.parts or parts:
            (Path(folder) / name).mkdir()
            rows = parts[name](Path(folder) / name, cluster, given.queries)
            print(*rows.items(), sep="\n", flush=True)
            record(given.figures, f"scale-{name}", rows)


if __name__ == "__main__":
    main()
