"""SPARQL over a base, offline. Needs the extra `rdf`.

The triples are those of the export `turtle`. They are in memory; those of a large base are on disk in the cache, under
a hash of its manifest and of the options.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from pyoxigraph import Literal, Quad, QueryBoolean, QuerySolutions, Store

from lmkbc.errors import InputError, LmkbcError
from lmkbc.files.arrays import key
from lmkbc.files.atomic import staged, versions
from lmkbc.files.checksum import file_sha256
from lmkbc.files.places import cache_dir
from lmkbc.kb.base.knowledge import Knowledge
from lmkbc.kb.base.manifest import MANIFEST, About
from lmkbc.kb.base.reviews import REVIEWS
from lmkbc.kb.export.exporter import ExportSettings
from lmkbc.kb.export.left_out import ExportTally
from lmkbc.kb.export.ntriples import XSD
from lmkbc.kb.export.rdf import OWN_PATHS, PREFIXES, triples_of
from lmkbc.kb.query.result import Cell, QueryResult

LARGE = 100_000
"""Least number of facts for which the triples are kept on disk."""
_BLANK = r"(?:\s|#[^\r\n]*+)*+"
_IRI, _VARIABLE, _NAME = r"<[^<>{}\s]*+>", r"[?$][^\s{#]++", r"(?=[^\s{<>:]*+:)(?:[^\s{<>#\\]|\\.)++"
_SERVICE = re.compile(rf"service{_BLANK}(?:silent{_BLANK})?(?:{_IRI}|{_VARIABLE}|{_NAME}){_BLANK}\{{", re.IGNORECASE)
"""Pattern of a part that another server would answer. The parser reads it also where letters stand close before it."""
EXACT = 10**15
"""Number from which a double of this size does not tell whole numbers apart that are written in 15 digits."""


def _shortest(text: str) -> float:
    """Return a number as a fact has it: 1299 in place of 1299.0, and 0.3 in place of 0.30000000000000004."""
    number = float(f"{float(text):.15g}")
    return int(number) if number.is_integer() and abs(number) < EXACT else number


_SIGN = re.compile(r"~|^[-.]|\.$")
"""Pattern of the signs of a relation's name that stand behind a backslash in a query."""
_PLACE = re.compile(r"error at (\d+):(\d+): (.*)", re.DOTALL)
_NUMBERS: dict[str, Callable[[str], float]] = {
    f"{XSD}integer": int,
    **dict.fromkeys((f"{XSD}{name}" for name in ("decimal", "double", "float")), _shortest),
}


def _opened(base: Knowledge, least: float, own: str) -> Store:
    """Return the triples of a base's facts of at least some confidence."""
    settings = ExportSettings(base=own, date=base.date, run=base.run, known=None, batch=1)
    if base.rows < LARGE:
        return _filled(Store(), base, settings)
    decided = base.path / REVIEWS
    reviewed = file_sha256(decided) if decided.is_file() else ""
    about = file_sha256(base.path / MANIFEST), reviewed, least, own, versions("lmkbc", "pyoxigraph")
    path = cache_dir() / "triples" / key(*about)[:32]
    try:
        if not path.is_dir():
            with staged(path) as stage:
                _filled(Store(stage), base, settings).flush()
    except LmkbcError:
        if not path.is_dir():  # else another process made the same triples meanwhile
            raise
    try:
        return Store.read_only(str(path))
    except OSError as error:
        raise LmkbcError(f"{path} cannot be read: {error}; remove it, and it is made again") from None


def _filled(store: Store, base: Knowledge, settings: ExportSettings) -> Store:
    triples = triples_of(base, ExportTally(), settings)
    store.bulk_extend(Quad(one.subject, one.predicate, one.object) for one in triples)
    return store


def answered(base: Knowledge, sparql: str, least: float, own: str) -> QueryResult:
    """Return the answer of a query over the facts of a base: a row for ASK, triples for CONSTRUCT and DESCRIBE.

    least: least confidence of the base's facts. own: beginning of the user's own IRIs. InputError for a query with a
    fault, for an update, and for one that would ask another server.
    """
    if _SERVICE.search(sparql):
        raise InputError("the query has a part SERVICE, which another server would answer: leave it out")
    prefixes = {**PREFIXES, **{prefix: f"{own}{path}" for prefix, path in OWN_PATHS.items()}}
    names = {name: predicate(about) for name, about in base.relations.items()}
    try:
        Store().query(sparql, prefixes=prefixes)
    except SyntaxError as error:  # before a base is read, which may take minutes
        meant = {name: written for name, written in names.items() if name in sparql}
        raise _fault(str(error), meant) from None
    found: Any = _opened(base, least, own).query(sparql, prefixes=prefixes)
    if isinstance(found, QueryBoolean):
        return QueryResult(["answer"], [(bool(found),)], names, base.unsure)
    is_table = isinstance(found, QuerySolutions)
    columns = [one.value for one in found.variables] if is_table else ["subject", "predicate", "object"]
    return QueryResult(columns, [*_rows(found)], names, base.unsure)


def predicate(about: About) -> str:
    """Return how a query writes the predicate of a relation, as in wdt:P47 or ownt:price."""
    return f"wdt:{about.property}" if about.is_of_wikidata() else "ownt:" + _SIGN.sub(r"\\\g<0>", about.property)


def _rows(found: Any) -> Iterator[tuple[Cell, ...]]:
    try:
        for row in found:
            yield tuple(map(_cell, row))
    except (OSError, RuntimeError, ValueError) as error:
        raise LmkbcError(f"the query cannot be answered: {error}; ask for less, or in another way") from None


def _cell(term: Any) -> Cell:
    """Return a term as a number, or as its text without quotes, datatype and language; None if it is not bound."""
    if not isinstance(term, Literal) or (kind := _NUMBERS.get(term.datatype.value)) is None:
        return term if term is None else getattr(term, "value", str(term))
    try:
        number: float = kind(term.value)
    except ValueError:
        return term.value
    return number if math.isfinite(number) else term.value


def _fault(message: str, meant: Mapping[str, str]) -> InputError:
    """Return the error for a query that the parser refuses. meant: relations that it names -> their predicates."""
    place = _PLACE.match(message)
    where, why = (f" at line {place[1]}, column {place[2]}", place[3]) if place else ("", message)
    why = " ".join(why.split())
    hint = "".join(f"; write {written} for the relation {name}" for name, written in meant.items())
    if "Prefix not found" in why:
        return InputError(
            f"the query has an unknown prefix{where}: declare it, or use {', '.join([*PREFIXES, *OWN_PATHS])}{hint}"
        )
    if why == "expected CONSTRUCT":
        why = "expected SELECT, ASK, CONSTRUCT or DESCRIBE, since a query changes nothing"
    return InputError(f"the query has a fault{where}: {why if len(why) < 120 else f'{why[:120]}...'}{hint}")
