"""Comparison of a build by Ray with one in this process: overhead, workers, and kills.

overhead: extra time of Ray for 1,000 pairs of look-ups in a table, and for any build; the bytes must be equal. workers:
eight workers against one, with a model server that answers after a delay. kills: ten kills of workers and drivers at
random moments. Each worker has a node of its own. A small run starts no cluster, and one process builds.
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import itertools
import json
import os
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from loopback import Loopback
from ray_nodes import Nodes, nodes

from eval.bench import ROOT, parsed, parser_of
from eval.bench.figures import Table, Values

RELATION = "country-borders"
CONCURRENCY = 8
WORKERS = 8
RECIPE = """
description = "A server is asked."
[[generate]]
component = "chat"
model = "stand-in"
shots = {{ k = 1 }}
sampling = {{ temperature = 0.0, max_tokens = 64 }}
limits = {{ concurrency = {concurrency}, total_wait = 5.0, timeout = 20.0 }}
[select]
rule = "cutoff"
threshold = 0.5
"""


NAMES = ("France", "Spain", "Italy", "Chile", "Kenya", "Japan", "Nepal", "Ghana")
USAGE = {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110}


def answer(body: bytes) -> bytes:
    """Return a response of one to three names that depend only on the request."""
    digest = hashlib.sha256(body).digest()
    text = json.dumps([NAMES[byte % len(NAMES)] for byte in digest[: 1 + digest[31] % 3]])
    choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": text}}
    made = json.dumps({"object": "chat.completion", "model": "stand-in", "choices": [choice], "usage": USAGE}).encode()
    return b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%b" % (len(made), made)


class Connection(asyncio.Protocol):
    """Connection of a client that waits for each answer before its next request. times: times of all requests."""

    def __init__(self, delay: float, times: list[float]) -> None:
        self._delay, self._times, self._read = delay, times, b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Store the transport for answers."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        """Answer a request after the delay, when it is complete. Requests other than POST get status 404."""
        self._read += data
        head, end, body = self._read.partition(b"\r\n\r\n")
        fields = dict(line.lower().split(b": ", 1) for line in head.split(b"\r\n")[1:])
        if not end or len(body) < int(fields.get(b"content-length", 0)):
            return
        self._read = b""
        if head.startswith(b"POST"):
            self._times.append(time.monotonic())
            asyncio.get_running_loop().call_later(self._delay, self._answer, body)
        else:
            self._transport.write(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n")

    def _answer(self, body: bytes) -> None:
        if not self._transport.is_closing():
            self._transport.write(answer(body))


@dataclass
class QuickServer:
    """A server process. requests: number of answers, set at its end. seconds: from the first request to the last."""

    url: str
    requests: int = 0
    seconds: float = 0.0


@contextmanager
def quick_server(delay: float) -> Iterator[QuickServer]:
    """Yield a server that runs in a process of its own until the block ends."""
    code = "import asyncio, sys; from eval.bench.scale import serve; asyncio.run(serve(float(sys.argv[1])))"
    command = [sys.executable, "-c", code, str(delay)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT) as process:
        assert process.stdout is not None
        served = QuickServer(process.stdout.readline().strip())
        try:
            yield served
        finally:
            requests, seconds = process.communicate()[0].split()
            served.requests, served.seconds = int(requests), float(seconds)


async def serve(delay: float) -> None:
    """Serve until the input ends; print the URL, and then the number of requests and the seconds between them."""
    times: list[float] = []
    server = await asyncio.get_running_loop().create_server(lambda: Connection(delay, times), "127.0.0.1", backlog=512)
    print(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1", flush=True)
    await asyncio.to_thread(sys.stdin.read)
    print(len(times), times[-1] - times[0] if times else 0.0)


class Builds:
    """Builds in one folder. subjects: number of subjects; one relation is asked about each."""

    def __init__(self, folder: Path, subjects: int, cluster: Nodes | None) -> None:
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
        if workers and self._cluster:
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


def overhead(folder: Path, cluster: Nodes, given: argparse.Namespace) -> Values:
    few, many = given.queries // 100, given.queries // 10
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


def workers(folder: Path, cluster: Nodes, given: argparse.Namespace) -> Values:
    rows, rates = {}, []
    for count, total in [(1, given.queries // 100), *([] if given.small else [(WORKERS, given.queries)])]:
        with quick_server(given.delay) as server:
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


def kills(folder: Path, cluster: Nodes, given: argparse.Namespace) -> Values:
    draw, total = random.Random(0), given.queries // 100
    with Loopback(delay=given.delay, keep=False) as server:
        builds = Builds(folder / "kb", total, cluster)
        builds.seconds("alone", 0, server)
        before = server.served
        assert before == total
        driver = builds.start("killed", WORKERS, server)
        done = {"worker": 0, "driver": 0}
        for moment in sorted(draw.sample(range(total), 10)):
            while server.served - before < moment and driver.poll() is None:
                time.sleep(0.005)
            time.sleep(draw.uniform(0, given.delay))
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


PARTS: dict[str, Callable[[Path, Any, argparse.Namespace], Values]] = {
    "overhead": overhead,
    "workers": workers,
    "kills": kills,
}


def main(argv: Sequence[str]) -> None:
    parser = parser_of(__doc__, *PARTS, data=False)
    parser.add_argument("--queries", type=int, default=200_000, help="of the eight workers; other parts have fewer")
    parser.add_argument("--delay", type=float, default=0.2, help="seconds in which the model server answers")
    given = parsed(parser, argv, rows=["workers"], queries=1600, delay=0.01)
    with tempfile.TemporaryDirectory() as folder:
        cluster: Any = nullcontext() if given.small else nodes(Path(folder) / "cache", WORKERS)
        with cluster as started:
            for name in given.rows:
                (Path(folder) / name).mkdir()
                table = Table(f"scale-{name}", name)
                for row, cells in PARTS[name](Path(folder) / name, started, given).items():
                    table.add(row, cells)
