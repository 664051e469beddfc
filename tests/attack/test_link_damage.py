"""Damage to what `lmkbc link` keeps and reads: noticed and told, or mended; never a traceback, never another link."""

from __future__ import annotations

import json
import random
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

import link_faults
import pytest
from command import Command
from link.stand_in import StandIn

from lmkbc.link.wikidata import Client

CACHE = Path("cache", "lmkbc", "wikidata.sqlite")
INDEX, TABLE, PREDICTIONS = "aliases.sqlite", "search.json", "predictions.jsonl"
Link = Callable[..., link_faults.Ended]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "draw" in metafunc.fixturenames:
        metafunc.parametrize("draw", link_faults.draws(metafunc))
    if "damage" in metafunc.fixturenames:
        few = metafunc.config.getoption("attack", default=None) is None
        metafunc.parametrize("damage", ["a flipped bit", "cut"] if few else [*link_faults.DAMAGE])


class Sound(NamedTuple):
    """A folder with everything that linking keeps and reads, the server it asks, and what it writes."""

    folder: Path
    server: StandIn
    linked: bytes


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sound]:
    folder = tmp_path_factory.mktemp("sound")
    link_faults.predictions(folder)
    (folder / TABLE).write_text(json.dumps({name: ids[0] for name, ids in link_faults.WORLD.items()}), encoding="utf-8")
    rows = [{"text": name, "id": ids[0], "classes": "Q6256"} for name, ids in link_faults.WORLD.items()]
    (folder / "names.json").write_text(json.dumps(rows), encoding="utf-8")
    assert link_faults.run(folder, "link", "build", INDEX, "--table", "names.json").code == 0
    with link_faults.world() as server:
        assert link_faults.run(folder, *link_faults.link(folder, server.url)).code == 0
        with closing(sqlite3.connect(folder / CACHE)) as db:
            db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        yield Sound(folder, server, (folder / "linked.jsonl").read_bytes())


@pytest.fixture
def link(sound: Sound, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: Command) -> Link:
    """The command in this process, in a copy of the sound folder."""
    folder = tmp_path / "copy"
    shutil.copytree(sound.folder, folder)
    for name, value in link_faults.environment(folder).items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(folder)
    quick = {"rate": 1000.0, "backoff": 0.01}
    monkeypatch.setattr(Client.__init__, "__kwdefaults__", {**(Client.__init__.__kwdefaults__ or {}), **quick})

    def run(*arguments: object) -> link_faults.Ended:
        status, _, told = command(*link_faults.link(folder, sound.server.url, *arguments))
        return link_faults.Ended(status, told).check()

    return run


def spoil(path: Path, damage: str, draw: int) -> None:
    """Damage a file of the working folder."""
    path.write_bytes(link_faults.DAMAGE[damage](path.read_bytes(), random.Random(f"{path.name} {damage} {draw}")))


def linked() -> bytes:
    return Path("linked.jsonl").read_bytes()


def test_damage_alias_index(link: Link, sound: Sound, damage: str, draw: int) -> None:
    spoil(Path(INDEX), damage, draw)
    ended = link("--index", INDEX)
    assert ended.code == 2
    assert f"{INDEX} is" in ended.told
    assert "lmkbc link build" in ended.told
    assert linked() == sound.linked, "the file of an earlier run is untouched"


def test_damage_alias_index_of_another_version(link: Link, draw: int) -> None:
    with closing(sqlite3.connect(INDEX)) as db, db:
        db.execute("UPDATE meta SET value = ? WHERE name = 'version'", (str(draw + 2),))
    ended = link("--index", INDEX)
    assert ended.code == 2
    assert "lmkbc link build" in ended.told


def test_damage_search_cache(link: Link, sound: Sound, damage: str, draw: int) -> None:
    spoil(CACHE, damage, draw)
    Path("linked.jsonl").unlink()
    ended = link()
    if ended.code == 0:
        assert linked() == sound.linked, "damage made another link"
    else:
        assert CACHE.name in ended.told
        assert not Path("linked.jsonl").exists()
        CACHE.unlink()  # as the message says
        assert link().code == 0
        assert linked() == sound.linked


def test_damage_search_cache_rows(link: Link, sound: Sound, draw: int) -> None:
    chance = random.Random(draw)
    columns = ("source", "kind", "key", "answer", "date", "checksum")
    values = (None, 5, "", "[]", b"null", b"[]", b'[{"id":"Q1|Q2"}]', b'[{"id":5}]', b'{"id":"../x"}', b"\xff", 1.5)
    for _ in range(10):
        with closing(sqlite3.connect(CACHE)) as db:
            keys = sorted(db.execute("SELECT kind, key FROM answers"), key=str)
            with db:
                db.execute(
                    f"UPDATE OR IGNORE answers SET {chance.choice(columns)} = ? WHERE kind = ? AND key = ?",
                    (chance.choice([value for value in values if value is not None]), *chance.choice(keys)),
                )
        Path("linked.jsonl").unlink()
        assert link().code == 0
        assert linked() == sound.linked


def test_damage_search_table(link: Link, damage: str, draw: int) -> None:
    spoil(Path(TABLE), damage, draw)
    assert link("--search-table", TABLE).code in (0, 2)
    check_linked()


def test_damage_predictions(link: Link, damage: str, draw: int) -> None:
    spoil(Path(PREDICTIONS), damage, draw)
    ended = link("--search-table", TABLE)
    assert ended.code in (0, 2)
    assert ended.code == 0 or PREDICTIONS in ended.told
    check_linked()


def test_damage_linked_file(link: Link, damage: str, draw: int) -> None:
    spoil(Path("linked.jsonl"), damage, draw)
    shutil.copy("linked.jsonl", PREDICTIONS)
    assert link("--search-table", TABLE).code in (0, 2)


def check_linked() -> None:
    """What was written, now or before, is whole: rows of JSON whose ids are ids or numbers."""
    for line in linked().splitlines():
        assert all(value[0] == "Q" or value.isdigit() for value in json.loads(line)["ObjectEntitiesID"])
