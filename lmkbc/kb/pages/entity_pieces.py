"""The entities of a knowledge base in pieces that a page loads on demand: facts by entity, names in order.

A page opened from disk may load scripts only. So each piece is a script with one call. Its argument is gzipped JSON in
base64. The CRC-32 of an entity's key gives its piece. The key is its QID, else ":" and the key of its name.
"""

from __future__ import annotations

import base64
import gzip
from collections.abc import Iterable, Iterator, Sequence
from hashlib import blake2b
from pathlib import Path
from typing import Any
from zlib import crc32

import msgspec
import polars as pl

from lmkbc.names import Memo, folded_key, name_key, spelling

OUT, IN, NOTHING, MISSING, GIVEN = range(5)
"""Kinds of rows: fact about the entity, fact with it as object, query with nothing, query without an answer.

GIVEN: a value of the file of subjects, whose `relation` is the number of its column.
"""
ROWS: dict[str, Any] = {
    "key": pl.String,
    "name": pl.String,
    "kind": pl.UInt8,
    "relation": pl.UInt16,
    "other": pl.String,
    "text": pl.String,
    "confidence": pl.Float64,
    "source": pl.String,
    "known": pl.Boolean,
}
"""Columns of rows by entity. other: key of the other entity, null for a literal. text: its name, or a reason. known:
whether labelled rows state the fact."""
NAMES: dict[str, Any] = {
    "key": pl.String,
    "name": pl.String,
    "fold": pl.String,
    "asked": pl.Boolean,
    "facts": pl.Int64,
}
"""Columns of names. facts: number of the entity's facts."""
LONGEST = 200
"""Characters of a name that are shown."""
GROUP = 1 << 17
"""Approximate number of rows in memory or sorted at once."""
PIECE, PAGE = 4096, 4096
"""Approximate number of rows in a piece of facts, and number of names in a piece of names."""
MOST_NAMES = 20
"""Most names of an entity that are listed."""
START = 40
"""Characters that identify the beginning of a piece of names."""
_folded = Memo(lambda name: folded_key(name) or name, 1 << 16)
_keyed = Memo(name_key, 1 << 16)


def keys(ids: Iterable[str | None], names: Iterable[str]) -> list[str]:
    """Return the keys of entities, if no two entities without a QID share a name."""
    return [qid or _key(_keyed[name]) for qid, name in zip(ids, names, strict=True)]


class EntityKeys:
    """Keys of a base's entities. Several without a QID may share a name; all but the first get their number in it."""

    def __init__(self) -> None:
        self._first, self._of_row = dict[str, tuple[int, str]](), dict[int, str]()

    def of(self, facts: pl.DataFrame, side: str) -> list[str]:
        """Return the keys of the subjects or objects of facts."""
        made, bare = keys(facts[f"{side}_id"], facts[side]), facts[f"{side}_id"].is_null().arg_true()
        mentions = facts[bare].select(side, f"{side}_entity", "subject_row").iter_rows()
        for at, (name, number, row) in zip(bare, mentions, strict=True):
            if number is not None and self._first.setdefault(made[at], (number, name))[0] != number:
                made[at] += f"~{number}"
            if side == "subject":
                self._of_row[row] = made[at]
        return made

    def of_answers(self, answers: pl.DataFrame) -> list[str]:
        """Return the keys of the subjects of queries without a fact, after the keys of all facts."""
        made, bare = keys(answers["subject_id"], answers["subject"]), answers["subject_id"].is_null().arg_true()
        for at, (name, row) in zip(bare, answers[bare].select("subject", "subject_row").iter_rows(), strict=True):
            is_alone = spelling(self._first.get(made[at], (0, name))[1]) == spelling(name)
            made[at] = self._of_row.get(row, made[at] if is_alone else f"{made[at]}~row{row}")
        return made


def _key(folded: str) -> str:
    if len(folded) > LONGEST:
        folded = f"{folded[:START]}~{blake2b(folded.encode(), digest_size=12).hexdigest()}"
    return f":{folded}"


def shortened(column: str) -> pl.Expr:
    """Return a column of texts cut to `LONGEST` characters. A mark at the end states the full length."""
    text = pl.col(column)
    size = text.str.len_chars()
    short = pl.format("{} … [cut: {} characters in all]", text.str.slice(0, LONGEST), size)
    return pl.when(size > LONGEST).then(short).otherwise(text).alias(column)


