"""Measures a build by Ray against one in this process. Run: python eval/bench/scale.py [overhead|workers|kills ...].

overhead: what Ray adds to 1,000 pairs of look-ups in a table, and to a build at all; the same bytes. workers: two
against one, whose model server answers in 200 ms. kills: ten, of workers and drivers, at random moments.
"""

from __future__ import annotations

import argparse
import itertools
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests"))
from loopback import Loopback  # noqa: E402 (the tests' own server and cluster, found beside them)
from ray_nodes import Nodes, nodes  # noqa: E402

RELATION = "country-borders"
DELAY = 0.2
CONCURRENCY = 8
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
    """Builds of one folder. subjects: how many are asked, about one relation each."""

    def __init__(self, folder: Path, subjects: int, cluster: Nodes) -> None:
        folder.mkdir()
        self._folder, self._cluster = folder, cluster
        (folder / "subjects.csv").write_text("name\n" + "".join(f"Land {n}\n" for n in range(subjects)))
        (folder / "chat.toml").write_text(RECIPE.format(concurrency=CONCURRENCY))

    def start(self, out: str, workers: int, server: Loopback | None = None) -> subprocess.Popen[bytes]:
        """Start a build; without workers, the build runs in a single process."""
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

    def seconds(self, out: str, workers: int, server: Loopback | None = None) -> float:
        """Return the seconds of a whole build."""
        began = time.perf_counter()
        assert self.start(out, workers, server).wait() == 0
        return time.perf_counter() - began

    def files(self, out: str) -> dict[str, bytes]:
        """Return the files that a build wrote, without the file that differs from run to run."""
        found = [path for path in (self._folder / out).rglob("*") if path.is_file()]
        kept = [path for path in found if path.name != "timing.json"]
        return {str(path.relative_to(self._folder / out)): path.read_bytes() for path in kept}


def overhead(folder: Path, cluster: Nodes) -> None:
    few, many = 2_000, 20_000
    builds = {size: Builds(folder / str(size), size, cluster) for size in (few, many)}
    kinds = {0: "in this process", 1: "Ray, 1 worker", 2: "Ray, 2 workers"}
    taken: dict[tuple[int, int], list[float]] = defaultdict(list)
    for take in range(2):  # in turns, so that a busy machine slows all
        for size, workers in itertools.product(builds, kinds):
            taken[size, workers].append(builds[size].seconds(f"{workers}-{take}", workers))
            assert builds[size].files(f"{workers}-{take}") == builds[size].files("0-0")
    for workers, name in kinds.items():
        each = (min(taken[many, workers]) - min(taken[few, workers])) / (many - few) * 1000
        start = min(taken[few, workers]) - each * few / 1000
        print(f"| {name} | {each:.3f} s per 1,000 pairs | {start:.1f} s to start and end |", flush=True)


def workers(folder: Path, cluster: Nodes) -> None:
    rates = []
    for count in (1, 2):
        with Loopback(delay=DELAY) as server:
            builds = Builds(folder / str(count), 1_600, cluster)
            whole = builds.seconds("kb", count, server)
            asking = server.starts[-1] - server.starts[0]
            rates.append(server.served / asking)
        print(f"| {count} workers | {rates[-1]:.1f} answers per second | whole command {whole:.1f} s |", flush=True)
    print(f"| two against one | {rates[1] / rates[0]:.2f} x | |", flush=True)


def kills(folder: Path, cluster: Nodes, seed: int = 0) -> None:
    draw, total = random.Random(seed), 1_200
    with Loopback(delay=DELAY) as server:
        builds = Builds(folder / "kills", total, cluster)
        builds.seconds("alone", 0, server)
        before = server.served
        assert before == total
        moments = sorted(draw.sample(range(total), 10))
        driver = builds.start("killed", 2, server)
        done = {"worker": 0, "driver": 0}
        for moment in moments:
            while server.served - before < moment + sum(done.values()) * CONCURRENCY and driver.poll() is None:
                time.sleep(0.005)
            time.sleep(draw.uniform(0, DELAY))
            assert driver.poll() is None, "it ended before it was killed"
            victim = draw.choice(("worker", "driver"))
            if victim == "driver":
                driver.send_signal(signal.SIGKILL)
                driver.wait()
                driver = builds.start("killed", 2, server)
            else:
                while not cluster.kill_one(draw):
                    time.sleep(0.05)
            done[victim] += 1
        assert driver.wait() == 0
        again = server.served - before - total
        same = builds.files("killed") == builds.files("alone")
        most = (done["worker"] + 2 * done["driver"]) * CONCURRENCY
    print(
        f"| {done['worker']} workers and {done['driver']} drivers killed of {total} pairs | asked again: {again}, "
        f"in flight at most {most} | {'the same bytes' if same else 'OTHER BYTES'} |"
    )
    assert same
    assert 0 <= again <= most


def main() -> None:
    parts: dict[str, Callable[[Path, Nodes], None]] = {"overhead": overhead, "workers": workers, "kills": kills}
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"Of {', '.join(parts)}; default: all.")
    chosen: Sequence[str] = parser.parse_args().parts or [*parts]
    with tempfile.TemporaryDirectory() as folder, nodes(Path(folder) / "cache") as cluster:
        for name in chosen:
            (Path(folder) / name).mkdir()
            parts[name](Path(folder) / name, cluster)


if __name__ == "__main__":
    main()
