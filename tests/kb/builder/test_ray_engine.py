"""Ray on a cluster of two nodes: the same bytes as in this process, whatever is killed meanwhile."""

import json
import os
import random
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from bases import SPACE, tree
from loopback import Loopback
from postgres import Server
from ray_nodes import ROOT, Deadly, Nodes, nodes
from typer.testing import CliRunner

from lmkbc import InputError, LmkbcError
from lmkbc.cli import build
from lmkbc.kb.builder.engine import Ask, ShardPart, Work
from lmkbc.kb.builder.facts import Maker
from lmkbc.plan import Plan
from lmkbc.testing import Query, Run
from tests.opened import recipe_of

pytestmark = [
    pytest.mark.ray,
    pytest.mark.filterwarnings("ignore::DeprecationWarning:ray"),  # of itself
]

SUBJECTS = 24
RELATIONS = ("country-borders", "river-countries")
IN_FLIGHT = 4
RECIPE = """
description = "A server is asked."
[[generate]]
component = "chat"
model = "stand-in"
shots = { k = 1 }
sampling = { temperature = 0.0, max_tokens = 64 }
limits = { concurrency = 4, total_wait = 5.0, timeout = 20.0 }
[select]
rule = "cutoff"
threshold = 0.5
"""


@pytest.fixture(scope="module", autouse=True)
def _asked_for(request: pytest.FixtureRequest) -> None:
    if "ray" not in request.config.option.markexpr:
        pytest.skip("Ray keeps it waiting for minutes: 'pytest -m ray', as in 'make attack', runs it")
    pytest.importorskip("ray.data", reason="Ray is not installed: install lmkbc[scale]")


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Nodes]:
    with nodes(tmp_path_factory.mktemp("cache")) as made:
        yield made


