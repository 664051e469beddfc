"""Strings to QIDs, in the order of evidence; what finds nothing stays unlinked, with the reason.

Order: given id, literal, known case, train objects, alias index, one typing error, search, search asked another way.
Searches are gathered over a batch of candidate sets, so each round of asking is one call of the source.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice

from lmkbc.link import choose
from lmkbc.link.evidence import Hit, Index, Link, Search
from lmkbc.link.names import LONGEST_NAME, as_qid, key, variants
from lmkbc.link.object_types import ObjectTypes, bundled
from lmkbc.link.train_objects import TrainObjects
from lmkbc.scorers import number
from lmkbc.types import Candidate, CandidateSet, Query, Relation

BATCH = 2048
"""Candidate sets linked together: enough to fill the client's groups, small enough to show progress."""


@dataclass(slots=True)
class _Open:
    """A candidate that only a search can settle: the ways to ask that are left, and the best misfit so far."""

    query: Query
    text: str
    asking: str
    others: Iterator[str]
    misfit: Link | None = None
    tried: list[str] = field(default_factory=list)


class Linker:
    """Links candidates with whatever evidence is at hand; with no search, only offline evidence counts.

    relations: by every spelling that queries use. strategies: relation name -> how to choose among hits, overriding
    the object type's own. fuzzy: whether one typing error is forgiven against train objects and the index.
    """

    def __init__(
        self,
        relations: Mapping[str, Relation],
        train: TrainObjects | None = None,
        index: Index | None = None,
        search: Search | None = None,
        *,
        types: ObjectTypes | None = None,
        strategies: Mapping[str, Sequence[str]] | None = None,
        fuzzy: bool = True,
        ask: choose.Ask | None = None,
    ) -> None:
        self._relations = relations
        self._train = train
        self._index = index
        self._search = search
        self._types = types or bundled()
        self._fuzzy = fuzzy
        self._ask = ask
        self._strategies = {relations[name].name: tuple(names) for name, names in (strategies or {}).items()}
        for name, names in self._strategies.items():
            choose.check(names, f"strategies of {name}")

    def link(self, sets: Iterable[CandidateSet]) -> Iterator[CandidateSet]:
        """Yield each set, in order, with `id` filled where a link was found."""
        for candidates, links in self.links(sets):
            pairs = zip(candidates.candidates, links, strict=True)
            yield replace(candidates, candidates=tuple(_with_id(candidate, link) for candidate, link in pairs))

    def links(self, sets: Iterable[CandidateSet]) -> Iterator[tuple[CandidateSet, tuple[Link, ...]]]:
        """Yield each set, in order, with one link per candidate."""
        stream = iter(sets)
        while batch := list(islice(stream, BATCH)):
            links = [[self._offline(group.query, candidate) for candidate in group.candidates] for group in batch]
            self._search_for(batch, links)
            for group, found in zip(batch, links, strict=True):
                yield group, tuple(link for link in found if link is not None)

    def _offline(self, query: Query, candidate: Candidate) -> Link | None:
        """The link that needs no search, or None."""
        text, relation = candidate.text.strip(), self._relations[query.relation]
        if candidate.id is not None:
            return Link(candidate.id, "given", "kept")
        if not text:
            return Link(None, "nothing", "empty text")
        if relation.kind == "string":
            return Link(text, "literal", "string")
        if relation.kind == "number":
            return Link(text, "literal", "number") if number(text) is not None else _unlinked("not a number", text)
        if len(text) > LONGEST_NAME:
            return _unlinked("too long for a name", text)
        if as_qid(text):
            return self._checked(text)
        return self._named(query, text)

    def _named(self, query: Query, text: str) -> Link | None:
        """The link of a name by offline evidence."""
        kind = self._types.get(self._relations[query.relation].object_type.qid)
        evidence, hits = self._train.exact(text, query) if self._train else ("", ())
        if evidence == "relation":
            return Link(hits[0].id, evidence, "most rows", text, hits)
        if choose.KNOWN in self._names(query) and (known := kind.known.get(key(text))):
            return Link(known, "known", choose.KNOWN, text, (Hit(known, text),))
        if evidence:
            return Link(hits[0].id, evidence, "most rows", text, hits)
        if self._index and (link := self._chosen(query, text, "index", self._index.exact(text))).id:
            return link
        if self._fuzzy and self._train and (hits := self._train.fuzzy(text, query)):
            return Link(hits[0].id, "fuzzy", "most rows", text, hits)
        if self._fuzzy and self._index and (link := self._chosen(query, text, "fuzzy", self._index.fuzzy(text))).id:
            return link
        if number(text) is not None:
            return _unlinked("a number where an entity is due", text)
        return None if self._search else _unlinked("no hit", text)

    def _checked(self, text: str) -> Link:
        """A text that is an id or an entity's URL: kept unless a source says that there is no such entity."""
        qid = str(as_qid(text))
        for source in (self._index, self._search):
            known = source.entities([qid]) if source else {}
            if qid in known:
                hit = known[qid]
                return Link(hit.id, "given", "checked", text, (hit,)) if hit else _unlinked("no such entity", text)
        return Link(qid, "given", "unchecked", text)

    def _names(self, query: Query) -> tuple[str, ...]:
        relation = self._relations[query.relation]
        return self._strategies.get(relation.name) or self._types.get(relation.object_type.qid).strategies

    def _chosen(self, query: Query, asked: str, evidence: str, hits: Sequence[Hit]) -> Link:
        kind = self._types.get(self._relations[query.relation].object_type.qid)
        hit, how = choose.choose(hits, self._names(query), choose.Choice(asked, query, kind, self._types, self._ask))
        return Link(hit.id, evidence, how, asked, tuple(hits)) if hit else _unlinked(how, asked, hits)

    def _search_for(self, batch: Sequence[CandidateSet], links: list[list[Link | None]]) -> None:
        """Fill the links that only a search can settle, one round of asking after another."""
        waiting = {
            (row, column): self._open(batch[row].query, batch[row].candidates[column].text.strip())
            for row, found in enumerate(links)
            for column, link in enumerate(found)
            if link is None
        }
        while waiting and self._search:
            answers = self._search.search(list(dict.fromkeys(open_.asking for open_ in waiting.values())))
            still = {}
            for place, open_ in waiting.items():
                if (link := self._settled(open_, answers[open_.asking])) is None:
                    still[place] = open_
                else:
                    links[place[0]][place[1]] = link
            waiting = still

    def _open(self, query: Query, text: str) -> _Open:
        return _Open(query, text, text, variants(text, self._relations[query.relation].shape.link_suffixes))

    def _settled(self, open_: _Open, hits: Sequence[Hit]) -> Link | None:
        """The link, or None after setting the next way to ask."""
        link = self._chosen(open_.query, open_.asking, "re-search" if open_.tried else "search", hits)
        if link.id is not None:
            return link
        open_.misfit = open_.misfit or (link if hits else None)
        open_.tried.append(open_.asking.casefold())
        for other in open_.others:
            if other.casefold() not in open_.tried:
                open_.asking = other
                return None
        return open_.misfit or _unlinked("no hit", open_.text)


def _unlinked(reason: str, asked: str, hits: Sequence[Hit] = ()) -> Link:
    return Link(None, "unlinked", reason, asked, tuple(hits))


def _with_id(candidate: Candidate, link: Link) -> Candidate:
    return candidate if link.id == candidate.id else replace(candidate, id=link.id)
