"""Rows of splits as published, and the objects that they hold.

In some published rows, the parallel lists of names and ids differ in length: names with commas were split at them
("Earl Wilbur Sutherland", "Jr."), and some names were lost. A name and an id are paired only if all best alignments of
the two lists agree.
"""

from __future__ import annotations

import logging
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence, Set
from functools import lru_cache, partial
from itertools import accumulate
from pathlib import Path

import msgspec

from lmkbc.edition import Edition
from lmkbc.errors import InputError, counted
from lmkbc.files.fact_rows import field_of, is_table, stream
from lmkbc.files.jsonl import decoded, no_collection, numbered, row_blocks
from lmkbc.kinds.kind import kind_of
from lmkbc.relation import Relation
from lmkbc.types import Example, GoldObject, Pair, Query
from lmkbc.words import names_nothing

log = logging.getLogger(__name__)

_QID = re.compile(r"Q\d+")
_TAIL = re.compile(
    r"(?:jr|sr|i{2,3}|iv|esq|inc|ltd|ll[cp]|d\.c|ph\.?d|m\.?d)\.?|(?:and|or) .*|\d+(?:st|nd|rd|th) .*", re.I
)
"""Usual form of a part after a comma. No whole name has this form."""
MOST_WAYS = 2_000_000
"""Most alignments to try, a few seconds' work. Published rows need far fewer (642 ids with 15 commas: 164,000)."""


class QueryRow(msgspec.Struct, gc=False):
    """Line of a split, as published."""

    SubjectEntity: str
    Relation: str
    SubjectEntityID: str | None = None
    ObjectEntities: list[str | list[str]] | None = None
    ObjectEntitiesID: list[str] | None = None


def examples_of(rows: Sequence[QueryRow]) -> list[Example]:
    """Return rows as examples with their objects, in order."""
    known: defaultdict[str, set[str]] = defaultdict(set)
    for row in rows:
        for name, identifier in _pairs(row):
            known[identifier].add(name)
    torn, count = [row for row in rows if len(row.ObjectEntities or ()) != len(row.ObjectEntitiesID or ())], 0
    while count != (count := sum(map(len, known.values()))):  # pairs from one row may resolve another row
        for gold in [gold for row in torn for gold in _objects(row, known) if gold.name and gold.id]:
            known[gold.id or ""].add(gold.name)
    queries = (Query(row.SubjectEntity, row.Relation, row.SubjectEntityID) for row in rows)
    return [Example(query, _objects(row, known)) for query, row in zip(queries, rows, strict=True)]


def _pairs(row: QueryRow) -> Iterator[tuple[str, str]]:
    """Yield the names that a row pairs with an id: of its subject, and of its objects if there is a name for each."""
    if row.SubjectEntityID:
        yield row.SubjectEntity, row.SubjectEntityID
    names, ids = row.ObjectEntities or [], row.ObjectEntitiesID or []
    for name, identifier in zip(names, ids, strict=False) if len(names) == len(ids) else ():
        if isinstance(name, str):
            yield name, identifier


def _objects(row: QueryRow, known: Mapping[str, Set[str]]) -> tuple[GoldObject, ...]:
    names = [tuple(item) if isinstance(item, list) else (item,) for item in row.ObjectEntities or ()]
    ids = row.ObjectEntitiesID
    if ids is not None and len(ids) != len(names):
        return objects_of([spelling for spellings in names for spelling in spellings[:1]], ids, known)
    pairs = zip(names, ids if ids is not None else [None] * len(names), strict=True)
    return tuple(_named(spellings, identifier) for spellings, identifier in pairs if any(spellings) or identifier)


def objects_of(pieces: Sequence[str], ids: Sequence[str], known: Mapping[str, Set[str]]) -> tuple[GoldObject, ...]:
    """Return the objects of a row of n pieces of names and m ids, n != m, in the row's order.

    known: id -> names that other rows pair with it. A name and an id that cannot be paired become an object each.
    """
    objects, end = list[GoldObject](), 0
    names = tuple(frozenset(known.get(identifier, ())) for identifier in ids)
    for (start, stop), identifier in zip(_certain(tuple(pieces), tuple(ids), names), ids, strict=True):
        taken = tuple(pieces[start:stop])
        if taken:
            objects += [GoldObject((piece,)) for piece in pieces[end:start]]
            end = stop
        objects.append(_named((", ".join(taken),) if taken else (), identifier, taken if len(taken) > 1 else ()))
    objects += [GoldObject((piece,)) for piece in pieces[end:]]
    return tuple(item for item in objects if item.id or any(item.names))


