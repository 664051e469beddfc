"""Searches for linking: Wikidata through a cache of its answers, and a recorded table. Options of a command choose one.

The cache is one SQLite file with the date of each answer; empty results are kept too. An answer is stored under the API
and the settings that gave it, so mirrors and languages do not mix. An answer of a wrong shape counts as absent. Each
string (in any case) and each id is requested once.
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from itertools import islice
from pathlib import Path
from typing import TypeAlias

import msgspec

from lmkbc.errors import InputError, LmkbcError, counted
from lmkbc.files.database import DATABASE_ERRORS, is_unwritable, opened
from lmkbc.files.places import cache_dir, warn_unwritable
from lmkbc.files.reader import whole
from lmkbc.link import wikibase
from lmkbc.link.hits import Hit, Search
from lmkbc.link.wikibase import ShapeError, T, decode
from lmkbc.link.wikidata import API_URL, Client
from lmkbc.names import as_qid

log = logging.getLogger(__name__)
VERSION = 1
_TABLE = """CREATE TABLE answers (source TEXT, kind TEXT, key TEXT, answer BLOB NOT NULL,
    date TEXT NOT NULL, PRIMARY KEY (source, kind, key)) WITHOUT ROWID"""
_GET = "SELECT CAST(answer AS BLOB) FROM answers WHERE source = ? AND kind = ? AND key = ?"
_PUT = "INSERT OR REPLACE INTO answers (source, kind, key, answer, date) VALUES (?, ?, ?, ?, ?)"
_RECORDED = msgspec.json.Decoder(dict[str, str])
_HITS = msgspec.json.Decoder(list[wikibase.SearchHit])
_RECORD: msgspec.json.Decoder[wikibase.Record | None] = msgspec.json.Decoder(wikibase.Record | None)
LANGUAGE = "en"
HITS_PER_SEARCH = 7
Ask: TypeAlias = Callable[[Client, list[str]], Iterator[Mapping[str, T]]]
"""Function that requests keys from a client, and yields batches of answers."""
CLIMB = 4
"""Steps up P279 from an entity's classes: enough to reach "river" or "organisation" from most P31 values."""


class Cache:
    """Keeps answers of the search API, so that no request is sent twice. Each answer is one JSON value.

    source: name of the API and its settings. unwritable: error that prevents writing; answers are then kept in memory
    only. None if the file can be written.
    """

    def __init__(self, path: Path, source: str) -> None:
        self.path, self._source = path, source
        self.unwritable: Exception | None = None
        advice = "move the file away"
        try:
            self._db = opened(path, VERSION, [_TABLE], advice)
            self._db.execute("SELECT source, kind, key, answer, date FROM answers LIMIT 0")
        except (OSError, *DATABASE_ERRORS) as error:
            if not is_unwritable(error):
                raise InputError(
                    f"{path} cannot serve as the linker's cache ({error}): move it away; it is then filled anew"
                ) from None
            self.unwritable = error
            self._db = opened(None, VERSION, [_TABLE], advice)

    def get(self, kind: str, keys: Iterable[str], decoder: msgspec.json.Decoder[T]) -> dict[str, T]:
        """Return the stored answers among `keys`. LmkbcError if the whole file is damaged."""
        answers: dict[str, T] = {}
        for key in keys:
            with self._errors("read"):
                row = self._db.execute(_GET, (self._source, kind, key)).fetchone()
            if row is not None:
                with suppress(ShapeError):
                    answers[key] = decode(row[0], decoder)
        return answers

    def put(self, kind: str, answers: Mapping[str, object]) -> None:
        """Store answers with the current date, in one transaction; older ones are replaced.

        LmkbcError if the disk fails.
        """
        date = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        rows = [(self._source, kind, key, msgspec.json.encode(answer), date) for key, answer in answers.items()]
        with self._errors("written"), self._db:
            self._db.executemany(_PUT, rows)

    @contextmanager
    def _errors(self, what: str) -> Iterator[None]:
        try:
            yield
        except DATABASE_ERRORS as error:
            raise LmkbcError(
                f"{self.path}, the linker's cache, cannot be {what} ({error}): make room where the disk is full, else "
                f"move the file away; its answers are requested again"
            ) from None

    def close(self) -> None:
        """Release the file."""
        self._db.close()


