"""The store's rows in PostgreSQL, for workers on many machines: the same rows and seals as in a file.

Every statement may run twice with the same end, so one that a lost connection, a restart of the server or a deadlock
broke off is run again, on a new connection, for `WAIT` seconds. Tables lie where the search path of the user points.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

import psycopg
import tenacity
from psycopg.conninfo import conninfo_to_dict

from lmkbc.errors import InputError, LmkbcError
from lmkbc.models.store_file import VERSION, WAIT
from lmkbc.models.store_place import Database
from lmkbc.models.store_rows import Row

Result = TypeVar("Result")

START = 5.0
"""Seconds that a run waits at its start for a server that is not there: it may be about to come back."""
LOCK = 0x6C6D6B6263
"""Held by who makes the tables, so that workers which start together make them once."""
PAGE = 1000
"""Rows of an export that are fetched at a time: none of them holds a transaction open."""
LONGEST = 300
"""Characters of what the server says that a message quotes."""
PATIENCE: Mapping[str, Any] = {
    "connect_timeout": 10,
    "keepalives_idle": 30,
    "keepalives_interval": 10,
    "keepalives_count": 3,
    "tcp_user_timeout": 30_000,
}
"""After how many seconds (the last: milliseconds) a host that says nothing is gone, unless the URL says it."""

TABLES = """
CREATE TABLE lmkbc_prompts (digest text COLLATE "C" PRIMARY KEY, prompt text NOT NULL);
CREATE TABLE lmkbc_answers (key text COLLATE "C" PRIMARY KEY, model text COLLATE "C" NOT NULL, call text NOT NULL,
    prompt text NOT NULL, answer text NOT NULL, date text COLLATE "C" NOT NULL, checksum text NOT NULL);
