"""The store in PostgreSQL: many writers, a server that goes away and comes back, passwords that are told nowhere."""

import re
import threading
import time
import traceback
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest
from command import Command
from postgres import PASSWORD, Server

from lmkbc import InputError, LmkbcError
from lmkbc.models import store_postgres
from lmkbc.models.answers import Store
from lmkbc.models.base import Call
from lmkbc.models.store_place import Database, default_place, place_of

CALLS = [Call(model="m", prompt=f"Who is it? {draw % 7}", draw=draw) for draw in range(60)]


@pytest.fixture
def url(postgres: Server) -> str:
    return postgres.fresh("postgres_store")


@pytest.fixture
def store(url: str) -> Iterator[Store]:
    opened = Store(Database(url))
    yield opened
    opened.close()


def test_writers_of_the_same_keys_agree_on_one_answer_each(url: str) -> None:
    """Each of them is told which answers came before its own, in whatever order they come."""
    began, kept = threading.Barrier(8), {}

    def write(writer: int) -> None:
        own = Store(Database(url))
        began.wait()
        there: set[str] = set()
        for start in range(0, 60, 20):
            calls = CALLS[start : start + 20]
            there |= own.put((call, {"text": str(writer)}) for call in (calls if writer % 2 else reversed(calls)))
        kept[writer] = {call.key: own.get(call)["text"] for call in CALLS}, there
        own.close()

    with ThreadPoolExecutor(8) as writers:
        list(writers.map(write, range(8)))
    answers, _ = kept[0]
    for writer, (found, there) in kept.items():
        assert found == answers
        assert there == {key for key, text in answers.items() if text != str(writer)}


def test_workers_that_open_a_new_store_at_once_make_it_once(url: str) -> None:
    with ThreadPoolExecutor(8) as workers:
        list(workers.map(lambda _: Store(Database(url)).close(), range(8)))
    assert Store(Database(url)).stats() == []