def _named(names: tuple[str, ...], identifier: str | None, parts: tuple[str, ...] = ()) -> GoldObject:
    """Return an object. Some published rows have an id in place of an unknown name; such a name is left out."""
    if identifier is not None and _QID.fullmatch(identifier):
        names = tuple(name for name in names if name != identifier)
    return GoldObject(names, identifier, parts if names else ())


@lru_cache(1 << 12)
def _certain(
    pieces: tuple[str, ...], ids: tuple[str, ...], known: tuple[frozenset[str], ...]
) -> Sequence[tuple[int, int]]:
    """Return for each id its pieces in all best alignments, the first and the end (excluded).

    These are (0, 0) for an id without pieces, if the best alignments differ, and if there are too many to try.

    known: the names that other rows pair with each id.
    """
    n, m, tails = len(pieces), len(ids), [_TAIL.fullmatch(piece) is not None for piece in pieces]
    few, most, before = int(n > m), max(n - m + 1, 1), [0, *accumulate(tails)]
    certain = [(0, 0)] * m
    if m * (abs(n - m) + 1) ** 2 > MOST_WAYS and m > 1:
        return certain

    def fits(place: int) -> Iterator[tuple[int, int, int]]:
        """Yield the possible pieces of an id with their score, so that enough pieces are left for the other ids."""
        left, names = m - place - 1, {ids[place], *known[place]}
        for start in range(few * place, min(most * place, n) + 1):
            for end in range(max(start + few, n - most * left), min(start + most, n - few * left) + 1):
                tail = 2 * (before[end] - before[start + 1] - tails[start]) if start < end else 0
                named = 8 if ", ".join(pieces[start:end]) in names else -4 if known[place] else 0
                yield start, end, tail + (named if start < end else 0)

    ways, best = [list(fits(place)) for place in range(m)], [{0: 0}]
    for possible in ways:
        reached: dict[int, int] = {}
        for start, end, fit in possible:
            reached[end] = max(best[-1][start] + fit, reached.get(end, best[-1][start] + fit))
        best.append(reached)
    ends = {n}
    for place in reversed(range(m)):
        scored = [(best[place][start] + fit, start, end) for start, end, fit in ways[place] if end in ends]
        chosen = [(start, end) for score, start, end in scored if score == best[place + 1][end]]
        ends = {start for start, _ in chosen}
        certain[place] = chosen[0] if len(chosen) == 1 else (0, 0)
    return certain


_ROW = msgspec.json.Decoder(QueryRow)


def _rows(path: Path, edition: Edition, *, labelled: bool = False) -> Iterator[tuple[QueryRow, Query]]:
    """Yield the rows of a split with their queries. InputError for a wrong row, and for a query that is asked twice.

    labelled: whether a row without a list of objects is wrong: it would be taken for one whose answer is empty.
    """
    seen = set[Query]()
    for rows, _ in row_blocks(path, _ROW, source=partial(stream, needs_id=edition.needs_id)):
        for row in rows:
            relation = edition.spelt(row.Relation)  # the edition's own string, since a split may have millions of rows
            query = Query(row.SubjectEntity, relation, row.SubjectEntityID)
            repeated = query in seen and (query.subject, relation) not in edition.repeats
            bare = labelled and getattr(row, edition.column) is None
            if repeated or bare or not relation or not row.SubjectEntity.strip():
                raise _bad_query(path, row, repeated, edition)
            seen.add(query)
            row.Relation = relation
            yield row, query
    if edition.is_bundled:
        times = Counter((query.subject, query.relation) for query in seen)
        log_namesakes(path, [pair for pair, count in times.items() if count > 1])


def log_namesakes(path: Path, pairs: Sequence[Pair]) -> None:
    """Warn of subjects of one name in a split. pairs: such names, with a relation that is asked of several."""
    if pairs:
        log.warning(
            "%s: %s, first about %r: a model is asked the same, and scores count the last answer alone; if these are "
            "two subjects, let their names tell them apart, as in 'Springfield (Illinois)'",
            path,
            counted(len(pairs), "query is asked twice", "queries are asked twice"),
            pairs[0][0],
        )