class RowGroups:
    """Rows by entity, on disk. expected: approximate number of rows, which sets the number of groups."""

    def __init__(self, folder: Path, expected: int) -> None:
        self._folder, self._groups = folder, max(1, expected // GROUP)
        self._held, self._writes = list[pl.DataFrame](), 0
        self._count = 0

    def add(self, rows: pl.DataFrame) -> None:
        """Add rows with the columns of `ROWS`."""
        self._held.append(rows.select(*ROWS))
        self._count += len(rows)
        if sum(map(len, self._held)) >= GROUP:
            self._write()

    def _write(self) -> None:
        rows, self._held = pl.concat([pl.DataFrame(schema=ROWS), *self._held]), []
        hashed = pl.Series("hash", [crc32(key.encode()) for key in rows["key"]], pl.UInt32)
        rows = rows.with_columns(hashed, group=hashed % self._groups)
        for (group,), part in rows.partition_by("group", as_dict=True, include_key=False).items():
            with (self._folder / f"{group}-{self._writes}").open("wb") as file:  # polars takes no name but UTF-8
                part.write_ipc(file, compression="lz4")
        self._writes += 1

    @property
    def pieces(self) -> int:
        """Return the number of pieces for the rows."""
        return self._groups * max(1, round(self._count / self._groups / PIECE))

    def sorted(self) -> Iterator[tuple[Sequence[int], pl.DataFrame]]:
        """Yield (piece numbers, rows) per group. Rows are sorted by piece, key and kind, the most confident first.

        No rows can be added afterwards.
        """
        self._write()
        order = ("piece", "key", "kind", "relation", "confidence", "text", "other", "name", "source")
        for group in range(self._groups):
            files = sorted(self._folder.glob(f"{group}-*"))
            rows = pl.concat(
                [pl.DataFrame(schema=ROWS | {"hash": pl.UInt32}), *(pl.read_ipc(path.read_bytes()) for path in files)]
            )
            for path in files:
                path.unlink()
            placed = rows.with_columns(piece=pl.col("hash") % self.pieces).drop("hash")
            numbers = range(group, self.pieces, self._groups)
            yield numbers, placed.sort(order, descending=[column == "confidence" for column in order])


def named(rows: pl.DataFrame) -> pl.DataFrame:
    """Return the names of some entities, the best of each first, with the columns of `NAMES`.

    The best name is the one in the entity's own queries, else the one in most facts. facts: number of the entity's
    facts under all its names.
    """
    asked, fact = pl.col("kind").is_in([OUT, NOTHING, MISSING]), pl.col("kind") <= IN
    each = rows.group_by("key", "name").agg(asked=asked.any(), facts=fact.sum().cast(pl.Int64))
    folds = pl.Series("fold", [_folded[name][:LONGEST] for name in each["name"]], pl.String)
    each = each.with_columns(folds).sort("key", "asked", "facts", "name", descending=[False, True, True, False])
    whole = pl.col("asked").any().over("key"), pl.col("facts").sum().over("key")
    return each.with_columns(*whole).select(*NAMES)


def pieces(numbers: Iterable[int], rows: pl.DataFrame, names: pl.DataFrame) -> Iterator[tuple[str, bytes]]:
    """Yield (name, content) of the pieces for sorted rows, empty pieces included. names: result of `named`."""
    short = rows.with_columns(shortened("text"), shortened("source"))
    lists = names.with_columns(shortened("name")).group_by("key").agg(names=pl.col("name").head(MOST_NAMES))
    listed = rows.group_by("piece", "key", maintain_order=True).len().join(lists, on="key", maintain_order="left")
    of_piece = listed.partition_by("piece", as_dict=True)
    parts = short.partition_by("piece", as_dict=True)
    for number in numbers:
        entities, part = of_piece.get((number,), listed.clear()), parts.get((number,), short.clear())
        yield _script(f"facts/{number}", {**_columns(entities, "key", "names", "len"), "rows": _rows(part)})


def _columns(frame: pl.DataFrame, *names: str) -> dict[str, Any]:
    return {name: frame[name].to_list() for name in names}


def _rows(part: pl.DataFrame) -> dict[str, Any]:
    """Return the rows of a piece by column. Confidences are in thousandths, sources are indexes into a list."""
    sources = part["source"].unique(maintain_order=True)
    places = {source: at for at, source in enumerate(sources)}
    sure = pl.col("confidence")
    thousandths = pl.when(sure < 1).then((sure * 1000).round().clip(upper_bound=999)).otherwise(1000)
    columns = _columns(part, "kind", "relation", "other", "text", "known")
    return {
        **columns,
        "confidence": part.select(pl.when(sure.is_not_null()).then(thousandths.cast(pl.Int64))).to_series().to_list(),
        "source": [places[source] for source in part["source"]],
        "sources": sources.to_list(),
    }


def in_order(names: pl.DataFrame) -> pl.DataFrame:
    """Return names in search order. Each occurs as it is, and, if it has several words, with its last word first."""
    turned = names.with_columns(pl.col("fold").str.replace(r"^(.*) (\S+)$", "$2 $1"))
    both = pl.concat([names, turned.filter(pl.col("fold").str.contains(" ", literal=True))])
    return both.sort("fold", "facts", "name", "key", descending=[False, True, False, False])


def name_pieces(names: pl.DataFrame) -> Iterator[tuple[str, bytes]]:
    """Yield (name, content) of the pieces of ordered names. Piece 0 holds names of the entities with most facts."""
    best = names.top_k(2 * PAGE, by=["facts", "name", "key"]).unique(["name", "key"], maintain_order=True)
    best = best.sort("facts", "name", "key", descending=[True, False, False])
    for number, part in enumerate((best.head(PAGE), *names.iter_slices(PAGE))):
        yield _script(f"names/{number}", _columns(part.with_columns(shortened("name")), "name", "key", "facts"))


def starts(names: pl.DataFrame) -> Sequence[str]:
    """Return the beginning of each piece of ordered names, without piece 0."""
    return [fold[:START] for fold in names["fold"].gather_every(PAGE)]


def _script(name: str, content: Any) -> tuple[str, bytes]:
    """Return name and content of a piece's file. Base64 contains no character that could end the script."""
    written = base64.b64encode(gzip.compress(msgspec.json.encode(content), 6, mtime=0)).decode()
    return f"{name}.js", f'piece("{name}","{written}");\n'.encode()
