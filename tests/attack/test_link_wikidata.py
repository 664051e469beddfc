"""Faults of Wikidata: `lmkbc link` through a server that errs now and then, and through one that never answers."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import link_faults
import msgspec
import pytest
from command import Command
from link.stand_in import FAULTS, REFUSALS, SLOW

from lmkbc.link.api import Record, SearchHit
from lmkbc.link.wikidata import Client

Link = Callable[..., link_faults.Ended]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "fault" in metafunc.fixturenames:
        metafunc.parametrize("fault", link_faults.cases(metafunc, [*FAULTS, *REFUSALS]))


@pytest.fixture
def link(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: Command) -> Link:
    """The command in this process: quick to retry, and `deadline` seconds a request."""
    for name, value in link_faults.environment(tmp_path).items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(tmp_path)
    link_faults.predictions(tmp_path)

    def run(url: str, deadline: float = 60.0, attempts: int = 6) -> link_faults.Ended:
        quick = {"rate": 1000.0, "backoff": 0.01, "deadline": deadline, "attempts": attempts}
        monkeypatch.setattr(Client.__init__, "__kwdefaults__", {**(Client.__init__.__kwdefaults__ or {}), **quick})
        status, _, told = command(*link_faults.link(tmp_path, url))
        return link_faults.Ended(status, told).check()

    return run


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    folder = tmp_path_factory.mktemp("undisturbed")
    link_faults.predictions(folder)
    with link_faults.world() as server:
        assert link_faults.run(folder, *link_faults.link(folder, server.url)).code == 0
    linked = (folder / "linked.jsonl").read_bytes()
    assert all(f'"Q{7000 + at}"'.encode() in linked for at in range(len(link_faults.NAMES)))
    return linked


def test_wikidata_errs_now_and_then(link: Link, tmp_path: Path, fault: str, undisturbed: bytes) -> None:
    if fault in REFUSALS:
        pytest.skip("a refusal is final")
    with link_faults.world(fault=lambda number, _: fault if number % 4 == 2 else None) as server:
        assert link(server.url, deadline=1.0 if fault in SLOW else 60.0).code == 0
    assert server.faults[fault]
    assert server.most_at_once <= 3 or fault in SLOW, "but where the server does not see that we hung up"
    assert all("jane@example.org" in head for head in server.headers)
    assert (tmp_path / "linked.jsonl").read_bytes() == undisturbed


def test_wikidata_errs_for_good_and_is_healed(link: Link, tmp_path: Path, fault: str, undisturbed: bytes) -> None:
    for asked in ("search", "ids"):
        with link_faults.world() as server:
            server.fault = lambda _, params, asked=asked: fault if asked in params else None
            ended = link(server.url, deadline=0.3 if fault in SLOW else 60.0, attempts=2)
        assert ended.code == 1, ended
        assert not (tmp_path / "linked.jsonl").exists()
        check_cache(tmp_path / "cache" / "lmkbc" / "wikidata.sqlite")
    with link_faults.world() as server:
        assert link(server.url).code == 0
    assert (tmp_path / "linked.jsonl").read_bytes() == undisturbed


def check_cache(path: Path) -> None:
    """Nothing that is of another shape was cached."""
    shapes = {"search": list[SearchHit], "entity": Record | None}
    with closing(sqlite3.connect(path)) as db:
        for kind, answer in db.execute("SELECT kind, answer FROM answers"):
            msgspec.json.decode(answer, type=shapes[kind])
