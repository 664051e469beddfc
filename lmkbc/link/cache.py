"""Cache of the search API's answers: one SQLite file with the date of each answer. Empty results are kept too.

An answer is stored under the API and the settings that gave it, so mirrors and languages do not mix. An
answer of a wrong shape counts as absent.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

import msgspec

from lmkbc.errors import InputError, LmkbcError
from lmkbc.files.database import DATABASE_ERRORS, is_unwritable, opened
from lmkbc.link.schema import ShapeError, T, decode

VERSION = 1
_TABLE = """CREATE TABLE answers (source TEXT, kind TEXT, key TEXT, answer BLOB NOT NULL,
    date TEXT NOT NULL, PRIMARY KEY (source, kind, key)) WITHOUT ROWID"""
_GET = "SELECT CAST(answer AS BLOB) FROM answers WHERE source = ? AND kind = ? AND key = ?"
_PUT = "INSERT OR REPLACE INTO answers (source, kind, key, answer, date) VALUES (?, ?, ?, ?, ?)"


class Cache:
    """Keeps answers of the search API, so that no request is sent twice. Each answer is one JSON value.

    source: name of the API and its settings. unwritable: error that prevents writing; answers are then kept in memory
    only. None if the file can be written.
    """

    def __init__(self, path: Path, source: str) -> None:
        self.path, self._source = path, source
        self.unwritable: Exception | None = None
        advice = "move the file away"
        try:
            self._db = opened(path, VERSION, [_TABLE], advice)
            self._db.execute("SELECT source, kind, key, answer, date FROM answers LIMIT 0")
        except (OSError, *DATABASE_ERRORS) as error:
            if not is_unwritable(error):
                raise InputError(
                    f"{path} cannot serve as the linker's cache ({error}): move it away; it is then filled anew"
                ) from None
            self.unwritable = error
            self._db = opened(None, VERSION, [_TABLE], advice)

    def get(self, kind: str, keys: Iterable[str], decoder: msgspec.json.Decoder[T]) -> dict[str, T]:
        """Return the stored answers among `keys`. LmkbcError if the whole file is damaged."""
        answers: dict[str, T] = {}
        for key in keys:
            with self._errors("read"):
                row = self._db.execute(_GET, (self._source, kind, key)).fetchone()
            if row is not None:
                with suppress(ShapeError):
                    answers[key] = decode(row[0], decoder)
        return answers

    def put(self, kind: str, answers: Mapping[str, object]) -> None:
        """Store answers with the current date, in one transaction; older ones are replaced.

        LmkbcError if the disk fails.
        """
        date = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        rows = [(self._source, kind, key, msgspec.json.encode(answer), date) for key, answer in answers.items()]
        with self._errors("written"), self._db:
            self._db.executemany(_PUT, rows)

    @contextmanager
    def _errors(self, what: str) -> Iterator[None]:
        try:
            yield
        except DATABASE_ERRORS as error:
            raise LmkbcError(
                f"{self.path}, the linker's cache, cannot be {what} ({error}): make room where the disk is full, else "
                f"move the file away; its answers are requested again"
            ) from None

    def close(self) -> None:
        """Release the file."""
        self._db.close()
