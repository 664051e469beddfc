"""Build an alias index from labelled splits, tables and a Wikidata dump. A build that was killed can be resumed.

A dump is streamed in constant memory. It is a JSON array with one entity per line:
https://doc.wikimedia.org/Wikibase/master/php/docs_topics_json.html.
"""

from __future__ import annotations

import importlib
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import msgspec
import polars as pl

from lmkbc.errors import UNDECODABLE, InputError, LmkbcError, did_you_mean
from lmkbc.files import reader
from lmkbc.files.database import DATABASE_ERRORS
from lmkbc.files.tables import separator
from lmkbc.link.hits import bundled
from lmkbc.link.index import PARTIAL, SQLITE, IndexBuilder, IndexEntity, SourceProgress
from lmkbc.link.train_objects import mentions
from lmkbc.link.wikibase import ClassClaims, ShapeError, Term, WikibaseEntity, decode, items, picked
from lmkbc.names import QID, as_qid
from lmkbc.relation import Relation
from lmkbc.types import Example

LINES_PER_SAVE = 20_000
ENGLISH, EVERY = "en", "mul"
LANGUAGES = (ENGLISH, EVERY)
"""English, and "mul": the code for names that hold in every language."""
FIRST = 5
"""Lines without an entity after which a file is no dump, unless one came before."""


_DECODER = msgspec.json.Decoder(WikibaseEntity[ClassClaims])


def open_dump(path: Path) -> IO[bytes]:
    """Return the dump as a stream of bytes, decompressed while it is read: .gz, .bz2, .xz, .zst, or plain."""
    return reader.joined(_zstandard(path)) if path.suffix == ".zst" and path.is_file() else reader.stream(path)


def _zstandard(path: Path) -> Iterator[bytes]:
    """Yield what a file holds that zstandard packed, in one frame or in several."""
    try:
        zstandard = importlib.import_module("zstandard")
    except ImportError:
        raise LmkbcError(f"{path} needs the zstandard package: run 'pip install zstandard'") from None
    with path.open("rb") as file:
        content = zstandard.ZstdDecompressor().stream_reader(file, read_across_frames=True)
        try:
            yield from iter(lambda: content.read(reader.STEP), b"")
        except zstandard.ZstdError as error:
            raise InputError(f"{path} cannot be read to its end ({error}): get it whole, and build again") from None


def read_entity(line: bytes, languages: Sequence[str], accepted: frozenset[str]) -> IndexEntity | None:
    """Return the entity of one line, or None. One without a name in these languages has its English names.

    None: for a bracket, a property, an entity without a name, and one of no accepted class. accepted: P31 values to
    keep, empty for all. Raises ShapeError for a broken line.
    """
    if not (written := entity_of(line)):
        return None
    item = decode(written, _DECODER)
    classes = items(item.claims.P31) if isinstance(item.claims, ClassClaims) else ()
    if not item.id.startswith("Q") or (accepted and accepted.isdisjoint(classes)):
        return None
    if as_qid(item.id) != item.id:
        raise ShapeError(f"{item.id[:40]!r} is no QID")
    names = _names(item, languages) or _names(item, (ENGLISH,))
    if not names:
        return None
    descriptions = picked(item.descriptions, (*languages, ENGLISH))
    return IndexEntity(
        item.id,
        names[0].value,
        tuple(term.value for term in names),
        descriptions[0].value if descriptions else "",
        classes,
        len(item.sitelinks),
    )


def _names(item: WikibaseEntity[ClassClaims], languages: Sequence[str]) -> list[Term]:
    """Return labels, then aliases, in the order of the languages."""
    return picked(item.labels, languages) + [term for terms in picked(item.aliases, languages) for term in terms]


def add_dump(
    builder: IndexBuilder,
    path: Path,
    languages: Sequence[str] = LANGUAGES,
    classes: Sequence[str] = (),
    report: Callable[[int], None] = lambda _: None,
) -> None:
    """Stage the entities of a dump, with a save every 20,000 lines. A broken line is skipped and recorded.

    languages: of names, besides those that hold in every language. classes: classes whose instances are kept,
    subclasses included; empty for all. report: callback for progress, called with the number of lines read so far.
    InputError for a file without an entity in its first lines.
    """
    languages = tuple(dict.fromkeys((*languages, EVERY)))
    accepted = frozenset[str]().union(*(bundled().below(qid) for qid in classes))
    source = f"{path.name} {path.stat().st_size} {' '.join(languages)} {' '.join(sorted(accepted))}"
    offset, number, done = builder.progress(source)
    if done:
        return
    entities: list[IndexEntity] = []
    broken: list[tuple[int, str]] = []
    is_dump, first = offset > 0, list[tuple[int, str]]()
    for line in lines(path, offset):
        offset, number = offset + len(line), number + 1
        try:
            if entity := read_entity(line, languages, accepted):
                entities.append(entity)
            is_dump = is_dump or bool(entity_of(line))
        except ShapeError as error:
            broken.append((number, str(error)))
            if not is_dump:
                first.append(broken[-1])
                if len(first) == FIRST:
                    raise _no_dump(path, *first[0]) from None
        if number % LINES_PER_SAVE == 0:
            builder.add(entities, source, SourceProgress(offset, number, done=False), broken)
            entities, broken = [], []
            report(number)
    if first and not is_dump:
        raise _no_dump(path, *first[0])
    builder.add(entities, source, SourceProgress(offset, number), broken)
    report(number)


