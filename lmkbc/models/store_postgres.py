"""The store's rows in PostgreSQL, for workers on many machines: the same rows as in a file.

Every statement is idempotent. After a lost connection, a restart of the server or a deadlock it runs again on a new
connection, for at most `WAIT` seconds. The tables are in the user's search path.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import psycopg
import tenacity
from psycopg.conninfo import conninfo_to_dict
from sqlalchemy import make_url
from sqlalchemy.dialects import postgresql

from lmkbc.errors import InputError, LmkbcError
from lmkbc.files.database import WAIT
from lmkbc.models.store_place import Database
from lmkbc.models.store_rows import VERSION, Rows, Statement

Result = TypeVar("Result")

START = 5.0
"""Seconds that a run waits at its start for a missing server, which may be restarting."""
LOCK = 0x6C6D6B6263
"""Advisory lock during the creation of tables, so that workers that start together create them once."""
LONGEST = 300
"""Maximum number of characters of a server's message in errors."""
SETTINGS: Mapping[str, Any] = {
    "application_name": "lmkbc",
    "connect_timeout": 10,
    "keepalives_idle": 30,
    "keepalives_interval": 10,
    "keepalives_count": 3,
    "tcp_user_timeout": 30_000,
}
"""Settings that the URL may replace. Timeouts are for a silent host, in seconds; the last one in milliseconds."""


class PostgresRows(Rows):
    """Rows in a database. Raise InputError if it cannot be a store, LmkbcError if it does not answer."""

    def __init__(self, database: Database) -> None:
        super().__init__(make_url("postgresql+psycopg://").get_dialect()(), postgresql.insert, _tokens, "lmkbc_")
        self._database = database
        try:
            self._given = conninfo_to_dict(database.url)
        except psycopg.Error:
            raise InputError(
                "the URL of the store has a parameter that PostgreSQL does not know: see to its end"
            ) from None
        try:
            self._db = _patiently(START)(self._connected)
            self._prepare()
        except psycopg.Error as error:
            advice = "see that it runs and lets you in, or name another with --store"
            raise LmkbcError(f"{database} cannot serve as the store ({_message(error)}): {advice}") from None

    def __del__(self) -> None:
        """Close the connection of a store that is no longer used."""
        if hasattr(self, "_db"):
            self._db.close()

    def read(self, sql: str, values: Mapping[str, Any]) -> list[Any]:
        """Return the rows that a statement selects."""
        return self._done(lambda db: db.execute(sql.encode(), values).fetchall(), "read")

    def write(self, statements: Sequence[Statement]) -> list[int]:
        """Run statements in one transaction, sent at once, and return the number of rows that each changed."""

        def work(db: psycopg.Connection[Any]) -> list[int]:
            with db.pipeline(), db.transaction():
                cursors = [db.execute(sql.encode(), values) for sql, values in statements]
            return [cursor.rowcount for cursor in cursors]

        return self._done(work, "written")

    def prune(self, model: str | None, before: str | None) -> int:
        """Drop answers while writers are locked out, so that no prompt is dropped before its answer arrives."""
        lock = f"LOCK TABLE {self.prompts.name}, {self.answers.name} IN SHARE ROW EXCLUSIVE MODE"
        _, count, _ = self.write([(lock, {}), *self.pruning(model, before)])
        return count

    def close(self) -> None:
        """Close the connection."""
        self._db.close()

    def _done(self, work: Callable[[psycopg.Connection[Any]], Result], done: str) -> Result:
        """Return the result of a function on the connection, retried if that may help.

        done: its description for errors.
        """

        def attempt() -> Result:
            if self._db.closed:
                self._db = self._connected()
            return work(self._db)

        try:
            return _patiently(WAIT)(attempt)
        except psycopg.Error as error:
            advice = "mend that and run again to resume" if done == "written" else "name another with --store"
            raise LmkbcError(f"{self._database} cannot be {done} ({_message(error)}): {advice}") from None

    def _connected(self) -> psycopg.Connection[Any]:
        """Return a new connection."""
        settings = {name: value for name, value in SETTINGS.items() if name not in self._given}
        return psycopg.connect(
            self._database.url, autocommit=True, prepare_threshold=None, client_encoding="UTF8", **settings
        )

    def _prepare(self) -> None:
        """Create the tables if there are none. Raise InputError for another version's tables."""
        with self._db.transaction():
            self._db.execute("SELECT pg_advisory_xact_lock(%s)", (LOCK,))
            if self._db.execute("SELECT to_regclass('lmkbc_version')").fetchone() == (None,):
                for table in self.creation():
                    self._db.execute(table.encode())
                self._db.execute("CREATE TABLE lmkbc_version (version integer NOT NULL)")
                self._db.execute("INSERT INTO lmkbc_version VALUES (%s)", (VERSION,))
            found = self._db.execute("SELECT max(version) FROM lmkbc_version").fetchone()
        if found != (VERSION,):
            raise InputError(f"{self._database} was written by another version of lmkbc: name another with --store")


def _patiently(seconds: float) -> tenacity.Retrying:
    """Return a policy that retries after transient errors, for `seconds` seconds."""
    return tenacity.Retrying(
        retry=tenacity.retry_if_exception(_passing),
        stop=tenacity.stop_after_delay(seconds),
        wait=tenacity.wait_random_exponential(multiplier=0.1, max=5),
        reraise=True,
    )


def _passing(error: BaseException) -> bool:
    """Return whether a retry may succeed, on a new connection or later."""
    if not isinstance(error, psycopg.OperationalError | psycopg.InterfaceError):
        return False
    state = error.sqlstate
    return state is None or state[:2] in ("08", "40", "57") or state == "53300"


def _message(error: Exception) -> str:
    """Return the message of the server or its driver, in one line."""
    return " ".join(str(error).split())[:LONGEST] or type(error).__name__


def _tokens(name: str) -> str:
    """Return SQL that sums token counts by a pattern, since the server's JSON functions refuse U+0000 in answers.

    In a model's text the quotation mark after the name is escaped, so only the field's name matches.
    """
    return f"""coalesce(sum(substring(answer from '"{name}":([0-9]{{1,15}})')::bigint), 0)::bigint"""