@pytest.fixture(autouse=True)
def _token(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAY_AUTH_TOKEN", "0" * 64)


@pytest.fixture
def asked(tmp_path: Path) -> Sequence[str]:
    """The options of a build that asks a server."""
    (tmp_path / "subjects.csv").write_text("name\n" + "".join(f"Land {n}\n" for n in range(SUBJECTS)))
    (tmp_path / "chat.toml").write_text(RECIPE)
    relations = [word for name in RELATIONS for word in ("--relation", name)]
    files = ["--subjects", str(tmp_path / "subjects.csv"), "--system", str(tmp_path / "chat.toml")]
    return ["build", "--edition", "mini", *files, *relations]


def command(*options: str) -> subprocess.Popen[bytes]:
    env = os.environ | {"PYTHONPATH": str(ROOT)}
    both = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.Popen([sys.executable, "-m", "lmkbc", *options], env=env, **both)


def served(server: Loopback, count: int, process: subprocess.Popen[bytes]) -> None:
    """Wait until a server was asked so often."""
    deadline = time.monotonic() + 120
    while server.served < count:
        assert process.poll() is None, process.communicate()[1]
        assert time.monotonic() < deadline
        time.sleep(0.01)


@pytest.mark.parametrize("seed", [0])
def test_killed_workers_and_drivers_lose_nothing_and_ask_nothing_twice(
    cluster: Nodes, asked: Sequence[str], tmp_path: Path, seed: int
) -> None:
    draw, total = random.Random(seed), SUBJECTS * len(RELATIONS)
    with Loopback(delay=0.1) as server:
        asked = [*asked, "--base-url", server.url]
        here = command(*asked, "--store", str(tmp_path / "here.sqlite"), "--out", str(tmp_path / "here"))
        _, told = here.communicate(timeout=120)
        assert here.returncode == 0, told
        assert server.served == total
        ray = ["--engine", "ray", "--address", cluster.address, "--workers", "2"]
        elsewhere = [*asked, *ray, "--store", str(tmp_path / "there.sqlite"), "--out", str(tmp_path / "there")]
        driver = command(*elsewhere)
        served(server, total + draw.randrange(2, 12), driver)
        assert cluster.kill_one(draw)
        served(server, total + draw.randrange(16, 30), driver)
        driver.send_signal(signal.SIGKILL)
        driver.communicate(timeout=60)
        driver = command(*elsewhere)
        shown, told = driver.communicate(timeout=180)
        assert driver.returncode == 0, told
        timing = json.loads((tmp_path / "there" / "timing.json").read_bytes())
        requests = [used["requests"] for worker in timing["usage"] for used in worker.values()]
        assert 0 < sum(requests) <= server.served - total
        assert shown == b""
        assert tree(tmp_path / "there") == tree(tmp_path / "here")
        own = re.compile(rb"stand-in: |%b|build: " % re.escape(str(tmp_path)).encode())
        assert [line for line in told.splitlines() if not own.match(line)] == []  # Ray says nothing of its own
        deaths = 1 + 2  # of a worker, and of both that a driver had
        assert total <= server.served - total <= total + deaths * IN_FLIGHT


def test_workers_share_a_store_on_another_machine(
    cluster: Nodes, asked: Sequence[str], tmp_path: Path, postgres: Server
) -> None:
    url = postgres.fresh("ray")
    with Loopback(delay=0.05) as server:
        asked = [*asked, "--base-url", server.url, "--store", url]
        elsewhere = command(*asked, "--engine", "ray", "--address", cluster.address, "--out", str(tmp_path / "there"))
        _, told = elsewhere.communicate(timeout=120)
        assert elsewhere.returncode == 0, told
        here = command(*asked, "--out", str(tmp_path / "here"))
        _, told = here.communicate(timeout=120)
        assert here.returncode == 0, told
        assert server.served == SUBJECTS * len(RELATIONS)  # the second asked nothing
    assert tree(tmp_path / "there") == tree(tmp_path / "here")


def work(*tables: dict[str, object]) -> Work:
    run = Run(workspace=SPACE, edition=SPACE.edition("mini"), offline=True)
    recipe = recipe_of({"component": "prior"})
    return Work(Plan.of(run, recipe), Maker(recipe.select, run.relations, "0" * 16))


def test_a_block_that_kills_workers_twice_is_missing_and_selection_runs_apart(cluster: Nodes) -> None:
    from lmkbc.kb.builder.ray_engine import connected

    plain = work()
    deadly = Deadly(component="deadly", deadly=("Togo",), odd=("Mali",))
    asked = replace(plain, recipe=replace(plain.recipe, generate=(deadly,)))
    names = [["Chad", "Togo"], ["Mali", "Ghana"], ["Kenya"]]
    parts = [
        ShardPart(0, 2 * at, [Ask(2 * at + n, Query(name, "CountryBordersCountry")) for n, name in enumerate(block)])
        for at, block in enumerate(names)
    ]
    with connected(cluster.address, None, gpus=1) as engine:
        assert engine.workers == 2
        came = {part.start: tables for part, tables in engine.tables(asked, parts)}
    assert {start: one.facts["subject"].to_list() for start, one in came.items()} == {0: [], 2: [], 4: ["Kenya"]}
    missing = {row[0]: row[1] for one in came.values() for row in one.missing.select("subject", "reason").iter_rows()}
    assert missing["Togo"] == missing["Chad"] == "workers died of its block"
    assert "RuntimeError" in missing["Mali"]


def test_what_ends_a_build_is_one_sentence(cluster: Nodes, asked: Sequence[str], tmp_path: Path) -> None:
    ray = ["--engine", "ray", "--address", cluster.address]
    where = ["--out", str(tmp_path / "kb"), "--offline", "--store", str(tmp_path)]
    result = CliRunner().invoke(build(), [*asked, *ray, *where, "--base-url", "http://127.0.0.1:9/v1"])
    assert isinstance(result.exception, InputError)
    assert "cannot serve as the store" in str(result.exception)
    result = CliRunner().invoke(build(), [*asked, *ray, "--workers", "9", "--out", str(tmp_path / "kb")])
    assert "--workers is 9, and the Ray cluster" in str(result.exception)


def test_a_cluster_that_is_not_there(asked: Sequence[str], tmp_path: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        for address, said in (
            (f"127.0.0.1:{free.getsockname()[1]}", "no Ray cluster at 127.0.0.1"),
            ("nowhere.invalid:6379", "no Ray cluster at nowhere.invalid"),
            ("ray://127.0.0.1:1", "give HOST:PORT"),
            ("127.0.0.1:99999", "no Ray cluster at"),
        ):
            options = [*asked, "--engine", "ray", "--address", address, "--out", str(tmp_path / "kb")]
            result = CliRunner().invoke(build(), options)
            assert isinstance(result.exception, LmkbcError)
            assert said in str(result.exception)
            assert "\n" not in str(result.exception)
    assert not [*tmp_path.glob("kb/*.json")]
