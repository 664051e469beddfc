"""Disambiguation: which of several hits a text means. Strategies run in turn, and each narrows or orders the hits.

The strategy "model" comes last: it asks a language model about the remaining hits, for many texts in one batch.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import NamedTuple, Protocol

import msgspec

from lmkbc.ask.prompts import fill, one_line
from lmkbc.models.base import LanguageModel
from lmkbc.models.plain_questions import paragraphs
from lmkbc.names import name_key, spelling
from lmkbc.registry import STRATEGIES
from lmkbc.relation import Relation
from lmkbc.types import Query


@dataclass(frozen=True, slots=True)
class Hit:
    """An entity that a text may mean.

    classes: its P31 values and the classes above them, () if unknown. popularity: number of sitelinks. name: the label
    or alias that the text matched, "" if the source does not give it.
    """

    id: str
    label: str = ""
    description: str = ""
    classes: tuple[str, ...] = ()
    popularity: int = 0
    name: str = ""

    def is_spelt(self, text: str) -> bool:
        """Return whether a text is a name of the entity, case aside. A source without names finds such texts only."""
        return not self.name or spelling(self.name) == spelling(text)


@dataclass(frozen=True, slots=True)
class Link:
    """A decision of the linker: the id or None, its evidence, how it was chosen, and the text that was searched.

    evidence: given, literal, relation, type, known, index, fuzzy, search or re-search; "unlinked" if id is None, and
    "nothing" for an empty candidate. strategy: how the hit was chosen among `hits`, or why there is no link. open: hits
    among which a language model is still to choose. The link stands if the model names none.
    """

    id: str | None
    evidence: str
    strategy: str
    searched: str = ""
    hits: tuple[Hit, ...] = ()
    open: tuple[Hit, ...] = ()

    @property
    def ambiguous(self) -> bool:
        """Return whether there was a choice between several entities."""
        return len({hit.id for hit in self.hits}) > 1


class Search(Protocol):
    """Entity search in the way of Wikidata's, for batches of texts.

    knows_classes: whether its hits have classes. If not, and searching is free, a name is also searched with its type
    words, since nothing else separates a river from its namesakes.
    """

    knows_classes: bool

    def search(self, texts: Sequence[str]) -> Mapping[str, tuple[Hit, ...]]:
        """Return hits per text, best first; () for a text without hits. Case is ignored."""

    def entities(self, ids: Sequence[str], /) -> Mapping[str, Hit | None]:
        """Return the entity of each id, with redirects followed; None for no entity.

        Ids that cannot be checked are absent.
        """


BUNDLED = Path(__file__).with_name("object_types.toml")
DEFAULT_STRATEGIES = ("class", "first")


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectType:
    """A type of object. known: name -> QID. strategies: see `lmkbc.registry`.

    strict: whether a hit of another class is refused. If not, it is the last resort.
    """

    qid: str
    subclasses: tuple[str, ...] = ()
    strategies: tuple[str, ...] = DEFAULT_STRATEGIES
    keywords: tuple[str, ...] = ()
    known: Mapping[str, str] = field(default_factory=dict)
    strict: bool = False

    def __post_init__(self) -> None:
        """Fold the names in `known` to their keys."""
        object.__setattr__(self, "known", {name_key(name): qid for name, qid in self.known.items()})


@dataclass(frozen=True, slots=True)
class ObjectTypes:
    """The types of objects by Wikidata class, and the small class tree that they form."""

    types: Mapping[str, ObjectType]
    _below: dict[str, frozenset[str]] = field(default_factory=dict, init=False, repr=False, compare=False)

    def get(self, qid: str) -> ObjectType:
        """Return the type of a class, with default settings if the table lacks it."""
        return self.types.get(qid) or ObjectType(qid=qid)

    def fits(self, classes: Iterable[str], wanted: str) -> bool:
        """Return whether any of the classes is the wanted one or lies below it."""
        return not self.below(wanted).isdisjoint(classes)

    def below(self, wanted: str) -> frozenset[str]:
        """Return a class and all classes that the table places below it."""
        if wanted not in self._below:  # called for every name that is linked
            accepted, rest = {wanted}, [wanted]
            while rest:
                below = [qid for qid in self.get(rest.pop()).subclasses if qid not in accepted]
                accepted.update(below)
                rest += below
            self._below[wanted] = frozenset(accepted)
        return self._below[wanted]

    def kin(self, first: str, second: str) -> bool:
        """Return whether two classes are the same, or one lies below the other."""
        return self.fits((first,), second) or self.fits((second,), first)


@cache
def bundled() -> ObjectTypes:
    """Return the table that comes with the package."""
    tables = tomllib.loads(BUNDLED.read_text())
    return ObjectTypes({qid: msgspec.convert({"qid": qid, **table}, ObjectType) for qid, table in tables.items()})


class HitChoice(NamedTuple):
    """A choice for a language model: which of the hits a text means, as an answer to the query."""

    query: Query
    text: str
    hits: Sequence[Hit]


Ask = Callable[[Sequence[HitChoice]], Sequence[int | None]]
"""Function that asks a language model: it maps choices to positions of hits, None if the model does not know."""


PAGE, NAME = "Q17442446", "Q82799"
"""Classes of Wikimedia's own pages, such as lists and disambiguation pages, and of family and given names."""
_PAGE = re.compile(r"wikimedia (?:\w+ )*(?:page|list|list article|category|template|portal|module)\b", re.IGNORECASE)
"""Description of such a page, where its classes are unknown."""
_NAMED = re.compile(r"Q?\d+")
"""Number or identifier of a hit, by which a reply names it."""