def _no_dump(path: Path, number: int, reason: str) -> InputError:
    """Return the error for a file whose first lines hold no entities: the first of them, and what is wrong there."""
    return InputError(
        f"{path}, line {number}: {reason}; a dump holds one whole entity in each line: write indented JSON so with "
        "\"jq -c '.[]'\", and what Special:EntityData gives with \"jq -c '.entities[]'\""
    )


def lines(path: Path, offset: int = 0, *, piece: bool = False) -> Iterator[bytes]:
    """Yield the lines of a dump from a byte offset on. InputError for a dump that is cut off or damaged.

    piece: whether the file is one of several pieces of a dump, so that its closing bracket may stand in another piece.
    """
    with open_dump(path) as file:
        first = last = file.readline()
        if not offset and first:
            yield first
        left = offset - len(first)
        if left > 0 and file.seekable():
            left = offset - file.seek(offset)
        while left > 0 and (passed := file.read(min(left, 1 << 20))):  # a packed file cannot seek
            left -= len(passed)
        for line in file:
            yield (last := line)
    if not first or (not piece and first.strip() == b"[" and last is not first and last.strip() != b"]"):
        raise InputError(f"{path} ends before its closing bracket: get it whole, and build again")


def entity_of(line: bytes) -> bytes:
    """Return the entity in a line of a dump, as JSON; nothing for a bracket."""
    written = line.strip().rstrip(b",")
    return b"" if written in (b"[", b"]") else written


@dataclass(frozen=True, slots=True)
class Built:
    """Counts of an index, and the skipped lines of its dump as (source, line, reason)."""

    entities: int
    names: int
    broken: tuple[tuple[str, int, str], ...]


def build_index(
    path: Path,
    *,
    splits: Mapping[str, Iterable[Example]] | None = None,
    relations: Mapping[str, Relation] | None = None,
    tables: Sequence[Path] = (),
    dump: Path | None = None,
    languages: Sequence[str] = LANGUAGES,
    classes: Sequence[str] = (),
    report: Callable[[int], None] = lambda _: None,
) -> Built:
    """Write an index to `path`.

    splits: edition name -> labelled rows. languages, classes: filters for the dump (see `dump.add_dump`). report:
    callback for progress, called with the number of dump lines read so far.
    """
    splits = splits or {}
    _check(path, [*tables, *([dump] if dump else [])], classes, bool(splits))
    builder = IndexBuilder(path, _fingerprint([*tables, *([dump] if dump else [])], languages, classes, splits))
    with closing(builder):
        for edition, examples in splits.items():
            named = mentions(examples, relations or {})  # an entity's class is the type of its relation
            entities = (IndexEntity(mention.id, mention.name, classes=(mention.type,)) for mention in named)
            builder.add(entities, f"edition {edition}")
        for table in tables:
            if not builder.progress(str(table)).done:
                builder.add(read_table(table), str(table))
        if dump:
            add_dump(builder, dump, languages, classes, report)
        broken = tuple(builder.broken())
        return Built(*builder.finish(), broken)


def _check(path: Path, files: Sequence[Path], classes: Sequence[str], has_splits: bool) -> None:
    if not files and not has_splits:
        raise InputError("nothing to build an index from: give labelled splits, a table or a dump")
    if path.exists() and path.stat().st_size and not _is_index(path):
        raise InputError(f"{path} exists and is no index, so it is not replaced: name another place, or remove it")
    staging = path.with_name(path.name + PARTIAL)
    if staging.exists() and staging.stat().st_size and not _begins(staging).startswith(SQLITE):
        raise InputError(f"{staging} is no unfinished index, and would be replaced: name another place, or remove it")
    if not path.parent.is_dir():
        raise InputError(f"{path.parent} is not a directory: create it, or write the index elsewhere")
    for file in files:
        if not file.is_file():
            raise InputError(f"{file} does not exist: check the path")
    for qid in classes:
        if as_qid(qid) != qid:
            raise InputError(f"class {qid!r} is no QID: write one like 'Q5'")


