"""Linker of strings to QIDs, and the table `link` of a recipe, which opens it. Sources of evidence have a fixed order.

The order: given id, literal, known name, train objects, alias index, one typing error, search, search with another
wording. A string without a match stays unlinked, with the reason. Searches are collected over a batch of candidate
sets, so that each round is one call of the source.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Annotated, Any, ClassVar, Literal, Self, get_args

from msgspec import structs

from lmkbc.generate.access import step_model
from lmkbc.generate.spec import check_names
from lmkbc.link import disambiguation
from lmkbc.link.hits import NAME, Hit, Link, ObjectType, Search, bundled, is_page
from lmkbc.link.index import AliasIndex
from lmkbc.link.search import Wikidata, open_search
from lmkbc.link.train_objects import BY_ROWS, TrainObjects
from lmkbc.link.wikidata import CONTACT
from lmkbc.link.wordings import LONGEST_NAME, plausible_typo, sendable, typed, variants
from lmkbc.names import as_qid, name_key
from lmkbc.notes import Notes
from lmkbc.registry import STRATEGIES
from lmkbc.relation import OTHERS, Relation
from lmkbc.scoring.matchers import number
from lmkbc.session.run import Run
from lmkbc.settings import ReadBy
from lmkbc.types import Candidate, CandidateSet, Query

Words = Mapping[str, tuple[str, ...]]
Evidence = Literal["train", "index", "fuzzy", "search", "variants", "head"]


SEARCHED = ReadBy("evidence 'search'", lambda link, *_: "search" in link.evidence)


def under_own_names(table: Mapping[str, Any], relations: Mapping[str, Relation]) -> dict[str, Any]:
    """Return a table of relations, by any name, under their own names and "*"."""
    return {name if name == OTHERS else relations[name].name: value for name, value in table.items()}


@dataclass(frozen=True, kw_only=True)
class Linking:
    """Settings of linking, as a recipe's plain data.

    strategies: those that replace the ones of object types, for all relations; or a table with relations as keys, by
    any name, and "*" for all others.
    ask: the model for the strategy "model", by name or by its settings (`StepModel`).
    evidence: what is used, see below.
    unlinked: whether a name without a link is dropped, or submitted as it is ("name"). A scorer of ids counts such a
    name as wrong.
    typed: relations whose names are also searched with a type word, as in "Don River"; None for all that have type
    words.

    Evidence is used in this order: "train" objects, the alias "index", and names with one typing error against these
    ("fuzzy"). The "search" follows, and a search for other "variants" of a name without a match. The value "head"
    searches only the part of a name before its colon. The organisers' baselines use "search" alone, with the default
    strategy "first".
    """

    strategies: tuple[str, ...] | Words = ()
    ask: str | Mapping[str, Any] = ""
    evidence: tuple[Evidence, ...] = get_args(Evidence)[:-1]
    unlinked: Literal["drop", "name"] = "drop"
    typed: Annotated[tuple[str, ...] | None, SEARCHED] = None

    REMOVED: ClassVar[Mapping[str, str]] = {
        "default": 'write strategies = ["first"], or "*" in its table, for relations that are not listed',
    }

    def __post_init__(self) -> None:
        """Check the settings. InputError for an unknown strategy or component; ValueError for a missing model."""
        for name, strategies in self._by_relation.items():
            what = "strategies" if name == OTHERS else f"strategies of {name}"
            for strategy in strategies:
                STRATEGIES.check(strategy, f"{what}: ")
            if disambiguation.MODEL in strategies and not self.ask:
                raise ValueError(f"{what} asks a model: name it in link.ask")
        step_model(self.ask)

    @property
    def _by_relation(self) -> Words:
        return self.strategies if isinstance(self.strategies, Mapping) else {OTHERS: self.strategies}

    def check(self, relations: Mapping[str, Relation]) -> None:
        """Raise InputError for a relation that does not exist. relations: all relations, by every name."""
        check_names([*self._by_relation.keys() - {OTHERS}, *(self.typed or ())], relations, "link")

    def object_type(self, relation: Relation) -> ObjectType:
        """Return the type of a relation's objects, with the strategies and keywords that apply to it."""
        kind = bundled().get(relation.object_type.qid)
        strategies = relation.entry(self._by_relation, ()) or kind.strategies
        return replace(kind, strategies=tuple(strategies), keywords=tuple(map(str.casefold, kind.keywords)))

    def sought(self, relation: Relation, text: str) -> str:  # noqa: ARG002 -- subclasses use it
        """Return the text with which a name is searched."""
        return text

    def last_link(self, relation: Relation, text: str) -> Link | None:  # noqa: ARG002 -- subclasses use them
        """Return the link of a name that nothing else links; None if there is none."""
        return None

    def canonical(self, relations: Mapping[str, Relation]) -> Self:
        """Return the settings under the relations' own names. InputError for a relation that does not exist."""
        self.check(relations)
        typed = self.typed and tuple(relations[name].name for name in self.typed)
        return replace(self, strategies=under_own_names(self._by_relation, relations), typed=typed)

    def open(self, run: Run, notes: Notes, *, replayed: bool = False) -> Linker:
        """Return the linker for a run, with train objects, the index if one is given, and the search.

        The search is the recorded table, the cache, or Wikidata if a contact is set. replayed: whether recorded answers
        replace models. A model that chooses among hits is then used only if one is given.
        """
        search = None
        if "search" in self.evidence and (run.search_table or run.offline or run.api_url or os.environ.get(CONTACT)):
            search = open_search(run.search_table, offline=run.offline, api_url=run.api_url)
            notes.at_end += [search.ended] if isinstance(search, Wikidata) else []
        linker = self.linker(run, AliasIndex(run.index) if run.index and "index" in self.evidence else None, search)
        asks = any(disambiguation.MODEL in kind.strategies for kind in linker.kinds.values())
        model = step_model(self.ask) if asks else None
        lacking = "choose among hits: the first that is left is the link"
        if opened := model.open(run, notes, replayed=replayed, lacking=lacking) if model else None:
            linker.ask = disambiguation.AskModel(opened, run.relations)
        return linker

    def linker(self, run: Run, index: AliasIndex | None, search: Search | None) -> Linker:
        """Return the linker of the table. Sources that `evidence` does not name are left out."""
        return Linker(
            run.relations,
            TrainObjects(run.train, run.relations) if "train" in self.evidence else None,
            index if "index" in self.evidence else None,
            search if "search" in self.evidence else None,
            self,
            run.workspace.relations,
        )


