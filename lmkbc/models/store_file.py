"""The store in a SQLite file, for processes of one machine, and its upgrade from an older version."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import Table, func, insert, select, update
from sqlalchemy.dialects import sqlite
from sqlalchemy.schema import CreateTable

from lmkbc.errors import InputError, LmkbcError
from lmkbc.files.database import DATABASE_ERRORS, columns, is_damage, opened
from lmkbc.files.database import row_checksum as checksum
from lmkbc.models.store_rows import VERSION, Rows, Statement, row_checksum

JSON = {"answers": ("call", "answer"), "notes": ("note",)}
"""Table without checksums in version 1 -> columns that must hold JSON before a row gets a checksum."""


class FileRows(Rows):
    """Rows in one file. Raise InputError for a file that cannot be a store."""

    def __init__(self, path: Path) -> None:
        super().__init__(sqlite.dialect(paramstyle="named"), sqlite.insert)
        self._path = path
        try:
            self._db = opened(path, VERSION, self._upgrade, checksum, "name another with --store")
        except (OSError, *DATABASE_ERRORS) as error:
            raise InputError(f"{path} cannot serve as the store ({error}): name another with --store") from None

    def read(self, sql: str, values: Mapping[str, Any]) -> list[Any]:
        """Return the rows that a statement selects."""
        with self._refusing("read", "name another with --store"):
            return self._db.execute(sql, values).fetchall()

    def write(self, statements: Sequence[Statement]) -> list[int]:
        """Run statements in one transaction, and return the number of rows that each changed."""
        with self._refusing("written", "make room and run again to resume"), self._db:
            return [self._db.execute(sql, values).rowcount for sql, values in statements]

    def drop_unsound(self, table: Table) -> None:
        """Rewrite a table with its sound rows. A damaged table's order cannot be trusted to find the other rows."""
        new = table.to_metadata(table.metadata, name="sound")
        table.metadata.remove(new)
        sound = select(table).where(self.sound[table])
        self.write(
            [
                ("BEGIN IMMEDIATE", {}),
                self.sql(CreateTable(new)),
                self.sql(insert(new).prefix_with("OR REPLACE").from_select(list(table.c.keys()), sound)),
                (f"DROP TABLE {table.name}", {}),
                (f"ALTER TABLE sound RENAME TO {table.name}", {}),
            ]
        )

    def prune(self, model: str | None, before: str | None) -> int:
        """Drop answers, and free their space."""
        count, _ = self.write(self.pruning(model, before))
        self.read("VACUUM", {})
        return count

    def close(self) -> None:
        """Close the file."""
        self._db.close()

    def _upgrade(self, db: sqlite3.Connection) -> None:
        """Create the tables, or add checksums to those of version 1."""
        for table in (self.prompts, self.answers, self.notes):
            db.execute(self.sql(CreateTable(table, if_not_exists=True))[0])
            if table.name in JSON and "checksum" not in columns(db, table.name):
                db.execute(f"ALTER TABLE {table.name} ADD COLUMN checksum TEXT NOT NULL DEFAULT ''")
                whole = [func.json_valid(table.c[name]) for name in JSON[table.name]]
                db.execute(*self.sql(update(table).values(checksum=row_checksum(*list(table.c)[:-1])).where(*whole)))

    @contextmanager
    def _refusing(self, done: str, advice: str) -> Iterator[None]:
        """Raise LmkbcError for errors of SQLite."""
        try:
            yield
        except DATABASE_ERRORS as error:
            if is_damage(error):
                advice = "it is damaged, so move it aside or name another with --store; its answers are asked for anew"
            raise LmkbcError(f"{self._path} cannot be {done} ({error}): {advice}") from None