def _bad_query(path: Path, bad: QueryRow, repeated: bool, edition: Edition) -> InputError:
    """Return the error for a row that decodes but is wrong, with its line."""
    same = []
    for number, line in numbered(path, partial(stream, needs_id=edition.needs_id)):
        (row,) = decoded(path, line, _ROW, number)
        if (row.SubjectEntity, row.SubjectEntityID) == (bad.SubjectEntity, bad.SubjectEntityID) and (
            row.Relation == bad.Relation or edition.spelt(row.Relation) == edition.spelt(bad.Relation) != ""
        ):
            same.append(number)
    if repeated:
        pair = f"({bad.SubjectEntity!r}, {bad.Relation!r})"
        where = f"{path}, line {same[1]}, {field_of(path, 'SubjectEntity')}"
        return InputError(f"{where}: {pair} repeats line {same[0]}; remove one")
    where = f"{path}, line {same[0]}"
    if not bad.SubjectEntity.strip():
        return InputError(f"{where}, {field_of(path, 'SubjectEntity')}: empty; name the subject")
    if edition.spelt(bad.Relation):
        of_table, of_lines = ", or nothing in it beside an object", "; give the objects as a list, [] if there is none"
        return InputError(f"{where}: no {field_of(path, edition.column)}{of_table if is_table(path) else of_lines}")
    return InputError(f"{where}, {field_of(path, 'Relation')}: {edition.lacks(bad.Relation)}")


def read_queries(path: Path, edition: Edition) -> list[Query]:
    """Return the queries of a split, in file order."""
    with no_collection():
        return [query for _, query in _rows(path, edition)]


def check_values(path: Path, edition: Edition, relations: Mapping[str, Relation]) -> None:
    """Raise InputError for the first object of a split that no answer can match, or that can mean two things.

    That is no number, or no date, in its form; a word that says that there is no object, or that it is not known.
    """
    for number, line in numbered(path, partial(stream, needs_id=edition.needs_id)):
        (row,) = decoded(path, line, _ROW, number)
        if (asked := relations.get(row.Relation)) is None:
            continue
        named = field_of(path, "ObjectEntities" if is_table(path) else edition.column)
        where, kind = f"{path}, line {number}, {named}", kind_of(asked)
        for value in getattr(row, edition.column) or ():
            names = value if isinstance(value, list) and value else [value or ""]
            if is_table(path):
                check_one_meaning(where, names[0], asked)
            if not (row.ObjectEntitiesID and asked.has_entities()) and any(map(names_nothing, names)):
                raise InputError(
                    f"{where}: {names[0]!r} names no object; where there is none, leave the object of a table blank, "
                    "or write [] in JSONL; where it is not known, leave the query out"
                )
            if asked.has_values() and any(names) and not any(kind.meaning(name, asked) is not None for name in names):
                raise InputError(f"{where}: {kind.unread(names[0], asked)}")


def check_one_meaning(where: str, text: str, relation: Relation) -> None:
    """Raise InputError for a number of a table that may mean two, as "1.255" in German."""
    kind = kind_of(relation)  # with a blank behind it, a text is not taken for the form in which numbers are kept
    meant = [*dict.fromkeys((*kind.read(text, relation), *kind.read(f"{text} ", relation)))]
    if kind.is_numeric and meant[1:]:
        other = meant[0].replace(".", ",")
        either = f", or {other}" * (kind.read(f"{other} ", relation) == meant[:1])
        unit = (
            f", or {text} {relation.unit}" if relation.unit and kind.read(f"{text} {relation.unit}", relation) else ""
        )
        raise InputError(f"{where}: {text!r} may mean {meant[0]} or {meant[1]}: write {meant[1]}{either}{unit}")


def name_objects(path: Path) -> bool:
    """Return whether any row of a split names an object."""
    return any(
        row.ObjectEntities or row.ObjectEntitiesID for rows, _ in row_blocks(path, _ROW, source=stream) for row in rows
    )


def read_examples(path: Path, edition: Edition) -> list[Example]:
    """Return the queries of a labelled split with their objects, in file order."""
    with no_collection():
        return examples_of([row for row, _ in _rows(path, edition, labelled=True)])
