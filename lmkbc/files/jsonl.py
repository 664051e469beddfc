"""Reader of JSONL: from lines to queries, examples and scored columns. Every error names file, line and field.

A file is decoded block by block by msgspec. Only if that fails, it is read again line by line to find the error. A JSON
array is read too, and so are objects that stretch over several lines or have commas between them (see `stream`).

In some published rows, the parallel lists of names and ids differ in length: names with commas were split at them
("Earl Wilbur Sutherland", "Jr."), and some names were lost. A name and an id are paired only if all best alignments of
the two lists agree.
"""

from __future__ import annotations

import gc
import json
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence, Set
from contextlib import contextmanager
from itertools import accumulate
from pathlib import Path
from typing import IO, Any, TypeVar

import msgspec

from lmkbc.edition import Edition
from lmkbc.errors import InputError, did_you_mean
from lmkbc.files import reader
from lmkbc.types import Example, GoldObject, Query

Row = TypeVar("Row")

_BETWEEN = re.compile(r"[\s,\[\]]*")
"""Characters that may stand between the objects of an array."""
_HALF = re.compile(
    rb"(?P<whole>\\[^u]|\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2})"
    rb"|\\u[dD][89a-fA-F][0-9a-fA-F]{2}|\xed[\xa0-\xbf][\x80-\xbf]"
)
"""A lone surrogate, as an escape or as bytes, in a text that was cut within a character."""
UNDECODABLE = msgspec.MsgspecError, UnicodeDecodeError, RecursionError
"""Errors of msgspec for what is not JSON, not of the expected form, not UTF-8, or nested too deeply."""


def without_halves(raw: bytes) -> bytes:
    """Return JSON with lone surrogates, which no reader takes, as U+FFFD."""
    return _HALF.sub(lambda found: found["whole"] or rb"\ufffd", raw)


class QueryRow(msgspec.Struct, gc=False):
    """Line of a split, as published."""

    SubjectEntity: str
    Relation: str
    SubjectEntityID: str | None = None
    ObjectEntities: list[str | list[str]] | None = None
    ObjectEntitiesID: list[str] | None = None


_ROW = msgspec.json.Decoder(QueryRow)


class _TextRow(msgspec.Struct, gc=False):
    """A line of a text, or a row with its title."""

    text: str
    title: str = ""


def stream(path: Path) -> IO[bytes]:
    """Return a file of JSON objects as a stream with one object a line, each on the line where it begins.

    A file that has one object a line is returned as it is, and never in memory as a whole. Others are, such as an
    array. Objects that begin on the same line are given on lines of their own.
    """
    with reader.stream(path) as file:
        first = next(filter(bytes.strip, file), b"").strip()
    if first[:1] not in (b"[", b"{") or (first[:1] == b"{" and _is_json(first)):
        return reader.stream(path)
    return reader.joined(_one_a_line(reader.whole(path).decode("utf-8", "surrogateescape")))


def _is_json(line: bytes) -> bool:
    try:
        msgspec.json.decode(line)
    except UNDECODABLE:
        return False
    return True


def _one_a_line(text: str) -> Iterator[bytes]:
    """Yield the objects of a text, each on the line where it begins. What is no object is yielded too, as an error."""
    scan, written, line, at = json.JSONDecoder().raw_decode, 0, 0, 0
    while begin := _BETWEEN.match(text, at):
        line += text.count("\n", at, begin.end())
        at = begin.end()
        if at == len(text):
            return
        try:
            end = scan(text, at)[1] if text[at] == "{" else len(text)
        except (ValueError, RecursionError):
            end = len(text)
        blank = max(line - written, 0)
        written += blank + 1
        whole = text[at:end].replace("\r", " ").replace("\n", " ")
        yield ("\n" * blank + whole + "\n").encode("utf-8", "surrogateescape")
        line += text.count("\n", at, end)
        at = end


def read_jsonl(path: Path, row_type: type[Row]) -> list[Row]:
    """Return all rows of a JSONL file, checked against `row_type`. InputError for an empty file."""
    with no_collection():
        return [row for rows, _ in row_blocks(path, msgspec.json.Decoder(row_type)) for row in rows]


def row_blocks(path: Path, *decoders: msgspec.json.Decoder[Row]) -> Iterator[tuple[list[Row], int]]:
    """Yield the rows of a JSONL file block by block, with the number (from 1) of the decoder that reads the block.

    The first decoder that can read a block reads it. InputError for an empty file, and for a block that no decoder
    reads.
    """
    any_row, line = False, 1
    with stream(path) as file:
        for block in reader.blocks(file):
            for number, decoder in enumerate(decoders, start=1):
                try:
                    rows = decoded(path, block, decoder, line)
                except InputError:
                    if number == len(decoders):
                        raise
                else:
                    any_row = any_row or bool(rows)
                    yield rows, number
                    break
            line += block.count(b"\n") + 1
    if not any_row:
        raise InputError(f"{path} is empty: it needs one JSON object per line")