def is_page(hit: Hit) -> bool:
    """Return whether an entity stands for a page of a wiki. No name means such an entity."""
    return bundled().fits(hit.classes, PAGE) if hit.classes else _PAGE.match(hit.description) is not None


def by_class(hits: Sequence[Hit], kind: ObjectType) -> Sequence[Hit]:
    """Return hits of the relation's object type. Hits of unknown class are kept."""
    return [hit for hit in hits if not hit.classes or bundled().fits(hit.classes, kind.qid)]


def by_keyword(hits: Sequence[Hit], kind: ObjectType) -> Sequence[Hit]:
    """Return hits whose description holds a keyword of the type; all hits if none does (LLMKE, linking)."""
    return [hit for hit in hits if any(word in hit.description.casefold() for word in kind.keywords)] or hits


def by_popularity(hits: Sequence[Hit], _: ObjectType) -> Sequence[Hit]:
    """Return the hits with the most sitelinks first."""
    return sorted(hits, key=lambda hit: -hit.popularity)


def first(hits: Sequence[Hit], _: ObjectType) -> Sequence[Hit]:
    """Return the first hit alone."""
    return hits[:1]


KNOWN = "known"
"""Strategy that needs no hits: it links a known name of the type before any search."""

MODEL = "model"
"""Strategy that lets a language model choose."""


def choose(hits: Sequence[Hit], kind: ObjectType) -> tuple[Sequence[Hit], str]:
    """Apply the strategies of a type in turn. Return the remaining hits, the chosen one first, and the reason.

    The reason is the names of the strategies that narrowed or reordered the hits, joined by "+", or why no hit fits.
    More than one hit remains only if a language model is to choose.
    """
    if not hits:
        return (), "no hit"
    applied: list[str] = []
    left: Sequence[Hit] = hits
    for name in kind.strategies:
        if name == MODEL:
            return left, "+".join(applied) or "first"
        if name == KNOWN:
            continue
        before, left = left, STRATEGIES.get(name)(left, kind)
        if not left:
            return (), f"no hit fits ({name})"
        if left[0] is not before[0] or len(left) < len(before):
            applied.append(name)
    return left[:1], "+".join(applied) or "first"


def question(about: HitChoice, relation: Relation) -> str:
    """Return the prompt for a choice: the question, its answer, and a numbered list of entities.

    Each entity has its identifier, label and description, as in Zhang et al. 2023 (LLMKE), linking by language model.
    """
    text = one_line(about.text)
    lines = [
        f"{at}. {hit.id}: {one_line(hit.label) or text} ({one_line(hit.description) or 'no description'})"
        for at, hit in enumerate(about.hits, 1)
    ]
    return (
        f"Question: {fill(relation.question, {'subject': one_line(about.query.subject)})}\n"
        f"Answer: {text}\n"
        f"Which {relation.object_type.noun} does the answer mean?\n" + "\n".join(lines) + "\n"
        "Reply with its number only, or 0 if it is none of them."
    )


class AskModel:
    """An `Ask` that calls a language model. A reply that names no hit gives None."""

    def __init__(self, model: LanguageModel, relations: Mapping[str, Relation]) -> None:
        self._model, self._relations = model, relations

    def __call__(self, questions: Sequence[HitChoice]) -> list[int | None]:
        """Return the position of the chosen hit for each question, None if the reply names none.

        Equal prompts are sent once.
        """
        prompts = [question(item, self._relations[item.query.relation]) for item in questions]
        distinct = list(dict.fromkeys(prompts))
        replies = dict(zip(distinct, paragraphs(self._model, distinct), strict=True))
        return [_place(replies[prompt] or "", item.hits) for prompt, item in zip(prompts, questions, strict=True)]


def _place(reply: str, hits: Sequence[Hit]) -> int | None:
    """Return the position of the first hit that a reply names, by number or identifier; None for no hit."""
    places = {hit.id: at for at, hit in reversed([*enumerate(hits)])}
    for named in _NAMED.findall(reply.rpartition("</think>")[2]):
        if named in places:
            return places[named]
        if named.isdigit():
            return int(named) - 1 if 1 <= int(named) <= len(hits) else None
    return None