class Wikidata:
    """A `Search` over the Wikidata API or a mirror, through a cache of all its answers.

    client: client of the API; None uses the cache alone, and raises LmkbcError for missing answers. partial: without a
    client, treat a missing answer as "nothing found". refresh: request cached answers once more.
    """

    knows_classes = True

    def __init__(
        self,
        client: Client | None,
        cache: Path | None = None,
        *,
        api_url: str = API_URL,
        refresh: bool = False,
        partial: bool = False,
    ) -> None:
        self._client = client
        self._cache = Cache(cache or cache_dir() / "wikidata.sqlite", f"{api_url} {LANGUAGE} {HITS_PER_SEARCH}")
        if client is not None and self._cache.unwritable:
            warn_unwritable(self._cache.path.parent, self._cache.unwritable, "the next run asks Wikidata again")
        self._refresh, self._partial = refresh, partial
        self._answered: set[tuple[str, str]] = set()
        self._left_out: dict[str, None] = {}

    def ended(self) -> None:
        """Warn about names that were not searched, since the cache alone is asked and has no answer for them."""
        if self._left_out:
            log.warning(
                "offline: %s of names had no recorded search, first %s; train and --index alone link them: give "
                "--search-table, or run once without --offline",
                counted(len(self._left_out), "spelling"),
                ", ".join(map(repr, islice(self._left_out, 3))),
            )

    def search(self, texts: Sequence[str]) -> dict[str, tuple[Hit, ...]]:
        """Return the hits of each text, best first; () for no hits."""
        spelt = {text.casefold(): text for text in texts if text.strip()}

        def ask(client: Client, missing: list[str]) -> Iterator[Mapping[str, list[wikibase.SearchHit]]]:
            calls = [wikibase.search(spelt[key], LANGUAGE, HITS_PER_SEARCH) for key in missing]
            for at, hits in client.answers(calls):
                yield {missing[at]: hits or []}

        answers = self.kept("search", list(spelt), _HITS, ask)
        entities = self.entities([*dict.fromkeys(hit.id for hits in answers.values() for hit in hits)])
        return {text: _described(answers.get(text.casefold(), []), entities) for text in texts}

    def entities(self, ids: Sequence[str], /) -> dict[str, Hit | None]:
        """Return the entity of each id, with the classes above it; None for no entity. InputError for an invalid id."""
        records = self._records(ids)
        above = self._climb([record for record in records.values() if record])
        return {qid: record.hit(_closure(record, above)) if record else None for qid, record in records.items()}

    def labels(self, ids: Iterable[str]) -> dict[str, str]:
        """Return the label of each id that has a label."""
        records = self._records(list(dict.fromkeys(ids)))
        return {qid: record.label for qid, record in records.items() if record and record.label}

    def merged(self, ids: Iterable[str]) -> dict[str, str]:
        """Return the item into which an id was merged, for each id of which this is so."""
        records = self._records(list(dict.fromkeys(ids)))
        return {qid: record.id for qid, record in records.items() if record and record.id != qid}

    def _records(self, ids: Sequence[str]) -> dict[str, wikibase.Record | None]:
        for qid in ids:
            if as_qid(qid) != qid:
                raise InputError(f"{qid!r} is no QID: write one like 'Q42'")

        def ask(client: Client, missing: list[str]) -> Iterator[Mapping[str, wikibase.Record | None]]:
            return client.entities(missing, lambda group: wikibase.records(group, LANGUAGE))

        return self.kept("entity", list(dict.fromkeys(ids)), _RECORD, ask)

    def _climb(self, records: Sequence[wikibase.Record]) -> dict[str, tuple[str, ...]]:
        """Map each class within CLIMB steps of the records to the classes directly above it."""
        above: dict[str, tuple[str, ...]] = {}
        level = {qid for record in records for qid in (*record.instance_of, *record.subclass_of)}
        for _ in range(CLIMB):
            classes = self._records(sorted(level))
            above.update((qid, record.subclass_of if record else ()) for qid, record in classes.items())
            level = {higher for qid in classes for higher in above[qid]} - above.keys()
        return above

    def kept(self, kind: str, keys: list[str], decoder: msgspec.json.Decoder[T], ask: Ask[T]) -> dict[str, T]:
        """Look up keys in the cache, request the others, and cache each batch when it arrives.

        Keys are requested if they have no answer, or if their answer is to be refreshed.
        """
        cached = self._cache.get(kind, keys, decoder)
        missing = [key for key in keys if key not in cached or (self._refresh and (kind, key) not in self._answered)]
        if missing and self._client is None and not self._partial:
            first = ", ".join(repr(key) for key in missing[:5])
            raise LmkbcError(
                f"offline, and the cache lacks {kind} answers for {len(missing)} names or ids, first {first}: "
                f"run once without --offline"
            )
        self._left_out |= dict.fromkeys(missing if kind == "search" and not self._client else ())
        for answers in ask(self._client, missing) if missing and self._client else ():
            self._cache.put(kind, answers)
            self._answered.update((kind, key) for key in answers)
            cached.update(answers)
        return {key: cached[key] for key in keys if key in cached}


