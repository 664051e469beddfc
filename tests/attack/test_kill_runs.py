"""Runs that are killed at random moments, and go on: what they write is what a run that was left alone writes."""

import hashlib
import random
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from forge import Ended, Forge
from loopback import Files, Loopback
from places import EMBEDDED, Places, tree
from postgres import Server

Disturb = Callable[..., Any]
IN_FLIGHT = 4
BESIDE = ["timing.json", "report.html"]


def alone(forge: Forge, places: Places, folder: Path, command: Sequence[object]) -> Ended:
    """A run that nobody kills."""
    folder.mkdir()
    ended = forge.run(command, places.environment(folder))
    assert ended.code == 0, ended.err
    return ended


def predict(places: Places, folder: Path, recipe: Path, *more: object) -> Sequence[object]:
    where = ["--edition", "mini", "--data", places.data, "--out", folder / "out"]
    return ["predict", "--system", recipe, "--split", "test", *where, *more]


def asked(places: Places, folder: Path, server: Loopback, store: str = "") -> Sequence[object]:
    more = ["--base-url", server.url, "--store", store or folder / "store.sqlite", "--concurrency", IN_FLIGHT]
    return predict(places, folder, places.chat(), *more)


@pytest.fixture
def resumes(forge: Forge, places: Places, disturbed: Disturb, tmp_path: Path, seed: int) -> Callable[..., None]:
    """Kills a command that asks a server: it writes what it writes alone, and asks again what was in flight at most.

    count: what was asked. meanwhile: begins something that goes on while the command is killed, given its seconds.
    """

    def check(
        command: Callable[[Path, Loopback], Sequence[object]],
        count: Callable[[Loopback], int] = lambda server: server.served,
        in_flight: int = IN_FLIGHT,
        delay: float = 0.02,
        meanwhile: Callable[[float], threading.Thread] | None = None,
    ) -> None:
        before: dict[Path, int] = {}
        with Loopback(delay=delay) as server:

            def started(folder: Path) -> Sequence[object]:
                before.setdefault(folder, count(server))
                return command(folder, server)

            once = tmp_path / "alone"
            whole = alone(forge, places, once, started(once))
            most = count(server)
            beside = meanwhile(whole.seconds) if meanwhile else None
            left = disturbed(started, whole.seconds, seed)
            if beside:
                beside.join()
            assert tree(left.folder / "out", BESIDE) == tree(once / "out", BESIDE)
            assert count(server) - before[left.folder] <= most + left.kills * in_flight

    return check


def test_chat_predict_killed(resumes: Callable[..., None], places: Places) -> None:
    resumes(lambda folder, server: asked(places, folder, server))


@pytest.mark.whole
def test_chat_predict_while_postgresql_is_killed(
    resumes: Callable[..., None], places: Places, postgres: Server, seed: int
) -> None:
    """The run is killed, and the server of its store: nothing is lost, nothing asked twice but what was in flight."""
    begun: set[Path] = set()

    def command(folder: Path, server: Loopback) -> Sequence[object]:
        if folder not in begun:
            begun.add(folder)
            postgres.fresh("attacked")
        return asked(places, folder, server, store=f"{postgres.url}?options=-csearch_path%3Dattacked")

    def restart() -> None:
        postgres.kill()
        postgres.start()

    def crash(seconds: float) -> threading.Thread:
        timer = threading.Timer(random.Random(seed).uniform(0, seconds), restart)
        timer.start()
        return timer

    resumes(command, meanwhile=crash)


@pytest.mark.whole
def test_build_killed(resumes: Callable[..., None], places: Places, tmp_path: Path) -> None:
    (tmp_path / "subjects.csv").write_text("name\n" + "".join(f"Land {n}\n" for n in range(24)))

    def command(folder: Path, server: Loopback) -> Sequence[object]:
        how = [word for word in asked(places, folder, server)[1:] if word not in ("--split", "test")]
        grown = ["--relation", "country-borders", "--grow", 1, "--budget", 30]
        return ["build", "--subjects", tmp_path / "subjects.csv", *grown, *how]

    resumes(command)


@pytest.mark.whole
def test_embedded_fit_killed(forge: Forge, places: Places, disturbed: Disturb, tmp_path: Path, seed: int) -> None:
    recipe = places.recipe("embedded-strings", EMBEDDED)
    whole = alone(forge, places, tmp_path / "alone", predict(places, tmp_path / "alone", recipe))
    left = disturbed(lambda folder: predict(places, folder, recipe), whole.seconds, seed)
    for part in ("out", "cache"):
        assert tree(left.folder / part, BESIDE) == tree(tmp_path / "alone" / part, BESIDE)


CONTENT = b'{"SubjectEntity": "Rhine", "Relation": "RiverBasinsCountry"}\n' * 2000


@pytest.fixture
def mirror(tmp_path: Path, places: Places) -> Iterator[Path]:
    """A workspace with an edition whose splits a slow server has."""
    with Files({"/x": CONTENT}, pause=0.005) as server:
        source = f'Download("{server.url}/x", "{hashlib.sha256(CONTENT).hexdigest()}")'
        workspace = places.workspace(tmp_path)
        (workspace / "eval").unlink()
        (workspace / "eval").mkdir()
        (workspace / "eval" / "far.py").write_text(
            "from lmkbc import Download, Edition, IdScorer, Metric\n"
            'EDITION = Edition(name="far", folder="far", relations=("RiverBasinsCountry",), '
            f'splits={{"train": {source}, "val": {source}, "test": {source}}}, column="ObjectEntitiesID", target="id", '
            'metric=Metric(IdScorer(distinct=False), average="relation"))\n'
        )
        yield workspace


@pytest.mark.whole
def test_fetch_killed(
    forge: Forge, places: Places, disturbed: Disturb, tmp_path: Path, mirror: Path, seed: int
) -> None:
    def command(folder: Path) -> Sequence[object]:
        (folder / "data").mkdir(exist_ok=True)
        return ["data", "fetch", "far", "--workspace", mirror, "--data", folder / "data"]

    once = tmp_path / "alone"
    once.mkdir()
    whole = forge.run(command(once), places.environment(once))
    assert whole.code == 0, whole.err
    left = disturbed(command, whole.seconds, seed)
    wanted = {f"far/{split}.jsonl": CONTENT for split in ("train", "val", "test")}
    assert tree(once / "data") == wanted
    assert tree(left.folder / "data") == wanted