BATCH = 2048
"""Candidate sets that are linked together: many enough to fill the client's groups, few enough to show progress."""


@dataclass(slots=True)
class _Open:
    """A candidate that needs a search: the next text to search, the other texts to try, the first hit that did not fit.

    plain: link that the bare name gave from hits of unknown class, while names with a type word are still to be
    searched. folded: link that a name of another spelling gave, in case the search has no hit of this spelling.
    """

    query: Query
    text: str
    asking: str
    others: Iterator[str]
    misfit: Link
    searched: set[str] = field(default_factory=set)
    plain: Link | None = None
    folded: Link | None = None


@dataclass(slots=True)
class Linker:
    """Links candidates with all evidence that is available; without a search, only offline evidence counts.

    relations: relations by every spelling in queries.
    settings: the table of a recipe. every: all relations, by any name that the settings may use; default: `relations`.
    ask: function for the strategy "model", called per batch; without it the first remaining hit is the link.
    kinds: name of a relation -> its object type, with the strategies and keywords of the settings.
    """

    relations: Mapping[str, Relation]
    train: TrainObjects | None = None
    index: AliasIndex | None = None
    search: Search | None = None
    settings: Linking = field(default_factory=Linking)
    every: Mapping[str, Relation] | None = None
    ask: disambiguation.Ask | None = None
    kinds: dict[str, ObjectType] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        """Find the settings of each relation. InputError for a relation that does not exist."""
        self.settings = settings = self.settings.canonical(self.every or self.relations)
        for relation in self.relations.values():
            self.kinds[relation.name] = settings.object_type(relation)

    def link(self, sets: Iterable[CandidateSet]) -> Iterator[CandidateSet]:
        """Yield each set in order, with `id` filled for each candidate that was linked."""
        return (self._with_ids(candidates, links) for candidates, links in self.links(sets))

    def _with_ids(self, candidates: CandidateSet, links: Sequence[Link]) -> CandidateSet:
        pairs, keeps_names = zip(candidates.candidates, links, strict=True), self.settings.unlinked == "name"
        ids = ((candidate, link.id or (sendable(candidate.text) if keeps_names else None)) for candidate, link in pairs)
        linked = (candidate if id_ == candidate.id else structs.replace(candidate, id=id_) for candidate, id_ in ids)
        return replace(candidates, candidates=tuple(linked))

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
        qid = self._type(query).known.get(name_key(text))
        yield "known", (Hit(qid, text),) if qid else ()
        if self.index:
            yield "index", self.index.exact(text)
            yield "fuzzy (index)", self.index.fuzzy(text)
        if self.search:
            yield "search", self.search.search([text])[text]

    def fits(self, query: Query, hit: Hit) -> bool | None:
        """Return whether a hit has the relation's object type; None if its classes are unknown."""
        if is_page(hit):
            return False
        return bundled().fits(hit.classes, self._type(query).qid) if hit.classes else None

    def _entities(self, hits: Sequence[Hit], *, typed: bool = True) -> tuple[Hit, ...]:
        """Return hits that are entities, and no pages of a wiki. typed: whether hits have the classes of Wikidata.

        If not, the index is asked for them.
        """
        indexed = self.index.entities([hit.id for hit in hits]) if self.index and not typed else {}
        return tuple(hit for hit in hits if not is_page(indexed.get(hit.id) or hit))

    def _offline(self, query: Query, candidate: Candidate) -> Link | _Open:
        """Return the link that offline evidence gives, or a candidate to search."""
        text, relation = sendable(candidate.text), self.relations[query.relation]
        if candidate.id is not None:
            return Link(candidate.id, "given", "kept")
        if not text:
            return Link(None, "nothing", "empty text")
        if not relation.has_entities():
            is_kept = not relation.has_numbers() or number(text) is not None
            return Link(text, "literal", relation.kind) if is_kept else _unlinked("not a number", text)
        if len(text) > LONGEST_NAME:
            return _unlinked("too long for a name", text)
        if as_qid(text):
            return self._checked(text)
        link = self._named(query, text)
        asking = self.settings.sought(relation, text)
        if link.id is not None:
            is_last = _is_spelt(link) or link.evidence == "fuzzy" or self.search is None or asking != text
            return link if is_last else _Open(query, text, asking, iter(()), link, folded=link)
        if number(text) is not None:
            return _unlinked("a number where an entity is due", text)
        if self.search is None:
            return self._last_resort(query, link)
        others = (variants if "variants" in self.settings.evidence else typed)(text, self._suffixes(query))
        head = [text.partition(":")[0].strip()] if "head" in self.settings.evidence and ":" in text else []
        return _Open(query, text, asking, iter((*filter(None, head), *others)), link)

    def _suffixes(self, query: Query) -> Sequence[str]:
        """Return the type words with which names of a relation are searched."""
        relation, named = self.relations[query.relation], self.settings.typed
        return relation.shape.link_suffixes if named is None or relation.name in named else ()

    def _named(self, query: Query, text: str) -> Link:
        """Return the link of a name by offline evidence, of its own spelling first.

        A link without id holds the hits that did not fit.
        """
        evidence, of_train = self.train.exact(text, query) if self.train else ("", ())
        hits = self._entities(of_train, typed=False)
        by_rows = [Link(hits[0].id, evidence, BY_ROWS, text, hits)] if hits else []
        qid = disambiguation.KNOWN in self._type(query).strategies and self._type(query).known.get(name_key(text))
        known = [Link(qid, "known", disambiguation.KNOWN, text, (Hit(qid, text),))] if qid else []
        links = (*by_rows, *known) if evidence == "relation" else (*known, *by_rows)
        if links and _is_spelt(links[0]):
            return links[0]
        exact = self._chosen(query, text, "index", self.index.exact(text) if self.index else ())
        links = (*links, exact) if exact.id is not None else links
        if links:
            return next(filter(_is_spelt, links), links[0])
        if "fuzzy" not in self.settings.evidence:
            return exact
        if self.train and (hits := self._entities(self.train.fuzzy(text, query), typed=False)):
            return Link(hits[0].id, "fuzzy", BY_ROWS, text, hits)
        near = self.index.fuzzy(text) if self.index and not exact.hits else ()
        near = tuple(hit for hit in near if plausible_typo(name_key(text), name_key(hit.name)))
        fuzzy = self._chosen(query, text, "fuzzy", near)
        return fuzzy if fuzzy.id is not None else exact

    def _checked(self, text: str) -> Link:
        """Return the link of a text that is an id or a URL.

        It is kept unless a source knows that no such entity exists.
        """
        qid = str(as_qid(text))
        for source in (self.index, self.search):
            entities = source.entities([qid]) if source else {}
            if qid in entities:
                hit = entities[qid]
                if hit and not is_page(hit):
                    return Link(hit.id, "given", "checked", text, (hit,))
                return _unlinked("a page of a wiki, and no entity" if hit else "no such entity", text)
        return Link(qid, "given", "unchecked", text)

    def _type(self, query: Query) -> ObjectType:
        return self.kinds[self.relations[query.relation].name]

    def _chosen(self, query: Query, text: str, evidence: str, hits: tuple[Hit, ...]) -> Link:
        kind = self._type(query)
        hits = self._entities(hits, typed=bool(hits) and all(hit.classes for hit in hits))
        left, how = disambiguation.choose([hit for hit in hits if hit.is_spelt(text)], kind)
        if not left:
            left, how = disambiguation.choose(hits, kind)
        several = tuple(left) if len(left) > 1 else ()
        return Link(left[0].id if left else None, evidence, how, text, hits, several)

    def _last_resort(self, query: Query, link: Link) -> Link:
        """Link a name without a fitting hit as the table says, or, if the type allows, to its first misfit."""
        if last := self.settings.last_link(self.relations[query.relation], link.searched):
            return last
        others = [hit.id for hit in link.hits if not bundled().fits(hit.classes, NAME)]
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
        if step.folded:
            link = self._chosen(step.query, step.text, "search", tuple(hit for hit in hits if hit.is_spelt(step.text)))
            return link if link.id is not None else step.folded
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


def _is_spelt(link: Link) -> bool:
    """Return whether the linked entity has the searched text as a name, case aside."""
    return any(hit.id == link.id and hit.is_spelt(link.searched) for hit in link.hits)


def _unlinked(reason: str, text: str) -> Link:
    return Link(None, "unlinked", reason, text)
