"""Kills at random moments during `lmkbc link`: what was there is untouched, and the next run ends as if undisturbed."""

from __future__ import annotations

import json
import random
import time
from pathlib import Path

import link_faults
import pytest
from link.stand_in import item

from lmkbc.link.index import AliasIndex


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "draw" in metafunc.fixturenames:
        metafunc.parametrize("draw", link_faults.draws(metafunc))


@pytest.fixture(scope="module")
def linked(tmp_path_factory: pytest.TempPathFactory) -> tuple[bytes, float]:
    """What linking writes undisturbed, and the seconds it takes."""
    folder = tmp_path_factory.mktemp("linked")
    link_faults.predictions(folder)
    with link_faults.world(delay=0.05) as server:
        started = time.monotonic()
        assert link_faults.run(folder, *link_faults.link(folder, server.url)).code == 0
        return (folder / "linked.jsonl").read_bytes(), time.monotonic() - started


def test_kill_link(tmp_path: Path, draw: int, linked: tuple[bytes, float]) -> None:
    link_faults.predictions(tmp_path)
    out = tmp_path / "linked.jsonl"
    before = out.write_bytes(b"what was there before\n") and out.read_bytes()

    def check() -> None:
        assert out.read_bytes() in (before, linked[0])

    with link_faults.world(delay=0.05) as server:
        command = link_faults.link(tmp_path, server.url)
        kills = link_faults.killed_until_done(tmp_path, linked[1], random.Random(draw), command, check)
    assert out.read_bytes() == linked[0]
    asked = [*server.searched.values()]
    assert max(asked) <= kills + 1
    assert sum(asked) <= len(asked) + 3 * kills, "more was asked again than was in flight"
    assert server.most_at_once <= 6, "three of a killed process and three of the next"


BUILD = ("link", "build", "aliases.sqlite", "--table", "names.csv", "--dump", "dump.json")


def inputs(folder: Path) -> None:
    (folder / "names.csv").write_text("text,id\nInn,Q1\nEn,Q1\n", encoding="utf-8")
    lines = [json.dumps(item(f"Q{at}", f"name {at}", ["Q5"], links=at % 7)) for at in range(1, 3000)]
    (folder / "dump.json").write_text("[\n" + ",\n".join(lines) + "\n]\n", encoding="utf-8")


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> tuple[bytes, float]:
    """An index built undisturbed, and the seconds it takes."""
    folder = tmp_path_factory.mktemp("built")
    inputs(folder)
    started = time.monotonic()
    assert link_faults.run(folder, *BUILD).code == 0
    return (folder / "aliases.sqlite").read_bytes(), time.monotonic() - started


def test_kill_link_build(tmp_path: Path, draw: int, built: tuple[bytes, float]) -> None:
    inputs(tmp_path)
    index = tmp_path / "aliases.sqlite"
    (tmp_path / "old.csv").write_text("text,id\nOld,Q7\n", encoding="utf-8")
    assert link_faults.run(tmp_path, "link", "build", "aliases.sqlite", "--table", "old.csv").code == 0
    old = index.read_bytes()

    def check() -> None:
        assert index.read_bytes() in (old, built[0])
        usable = AliasIndex(index)
        assert [hit.id for hit in (*usable.exact("Old"), *usable.exact("Inn"))] in (["Q7"], ["Q1"])
        usable.close()

    link_faults.killed_until_done(tmp_path, built[1], random.Random(draw), BUILD, check)
    assert index.read_bytes() == built[0]
    assert sorted(path.name for path in tmp_path.iterdir() if path.name.startswith("aliases")) == ["aliases.sqlite"]
