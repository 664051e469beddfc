"""A store that was damaged, or is of an older version: no answer is changed, what is lost is named and asked again."""

from __future__ import annotations

import contextlib
import json
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from command import Command
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lmkbc.errors import InputError, LmkbcError
from lmkbc.models.answers import Store
from lmkbc.models.call import Call
from lmkbc.models.store_rows import VERSION

CALLS = [Call(model=f"model-{draw % 2}", prompt=f"Who is it? {draw % 7}", draw=draw) for draw in range(40)]
FIRST = CALLS[0]


def said(call: Call) -> dict[str, Any]:
    return {"text": f"Answer {call.draw} " * (1 + 60 * (call.draw % 9 == 0)), "prompt_tokens": call.draw}


def filled(path: Path) -> Path:
    store = Store(path)
    store.put((call, said(call)) for call in CALLS)
    store.set_note("batch x", {"id": "job-1"})
    store.close()
    return path


@contextlib.contextmanager
def edited(path: Path) -> Iterator[sqlite3.Connection]:
    db = sqlite3.connect(path)
    with db:
        yield db
    db.close()


def as_version_1(path: Path) -> None:
    """What the first version wrote: the same without checksums."""
    with edited(path) as db:
        db.execute("ALTER TABLE answers DROP COLUMN checksum")
        db.execute("ALTER TABLE notes DROP COLUMN checksum")
        db.execute("PRAGMA user_version = 1")


DAMAGE: dict[str, str] = {
    "no JSON": "UPDATE answers SET answer = '{\"text\": '",
    "no text": "UPDATE answers SET answer = x'ff00fe'",
    "a number": "UPDATE answers SET answer = 7",
    "a date that is no text": "UPDATE answers SET date = x'c3'",
}
"""What every back end finds is in the conformance suite."""


@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE)
def test_a_damaged_row_is_named_dropped_and_asked_again(tmp_path: Path, damage: str) -> None:
    store = Store(filled(tmp_path / "s.sqlite"))
    with edited(store.place) as db:
        db.execute(f"{damage} WHERE model = 'model-0'")
    assert store.get(FIRST) is None
    assert store.damaged == {"model-0": 1}
    assert "1 damaged rows dropped (1 of 'model-0')" in store.remarks[0]
    assert store.get(CALLS[1]) == said(CALLS[1])
    store.put([(FIRST, said(FIRST))])
    assert [one["answers"] for one in store.stats()] == [1, 20]
    assert store.damaged == {"model-0": 20}
    assert len(list(store.export())) == store.prune() == 21


@pytest.mark.parametrize("asked", [("stats", "--json"), ("export",), ("prune", "--model", "model-1")], ids=" ".join)
def test_commands_name_and_drop_damaged_rows(command: Command, tmp_path: Path, asked: tuple[str, ...]) -> None:
    damage = DAMAGE["no text"]
    path = filled(tmp_path / "s.sqlite")
    with edited(path) as db:
        db.execute(f"{damage} WHERE model = 'model-0'")
        db.execute("UPDATE prompts SET prompt = '\"?\"' WHERE digest = ?", (CALLS[1].prompt_digest,))
    out, told = command.done("store", *asked, "--store", path)
    assert "20 of 'model-0'" in told
    assert "1 of 'prompts'" in told
    if asked[0] == "stats":
        assert [(one["model"], one["answers"]) for one in json.loads(out)] == [("model-1", 20)]
    if asked[0] == "export":
        lines = [json.loads(line) for line in out.splitlines()]
        assert len(lines) == 20
        assert [line["prompt"] for line in lines if line["prompt"] != f"Who is it? {line['call']['draw'] % 7}"] == (
            [None] * sum(call.model == "model-1" and call.prompt == CALLS[1].prompt for call in CALLS)
        )
    assert Store(path).get(FIRST) is None
    assert "damaged" not in command("store", "stats", "--store", path)[2]


def test_a_damaged_model_name_is_one_of_the_damaged_rows(command: Command, tmp_path: Path) -> None:
    path = filled(tmp_path / "s.sqlite")
    with edited(path) as db:
        db.execute("UPDATE answers SET model = CAST(x'ff6d' AS TEXT) WHERE key = ?", (FIRST.key,))
    _, out, told = command("store", "stats", "--json", "--store", path)
    assert [one["answers"] for one in json.loads(out)] == [19, 20]
    assert "1 damaged rows" in told


