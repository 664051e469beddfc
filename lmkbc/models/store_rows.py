"""Tables of the store, the statements on them in SQLAlchemy Core, and the store in a SQLite file.

Statements are compiled once per dialect, and the driver runs them directly: a lookup takes 10 us instead of 300.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

from sqlalchemy import Column, Dialect, MetaData, Table, Text, bindparam, delete, func, literal_column, select
from sqlalchemy.dialects import sqlite
from sqlalchemy.schema import CreateTable
from sqlalchemy.sql import ClauseElement

from lmkbc.errors import InputError, LmkbcError
from lmkbc.files.database import DATABASE_ERRORS, opened

VERSION = 2
"""Version of the tables."""
PAGE = 1000
"""Rows of an export that are read at a time; no transaction stays open between them."""

Statement = tuple[str, Mapping[str, Any]]
"""SQL of one dialect, and its parameters."""


Row = Mapping[str, str]
"""Row of an answer, by column name. Its column `prompt` holds the SHA-256 of the prompt."""

COLUMNS = {
    "prompts": ("digest", "prompt"),
    "answers": ("key", "model", "call", "prompt", "answer", "date"),
    "notes": ("key", "note"),
}
"""Columns of each table; the first is the key."""


@cache
def _tables(prefix: str) -> tuple[Table, Table, Table]:
    """Return the tables of prompts, answers and notes. Keys are sorted by their bytes in every database."""
    sorted_text = Text().with_variant(Text(collation="C"), "postgresql")
    metadata = MetaData()
    prompts, answers, notes = (
        Table(
            prefix + table,
            metadata,
            *(
                Column(
                    name,
                    sorted_text if at == 0 or name in ("model", "date") else Text(),
                    primary_key=at == 0,
                    nullable=False,
                )
                for at, name in enumerate(names)
            ),
            sqlite_with_rowid=False,
        )
        for table, names in COLUMNS.items()
    )
    return prompts, answers, notes


class Rows(ABC):
    """Rows of answers, prompts and notes. A back end only runs statements.

    Written rows are durable when a method returns. Raise LmkbcError if the back end fails; a failure is never treated
    as a missing row. insert: the dialect's function, which supports ON CONFLICT. tokens: SQL of the sum of the token
    counts in answers under a name.
    """

    def __init__(
        self, dialect: Dialect, insert: Callable[[Table], Any], tokens: Callable[[str], str], prefix: str = ""
    ) -> None:
        self._dialect, self._tokens = dialect, tokens
        self.prompts, self.answers, self.notes = _tables(prefix)
        key, noted = bindparam("key", type_=Text()), insert(self.notes)
        columns = {self.prompts: ("digest", "digest"), self.answers: ("key", "answer"), self.notes: ("key", "note")}
        of_key = {table: (table.c[value], table.c[name] == key) for table, (name, value) in columns.items()}
        self._get = {table: self.sql(select(value).where(same))[0] for table, (value, same) in of_key.items()}
        self._delete = {table: self.sql(delete(table).where(same))[0] for table, (_, same) in of_key.items()}
        changed = noted.on_conflict_do_update(index_elements=["key"], set_={"note": noted.excluded.note})
        self._replace_note = self.sql(changed)[0]
        self._put_prompt = self.sql(insert(self.prompts).on_conflict_do_nothing())[0]
        answered = insert(self.answers)
        renewed = {name: answered.excluded[name] for name in ("answer", "date")}
        self._put_answer = {
            False: self.sql(answered.on_conflict_do_nothing())[0],
            True: self.sql(answered.on_conflict_do_update(index_elements=["key"], set_=renewed))[0],
        }

    def sql(self, statement: ClauseElement) -> Statement:
        """Compile a statement for the database."""
        compiled = statement.compile(dialect=self._dialect)
        return str(compiled), compiled.params or {}

    def creation(self) -> list[str]:
        """Return the statements that create the tables."""
        return [self.sql(CreateTable(table))[0] for table in (self.prompts, self.answers, self.notes)]

    @abstractmethod
    def read(self, sql: str, values: Mapping[str, Any]) -> list[Any]:
        """Return the rows that a statement selects."""

    @abstractmethod
    def write(self, statements: Sequence[Statement]) -> list[int]:
        """Run statements in one transaction, and return the number of rows that each changed."""

    @abstractmethod
    def prune(self, model: str | None, before: str | None) -> int:
        """Drop answers of a model, or from before a date, with prompts left unused; return the number of answers."""

    @abstractmethod
    def close(self) -> None:
        """Close the file, or the connection."""

    def insert(self, prompts: Mapping[str, str], rows: Sequence[Row], *, replace: bool = False) -> set[str]:
        """Commit prompts, by digest, and rows of distinct keys, and return the keys that already had a row.

        Existing rows do not change, unless they are to be replaced; others may have committed them meanwhile. The fixed
        order makes deadlocks rare.
        """
        texts: list[Statement] = [
            (self._put_prompt, {"digest": digest, "prompt": prompt}) for digest, prompt in sorted(prompts.items())
        ]
        counts = self.write([*texts, *((self._put_answer[replace], row) for row in rows)])
        return {row["key"] for row, count in zip(rows, counts[len(texts) :], strict=True) if not count}

    def get(self, table: Table, key: str) -> str | None:
        """Return the digest of a prompt, an answer or a note; None if there is none."""
        rows = self.read(self._get[table], {"key": key})
        return rows[0][0] if rows else None

    def delete(self, table: Table, key: str) -> None:
        """Drop an answer or a note."""
        self.write([(self._delete[table], {"key": key})])

    def set_note(self, key: str, note: str) -> None:
        """Replace a note."""
        self.write([(self._replace_note, {"key": key, "note": note})])

    def summary(self) -> list[dict[str, Any]]:
        """Return, by model, sorted: name, answers, prompts, prompt and answer tokens, first and last date."""
        rows = self.answers.c
        columns = {
            "model": rows.model,
            "answers": func.count(),
            "prompts": func.count(rows.prompt.distinct()),
            **{name: literal_column(self._tokens(name)) for name in ("prompt_tokens", "completion_tokens")},
            "first": func.min(rows.date),
            "last": func.max(rows.date),
        }
        found = self.read(*self.sql(select(*columns.values()).group_by(rows.model).order_by(rows.model)))
        return [dict(zip(columns, row, strict=True)) for row in found]

    def lines(self, model: str | None) -> Iterator[tuple[str, str, str, str, str]]:
        """Yield key, call, prompt, answer and date of each row, in the order of keys."""
        rows, last = self.answers.c, ""
        chosen = select(rows.key, rows.call, self.prompts.c.prompt, rows.answer, rows.date).select_from(
            self.answers.join(self.prompts, self.prompts.c.digest == rows.prompt)
        )
        if model is not None:
            chosen = chosen.where(rows.model == model)
        while page := self.read(*self.sql(chosen.where(rows.key > last).order_by(rows.key).limit(PAGE))):
            yield from page
            last = page[-1][0]

    def pruning(self, model: str | None, before: str | None) -> tuple[Statement, Statement]:
        """Return the statements that drop answers, and prompts without an answer."""
        rows = self.answers.c
        wanted = [rows.model == model] if model is not None else []
        wanted += [rows.date < before] if before is not None else []
        used = select(rows.prompt).where(rows.prompt == self.prompts.c.digest).exists()
        return self.sql(delete(self.answers).where(*wanted)), self.sql(delete(self.prompts).where(~used))


class FileRows(Rows):
    """Rows in one SQLite file, for processes of one machine. Raise InputError for a file that cannot be a store."""

    def __init__(self, path: Path) -> None:
        super().__init__(
            sqlite.dialect(paramstyle="named"),
            sqlite.insert,
            lambda name: f"coalesce(sum(json_extract(answer, '$.{name}')), 0)",
        )
        self._path = path
        try:
            self._db = opened(path, VERSION, self.creation(), "name another with --store")
        except (OSError, *DATABASE_ERRORS) as error:
            raise InputError(f"{path} cannot serve as the store ({error}): name another with --store") from None

    def read(self, sql: str, values: Mapping[str, Any]) -> list[Any]:
        """Return the rows that a statement selects."""
        with self._errors("read"):
            return self._db.execute(sql, values).fetchall()

    def write(self, statements: Sequence[Statement]) -> list[int]:
        """Run statements in one transaction, and return the number of rows that each changed."""
        with self._errors("written"), self._db:
            return [self._db.execute(sql, values).rowcount for sql, values in statements]

    def prune(self, model: str | None, before: str | None) -> int:
        """Drop answers, and free their space."""
        count, _ = self.write(self.pruning(model, before))
        self.read("VACUUM", {})
        return count

    def close(self) -> None:
        """Close the file."""
        self._db.close()

    @contextmanager
    def _errors(self, done: str) -> Iterator[None]:
        """Raise LmkbcError for errors of SQLite."""
        try:
            yield
        except DATABASE_ERRORS as error:
            raise LmkbcError(
                f"{self._path} cannot be {done} ({error}): make room where the disk is full, and run again to resume; "
                "move a damaged file aside or name another with --store, and its answers are asked for anew"
            ) from None
