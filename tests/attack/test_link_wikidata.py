"""Faults of Wikidata: `lmkbc link` through a server that errs now and then, and through one that never answers."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import link_faults
import msgspec
import pytest
from command import Command
from forge import Forge
from link.stand_in import FAULTS, REFUSALS, SLOW
from places import Places

from lmkbc.link.api import Record, SearchHit


@pytest.fixture
def link(places: Places, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: Command) -> link_faults.Link:
    """The command in this process."""
    link_faults.predictions(tmp_path)
    return link_faults.linking(tmp_path, places.environment(tmp_path), monkeypatch, command)


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory, forge: Forge, places: Places) -> bytes:
    folder = tmp_path_factory.mktemp("undisturbed")
    link_faults.predictions(folder)
    with link_faults.world() as server:
        words = link_faults.link(server.url)
        ended = forge.run(words, places.environment(folder), cwd=folder, before=link_faults.QUICK)
        assert ended.code == 0, ended.err
    linked = (folder / "linked.jsonl").read_bytes()
    assert all(f'"Q{7000 + at}"'.encode() in linked for at in range(len(link_faults.NAMES)))
    return linked


@pytest.mark.listed
@pytest.mark.parametrize("fault", FAULTS)
def test_wikidata_errs_now_and_then(link: link_faults.Link, tmp_path: Path, fault: str, undisturbed: bytes) -> None:
    with link_faults.world(fault=lambda number, _: fault if number % 4 == 2 else None) as server:
        assert link(server.url, deadline=1.0 if fault in SLOW else 60.0).code == 0
    assert server.faults[fault]
    assert server.most_at_once <= 3 or fault in SLOW, "but where the server does not see that we hung up"
    assert all("jane@example.org" in head for head in server.headers)
    assert (tmp_path / "linked.jsonl").read_bytes() == undisturbed


@pytest.mark.listed
@pytest.mark.parametrize("fault", [*FAULTS, *REFUSALS])
def test_wikidata_errs_for_good_and_is_healed(
    link: link_faults.Link, tmp_path: Path, fault: str, undisturbed: bytes
) -> None:
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
