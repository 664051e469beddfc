"""The search for linking, chosen by the options of a command: a recorded table, the cache alone, or the network."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Protocol

from lmkbc.link.evidence import Search
from lmkbc.link.live import Wikidata
from lmkbc.link.search_table import SearchTable
from lmkbc.link.wikidata import API_URL, Client


class Labels(Protocol):
    """Any source of labels for ids."""

    def labels(self, ids: Iterable[str]) -> dict[str, str]:
        """Return the label of each id that the source knows."""


def open_search(
    search_table: Path | None = None,
    *,
    offline: bool = False,
    contact: str | None = None,
    api_url: str = API_URL,
    cache: Path | None = None,
    refresh: bool = False,
) -> Search:
    """Return the search for the options of a command: a recorded table, else the cache if offline, else the network.

    contact: see `Client`; needed only if the network is used.
    """
    if search_table is not None:
        return SearchTable.read(search_table)
    return wikidata(offline=offline, contact=contact, api_url=api_url, cache=cache, refresh=refresh)


def wikidata(
    *,
    offline: bool = False,
    contact: str | None = None,
    api_url: str = API_URL,
    cache: Path | None = None,
    refresh: bool = False,
) -> Wikidata:
    """Return Wikidata through its cache; offline, the cache alone."""
    return Wikidata(None if offline else Client(contact, api_url), cache, api_url=api_url, refresh=refresh)


def labels(ids: Iterable[str], *sources: Labels) -> dict[str, str]:
    """Return labels of ids. The first source that knows an id gives its label."""
    missing = list(dict.fromkeys(ids))
    known: dict[str, str] = {}
    for source in sources:
        known |= source.labels(missing)
        missing = [qid for qid in missing if qid not in known]
    return known
