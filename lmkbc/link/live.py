"""Search in Wikidata through a cache. Each string (in any case) and each id is requested once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TypeAlias

import msgspec

from lmkbc.errors import InputError, LmkbcError
from lmkbc.files.places import cache_dir, warn_unwritable
from lmkbc.link import api
from lmkbc.link.cache import Cache
from lmkbc.link.evidence import Hit
from lmkbc.link.schema import T
from lmkbc.link.wikidata import API_URL, Client
from lmkbc.names import as_qid

_HITS = msgspec.json.Decoder(list[api.SearchHit])
_RECORD: msgspec.json.Decoder[api.Record | None] = msgspec.json.Decoder(api.Record | None)
LANGUAGE = "en"
HITS_PER_SEARCH = 7
Ask: TypeAlias = Callable[[Client, list[str]], Iterator[Mapping[str, T]]]
"""Function that requests keys from a client, and yields batches of answers."""
CLIMB = 4
"""Steps up P279 from an entity's classes: enough to reach "river" or "organisation" from most P31 values."""


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

    def search(self, texts: Sequence[str]) -> dict[str, tuple[Hit, ...]]:
        """Return the hits of each text, best first; () for no hits."""
        spelt = {text.casefold(): text for text in texts if text.strip()}

        def ask(client: Client, missing: list[str]) -> Iterator[Mapping[str, list[api.SearchHit]]]:
            calls = [api.search(spelt[key], LANGUAGE, HITS_PER_SEARCH) for key in missing]
            for at, hits in client.answers(calls):
                yield {missing[at]: hits or []}

        answers = self._kept("search", list(spelt), _HITS, ask)
        ids = dict.fromkeys(hit.id for hits in answers.values() for hit in hits)
        known = self.entities(list(ids))
        return {text: _described(answers.get(text.casefold(), []), known) for text in texts}

    def entities(self, ids: Sequence[str], /) -> dict[str, Hit | None]:
        """Return the entity of each id, with the classes above it; None for no entity. InputError for an invalid id."""
        records = self._records(ids)
        above = self._climb([record for record in records.values() if record])
        return {qid: record.hit(_closure(record, above)) if record else None for qid, record in records.items()}

    def labels(self, ids: Iterable[str]) -> dict[str, str]:
        """Return the label of each id that has a label."""
        records = self._records(list(dict.fromkeys(ids)))
        return {qid: record.label for qid, record in records.items() if record and record.label}

    def close(self) -> None:
        """Release the cache file."""
        self._cache.close()

    def _records(self, ids: Sequence[str]) -> dict[str, api.Record | None]:
        for qid in ids:
            if as_qid(qid) != qid:
                raise InputError(f"{qid!r} is no QID: write one like 'Q42'")
        return self._kept("entity", list(dict.fromkeys(ids)), _RECORD, _ask_records)

    def _climb(self, records: Sequence[api.Record]) -> dict[str, tuple[str, ...]]:
        """Map each class within CLIMB steps of the records to the classes directly above it."""
        above: dict[str, tuple[str, ...]] = {}
        level = {qid for record in records for qid in (*record.instance_of, *record.subclass_of)}
        for _ in range(CLIMB):
            classes = self._records(sorted(level))
            above.update((qid, record.subclass_of if record else ()) for qid, record in classes.items())
            level = {higher for qid in classes for higher in above[qid]} - above.keys()
        return above

    def _kept(self, kind: str, keys: list[str], decoder: msgspec.json.Decoder[T], ask: Ask[T]) -> dict[str, T]:
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
        for answers in ask(self._client, missing) if missing and self._client else ():
            self._cache.put(kind, answers)
            self._answered.update((kind, key) for key in answers)
            cached.update(answers)
        return {key: cached[key] for key in keys if key in cached}


def _ask_records(client: Client, missing: list[str]) -> Iterator[Mapping[str, api.Record | None]]:
    """Request ids in groups, and yield their records when they arrive.

    The API refuses a whole group for one invalid id, so its halves are requested. It shortens a long reply, so the
    missing ids are requested again.
    """
    groups = [missing[at : at + api.IDS_PER_CALL] for at in range(0, len(missing), api.IDS_PER_CALL)]
    while groups:
        left: list[list[str]] = []
        for at, records in client.answers([api.entities(group, LANGUAGE) for group in groups]):
            group = groups[at]
            if records is not None:
                yield records
                left.append([qid for qid in group if qid not in records])
            elif len(group) == 1:
                yield {group[0]: None}
            else:
                left += [group[: len(group) // 2], group[len(group) // 2 :]]
        groups = [group for group in left if group]


def _described(hits: Sequence[api.SearchHit], known: Mapping[str, Hit | None]) -> tuple[Hit, ...]:
    """Return search hits with the known data of their entities.

    Merged ones have their new id; deleted ones are left out.
    """
    described: dict[str, Hit] = {}
    for hit in hits:
        entity = known.get(hit.id, Hit(hit.id, hit.label, hit.description))
        if entity:
            merged = Hit(entity.id, hit.label, hit.description, entity.classes, entity.popularity, hit.name)
            described.setdefault(entity.id, merged)
    return tuple(described.values())


def _closure(record: api.Record, above: Mapping[str, tuple[str, ...]]) -> tuple[str, ...]:
    """Return the classes of a record, nearest first: P31, P279, and the classes above them."""
    classes = dict.fromkeys((*record.instance_of, *record.subclass_of))
    level = list(classes)
    for _ in range(CLIMB):
        level = [higher for qid in level for higher in above.get(qid, ()) if higher not in classes]
        classes.update(dict.fromkeys(level))
    return tuple(classes)
