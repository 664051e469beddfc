"""Build an alias index from labelled splits, tables and a Wikidata dump. A build that was killed can be resumed."""

from __future__ import annotations

import shlex
import sqlite3
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from lmkbc.errors import InputError
from lmkbc.files.database import DATABASE_ERRORS
from lmkbc.link.builder import PARTIAL, SQLITE, IndexBuilder
from lmkbc.link.dump import LANGUAGES, add_dump
from lmkbc.link.tables import example_entities, read_table
from lmkbc.names import as_qid
from lmkbc.relation import Relation
from lmkbc.types import Example


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
    callback for progress, called with the number of dump lines read so far. The index stores the names of its inputs,
    so that an error can show the command that rebuilds it.
    """
    splits = splits or {}
    _check(path, [*tables, *([dump] if dump else [])], classes, bool(splits))
    builder = IndexBuilder(path, _fingerprint([*tables, *([dump] if dump else [])], languages, classes, splits))
    with closing(builder):
        for edition, examples in splits.items():
            builder.add(example_entities(examples, relations or {}), f"edition {edition}")
        for table in tables:
            if not builder.progress(str(table)).done:
                builder.add(read_table(table), str(table))
        if dump:
            add_dump(builder, dump, languages, classes, report)
        broken = tuple(builder.broken())
        entities, names = builder.finish(_options(splits, tables, dump, languages, classes))
    return Built(entities, names, broken)


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


def _options(
    splits: Mapping[str, object],
    tables: Sequence[Path],
    dump: Path | None,
    languages: Sequence[str],
    classes: Sequence[str],
) -> str:
    """Return the inputs as command-line options of `lmkbc link build`."""
    options = [
        *(("--edition", edition) for edition in splits),
        *(("--table", str(table)) for table in tables),
        *([("--dump", str(dump))] if dump else []),
        *(("--language", language) for language in languages if dump),
        *(("--class", qid) for qid in classes),
    ]
    return shlex.join(word for option in options for word in option)
