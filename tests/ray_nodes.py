"""A Ray cluster of two nodes on loopback, small enough for a test, and what kills its workers."""

import os
import random
import signal
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lmkbc import GeneratorSpec
from lmkbc.testing import Candidate, CandidateSet, Notes, Query, Run, Source

ROOT = Path(__file__).resolve().parent.parent
MEMORY = 80 * 2**20


class Nodes:
    """address: of the head. Each node has one processor, and says that it has an accelerator."""

    def __init__(self, count: int = 2) -> None:
        from ray.cluster_utils import Cluster

        head = {"num_cpus": 1, "num_gpus": 1, "object_store_memory": MEMORY, "include_dashboard": False}
        self._cluster = Cluster(initialize_head=True, head_node_args=head)
        for _ in range(count - 1):
            self._cluster.add_node(num_cpus=1, num_gpus=1, object_store_memory=MEMORY)
        self._cluster.wait_for_nodes()
        self.address: str = self._cluster.address

    def workers(self) -> list[int]:
        """The processes that answer blocks."""
        nodes = self._cluster.list_all_nodes()
        raylets = {one.process.pid for node in nodes for one in node.all_processes.get("raylet", ())}
        return [pid for pid, parent, name in _processes() if parent in raylets and name.startswith("ray::MapWorker")]

    def kill_one(self, draw: random.Random) -> bool:
        """Kill a worker with SIGKILL. Whether there was one."""
        found = self.workers()
        if found:
            os.kill(draw.choice(found), signal.SIGKILL)
        return bool(found)

    def close(self) -> None:
        self._cluster.shutdown()


def _processes() -> Iterator[tuple[int, int, str]]:
    """The id of each process, its parent's, and its command line."""
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            parent = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
            name = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except (OSError, ValueError):
            continue
        yield int(folder.name), parent, name


@contextmanager
def nodes(cache: Path, count: int = 2) -> Iterator[Nodes]:
    """A cluster whose workers find this tree and its tests, keep their cache apart, and report to nobody."""
    own: dict[str, Any] = {
        "PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'tests'}",
        "XDG_CACHE_HOME": str(cache),
        "RAY_USAGE_STATS_ENABLED": "0",
        "RAY_BACKEND_LOG_LEVEL": "fatal",
        "RAY_AUTH_TOKEN": "0" * 64,
        "OMP_NUM_THREADS": "1",
    }
    before = {name: os.environ.get(name) for name in own}
    os.environ.update(own)
    try:
        made = Nodes(count)
        try:
            yield made
        finally:
            made.close()
    finally:
        for name, value in before.items():
            os.environ.pop(name) if value is None else os.environ.update({name: value})


@dataclass(frozen=True, kw_only=True)
class Deadly(GeneratorSpec):
    """deadly: the subjects that kill; odd: those that break."""

    deadly: tuple[str, ...] = ()
    odd: tuple[str, ...] = ()

    def open(self, run: Run, notes: Notes) -> Any:
        return Echo(self)


class Echo:
    """Proposes one object, or kills the process. Ray's workers import it by this name."""

    def __init__(self, spec: Deadly) -> None:
        self._spec = spec

    def generate(self, queries: Sequence[Query]) -> Iterator[CandidateSet]:
        for query in queries:
            if query.subject in self._spec.deadly:
                os.kill(os.getpid(), signal.SIGKILL)
            if query.subject in self._spec.odd:
                raise RuntimeError("odd")
            yield CandidateSet(query, (Candidate("Peru", 1.0, (Source("echo"),), "Q419"),))