def _described(hits: Sequence[wikibase.SearchHit], entities: Mapping[str, Hit | None]) -> tuple[Hit, ...]:
    """Return search hits with the known data of their entities.

    Merged ones have their new id; deleted ones are left out.
    """
    described: dict[str, Hit] = {}
    for hit in hits:
        entity = entities.get(hit.id, Hit(hit.id, hit.label, hit.description))
        if entity:
            merged = Hit(entity.id, hit.label, hit.description, entity.classes, entity.popularity, hit.name)
            described.setdefault(entity.id, merged)
    return tuple(described.values())


def _closure(record: wikibase.Record, above: Mapping[str, tuple[str, ...]]) -> tuple[str, ...]:
    """Return the classes of a record, nearest first: P31, P279, and the classes above them."""
    classes = dict.fromkeys((*record.instance_of, *record.subclass_of))
    level = list(classes)
    for _ in range(CLIMB):
        level = [higher for qid in level for higher in above.get(qid, ()) if higher not in classes]
        classes.update(dict.fromkeys(level))
    return tuple(classes)


class SearchTable:
    """A `Search` over a recorded mapping: text -> QID of the first hit, "" for no hit.

    Its keys are the texts of an earlier run, so they are never listed, matched fuzzily or offered as candidates.
    `searched` holds the distinct case-folded strings that a network would have received.
    """

    knows_classes = False

    def __init__(self, answers: Mapping[str, str]) -> None:
        self._exact = dict(answers)
        self._folded: dict[str, str] = {}
        for text, qid in answers.items():
            self._folded[text.casefold()] = self._folded.get(text.casefold()) or qid
        self.searched: set[str] = set()

    @classmethod
    def read(cls, path: Path) -> SearchTable:
        """Read a JSON object of strings. InputError for the first value that is neither a QID nor "".

        A text that occurs twice must have the same value.
        """
        raw = whole(path)
        try:
            answers = decode(raw, _RECORDED)
        except ShapeError as error:
            raise InputError(f"{path}: no search table ({error}); it is one JSON object, text -> QID or ''") from None
        for text, qid in json.loads(raw, object_pairs_hook=list):
            if qid and as_qid(qid) != qid:
                raise InputError(f"{path}, entry {text!r}: {qid!r} is no QID; write one like 'Q42', or '' for no hit")
            if qid != answers[text]:
                raise InputError(f"{path}, entry {text!r}: both {qid!r} and {answers[text]!r}; remove one")
        return cls(answers)

    def search(self, texts: Sequence[str]) -> dict[str, tuple[Hit, ...]]:
        """Return the recorded hit of each text; () if there is none."""
        self.searched.update(text.casefold() for text in texts)
        qids = {text: self._exact.get(text, self._folded.get(text.casefold(), "")) for text in texts}
        return {text: (Hit(qid),) if qid else () for text, qid in qids.items()}

    def entities(self, _: Sequence[str], /) -> dict[str, Hit | None]:
        """Return an empty mapping, since recorded searches say nothing about ids."""
        return {}


def open_search(
    search_table: Path | None = None,
    *,
    offline: bool = False,
    contact: str | None = None,
    api_url: str | None = None,
    cache: Path | None = None,
    refresh: bool = False,
) -> Search:
    """Return the search for the options of a command: a recorded table, else the cache if offline, else the network.

    contact: see `Client`; needed only if the network is used. Offline, a search that the cache lacks finds nothing.
    """
    if search_table is not None:
        return SearchTable.read(search_table)
    return wikidata(
        offline=offline,
        contact=contact,
        api_url=api_url,
        cache=cache,
        refresh=refresh and not offline,
        partial=offline,
    )


def wikidata(
    *,
    offline: bool = False,
    contact: str | None = None,
    api_url: str | None = None,
    cache: Path | None = None,
    refresh: bool = False,
    partial: bool = False,
) -> Wikidata:
    """Return Wikidata through its cache; offline, the cache alone. partial: see `Wikidata`."""
    address = api_url or API_URL
    return Wikidata(
        None if offline else Client(contact, address), cache, api_url=address, refresh=refresh, partial=partial
    )