def _begins(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(16)


def _is_index(path: Path) -> bool:
    """Return whether a file is an alias index of any version, sound or damaged. Only such a file may be replaced."""
    try:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as db:
            return {"meta", "names"} <= {name for (name,) in db.execute("SELECT name FROM sqlite_master")}
    except DATABASE_ERRORS:
        return False


def _fingerprint(
    files: Sequence[Path], languages: Sequence[str], classes: Sequence[str], splits: Mapping[str, object]
) -> str:
    sizes = [f"{file} {file.stat().st_size} {file.stat().st_mtime_ns}" for file in files]
    return "\n".join([*sizes, *languages, *sorted(classes), *splits])


COLUMNS = {
    "text": ("", "text"),
    "id": (rf"^{QID}$", "QID; write one like 'Q42'"),
    "label": ("", "text"),
    "description": ("", "text"),
    "classes": (rf"^\s*({QID}\s*)*$", "list of QIDs; write them parted by spaces"),
    "popularity": (r"^([0-9]{1,18})?$", "whole number"),
}
"""Column -> pattern of its values as text, and their description for messages."""
READERS = {".csv": ",", ".tsv": "\t", ".json": "", ".jsonl": "", ".ndjson": ""}


def read_table(path: Path) -> Iterator[IndexEntity]:
    """Yield entities of a CSV, TSV, JSON (list of objects, or one from text to QID) or JSONL table, a name per row.

    Required columns: text, id. Optional: label (default: the entity's first text), description, classes (QIDs separated
    by spaces), popularity (a whole number). Raises InputError for the first row with a wrong value.
    """
    frame = _read(path)
    for name in frame.columns:
        if name not in COLUMNS:
            raise InputError(f"{path}, column {name}: unknown; {did_you_mean(name, {*COLUMNS, 'popularity'})}")
    for name in ("text", "id"):
        if name not in frame.columns:
            raise InputError(f"{path} lacks the column {name!r}: an alias table needs text and id")
    frame = _typed(path, frame)
    merged = frame.group_by("id", maintain_order=True).agg(
        pl.col("label").filter(pl.col("label") != "").first(),
        pl.col("text").unique(maintain_order=True),
        pl.col("description", "classes").sort_by(pl.col("description").str.len_chars(), descending=True).first(),
        pl.col("popularity").max(),
    )
    for qid, label, names, description, classes, popularity in merged.iter_rows():
        yield IndexEntity(qid, label or names[0], tuple(names), description, tuple(classes.split()), popularity)


def _typed(path: Path, frame: pl.DataFrame) -> pl.DataFrame:
    """Return the frame with all columns; absent values become "" or 0."""
    frame = frame.with_columns(pl.lit(None).alias(name) for name in COLUMNS if name not in frame.columns)
    for name, (shape, what) in COLUMNS.items():
        if frame[name].dtype.is_nested():
            raise InputError(f"{path}, column {name}: holds lists or objects; give {what}")
        frame = frame.with_columns(pl.col(name).cast(pl.String).fill_null(""))
        wrong = frame.with_row_index("row", 1).filter(~pl.col(name).str.contains(shape))
        if wrong.height:
            row, text, value = wrong.select("row", pl.col("text").alias("name"), name).row(0)
            of = f" (for {text!r})" if name != "text" else ""
            raise InputError(f"{path}, row {row}, column {name}: {value!r}{of} is no {what}")
    return frame.with_columns(pl.col("popularity").cast(pl.Int64, strict=False).fill_null(0))


def _read(path: Path) -> pl.DataFrame:
    if path.suffix not in READERS:
        raise InputError(f"{path}: no table; {did_you_mean(path.suffix, READERS)}")
    content = reader.whole(path)
    try:
        if sign := READERS[path.suffix]:
            sign = separator(content[:4096], ("text", "id")) if sign == "," else sign
            return pl.read_csv(content, separator=sign, quote_char=None if sign == "\t" else '"', infer_schema=False)
        if path.suffix == ".json" and content.lstrip()[:1] == b"{":  # text -> QID, as tables of searches are
            named = [(text, qid) for text, qid in msgspec.json.decode(content, type=dict[str, str]).items() if qid]
            return pl.DataFrame(named, schema=["text", "id"], orient="row")
        return pl.read_json(content) if path.suffix == ".json" else pl.read_ndjson(content)
    except (pl.exceptions.PolarsError, OSError, *UNDECODABLE) as error:
        raise InputError(
            f"{path} cannot be read as a table of text and id, or as one JSON object, text -> QID: "
            f"{str(error).splitlines()[0]}"
        ) from None
