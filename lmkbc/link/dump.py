"""Entities from a Wikidata JSON dump, one per line, streamed in constant memory. A killed build can be resumed.

Format: https://doc.wikimedia.org/Wikibase/master/php/docs_topics_json.html; a JSON array with one entity per line.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import IO, Any

import msgspec

from lmkbc.errors import InputError, LmkbcError
from lmkbc.files import reader
from lmkbc.link.builder import IndexBuilder, IndexEntity, SourceProgress
from lmkbc.link.object_types import bundled
from lmkbc.link.wikibase import Empty, ShapeError, Statement, Term, decode, items
from lmkbc.names import as_qid

LINES_PER_SAVE = 20_000
ENGLISH, EVERY = "en", "mul"
LANGUAGES = (ENGLISH, EVERY)
"""English, and "mul": the code for names that hold in every language."""
FIRST = 5
"""Lines without an entity after which a file is no dump, unless one came before."""


class _Claims(msgspec.Struct, gc=False):
    P31: list[Statement] = []


class _Item(msgspec.Struct, gc=False):
    """Fields of an entity that are read."""

    id: str
    labels: dict[str, Term] | Empty = {}
    aliases: dict[str, list[Term]] | Empty = {}
    descriptions: dict[str, Term] | Empty = {}
    claims: _Claims | Empty = msgspec.field(default_factory=_Claims)
    sitelinks: dict[str, msgspec.Raw] | Empty = {}


_decoder = msgspec.json.Decoder(_Item)
BLANK = (b"", b"[", b"]")


def open_dump(path: Path) -> IO[bytes]:
    """Return the dump as a stream of bytes, decompressed while it is read: .gz, .bz2, .xz, .zst, or plain."""
    if path.suffix != ".zst" or not path.is_file():
        return reader.stream(path)
    try:
        zstandard = importlib.import_module("zstandard")
    except ImportError:
        raise LmkbcError(f"{path} needs the zstandard package: run 'pip install zstandard'") from None
    content = zstandard.ZstdDecompressor().stream_reader(path.open("rb"))
    return reader.unpacked(path, content)


def read_entity(line: bytes, languages: Sequence[str], accepted: frozenset[str]) -> IndexEntity | None:
    """Return the entity of one line, or None. One without a name in these languages has its English names.

    None: for a bracket, a property, an entity without a name, and one of no accepted class. accepted: P31 values to
    keep, empty for all. Raises ShapeError for a broken line.
    """
    line = line.strip().rstrip(b",")
    if line in BLANK:
        return None
    item = decode(line, _decoder)
    classes = items(item.claims.P31) if isinstance(item.claims, _Claims) else ()
    if not item.id.startswith("Q") or (accepted and accepted.isdisjoint(classes)):
        return None
    if as_qid(item.id) != item.id:
        raise ShapeError(f"{item.id[:40]!r} is no QID")
    names = _names(item, languages) or _names(item, (ENGLISH,))
    if not names:
        return None
    descriptions = _in(item.descriptions, (*languages, ENGLISH))
    return IndexEntity(
        item.id,
        names[0].value,
        tuple(term.value for term in names),
        descriptions[0].value if descriptions else "",
        classes,
        len(item.sitelinks),
    )


def _names(item: _Item, languages: Sequence[str]) -> list[Term]:
    """Return labels, then aliases, in the order of the languages."""
    return _in(item.labels, languages) + [term for terms in _in(item.aliases, languages) for term in terms]


def _in(terms: dict[str, Any] | list[None], languages: Sequence[str]) -> list[Any]:
    return [terms[language] for language in languages if language in terms] if isinstance(terms, dict) else []


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
            is_dump = is_dump or line.strip() not in BLANK
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
    try:
        with open_dump(path) as file:
            first = last = file.readline()
            if not offset and first:
                yield first
            _skip(file, offset, len(first))
            for line in file:
                yield (last := line)
    except _zstandard_errors() as error:
        raise InputError(f"{path} cannot be read to its end ({error}): get it whole, and build again") from None
    if not first or (not piece and first.strip() == b"[" and last is not first and last.strip() != b"]"):
        raise InputError(f"{path} ends before its closing bracket: get it whole, and build again")


def _zstandard_errors() -> tuple[type[Exception], ...]:
    """Return the errors that zstandard raises, if that optional package is loaded."""
    zstandard = sys.modules.get("zstandard")
    return (zstandard.ZstdError,) if zstandard else ()


def _skip(file: IO[bytes], offset: int, at: int) -> None:
    """Move to an offset. A zstandard stream cannot seek, so its bytes are read and thrown away."""
    if offset <= at:
        return
    if file.seekable():
        file.seek(offset)
        return
    while offset > at and (chunk := file.read(min(offset - at, 1 << 20))):
        at += len(chunk)