def test_an_old_store_is_brought_up_to_date_with_its_answers(tmp_path: Path) -> None:
    path = filled(tmp_path / "s.sqlite")
    as_version_1(path)
    with edited(path) as db:
        db.execute("UPDATE answers SET answer = 'broken' WHERE key = ?", (FIRST.key,))
    store = Store(path)
    assert store.note("batch x") == {"id": "job-1"}
    assert store.get(FIRST) is None
    assert [store.get(call) for call in CALLS[1:]] == [said(call) for call in CALLS[1:]]
    assert store.damaged == {"model-0": 1}
    with edited(path) as db:
        assert db.execute("PRAGMA user_version").fetchone() == (VERSION,)


def test_an_upgrade_that_breaks_off_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = filled(tmp_path / "s.sqlite")
    as_version_1(path)
    with monkeypatch.context() as broken:
        broken.setattr("lmkbc.models.store_file.checksum", lambda *_: 1 / 0)
        with pytest.raises(InputError, match="cannot serve as the store"):
            Store(path)
    with edited(path) as db:
        assert db.execute("PRAGMA user_version").fetchone() == (1,)
    assert Store(path).get(CALLS[1]) == said(CALLS[1])


READ_ALL = """
import sys
from pathlib import Path
from lmkbc.models.answers import Store
from lmkbc.models.call import Call
store = Store(Path(sys.argv[1]))
calls = [Call(model=f"model-{d % 2}", prompt=f"Who is it? {d % 7}", draw=d) for d in range(40)]
store.put([(Call(model="new", prompt=sys.argv[2]), {"text": sys.argv[2]})])
print(sum(store.get(call) is not None for call in calls), store.damaged.total())
"""


def test_processes_that_open_an_old_store_at_once_find_all_answers(tmp_path: Path) -> None:
    path = filled(tmp_path / "s.sqlite")
    as_version_1(path)
    running = [
        subprocess.Popen([sys.executable, "-c", READ_ALL, str(path), str(n)], stdout=subprocess.PIPE) for n in range(4)
    ]
    assert [one.communicate(timeout=600)[0].split() for one in running] == [[b"40", b"0"]] * 4
    assert [row["answers"] for row in Store(path).stats()] == [20, 20, 4]


def test_tables_of_another_program_are_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "other.sqlite"
    with edited(path) as db:
        db.execute("CREATE TABLE answers (question TEXT, reply TEXT)")
        db.execute("INSERT INTO answers VALUES ('a', 'b')")
    with pytest.raises(InputError, match=r"cannot serve as the store .*--store"):
        Store(path)
    with edited(path) as db:
        assert db.execute("SELECT * FROM answers").fetchall() == [("a", "b")]
        assert [row[1] for row in db.execute("PRAGMA table_info(answers)")] == ["question", "reply"]


def read_all(store: Store) -> list[Any]:
    return [store.get(call) for call in CALLS]


USES: list[Callable[[Store], Any]] = [
    read_all,
    lambda store: store.note("batch x"),
    lambda store: list(store.export()),
    lambda store: store.stats(),
    lambda store: store.put([(replace(FIRST, draw=99), said(FIRST))]),
    read_all,
    lambda store: store.prune(before="2000-01-01"),
    read_all,
]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return filled(tmp_path_factory.mktemp("store") / "s.sqlite")


# The file holds dates, so an example of another session is none of this one: nothing is kept.
@settings(database=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    flips=st.lists(
        st.tuples(st.integers(0, 1 << 20) | st.integers(0, 200), st.integers(1, 255)), min_size=1, max_size=20
    )
)
def test_flipped_bytes_never_change_an_answer(tmp_path: Path, whole: Path, flips: list[tuple[int, int]]) -> None:
    raw = bytearray(whole.read_bytes())
    for where, change in flips:
        raw[where % len(raw)] ^= change
    path = tmp_path / "s.sqlite"
    for rest in tmp_path.glob("s.sqlite*"):
        rest.unlink()
    path.write_bytes(raw)
    try:
        store = Store(path)
    except InputError as error:
        assert "--store" in str(error)  # noqa: PT017
        assert path.read_bytes() == raw
        return
    for use in USES:
        try:
            found = use(store)
        except LmkbcError as error:
            assert "--store" in str(error) or "make room" in str(error)  # noqa: PT017
            continue
        if use is read_all:
            assert all(one in (None, said(call)) for one, call in zip(found, CALLS, strict=True))
    store.close()
