"""Tables of the store, and the statements on them, in SQLAlchemy Core.

Statements are compiled once per dialect, and the driver runs them directly: a lookup takes 10 us instead of 300.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from sqlalchemy import Column, Dialect, MetaData, Table, Text, bindparam, delete, func, literal, select
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql import ClauseElement
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.functions import FunctionElement

VERSION = 2
"""Version of the tables; version 2 has a checksum in each row."""
PAGE = 1000
"""Rows of an export that are read at a time; no transaction stays open between them."""

Statement = tuple[str, Mapping[str, Any]]
"""SQL of one dialect, and its parameters."""


Row = Mapping[str, str]
"""Row of an answer, by column name. Its column `prompt` holds the SHA-256 of the prompt."""

COLUMNS = {
    "prompts": ("digest", "prompt"),
    "answers": ("key", "model", "call", "prompt", "answer", "date", "checksum"),
    "notes": ("key", "note", "checksum"),
}
"""Columns of each table; the first is the key, the last a checksum of the others."""


class row_checksum(FunctionElement[str]):  # noqa: N801 -- named like SQL functions
    """The checksum of columns, as `files.database.row_checksum` computes it."""

    inherit_cache = True


class tokens(FunctionElement[int]):  # noqa: N801
    """The sum of the token counts in answers under a name."""

    inherit_cache = True


@compiles(row_checksum, "sqlite")
def _sqlite_checksum(element: row_checksum, compiler: SQLCompiler, **how: Any) -> str:
    return f"row_checksum({', '.join(f'CAST({compiler.process(one, **how)} AS BLOB)' for one in element.clauses)})"


@compiles(row_checksum, "postgresql")
def _postgresql_checksum(element: row_checksum, compiler: SQLCompiler, **how: Any) -> str:
    names = [compiler.process(one, **how) for one in element.clauses]
    whole = names[0] if len(names) == 1 else " || ".join(f"octet_length({name}) || ':' || {name}" for name in names)
    return f"encode(sha256(convert_to({whole}, 'UTF8')), 'hex')"


@compiles(tokens, "sqlite")
def _sqlite_tokens(element: tokens, compiler: SQLCompiler, **how: Any) -> str:
    answer, name = element.clauses
    return f"total(json_extract({compiler.process(answer, **how)}, '$.{name.value}'))"


@compiles(tokens, "postgresql")
def _postgresql_tokens(element: tokens, compiler: SQLCompiler, **how: Any) -> str:
    """Return SQL that sums token counts by a pattern, since the server's JSON functions refuse U+0000 in answers.

    In a model's text the quotation mark after the name is escaped, so only the field's name matches.
    """
    answer, name = element.clauses
    found = f"""substring({compiler.process(answer, **how)} from '"{name.value}":([0-9]{{1,15}})')"""
    return f"coalesce(sum({found}::bigint), 0)::bigint"


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
                    server_default="" if name == "checksum" else None,
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
    as a missing row. insert: the dialect's function, which supports ON CONFLICT.
    """

    def __init__(self, dialect: Dialect, insert: Callable[[Table], Any], prefix: str = "") -> None:
        self._dialect, self._prefix = dialect, prefix
        self.prompts, self.answers, self.notes = _tables(prefix)
        keyed, key, noted = (self.answers, self.notes), bindparam("key", type_=Text()), insert(self.notes)
        changed = {"note": noted.excluded.note, "checksum": noted.excluded.checksum}
        self.sound = {self.prompts: self.prompts.c.digest.is_not_distinct_from(row_checksum(self.prompts.c.prompt))} | {
            table: table.c.checksum.is_not_distinct_from(row_checksum(*list(table.c)[:-1])) for table in keyed
        }
        """Table -> condition that a row is undamaged."""
        self._get = {table: self.sql(select(*list(table.c)[1:]).where(table.c.key == key))[0] for table in keyed}
        self._delete = {table: self.sql(delete(table).where(table.c.key == key))[0] for table in keyed}
        self._replace_note = self.sql(noted.on_conflict_do_update(index_elements=["key"], set_=changed))[0]
        self._put_prompt = self.sql(insert(self.prompts).on_conflict_do_nothing())[0]
        self._put_answer = self.sql(insert(self.answers).on_conflict_do_nothing())[0]

    def sql(self, statement: ClauseElement) -> Statement:
        """Compile a statement for the database."""
        compiled = statement.compile(dialect=self._dialect)
        return str(compiled), compiled.params or {}

    @abstractmethod
    def read(self, sql: str, values: Mapping[str, Any]) -> list[Any]:
        """Return the rows that a statement selects."""

    @abstractmethod
    def write(self, statements: Sequence[Statement]) -> list[int]:
        """Run statements in one transaction, and return the number of rows that each changed."""

    @abstractmethod
    def drop_unsound(self, table: Table) -> None:
        """Drop the rows of a table with a wrong checksum."""

    @abstractmethod
    def prune(self, model: str | None, before: str | None) -> int:
        """Drop answers of a model, or from before a date, with prompts left unused; return the number of answers."""

    @abstractmethod
    def close(self) -> None:
        """Close the file, or the connection."""

    def insert(self, prompts: Mapping[str, str], rows: Sequence[Row]) -> set[str]:
        """Commit prompts, by checksum, and rows of distinct keys, and return the keys that already had a row.

        Existing rows do not change; others may have committed them meanwhile. The fixed order makes deadlocks rare.
        """
        texts: list[Statement] = [
            (self._put_prompt, {"digest": digest, "prompt": prompt}) for digest, prompt in sorted(prompts.items())
        ]
        counts = self.write([*texts, *((self._put_answer, row) for row in rows)])
        return {row["key"] for row, count in zip(rows, counts[len(texts) :], strict=True) if not count}

    def get(self, table: Table, key: str) -> tuple[bytes, ...] | None:
        """Return the fields of an answer or a note after its key; None for no row, b"" for a field that is no text."""
        rows = self.read(self._get[table], {"key": key})
        return tuple(field if isinstance(field, bytes) else _bytes(field) for field in rows[0]) if rows else None

    def delete(self, table: Table, key: str) -> None:
        """Drop an answer or a note."""
        self.write([(self._delete[table], {"key": key})])

    def set_note(self, key: str, note: str, checksum: str) -> None:
        """Replace a note."""
        self.write([(self._replace_note, {"key": key, "note": note, "checksum": checksum})])

    def heal(self) -> Counter[str]:
        """Drop the rows with a wrong checksum, and return their number by model, or by table for other tables."""
        damaged: Counter[str] = Counter()
        for table, sound in self.sound.items():
            owner = table.c.model if table is self.answers else literal(table.name.removeprefix(self._prefix))
            lost = self.read(*self.sql(select(owner, func.count()).select_from(table).where(~sound).group_by(owner)))
            damaged.update({text(name): count for name, count in lost})
            if lost:
                self.drop_unsound(table)
        return damaged

    def summary(self) -> list[dict[str, Any]]:
        """Return, by model, sorted: name, answers, prompts, prompt and answer tokens, first and last date."""
        rows = self.answers.c
        columns = {
            "model": rows.model,
            "answers": func.count(),
            "prompts": func.count(rows.prompt.distinct()),
            **{name: tokens(rows.answer, name) for name in ("prompt_tokens", "completion_tokens")},
            "first": func.min(rows.date),
            "last": func.max(rows.date),
        }
        found = self.read(*self.sql(select(*columns.values()).group_by(rows.model).order_by(rows.model)))
        return [dict(zip(columns, map(_readable, row), strict=True)) for row in found]

    def lines(self, model: str | None) -> Iterator[list[str | None]]:
        """Yield key, call, prompt, answer and date of each row, in the order of keys; None for a lost prompt."""
        rows, last = self.answers.c, ""
        chosen = select(rows.key, rows.call, self.prompts.c.prompt, rows.answer, rows.date).select_from(
            self.answers.outerjoin(self.prompts, self.prompts.c.digest == rows.prompt)
        )
        if model is not None:
            chosen = chosen.where(rows.model == model)
        while page := self.read(*self.sql(chosen.where(rows.key > last).order_by(rows.key).limit(PAGE))):
            for row in page:
                yield [None if field is None else text(field) for field in row]
            last = text(page[-1][0])

    def pruning(self, model: str | None, before: str | None) -> tuple[Statement, Statement]:
        """Return the statements that drop answers, and prompts without an answer."""
        rows = self.answers.c
        wanted = [rows.model == model] if model is not None else []
        wanted += [rows.date < before] if before is not None else []
        used = select(rows.prompt).where(rows.prompt == self.prompts.c.digest).exists()
        return self.sql(delete(self.answers).where(*wanted)), self.sql(delete(self.prompts).where(~used))


def text(field: str | bytes) -> str:
    """Return a field as text, whether the driver returns text or bytes."""
    return field.decode(errors="replace") if isinstance(field, bytes) else field


def _readable(value: Any) -> Any:
    """Return a value of a summary as text or a whole number; 0 for a sum that is not finite."""
    if isinstance(value, str | bytes):
        return text(value)
    return int(value) if math.isfinite(value) else 0


def _bytes(field: Any) -> bytes:
    return field.encode() if isinstance(field, str) else b""
