"""The search for linking, chosen by the options of a command: a recorded table, the cache alone, or the network."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from lmkbc.errors import InputError
from lmkbc.files.reader import whole
from lmkbc.link.evidence import Hit, Search
from lmkbc.link.live import Wikidata
from lmkbc.link.schema import ShapeError, decode
from lmkbc.link.wikidata import API_URL, Client
from lmkbc.names import as_qid

_TABLE = msgspec.json.Decoder(dict[str, str])


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
        """Read a JSON object of strings. InputError for the first value that is neither a QID nor ""."""
        try:
            answers = decode(whole(path), _TABLE)
        except ShapeError as error:
            raise InputError(f"{path}: no search table ({error}); it is one JSON object, text -> QID or ''") from None
        for text, qid in answers.items():
            if qid and as_qid(qid) != qid:
                raise InputError(f"{path}, entry {text!r}: {qid!r} is no QID; write one like 'Q42', or '' for no hit")
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
