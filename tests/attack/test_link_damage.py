"""Damage to what `lmkbc link` keeps and reads: noticed and told, or mended; never a traceback, never another link."""

import json
import random
import re
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import NamedTuple

import link_faults
import pytest
from command import Command
from damage import DAMAGE
from forge import Forge
from link.stand_in import StandIn
from places import Places

CACHE = Path("cache", "lmkbc", "wikidata.sqlite")
INDEX, TABLE, PREDICTIONS = "aliases.sqlite", "search.json", "predictions.jsonl"
damaged = pytest.mark.parametrize("damage", DAMAGE)


class Sound(NamedTuple):
    """A folder with everything that linking keeps and reads, the server it asks, and what it writes."""

    folder: Path
    server: StandIn
    linked: bytes


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory, forge: Forge, places: Places) -> Iterator[Sound]:
    folder = tmp_path_factory.mktemp("sound")
    link_faults.predictions(folder)
    (folder / TABLE).write_text(json.dumps({name: ids[0] for name, ids in link_faults.WORLD.items()}), encoding="utf-8")
    rows = [{"text": name, "id": ids[0], "classes": "Q6256"} for name, ids in link_faults.WORLD.items()]
    (folder / "names.json").write_text(json.dumps(rows), encoding="utf-8")
    with link_faults.world() as server:
        for words in (["link", "build", INDEX, "--table", "names.json"], link_faults.link(server.url)):
            ended = forge.run(words, places.environment(folder), cwd=folder, before=link_faults.QUICK)
            assert ended.code == 0, ended.err
        with closing(sqlite3.connect(folder / CACHE)) as db:
            db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        yield Sound(folder, server, (folder / "linked.jsonl").read_bytes())


@pytest.fixture
def link(
    sound: Sound, places: Places, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: Command
) -> link_faults.Link:
    """The command in this process, in a copy of the sound folder."""
    folder = shutil.copytree(sound.folder, tmp_path / "copy")
    return partial(link_faults.linking(folder, places.environment(folder), monkeypatch, command), sound.server.url)


def spoil(path: Path, damage: str, seed: int) -> None:
    """Damage a file of the working folder."""
    path.write_bytes(DAMAGE[damage](path.read_bytes(), random.Random(f"{path.name} {damage} {seed}")))


def linked() -> bytes:
    return Path("linked.jsonl").read_bytes()


@pytest.mark.listed
@damaged
def test_damage_alias_index(link: link_faults.Link, damage: str, seed: int) -> None:
    spoil(Path(INDEX), damage, seed)
    Path("linked.jsonl").unlink()
    ended = link("--index", INDEX)
    if ended.code == 0:
        check_linked()
    else:
        assert f"{INDEX} is" in ended.err
        assert not Path("linked.jsonl").exists()


@pytest.mark.listed
@damaged
def test_damage_search_cache(link: link_faults.Link, sound: Sound, damage: str, seed: int) -> None:
    spoil(CACHE, damage, seed)
    Path("linked.jsonl").unlink()
    ended = link()
    if ended.code == 0:
        check_linked()
    else:
        assert CACHE.name in ended.err
        assert not Path("linked.jsonl").exists()
        CACHE.unlink()  # as the message says
        assert link().code == 0
        assert linked() == sound.linked


@pytest.mark.listed
@pytest.mark.parametrize("file", [TABLE, PREDICTIONS, "linked.jsonl"])
@damaged
def test_damage_input(link: link_faults.Link, file: str, damage: str, seed: int) -> None:
    if file == "linked.jsonl":
        shutil.copy(file, PREDICTIONS)
    read = PREDICTIONS if file == "linked.jsonl" else file
    Path("linked.jsonl").unlink()
    spoil(Path(read), damage, seed)
    ended = link("--search-table", TABLE)
    if ended.code:
        assert (ended.code, read in ended.err, Path("linked.jsonl").exists()) == (2, True, False)
    else:
        check_linked()


def check_linked() -> None:
    """Check that files written now or before are whole: rows of JSON whose ids are ids or numbers."""
    for line in linked().splitlines():
        assert all(re.fullmatch(r"Q[1-9]\d*|\d+", value) for value in json.loads(line)["ObjectEntitiesID"])
