"""Entities from a Wikidata JSON dump, one per line, streamed: memory does not grow, a killed build goes on.

Format: https://doc.wikimedia.org/Wikibase/master/php/docs_topics_json.html; a JSON array with one entity per line.
"""

from __future__ import annotations

import bz2
import gzip
import importlib
import io
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec

from lmkbc.errors import InputError, LmkbcError
from lmkbc.link.builder import Builder, Entity, Progress
from lmkbc.link.object_types import bundled

LINES_PER_SAVE = 20_000
LANGUAGES = ("en", "mul")
"""English, then "mul": names that hold in every language and are no longer repeated for each."""


class _Term(msgspec.Struct, gc=False):
    value: str


class _EntityId(msgspec.Struct, gc=False):
    id: str = ""


class _DataValue(msgspec.Struct, gc=False):
    value: _EntityId


class _Snak(msgspec.Struct, gc=False):
    datavalue: _DataValue | None = None  # absent for "unknown value" and "no value"


class _Statement(msgspec.Struct, gc=False):
    mainsnak: _Snak
    rank: str = "normal"


class _Claims(msgspec.Struct, gc=False):
    P31: list[_Statement] = []


class _Item(msgspec.Struct, gc=False):
    """What is read of an entity. Empty maps are written as [] in dumps, so each may be a list."""

    id: str
    labels: dict[str, _Term] | list[Any] = {}
    aliases: dict[str, list[_Term]] | list[Any] = {}
    descriptions: dict[str, _Term] | list[Any] = {}
    claims: _Claims | list[Any] = msgspec.field(default_factory=_Claims)
    sitelinks: dict[str, msgspec.Raw] | list[Any] = {}


_decoder = msgspec.json.Decoder(_Item)


def open_dump(path: Path) -> io.BufferedIOBase:
    """The dump's lines, decompressed as its suffix says: .gz, .bz2, .zst, or plain."""
    if not path.is_file():
        raise InputError(f"{path} does not exist: check the path")
    if path.suffix == ".gz":
        return gzip.GzipFile(path)
    if path.suffix == ".bz2":
        return bz2.BZ2File(path)
    if path.suffix == ".zst":
        try:
            zstandard = importlib.import_module("zstandard")
        except ImportError:
            raise LmkbcError(f"{path} needs the zstandard package: run 'pip install zstandard'") from None
        return io.BufferedReader(zstandard.ZstdDecompressor().stream_reader(path.open("rb")))
    return path.open("rb")


def read_entity(line: bytes, languages: Sequence[str], accepted: frozenset[str]) -> Entity | None:
    """The entity of one line; None for brackets, properties, unnamed entities and classes not asked for.

    accepted: P31 values to keep, empty for all. Raises msgspec.DecodeError (or ValidationError) for a broken line.
    """
    line = line.strip().rstrip(b",")
    if line in (b"", b"[", b"]"):
        return None
    item = _decoder.decode(line)
    claims = item.claims.P31 if isinstance(item.claims, _Claims) else []
    classes = tuple(
        dict.fromkeys(s.mainsnak.datavalue.value.id for s in claims if s.mainsnak.datavalue and s.rank != "deprecated")
    )
    if not item.id.startswith("Q") or (accepted and accepted.isdisjoint(classes)):
        return None
    labels = _in(item.labels, languages)
    names = labels + [term for terms in _in(item.aliases, languages) for term in terms]
    if not names:
        return None
    descriptions = _in(item.descriptions, languages)
    return Entity(
        item.id,
        names[0].value,
        tuple(term.value for term in names),
        descriptions[0].value if descriptions else "",
        classes,
        len(item.sitelinks),
    )


def _in(terms: dict[str, Any] | list[Any], languages: Sequence[str]) -> list[Any]:
    return [terms[language] for language in languages if language in terms] if isinstance(terms, dict) else []


def add_dump(
    builder: Builder,
    path: Path,
    languages: Sequence[str] = LANGUAGES,
    classes: Sequence[str] = (),
    report: Callable[[int], None] = lambda _: None,
) -> None:
    """Stage the entities of a dump, saving every 20,000 lines. report: told the lines read so far.

    classes: keep only instances of these or of their known subclasses. A broken line is skipped and recorded.
    """
    accepted = frozenset[str]().union(*(bundled().below(qid) for qid in classes))
    source = f"{path.name} {path.stat().st_size} {' '.join(languages)} {' '.join(sorted(accepted))}"
    offset, number, done = builder.progress(source)
    if done:
        return
    entities: list[Entity] = []
    broken: list[tuple[int, str]] = []
    with open_dump(path) as file:
        _skip(file, offset)
        for line in file:
            offset, number = offset + len(line), number + 1
            try:
                entity = read_entity(line, languages, accepted)
            except (msgspec.MsgspecError, UnicodeDecodeError) as error:
                broken.append((number, str(error)))
                entity = None
            if entity:
                entities.append(entity)
            if number % LINES_PER_SAVE == 0:
                builder.add(entities, source, Progress(offset, number, done=False), broken)
                entities, broken = [], []
                report(number)
    builder.add(entities, source, Progress(offset, number), broken)
    report(number)


def _skip(file: io.BufferedIOBase, offset: int) -> None:
    """Go to where reading stopped: zstandard cannot seek, so its stream is read and thrown away up to there."""
    if file.seekable():
        file.seek(offset)
        return
    while offset > 0 and (chunk := file.read(min(offset, 1 << 20))):
        offset -= len(chunk)