def text_rows(path: Path) -> Iterator[_TextRow]:
    """Yield the lines of a text that are not blank, or the rows of a file with ".jsonl" in its name.

    InputError for a file that does not exist or is not UTF-8.
    """
    if ".jsonl" in path.suffixes:
        for rows, _ in row_blocks(path, msgspec.json.Decoder(_TextRow)):
            yield from rows
        return
    with reader.stream(path) as file:
        for number, line in enumerate(file, start=1):
            try:
                text = line.decode().strip()
            except UnicodeDecodeError:
                raise not_utf8(path, number, line) from None
            if text:
                yield _TextRow(text)


def decoded(path: Path, block: bytes, decoder: msgspec.json.Decoder[Row], first: int = 1) -> list[Row]:
    """Return the rows of some lines; each line holds one row or is blank. first: number of the first line.

    Half of a surrogate pair, as in an emoji that was cut, is replaced by U+FFFD.
    """
    try:
        rows = decoder.decode_lines(block)
    except UNDECODABLE:
        whole = without_halves(block)
        if whole != block:
            return decoded(path, whole, decoder, first)
        raise first_bad_line(path, block, decoder, first) from None
    if len(rows) != block.count(b"\n") + 1 or block.startswith(b"\n") or b"\n\n" in block:
        for _, line in numbered_lines(block, first):
            try:
                decoder.decode(line)
            except msgspec.MsgspecError:  # no row, or more than one
                raise first_bad_line(path, block, decoder, first) from None
    return rows