def test_a_deadlock_is_tried_again(store: Store, postgres: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    import psycopg

    execute, raised = psycopg.Connection.execute, []

    def once(self: psycopg.Connection, query: bytes, *rest: object, **how: object) -> object:
        if b"INSERT INTO lmkbc_answers" in query and not raised:
            raised.append(1)
            raise psycopg.errors.DeadlockDetected("deadlock detected")
        return execute(self, query, *rest, **how)

    monkeypatch.setattr(psycopg.Connection, "execute", once)
    store.put([(CALLS[0], {"text": "x"})])
    assert raised
    assert store.get(CALLS[0]) == {"text": "x"}


@pytest.mark.parametrize("how", ["terminated", "restarted"])
def test_a_lost_connection_comes_back(store: Store, postgres: Server, how: str) -> None:
    store.put([(CALLS[0], {"text": "x"})])
    if how == "terminated":
        postgres.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'lmkbc'")
    else:
        postgres.kill()
        later = threading.Timer(0.5, postgres.start)
        later.start()
    assert store.get(CALLS[0]) == {"text": "x"}
    store.put([(CALLS[1], {"text": "y"})])
    assert store.get(CALLS[1]) == {"text": "y"}
    if how == "restarted":
        later.join()


def test_a_store_that_stays_away_is_an_error_and_no_empty_answer(
    store: Store, postgres: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store_postgres, "WAIT", 0.5)
    monkeypatch.setattr(store_postgres, "START", 0.5)
    postgres.kill()
    try:
        with pytest.raises(LmkbcError, match=r"^postgresql://lmkbc@127.0.0.1:\d+/postgres cannot be read .*refused"):
            store.get(CALLS[0])
        with pytest.raises(LmkbcError, match=r"cannot be written .*: mend that and run again to resume$"):
            store.put([(CALLS[0], {"text": "x"})])
        began = time.monotonic()
        with pytest.raises(LmkbcError, match="cannot serve as the store"):
            Store(store.place)
        assert time.monotonic() - began < 20
    finally:
        postgres.start()


def test_what_is_refused_for_good_is_not_tried_again(store: Store, postgres: Server) -> None:
    postgres.execute("ALTER TABLE postgres_store.lmkbc_answers ADD CHECK (model <> 'bad')")
    began = time.monotonic()
    with pytest.raises(LmkbcError, match="cannot be written"):
        store.put([(replace(CALLS[0], model="bad"), {"text": "x"})])
    assert time.monotonic() - began < 20


def told(error: BaseException) -> str:
    """Return a traceback with local variables, but for this file's own."""
    shown = traceback.TracebackException.from_exception(error, capture_locals=True)
    shown.stack = traceback.StackSummary.from_list(frame for frame in shown.stack if frame.filename != __file__)
    assert shown.stack
    return "".join(shown.format())


def test_a_wrong_password_is_told_nowhere(command: Command, postgres: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store_postgres, "START", 0.0)
    address = postgres.guarded.replace("guarded@", "guarded:wr0ng-one@")
    for place, env in (
        (address, None),
        (postgres.guarded, "wr0ng-one"),
        (f"{postgres.guarded}?password=wr0ng-one", None),
    ):
        if env:
            monkeypatch.setenv("PGPASSWORD", env)
        with pytest.raises(LmkbcError, match="password authentication failed") as caught:
            Store(place_of(place))
        assert "wr0ng-one" not in told(caught.value)
        assert "wr0ng-one" not in repr(place_of(place))
        status, shown, complaint = command("store", "stats", "--store", place)
        assert (status, "wr0ng-one" in shown + complaint) == (1, False)
        monkeypatch.delenv("PGPASSWORD", raising=False)


@pytest.mark.parametrize("way", ["URL", "PGPASSWORD"])
def test_the_password_of_a_store_is_in_no_message(postgres: Server, way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    secret = PASSWORD.replace(" ", "%20")
    if way == "URL":
        place = place_of(postgres.guarded.replace("guarded@", f"guarded:{secret}@"))
    else:
        monkeypatch.setenv("PGPASSWORD", PASSWORD)
        place = place_of(postgres.guarded)
    store = Store(place)
    monkeypatch.setattr(store_postgres, "WAIT", 0.2)
    store.put([(CALLS[0], {"text": "x"})])
    postgres.kill()
    try:
        with pytest.raises(LmkbcError) as caught:
            store.get(CALLS[0])
    finally:
        postgres.start()
    for shown in (told(caught.value), repr(store), str(store.place), repr(store.place)):
        assert PASSWORD not in shown
        assert secret not in shown
    postgres.execute("DROP OWNED BY guarded CASCADE", "GRANT ALL ON SCHEMA public TO guarded")


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://u:p@ss@host/db",
        "postgresql://u:pa/ss@host/db",
        "postgresql://u:pa#ss@host/db",
        "postgresql://u:pa?ss@host/db",
        "postgres://u:pa ss@host/db",
        "postgresql://u:pass@host/db?x=y@z",
        "mysql://u:pass@host/db",
        "Postgresql://u:p@ss@host/db",
        "postgresql://u:pass@host/db?nonsense=1",
    ],
)
def test_a_url_that_cannot_be_read_is_quoted_nowhere(url: str) -> None:
    with pytest.raises(InputError) as caught:
        Store(place_of(url))
    assert "ss" not in re.sub("password|expression|addresses?", "", str(caught.value))


def test_where_a_store_lies() -> None:
    assert place_of("deep/store.sqlite") == Path("deep/store.sqlite")
    several = place_of("postgres://me:pw@[::1]:5433,other/kb?sslmode=require")
    assert str(several) == "postgresql://me@[::1]:5433,other/kb"
    assert place_of("postgresql://me:pw@h/kb").has_password
    assert place_of("postgresql://me@h/kb?sslpassword=x").has_password
    assert not place_of("postgresql://me@h/kb?sslmode=require").has_password


def test_the_environment_may_name_the_store(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert default_place().name == "store.sqlite"
    monkeypatch.setenv("LMKBC_STORE", "postgresql://me:pw@h/kb")
    assert str(default_place()) == "postgresql://me@h/kb"
    with pytest.raises(InputError, match=r"--offline opens no socket, and postgresql://me@h/kb needs one"):
        default_place(offline=True)
    monkeypatch.setenv("LMKBC_STORE", str(tmp_path / "x.sqlite"))
    assert default_place(offline=True) == tmp_path / "x.sqlite"