CREATE TABLE lmkbc_notes (key text COLLATE "C" PRIMARY KEY, note text NOT NULL, checksum text NOT NULL);
CREATE TABLE lmkbc_version (version integer NOT NULL);
"""


def _sealed(*columns: str) -> str:
    """The seal of `store_file.seal` as the server reckons it; its encoding is UTF-8, which `_prepare` checks."""
    parts = " || ".join(f"octet_length({column}) || ':' || {column}" for column in columns)
    return f"encode(sha256(convert_to({parts}, 'UTF8')), 'hex')"


BROKEN = {
    "prompts": "digest <> encode(sha256(convert_to(prompt, 'UTF8')), 'hex')",
    "answers": f"checksum <> {_sealed('key', 'model', 'call', 'prompt', 'answer', 'date')}",
    "notes": f"checksum <> {_sealed('key', 'note')}",
}
TOKENS = """coalesce(sum(substring(answer from '"{}":([0-9]{{1,15}})')::bigint), 0)::bigint"""
"""By pattern, since the server's JSON functions refuse the escape of U+0000, which a model may say. In a text of the
model the quotation mark behind the name is escaped, so that only names match."""


class PostgresRows:
    """Rows in a database. InputError for one that cannot be a store, LmkbcError for one that does not answer."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._secrets = _secrets(database)
        try:
            self._db = _patiently(START)(self._connected)
            self._prepare()
        except psycopg.Error as error:
            advice = "see that it runs and lets you in, or name another with --store"
            raise LmkbcError(f"{database} cannot serve as the store ({self._said(error)}): {advice}") from None

    def __del__(self) -> None:
        """A run opens its stores and goes; the server is told when they are out of use."""
        if hasattr(self, "_db"):
            self._db.close()

    def insert(self, prompts: Mapping[str, str], rows: Sequence[Row]) -> set[str]:
        """Commit new rows, in the order of keys, so that writers seldom wait for each other in a circle."""
        texts = sorted(prompts.items())
        columns = [list(column) for column in (*zip(*texts, strict=True), *zip(*rows, strict=True))]
        sql = """WITH words AS (INSERT INTO lmkbc_prompts SELECT * FROM unnest(%s::text[], %s::text[])
                ON CONFLICT DO NOTHING)
            INSERT INTO lmkbc_answers SELECT * FROM unnest(%s::text[], %s::text[], %s::text[], %s::text[], %s::text[],
                %s::text[], %s::text[]) ON CONFLICT DO NOTHING RETURNING key"""
        new = {key for (key,) in self._fetched(sql, columns, "written")}
        return {row.key for row in rows} - new

    def answer(self, key: str) -> tuple[bytes, ...] | None:
        """What a key's row holds."""
        return self._row("SELECT model, call, prompt, answer, date, checksum FROM lmkbc_answers WHERE key = %s", key)

    def delete(self, key: str) -> None:
        """Forget a row."""
        self._fetched("DELETE FROM lmkbc_answers WHERE key = %s", (key,), "written")

    def note(self, key: str) -> tuple[bytes, ...] | None:
        """A note and its checksum."""
        return self._row("SELECT note, checksum FROM lmkbc_notes WHERE key = %s", key)

    def set_note(self, key: str, note: tuple[str, str] | None) -> None:
        """Replace or forget a note."""
        if note is None:
            self._fetched("DELETE FROM lmkbc_notes WHERE key = %s", (key,), "written")
        else:
            sql = """INSERT INTO lmkbc_notes VALUES (%s, %s, %s)
                ON CONFLICT (key) DO UPDATE SET note = excluded.note, checksum = excluded.checksum"""
            self._fetched(sql, (key, *note), "written")

    def heal(self) -> Counter[str]:
        """Drop broken rows."""
        damaged: Counter[str] = Counter()
        for table, owner in {"answers": "model", "prompts": "'prompts'", "notes": "'notes'"}.items():
            sql = f"DELETE FROM lmkbc_{table} WHERE {BROKEN[table]} RETURNING {owner}"  # noqa: S608  (our names)
            damaged.update(name for (name,) in self._fetched(sql, (), "written"))
        return damaged

    def summary(self) -> list[tuple[Any, ...]]:
        """Counts by model."""
        tokens = ", ".join(TOKENS.format(name) for name in ("prompt_tokens", "completion_tokens"))
        sql = f"""SELECT model, count(*), count(DISTINCT prompt), {tokens}, min(date), max(date) FROM lmkbc_answers
            GROUP BY model ORDER BY model"""  # noqa: S608  (our names)
        return self._fetched(sql, (), "read")

    def lines(self, model: str | None) -> Iterator[tuple[str, str, str | None, str, str]]:
        """All rows, in the order of keys, page by page."""
        sql = f"""SELECT key, call, prompts.prompt, answer, date FROM lmkbc_answers answers
            LEFT JOIN lmkbc_prompts prompts ON digest = answers.prompt
            WHERE key > %s AND (%s::text IS NULL OR model = %s) ORDER BY key LIMIT {PAGE}"""  # noqa: S608
        last = ""
        while rows := self._fetched(sql, (last, model, model), "read"):
            yield from rows
            last = rows[-1][0]

    def prune(self, model: str | None, before: str | None) -> int:
        """Drop answers, while no one writes, so that no prompt goes whose answer is about to come."""

        def work(db: psycopg.Connection[Any]) -> int:
            with db.transaction():
                db.execute("LOCK TABLE lmkbc_prompts, lmkbc_answers IN SHARE ROW EXCLUSIVE MODE")
                sql = """DELETE FROM lmkbc_answers WHERE (%s::text IS NULL OR model = %s)
                    AND (%s::text IS NULL OR date < %s)"""
                count = db.execute(sql, (model, model, before, before)).rowcount
                db.execute("""DELETE FROM lmkbc_prompts WHERE NOT EXISTS
                    (SELECT FROM lmkbc_answers WHERE lmkbc_answers.prompt = digest)""")
            return count

        return self._done(work, "written")

    def close(self) -> None:
        """Release the connection."""
        self._db.close()

    def _row(self, sql: str, key: str) -> tuple[bytes, ...] | None:
        rows = self._fetched(sql, (key,), "read")
        return tuple(text.encode() for text in rows[0]) if rows else None

    def _fetched(self, sql: str, values: Sequence[Any], done: str) -> list[Any]:
        """The rows that one statement gives, which is a transaction of its own."""

        def work(db: psycopg.Connection[Any]) -> list[Any]:
            cursor = db.execute(sql.encode(), values)
            return cursor.fetchall() if cursor.description else []

        return self._done(work, done)

    def _done(self, work: Callable[[psycopg.Connection[Any]], Result], done: str) -> Result:
        """What comes of some work, done again where that may help. done: what it is, for the sentence if it fails."""

        def attempt() -> Result:
            if self._db.closed:
                self._db = self._connected()
            return work(self._db)

        try:
            return _patiently(WAIT)(attempt)
        except psycopg.Error as error:
            advice = "mend that and run again to resume" if done == "written" else "name another with --store"
            raise LmkbcError(f"{self._database} cannot be {done} ({self._said(error)}): {advice}") from None

    def _connected(self) -> psycopg.Connection[Any]:
        """A connection whose commits are durable, whatever the server's default is."""
        given = conninfo_to_dict(self._database.url)
        settings = {name: value for name, value in PATIENCE.items() if name not in given}
        settings |= {"application_name": given.get("application_name", "lmkbc"), "client_encoding": "UTF8"}
        db: psycopg.Connection[Any] = psycopg.connect(
            self._database.url, autocommit=True, prepare_threshold=None, **settings
        )
        db.execute("""SELECT set_config(name, 'on', false) FROM pg_settings
            WHERE name = 'synchronous_commit' AND setting = 'off'""")
        return db

    def _prepare(self) -> None:
        """Make the tables where there are none. InputError for those of a newer version, and for other encodings."""
        encoding = self._db.execute("SHOW server_encoding").fetchone()
        if encoding != ("UTF8",):
            raise InputError(f"{self._database} cannot serve as the store: its encoding is not UTF-8; make one that is")
        with self._db.transaction():
            self._db.execute("SELECT pg_advisory_xact_lock(%s)", (LOCK,))
            if self._db.execute("SELECT to_regclass('lmkbc_version')").fetchone() == (None,):
                self._db.execute(TABLES)
                self._db.execute("INSERT INTO lmkbc_version VALUES (%s)", (VERSION,))
            found = self._db.execute("SELECT max(version) FROM lmkbc_version").fetchone()
        version = found[0] if found else None
        if version is None or version > VERSION:
            raise InputError(
                f"{self._database} was written by a newer lmkbc: update lmkbc, or name another with --store"
            )

    def _said(self, error: Exception) -> str:
        """What the server or its driver says, in one line, without what is secret."""
        text = " ".join(str(error).split())
        for secret in self._secrets:
            text = text.replace(secret, "[password]")
        return text[:LONGEST] or type(error).__name__


def _patiently(seconds: float) -> tenacity.Retrying:
    """Tries again, for so long, what may go well later."""
    return tenacity.Retrying(
        retry=tenacity.retry_if_exception(_passing),
        stop=tenacity.stop_after_delay(seconds),
        wait=tenacity.wait_random_exponential(multiplier=0.1, max=5),
        reraise=True,
    )


def _passing(error: BaseException) -> bool:
    """Whether the same may go well on a new connection, or in another moment."""
    if not isinstance(error, psycopg.OperationalError | psycopg.InterfaceError):
        return False
    state = error.sqlstate
    return state is None or state[:2] in ("08", "40", "57") or state == "53300"


def _secrets(database: Database) -> list[str]:
    """Passwords that a message could have in it, the longest first."""
    try:
        given = conninfo_to_dict(database.url)
    except psycopg.Error:
        raise InputError("the URL of the store has a parameter that PostgreSQL does not know: see to its end") from None
    named = [given.get("password"), given.get("sslpassword"), os.environ.get("PGPASSWORD")]
    return sorted({str(secret) for secret in named if secret}, key=len, reverse=True)
