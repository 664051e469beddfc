"""Explanation of links: a candidate's name is linked again, with the run's settings and local sources.

A run stores names and ids, but not the hits of its linker. No model is asked, and no socket is opened. If a language
model chose among hits, the id in the run shows its choice.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

from lmkbc.edition import Edition
from lmkbc.link.disambiguation import MODEL
from lmkbc.link.hits import Hit, Link, Search
from lmkbc.link.index import AliasIndex
from lmkbc.link.linker import Linking
from lmkbc.link.search import SearchTable, Wikidata
from lmkbc.link.train_objects import BY_ROWS
from lmkbc.link.wikidata import CONTACT
from lmkbc.names import as_qid
from lmkbc.run.saved import SavedRun
from lmkbc.session.run import Run
from lmkbc.settings import checked
from lmkbc.types import Candidate, CandidateSet, Query
from lmkbc.workspace import Workspace

MOST_OTHERS = 5
"""Most other entities of a name that are shown."""
SOURCES = {
    "given": "the name is an id",
    "relation": "train, as an object of the relation",
    "type": "train, as a name of its type",
    "known": "a known word",
    "index": "the index",
    "fuzzy": "one typing error away",
    "search": "the search",
    "re-search": "the search for {!r}",
}
"""Words for a link's evidence; {!r} is the searched text."""


class Entity(NamedTuple):
    """Label and description of an id."""

    label: str = ""
    description: str = ""


class Trace(NamedTuple):
    """Explanation of a name's link, or of its absence. others: other offered ids with their weight, best first."""

    how: str
    others: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Evidence:
    """Sources for the explanation of links, besides train. cached: whether to use stored answers of Wikidata."""

    index: Path | None = None
    search_table: Path | None = None
    cached: bool = False

    @classmethod
    def of(cls, index: Path | None, search_table: Path | None, *, offline: bool = False) -> Evidence:
        """Return the sources of a run with these options."""
        return cls(index, search_table, search_table is None and (offline or bool(os.environ.get(CONTACT))))


TRAIN_ALONE = Evidence()


class Tracer:
    """Explains the links that a recipe's link table made."""

    def __init__(self, space: Workspace, edition: Edition, linking: Linking, evidence: Evidence) -> None:
        if not space.has_data(edition):
            linking = replace(linking, evidence=tuple(one for one in linking.evidence if one != "train"))
        self._index = AliasIndex(evidence.index) if evidence.index else None
        self._search: Search | None = SearchTable.read(evidence.search_table) if evidence.search_table else None
        if evidence.cached:
            self._search = Wikidata(None, partial=True)
        self._linker = linking.linker(Run(workspace=space, edition=edition), self._index, self._search)
        self._known: dict[str, Entity] = {}

    def traces(self, queries: Iterable[tuple[Query, Sequence[tuple[str, str | None]]]]) -> Iterator[list[Trace | None]]:
        """Yield for each query the traces of its candidates, given by name and id; None for a literal."""
        given = list(queries)
        bare = (CandidateSet(query, tuple(Candidate(name) for name, _ in pairs)) for query, pairs in given)
        for (_, pairs), (_, links) in zip(given, self._linker.links(bare), strict=True):
            yield [self._trace(one, link) for (_, one), link in zip(pairs, links, strict=True)]

    def about(self, ids: Iterable[str]) -> dict[str, Entity]:
        """Return label and description of ids, from the hits offered since the last call, else index and search."""
        known = {one: self._known[one] for one in ids if one in self._known}
        for source in (self._index, self._search):
            bare = [one for one in ids if as_qid(one) == one and not known.get(one, Entity()).description]
            entities = source.entities(bare) if source else {}
            known |= {one: Entity(hit.label, hit.description) for one, hit in entities.items() if hit and hit.label}
        self._known.clear()  # each part of a page asks once
        return known

    def _trace(self, given: str | None, link: Link) -> Trace | None:
        made = trace(given, link)
        for hit in link.hits if made else ():
            if hit.label and not self._known.get(hit.id, Entity()).description:
                self._known[hit.id] = Entity(hit.label, hit.description)
        return made


def linking_of(run: SavedRun) -> Linking:
    """Return the link table of a run's manifest. InputError for one that this version cannot read."""
    return checked(Linking, run.table("recipe").get("link", {}), "link")


def trace(given: str | None, link: Link) -> Trace | None:
    """Return how a name got its id in a run, or why it has none. link: link by the name alone. None for a literal."""
    if link.evidence in ("literal", "nothing"):
        return None
    if link.id is None and given == link.searched:  # submitted as it is (`unlinked = "name"`)
        given = None
    hits = {hit.id: hit for hit in reversed(link.hits)}
    offered = list(dict.fromkeys(hit.id for hit in link.hits))
    others = tuple((one, _weight(hits[one], link)) for one in offered if one != given)[:MOST_OTHERS]
    source = SOURCES.get(link.evidence, link.evidence).format(link.searched)
    if given is not None and given not in (link.id, *(hit.id for hit in link.open)):
        would = f"{source} has {link.id}" if link.id else f"what is at hand has none ({link.strategy})"
        return Trace(f"came with the answer, or from what is not at hand; {would}", others)
    if given is None:
        return Trace(link.strategy if link.id is None else f"{source} has {link.id}", others)
    words = [f"{source}: {link.strategy if given == link.id else MODEL}"]
    if len(offered) > 1:
        words.append(f"hit {offered.index(given) + 1} of {len(offered)}")
    if given in hits and (weight := _weight(hits[given], link)):
        words.append(weight)
    return Trace(", ".join(words), others)


def _weight(hit: Hit, link: Link) -> str:
    """Return how frequent or well known a hit is, in words; "" if unknown."""
    unit = "train row" if link.strategy == BY_ROWS else "sitelink"
    return f"{hit.popularity:,} {unit}{'s' * (hit.popularity > 1)}" if hit.popularity else ""