@contextmanager
def no_collection() -> Iterator[None]:
    """Switch off the cyclic garbage collector. It would repeatedly scan millions of acyclic lists."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def numbered_lines(raw: bytes, first: int = 1) -> Iterator[tuple[int, bytes]]:
    """Yield number and content of the lines that are not blank. first: number of the first line."""
    for number, line in enumerate(raw.split(b"\n"), start=first):
        if line.strip():
            yield number, line


def numbered(path: Path) -> Iterator[tuple[int, bytes]]:
    """Yield number and content of the lines of `stream` that are not blank."""
    with stream(path) as file:
        for number, line in enumerate(file, start=1):
            if line.strip():
                yield number, line.rstrip(b"\r\n")


def first_bad_line(path: Path, raw: bytes, decoder: msgspec.json.Decoder[Any], first: int = 1) -> InputError:
    """Return the error for the first line that cannot be decoded. first: number of the first line."""
    for number, line in numbered_lines(raw, first):
        try:
            decoder.decode(line)
        except UnicodeDecodeError:
            return not_utf8(path, number, line)
        except RecursionError:
            return InputError(f"{path}, line {number}: nested too deeply; each line is one flat JSON object")
        except msgspec.ValidationError as error:
            reason, _, where = str(error).partition(" - at `$")
            field = where.rstrip("`").lstrip(".")
            return InputError(f"{path}, line {number}{field and f', field {field}'}: {reason}")
        except msgspec.DecodeError as error:
            return InputError(f"{path}, line {number}: not valid JSON ({error}); each line is one JSON object")
    return InputError(f"{path}: not one JSON object per line")


def not_utf8(path: Path, number: int, line: bytes) -> InputError:
    """Return the error for a line that is no UTF-8 text. It shows a word of the line as Windows-1252 reads it."""
    word = re.search(r"\w{0,20}[^\W\x00-\x7f]\w{0,20}", line.decode("cp1252", "replace"))
    reads = f" (Windows-1252 reads {word[0]!r} in it)" if word else ""
    return InputError(f"{path}, line {number}: not UTF-8 text{reads}; save the file as UTF-8")


def _rows(path: Path, edition: Edition, *, labelled: bool = False) -> Iterator[tuple[QueryRow, Query]]:
    """Yield the rows of a split with their queries. InputError for a wrong row, and for a query that is asked twice.

    labelled: whether a row without a list of objects is wrong: it would be taken for one whose answer is empty.
    """
    names, seen = {name: name for name in edition.relations}, set[Query]()
    for rows, _ in row_blocks(path, _ROW):
        for row in rows:
            relation = names.get(row.Relation, "")  # the edition's own string, since a split may have millions of rows
            query = Query(row.SubjectEntity, relation, row.SubjectEntityID)
            repeated = query in seen and (query.subject, relation) not in edition.repeats
            bare = labelled and row.ObjectEntities is None and row.ObjectEntitiesID is None
            if repeated or bare or not relation or not row.SubjectEntity.strip():
                raise _bad_query(path, row, repeated, edition)
            seen.add(query)
            yield row, query


def _bad_query(path: Path, bad: QueryRow, repeated: bool, edition: Edition) -> InputError:
    """Return the error for a row that decodes but is wrong, with its line."""
    same = []
    for number, line in numbered(path):
        (row,) = decoded(path, line, _ROW, number)
        if (row.SubjectEntity, row.Relation, row.SubjectEntityID) == (
            bad.SubjectEntity,
            bad.Relation,
            bad.SubjectEntityID,
        ):
            same.append(number)
    if repeated:
        pair = f"({bad.SubjectEntity!r}, {bad.Relation!r})"
        return InputError(f"{path}, line {same[1]}, field SubjectEntity: {pair} repeats line {same[0]}; remove one")
    where = f"{path}, line {same[0]}"
    if not bad.SubjectEntity.strip():
        return InputError(f"{where}, field SubjectEntity: empty; name the subject")
    if bad.Relation in edition.relations:
        return InputError(f"{where}: no field {edition.column}; give the objects as a list, [] if there is none")
    hint = did_you_mean(bad.Relation, edition.relations)
    return InputError(f"{where}, field Relation: {bad.Relation!r} is no relation of edition {edition.name}; {hint}")


def read_queries(path: Path, edition: Edition) -> list[Query]:
    """Return the queries of a split, in file order."""
    with no_collection():
        return [query for _, query in _rows(path, edition)]


def name_objects(path: Path) -> bool:
    """Return whether any row of a split names an object."""
    return any(row.ObjectEntities or row.ObjectEntitiesID for rows, _ in row_blocks(path, _ROW) for row in rows)


def read_examples(path: Path, edition: Edition) -> list[Example]:
    """Return the queries of a labelled split with their objects, in file order."""
    with no_collection():
        return examples_of([row for row, _ in _rows(path, edition, labelled=True)])


def examples_of(rows: Sequence[QueryRow]) -> list[Example]:
    """Return rows as examples with their objects, in order."""
    known = _known(rows)
    objects = [_objects(row, known) for row in rows]
    torn = [place for place, row in enumerate(rows) if not _parallel(row)]
    while [
        item for place in torn for item in objects[place] if item.name and item.id and known.add(item.name, item.id)
    ]:
        for place in torn:  # pairs from one row may resolve another row
            objects[place] = _objects(rows[place], known)
    queries = (Query(row.SubjectEntity, row.Relation, row.SubjectEntityID) for row in rows)
    return [Example(query, golds) for query, golds in zip(queries, objects, strict=True)]


def _known(rows: Iterable[QueryRow]) -> KnownPairs:
    """Return the confirmed pairs of name and id: from rows with a name for each id, and from subjects."""
    known = KnownPairs()
    for row in rows:
        if row.SubjectEntityID:
            known.add(row.SubjectEntity, row.SubjectEntityID)
        if _parallel(row):
            for name, identifier in zip(row.ObjectEntities or (), row.ObjectEntitiesID or (), strict=True):
                if isinstance(name, str):
                    known.add(name, identifier)
    return known


def _parallel(row: QueryRow) -> bool:
    return row.ObjectEntitiesID is not None and len(row.ObjectEntitiesID) == len(row.ObjectEntities or ())


def _objects(row: QueryRow, known: KnownPairs) -> tuple[GoldObject, ...]:
    names = [tuple(item) if isinstance(item, list) else (item,) for item in row.ObjectEntities or ()]
    ids = row.ObjectEntitiesID
    if ids is not None and len(ids) != len(names):
        return objects_of([spelling for spellings in names for spelling in spellings[:1]], ids, known)
    pairs = zip(names, ids if ids is not None else [None] * len(names), strict=True)
    return tuple(named(spellings, identifier) for spellings, identifier in pairs if any(spellings) or identifier)


_QID = re.compile(r"Q\d+")
_TAIL = re.compile(
    r"(?:jr|sr|i{2,3}|iv|esq|inc|ltd|ll[cp]|d\.c|ph\.?d|m\.?d)\.?|(?:and|or) .*|\d+(?:st|nd|rd|th) .*", re.I
)
"""Usual form of a part after a comma. No whole name has this form."""


MOST_WAYS = 2_000_000
"""Most alignments to try, a few seconds' work. Published rows need far fewer (642 ids with 15 commas: 164,000)."""


_IdPieces = tuple[int, int]
"""The pieces of an id: the first, and the end (excluded); there may be none."""
Paths = list[dict[int, int]]
"""For each number of ids: number of pieces that they use -> best score."""


