"""Linker of strings to QIDs. Sources of evidence are tried in a fixed order.

The order: given id, literal, known name, train objects, alias index, one typing error, search, search with another
wording. A string without a match stays unlinked, with the reason. Searches are collected over a batch of candidate
sets, so that each round is one call of the source.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from itertools import islice

from msgspec import structs

from lmkbc.ask.prompts import fill
from lmkbc.errors import InputError, did_you_mean
from lmkbc.link import disambiguation
from lmkbc.link.evidence import Hit, Link, Search
from lmkbc.link.index import AliasIndex
from lmkbc.link.object_types import ObjectType, bundled
from lmkbc.link.train_objects import BY_ROWS, TrainObjects
from lmkbc.link.wordings import LONGEST_NAME, key, plausible_typo, sendable, typed, variants
from lmkbc.names import as_qid
from lmkbc.relation import Relation
from lmkbc.scoring.matchers import number
from lmkbc.types import Candidate, CandidateSet, Query

BATCH = 2048
"""Candidate sets that are linked together: many enough to fill the client's groups, few enough to show progress."""


@dataclass(slots=True)
class _Open:
    """A candidate that needs a search: the next text to search, the other texts to try, the first hit that did not fit.

    plain: link that the bare name gave from hits of unknown class, while names with a type word are still to be
    searched.
    """

    query: Query
    text: str
    asking: str
    others: Iterator[str]
    misfit: Link
    searched: set[str] = field(default_factory=set)
    plain: Link | None = None


