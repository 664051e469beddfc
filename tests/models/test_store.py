import contextlib
import json
import sqlite3
import stat
import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path

import pytest
from calls import CALL
from command import Command

from lmkbc import InputError, LmkbcError
from lmkbc.models.answers import Store
from lmkbc.models.base import Call


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "deep" / "store.sqlite")


def test_keys_are_the_same_in_every_process() -> None:
    assert Call(model="m", prompt="p").key == "4447bfae831a91569d42ef858946b7401f49a64d19dc0f151b69d95a424ac249"


def test_a_file_that_is_no_store_is_refused(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("hello " * 100)
    with pytest.raises(InputError, match=r"notes\.txt cannot serve as the store"):
        Store(tmp_path / "notes.txt")
    with pytest.raises(InputError, match="cannot serve as the store"):
        Store(tmp_path)


def test_a_new_store_is_its_owner_s_alone_and_a_shared_one_stays_shared(store: Store) -> None:
    store.put([(CALL, {"text": "x"})])
    files = [*store.place.parent.iterdir()]
    assert {path.name for path in files} >= {"store.sqlite", "store.sqlite-wal"}
    assert [path.name for path in files if stat.S_IMODE(path.stat().st_mode) != 0o600] == []
    store.close()
    store.place.chmod(0o660)
    Store(store.place).close()
    assert stat.S_IMODE(store.place.stat().st_mode) == 0o660


def test_a_damaged_store_is_told_of(store: Store) -> None:
    calls = [replace(CALL, draw=draw) for draw in range(200)]
    store.put((call, {"text": "x" * 100}) for call in calls)
    store.close()
    raw = bytearray(store.place.read_bytes())
    raw[4096:] = b"\xff" * (len(raw) - 4096)
    store.place.write_bytes(raw)
    with pytest.raises(LmkbcError, match=r"cannot (be read|be written|serve as the store).*--store"):
        Store(store.place).get(CALL)


def test_an_export_to_the_screen_cannot_steer_it(command: Command, store: Store) -> None:
    said = "a\x9b31mb\u202ec\x1b[2J\x7f"
    store.put([(CALL, {"text": said})])
    shown, _ = command.done("store", "export", "--store", store.place)
    assert all(char.isprintable() for char in shown.rstrip("\n"))
    assert json.loads(shown)["answer"]["text"] == said


OPEN = """
import sys
from pathlib import Path
from lmkbc.models.answers import Store
from lmkbc.models.base import Call
Store(Path(sys.argv[1])).put([(Call(model="new", prompt=sys.argv[2]), {"text": sys.argv[2]})])
"""


def test_processes_that_open_a_new_store_at_once_make_it_once(tmp_path: Path) -> None:
    path = tmp_path / "s.sqlite"
    running = [subprocess.Popen([sys.executable, "-c", OPEN, str(path), str(n)]) for n in range(4)]
    assert [one.wait(timeout=600) for one in running] == [0] * 4
    assert [row["answers"] for row in Store(path).stats()] == [4]


def test_a_store_that_another_process_is_making_is_waited_for(tmp_path: Path) -> None:
    path = tmp_path / "s.sqlite"
    with contextlib.closing(sqlite3.connect(path, isolation_level=None, check_same_thread=False)) as other:
        other.execute("BEGIN IMMEDIATE")
        threading.Timer(0.2, other.rollback).start()
        Store(path).close()


def test_tables_of_another_program_are_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "other.sqlite"
    with contextlib.closing(sqlite3.connect(path)) as db, db:
        db.execute("CREATE TABLE answers (question TEXT, reply TEXT)")
        db.execute("INSERT INTO answers VALUES ('a', 'b')")
    with pytest.raises(InputError, match=r"cannot serve as the store .*--store"):
        Store(path)
    with contextlib.closing(sqlite3.connect(path)) as db:
        assert db.execute("SELECT * FROM answers").fetchall() == [("a", "b")]
        assert [row[1] for row in db.execute("PRAGMA table_info(answers)")] == ["question", "reply"]
