"""The chat client against a loopback server: overhead, memory, and runs killed at random points.

    python eval/bench/chat.py overhead|memory|kill [--points 20]

overhead: requests per second at concurrency 64, with the server in a process of its own. memory: peak resident memory
of 10,000 queued queries. kill: kill -9 at random points of a 1,000-query run, and resume.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from lmkbc.ask.examples import Shots
from lmkbc.ask.plan import Asking, Asks
from lmkbc.ask.style import PromptStyle
from lmkbc.generate.conversation import Conversation
from lmkbc.generate.language_model import AnswerGenerator
from lmkbc.models.answers import Store
from lmkbc.models.base import Sampling
from lmkbc.models.server.address import Server
from lmkbc.models.server.language_model import ServerModel
from lmkbc.models.server.limits import Limits
from lmkbc.notes import Notes
from lmkbc.types import CandidateSet, Query, State
from lmkbc.workspace import Workspace

ROOT = Path(__file__).resolve().parents[2]
SERVER = ROOT / "tests" / "loopback.py"
IN_FLIGHT = 16
ASKS = Asks(prompt=PromptStyle(task="List every {object_type}."), shots=Shots(k=5), sampling=Sampling(temperature=0.0))


@contextmanager
def loopback(delay: float = 0.0) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    command = [sys.executable, str(SERVER), str(delay)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield process.stdout.readline().strip(), process
        finally:
            process.kill()


def ask(url: str, store: Path, count: int, concurrency: int = 64) -> Iterator[CandidateSet]:
    space = Workspace()
    edition = space.edition("mini")
    relations = {name: space.relation(name) for name in edition.relations}
    asking = Asking(edition, relations, space.examples(edition, "train"), ASKS)
    queries = [Query(f"subject {place}", edition.relations[place % len(relations)]) for place in range(count)]
    server = Server.of(url, "stand-in")
    notes = Notes()
    model = ServerModel(server, Store(store), Limits(concurrency=concurrency), notes=notes)
    talk = Conversation(asking, relations, model.name, None, notes)
    generator = AnswerGenerator(model, talk, relations, model.name, notes)
    yield from generator.generate(queries)


def written(url: str, store: Path, count: int, out: Path) -> None:
    """Ask, and write the final file, sorted by subject."""
    found = sorted(ask(url, store, count, concurrency=IN_FLIGHT), key=lambda one: one.query.subject)
    out.write_text("".join(f"{one.query.subject}\t{one.candidates}\t{one.draws}\n" for one in found))


def overhead(count: int) -> None:
    with loopback() as (url, _), tempfile.TemporaryDirectory() as folder:
        sum(1 for _ in ask(url, Path(folder) / "warm.sqlite", 200))
        cpu, start = time.process_time(), time.perf_counter()
        answered = sum(State.MISSING not in one.draws for one in ask(url, Path(folder) / "store.sqlite", count))
        seconds, cpu = time.perf_counter() - start, time.process_time() - cpu
        again = time.perf_counter()
        sum(1 for _ in ask(url, Path(folder) / "store.sqlite", count))
        again = time.perf_counter() - again
    print(f"{answered} of {count} answered: {answered / seconds:.0f} requests/s at concurrency 64")
    print(f"client CPU {1000 * cpu / count:.2f} ms a request ({count / cpu:.0f} requests/s on a core of its own)")
    print(f"from the store: {count / again:.0f} answers/s")


def memory(count: int) -> None:
    with loopback() as (url, _), tempfile.TemporaryDirectory() as folder:
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        answered = sum(State.MISSING not in one.draws for one in ask(url, Path(folder) / "store.sqlite", count))
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"{answered} of {count} queued queries answered; peak {peak:.0f} MB, {peak - before:.0f} MB above the start")


def kill(points: int, count: int, seed: int) -> None:
    """For each point, kill a run after a random number of answers, resume it to its end, and compare the files."""
    sys.path.insert(0, str(SERVER.parent))
    from loopback import Loopback

    rng, folder = random.Random(seed), Path(tempfile.mkdtemp())
    again, late, same = [], 0, True
    with Loopback(delay=0.01, keep=False) as server:
        assert _run(server.url, folder / "plain.sqlite", count, folder / "plain.txt").wait() == 0
        for point in range(points):
            store, out, before, after = (
                folder / f"{point}.sqlite",
                folder / "out.txt",
                server.served,
                rng.randrange(count),
            )
            process = _run(server.url, store, count, out)
            while server.served - before < after and process.poll() is None:
                time.sleep(0.001)
            process.send_signal(signal.SIGKILL)
            if process.wait() not in (0, -signal.SIGKILL):
                sys.exit(f"the run failed by itself, with exit status {process.returncode}")
            late += out.exists()
            assert _run(server.url, store, count, out).wait() == 0
            again.append(server.served - before - count)
            same = same and _digest(folder / "plain.txt") == _digest(out)
            out.unlink()
    print(
        f"{points} kills of a {count}-query run, {late} of them after its end: each resumed; asked again per kill: at "
        f"most {max(again)} of {IN_FLIGHT} in flight; final files {'byte-identical' if same else 'DIFFER'}"
    )
    shutil.rmtree(folder)
    sys.exit(0 if same and max(again) <= IN_FLIGHT else 1)


def _run(url: str, store: Path, count: int, out: Path) -> subprocess.Popen[bytes]:
    command = [sys.executable, __file__, "run", url, str(store), str(count), str(out)]
    return subprocess.Popen(command, env=os.environ | {"PYTHONPATH": str(ROOT)})


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


if __name__ == "__main__":
    if sys.argv[1:2] == ["run"]:
        written(sys.argv[2], Path(sys.argv[3]), int(sys.argv[4]), Path(sys.argv[5]))
        sys.exit()
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("overhead", "memory", "kill"))
    parser.add_argument("--points", type=int, default=20)
    parser.add_argument("--count", type=int)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    if given.what == "overhead":
        overhead(given.count or 5000)
    elif given.what == "memory":
        memory(given.count or 10_000)
    else:
        kill(given.points, given.count or 1000, given.seed)