class KnownPairs:
    """Names and ids that are confirmed by rows with equally many of both."""

    def __init__(self, pairs: Iterable[tuple[str, str]] = ()) -> None:
        self._names: defaultdict[str, set[str]] = defaultdict(set)
        for name, identifier in pairs:
            self.add(name, identifier)

    def add(self, name: str, identifier: str) -> bool:
        """Store a pair, and return whether it is new."""
        news = name not in self._names[identifier]
        self._names[identifier].add(name)
        return news

    def names(self, identifier: str) -> tuple[Set[str], int]:
        """Return the names that rows pair with an id, itself included, and how well any other fits: 0 or less."""
        names: Set[str] = self._names.get(identifier, frozenset())
        return names | {identifier}, -4 if names else 0


class _Row:
    """The name pieces of one row, with scores of how runs of them fit its ids."""

    def __init__(self, pieces: Sequence[str], ids: Sequence[str], known: KnownPairs) -> None:
        self.pieces, self.ids, self._known = pieces, ids, known
        self._tails = [_TAIL.fullmatch(piece) is not None for piece in pieces]
        self._before = [0, *accumulate(self._tails)]

    def steps(self, place: int) -> Iterator[tuple[_IdPieces, int]]:
        """Yield the possible pieces of the id at a place, with their score.

        Enough pieces are left for the other ids.
        """
        n, after, before = len(self.pieces), len(self.ids) - place - 1, self._before
        names, other = self._known.names(self.ids[place])
        few, most = (1, n - len(self.ids) + 1) if n > len(self.ids) else (0, 1)
        for start in range(few * place, min(most * place, n) + 1):
            for end in range(max(start + few, n - most * after), min(start + most, n - few * after) + 1):
                if end == start:
                    yield (start, end), 0
                else:
                    fit = 8 if ", ".join(self.pieces[start:end]) in names else other
                    yield (start, end), fit + 2 * (before[end] - before[start + 1] - self._tails[start])


def objects_of(pieces: Sequence[str], ids: Sequence[str], known: KnownPairs) -> tuple[GoldObject, ...]:
    """Return the objects of a row of n pieces of names and m ids, n != m, in the row's order.

    A name and an id that cannot be paired become an object each.
    """
    objects, end = list[GoldObject](), 0
    for step, identifier in zip(_certain(_Row(pieces, ids, known)), ids, strict=True):
        if step is not None and step[0] < step[1]:
            objects += [GoldObject((piece,)) for piece in pieces[end : step[0]]]
            taken = tuple(pieces[slice(*step)])
            objects.append(named((", ".join(taken),), identifier, taken if len(taken) > 1 else ()))
            end = step[1]
        else:
            objects.append(GoldObject((), identifier))
    objects += [GoldObject((piece,)) for piece in pieces[end:]]
    return tuple(item for item in objects if item.id or any(item.names))


def named(names: tuple[str, ...], identifier: str | None, parts: tuple[str, ...] = ()) -> GoldObject:
    """Return an object. Some published rows have an id in place of an unknown name; such a name is left out."""
    if identifier is not None and _QID.fullmatch(identifier):
        names = tuple(name for name in names if name != identifier)
    return GoldObject(names, identifier, parts if names else ())


def _certain(row: _Row) -> list[_IdPieces | None]:
    """Return for each id its pieces in all best alignments; None if these differ, or if there are too many to try."""
    if len(row.ids) * (abs(len(row.pieces) - len(row.ids)) + 1) ** 2 > MOST_WAYS and len(row.ids) > 1:
        return [None] * len(row.ids)
    steps = [dict(row.steps(place)) for place in range(len(row.ids))]
    ahead = _best(steps, 0)
    back = _best([{(end, start): fit for (start, end), fit in ways.items()} for ways in steps[::-1]], len(row.pieces))
    certain: list[_IdPieces | None] = []
    for ways, before, after in zip(steps, ahead, back[-2::-1], strict=False):
        scores = {(start, end): before[start] + fit + after[end] for (start, end), fit in ways.items()}
        best = max(scores.values())
        agreed = [step for step, score in scores.items() if score == best]
        certain.append(agreed[0] if len(agreed) == 1 else None)
    return certain


def _best(steps: Sequence[dict[_IdPieces, int]], first: int) -> Paths:
    paths: Paths = [{first: 0}]
    for ways in steps:
        reached: dict[int, int] = {}
        for (start, end), fit in ways.items():
            score = paths[-1][start] + fit
            reached[end] = max(score, reached.get(end, score))
        paths.append(reached)
    return paths