@dataclass(slots=True)
class Linker:
    """Links candidates with all evidence that is available; without a search, only offline evidence counts.

    relations: relations by every spelling in queries.
    strategies, keywords: relation name -> how to choose among hits, and the keywords of a fitting description, in place
    of those of the object type.
    fuzzy: whether one typing error is allowed against train objects and the index.
    typed: relations whose names are also searched with a type word, None for all.
    variants: whether to search other wordings of a name without a fitting hit.
    heads: whether to search the part of a name before its colon.
    searched: relation -> template of the searched text, in place of "{object}".
    known: relation -> word -> id, used for a name that holds the word if nothing else links it.
    names_unlinked: whether an unlinked name becomes its own id.
    ask: function for the strategy "model", called per batch; without it the first remaining hit is the link.
    """

    relations: Mapping[str, Relation]
    train: TrainObjects | None = None
    index: AliasIndex | None = None
    search: Search | None = None
    _: KW_ONLY
    strategies: Mapping[str, Sequence[str]] = field(default_factory=dict)
    keywords: Mapping[str, Sequence[str]] = field(default_factory=dict)
    fuzzy: bool = True
    typed: Collection[str] | None = None
    variants: bool = True
    heads: bool = False
    names_unlinked: bool = False
    searched: Mapping[str, str] = field(default_factory=dict)
    known: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    ask: disambiguation.Ask | None = None
    _kinds: dict[str, ObjectType] = field(init=False)

    def __post_init__(self) -> None:
        """Check strategies and keywords. InputError for a relation or a strategy that does not exist."""
        self.known = {name: {key(word): qid for word, qid in words.items()} for name, words in self.known.items()}
        self._kinds = {one.name: bundled().get(one.object_type.qid) for one in self.relations.values()}
        for name, strategies in self.strategies.items():
            disambiguation.check(strategies, f"strategies of {name}")
            own = self._own_name(name)
            self._kinds[own] = replace(self._kinds[own], strategies=tuple(strategies))
        for name, words in self.keywords.items():
            own = self._own_name(name)
            self._kinds[own] = replace(self._kinds[own], keywords=tuple(word.casefold() for word in words))

    def _own_name(self, relation: str) -> str:
        if relation not in self.relations:
            hint = did_you_mean(relation, self.relations)
            raise InputError(f"linking settings name the unknown relation {relation!r}; {hint}")
        return self.relations[relation].name

    def link(self, sets: Iterable[CandidateSet]) -> Iterator[CandidateSet]:
        """Yield each set in order, with `id` filled for each candidate that was linked."""
        stream = iter(sets)
        while batch := list(islice(stream, BATCH)):
            unlinked = [group for group in batch if any(candidate.id is None for candidate in group.candidates)]
            links = self.links(unlinked)
            ready = {id(group): self._with_ids(*pair) for group, pair in zip(unlinked, links, strict=True)}
            yield from (ready.get(id(group), group) for group in batch)

    def _with_ids(self, candidates: CandidateSet, links: Sequence[Link]) -> CandidateSet:
        found = []
        for one, link in zip(candidates.candidates, links, strict=True):
            id_ = link.id or (sendable(one.text) if self.names_unlinked else None)
            found.append(one if id_ == one.id else structs.replace(one, id=id_))
        return replace(candidates, candidates=tuple(found))

    def links(self, sets: Iterable[CandidateSet]) -> Iterator[tuple[CandidateSet, tuple[Link, ...]]]:
        """Yield each set in order, with one link per candidate."""
        stream = iter(sets)
        while batch := list(islice(stream, BATCH)):
            steps = [[self._offline(group.query, candidate) for candidate in group.candidates] for group in batch]
            settled = self._search_for([step for row in steps for step in row if isinstance(step, _Open)])
            links = [[next(settled) if isinstance(step, _Open) else step for step in row] for row in steps]
            if self.ask:
                links = list(_decided(self.ask, batch, links))
            yield from ((group, tuple(row)) for group, row in zip(batch, links, strict=True))

    def consulted(self, query: Query, text: str) -> Iterator[tuple[str, tuple[Hit, ...]]]:
        """Yield (evidence, hits) of each source for a text, in the linker's order, also after the one that decides."""
        if self.train:
            evidence, hits = self.train.exact(text, query)
            yield evidence or "train", hits
            yield "fuzzy (train)", self.train.fuzzy(text, query)
        known = self._type(query).known.get(key(text))
        yield "known", (Hit(known, text),) if known else ()
        if self.index:
            yield "index", self.index.exact(text)
            yield "fuzzy (index)", self.index.fuzzy(text)
        if self.search:
            yield "search", self.search.search([text])[text]

    def fits(self, query: Query, hit: Hit) -> bool | None:
        """Return whether a hit has the relation's object type; None if its classes are unknown."""
        if disambiguation.is_page(hit):
            return False
        return bundled().fits(hit.classes, self._type(query).qid) if hit.classes else None

    def _entities(self, hits: Sequence[Hit], *, typed: bool = True) -> tuple[Hit, ...]:
        """Return hits that are entities, and no pages of a wiki. typed: whether hits have the classes of Wikidata.

        If not, the index is asked for them.
        """
        own = self.index.entities([hit.id for hit in hits]) if self.index and not typed else {}
        return tuple(hit for hit in hits if not disambiguation.is_page(own.get(hit.id) or hit))

    def _offline(self, query: Query, candidate: Candidate) -> Link | _Open:
        """Return the link that offline evidence gives, or a candidate to search."""
        text, relation = sendable(candidate.text), self.relations[query.relation]
        if candidate.id is not None:
            return Link(candidate.id, "given", "kept")
        if not text:
            return Link(None, "nothing", "empty text")
        if relation.kind not in ("entity", "number"):
            return Link(text, "literal", relation.kind)
        if relation.kind == "number":
            return Link(text, "literal", "number") if number(text) is not None else _unlinked("not a number", text)
        if len(text) > LONGEST_NAME:
            return _unlinked("too long for a name", text)
        if as_qid(text):
            return self._checked(text)
        link = self._named(query, text)
        if link.id is not None:
            return link
        if number(text) is not None:
            return _unlinked("a number where an entity is due", text)
        if self.search is None:
            return self._last_resort(query, link)
        asking = fill(self.searched.get(query.relation, "{object}"), {"object": text})
        others = (variants if self.variants else typed)(text, self._suffixes(query))
        head = [text.partition(":")[0].strip()] if self.heads and ":" in text else []
        return _Open(query, text, asking, iter((*filter(None, head), *others)), link)

    def _suffixes(self, query: Query) -> Sequence[str]:
        """Return the type words with which names of a relation are searched."""
        wanted = self.typed is None or query.relation in self.typed
        return self.relations[query.relation].shape.link_suffixes if wanted else ()

    def _named(self, query: Query, text: str) -> Link:
        """Return the link of a name by offline evidence. A link without id holds the hits that did not fit."""
        evidence, found = self.train.exact(text, query) if self.train else ("", ())
        hits = self._entities(found, typed=False)
        evidence = evidence if hits else ""
        if evidence == "relation":
            return Link(hits[0].id, evidence, BY_ROWS, text, hits)
        if disambiguation.KNOWN in self._type(query).strategies and (known := self._type(query).known.get(key(text))):
            return Link(known, "known", disambiguation.KNOWN, text, (Hit(known, text),))
        if evidence:
            return Link(hits[0].id, evidence, BY_ROWS, text, hits)
        exact = self._chosen(query, text, "index", self.index.exact(text) if self.index else ())
        if exact.id is not None or not self.fuzzy:
            return exact
        if self.train and (hits := self._entities(self.train.fuzzy(text, query), typed=False)):
            return Link(hits[0].id, "fuzzy", BY_ROWS, text, hits)
        near = self.index.fuzzy(text) if self.index and not exact.hits else ()
        near = tuple(hit for hit in near if plausible_typo(key(text), key(hit.name)))
        fuzzy = self._chosen(query, text, "fuzzy", near)
        return fuzzy if fuzzy.id is not None else exact

    def _checked(self, text: str) -> Link:
        """Return the link of a text that is an id or a URL.

        It is kept unless a source knows that no such entity exists.
        """
        qid = str(as_qid(text))
        for source in (self.index, self.search):
            known = source.entities([qid]) if source else {}
            if qid in known:
                hit = known[qid]
                if hit and not disambiguation.is_page(hit):
                    return Link(hit.id, "given", "checked", text, (hit,))
                return _unlinked("a page of a wiki, and no entity" if hit else "no such entity", text)
        return Link(qid, "given", "unchecked", text)

    def _type(self, query: Query) -> ObjectType:
        return self._kinds[self.relations[query.relation].name]

    def _chosen(self, query: Query, text: str, evidence: str, hits: tuple[Hit, ...]) -> Link:
        kind = self._type(query)
        hits = self._entities(hits, typed=bool(hits) and all(hit.classes for hit in hits))
        left, how = disambiguation.choose(hits, kind)
        several = tuple(left) if len(left) > 1 else ()
        return Link(left[0].id if left else None, evidence, how, text, hits, several)

    def _last_resort(self, query: Query, link: Link) -> Link:
        """Link a name without a fitting hit by a known word in it, or, if the type allows, to its first misfit."""
        known = self.known.get(query.relation, {})
        name = key(link.searched)
        if word := next((word for word in (name, *name.split()) if word in known), None):
            return Link(known[word], "known", word, link.searched)
        others = [hit.id for hit in link.hits if not bundled().fits(hit.classes, disambiguation.NAME)]
        if others and not self._type(query).strict:
            return replace(link, id=others[0], strategy="first of another class")
        return replace(link, evidence="unlinked")

    def _search_for(self, waiting: Sequence[_Open]) -> Iterator[Link]:
        """Yield the links of candidates that need a search. Each round searches one text per open candidate."""
        settled: dict[int, Link] = {}
        while self.search and (left := [(at, step) for at, step in enumerate(waiting) if at not in settled]):
            answers = self.search.search(list(dict.fromkeys(step.asking for _, step in left)))
            for at, step in left:
                if link := self._settle(step, answers[step.asking]):
                    settled[at] = link
        return iter([settled[at] for at in range(len(waiting))])

    def _settle(self, step: _Open, hits: tuple[Hit, ...]) -> Link | None:
        """Return the link; None if the next text to search was set instead."""
        link = self._chosen(step.query, step.asking, "re-search" if step.searched else "search", hits)
        if link.id is not None:
            words = typed(step.text, self._suffixes(step.query))
            if step.plain or not words or (self.search and self.search.knows_classes):
                return link
            step.plain, step.others = link, iter(words)
        elif not step.misfit.hits:
            step.misfit = replace(link, searched=step.text) if not hits else link
        step.searched.add(step.asking.casefold())
        for other in step.others:
            if other.casefold() not in step.searched:
                step.asking = other
                return None
        return step.plain or self._last_resort(step.query, step.misfit)


def _decided(
    ask: disambiguation.Ask, batch: Sequence[CandidateSet], links: Sequence[Sequence[Link]]
) -> Iterator[list[Link]]:
    """Yield the links. A language model decides those that are open."""
    pairs = zip(batch, links, strict=True)
    questions = [
        disambiguation.HitChoice(group.query, link.searched, link.open)
        for group, row in pairs
        for link in row
        if link.open
    ]
    picked = iter(ask(questions) if questions else ())
    for row in links:
        places = [next(picked) if link.open else None for link in row]
        yield [
            link if place is None else replace(link, id=link.open[place].id, strategy=disambiguation.MODEL)
            for link, place in zip(row, places, strict=True)
        ]


def _unlinked(reason: str, text: str, hits: Sequence[Hit] = ()) -> Link:
    return Link(None, "unlinked", reason, text, tuple(hits))
