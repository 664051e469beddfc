"""The values that flow through the engine: frozen, slotted, picklable; no behaviour beyond self-checks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any, Literal, NamedTuple, Protocol

from lmkbc.score import Metric
from lmkbc.shape import EntityType, Precondition, Shape, require

Kind = Literal["entity", "string", "number"]


@dataclass(frozen=True, slots=True)
class Query:
    """One question of a benchmark: all objects of (subject, relation); `relation` as the edition spells it."""

    subject: str
    relation: str
    subject_id: str | None = None


@dataclass(frozen=True, slots=True)
class GoldObject:
    """One true object: its accepted names, the first one preferred, and its QID (or literal), each where known.

    Where a row does not tell which of its names belongs to which of its ids, a name and an id are an object each.
    parts: what the published row split the name into, at its commas.
    """

    names: tuple[str, ...]
    id: str | None = None
    parts: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The preferred name, "" where none is known."""
        return self.names[0] if self.names else ""


@dataclass(frozen=True, slots=True)
class Example:
    """A query with its objects: what train and val splits hold. No objects means a true empty answer."""

    query: Query
    objects: tuple[GoldObject, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """The preferred names of the objects that have one: what a prompt may show, where an id has no place."""
        return tuple(gold.name for gold in self.objects if gold.name)

    @property
    def size(self) -> int:
        """How many objects there are: as many as ids, where there are ids, since only names are split or lost."""
        return sum(gold.id is not None for gold in self.objects) or len(self.objects)

    @property
    def named(self) -> bool:
        """Whether the names are those of all objects: none is lost, and none is left in pieces."""
        return len(self.names) == self.size


@dataclass(frozen=True, slots=True)
class Candidate:
    """A proposed object. Empty `text` is the proposal to answer nothing; `sources` name the voices behind it.

    by_model: once pooled, what each model that proposes it makes of it, as (model, score), in [0, 1].
    truth: how likely it holds, as a verifier says, in [0, 1]; None where none was asked or none could tell.
    """

    text: str
    score: float = 1.0
    sources: tuple[str, ...] = ()
    id: str | None = None
    by_model: tuple[tuple[str, float], ...] = ()
    truth: float | None = None


class State(StrEnum):
    """What became of one draw from a model. Only the first three are answers; the rest never count as empty.

    DROPPED: it named objects, none of which was kept: an answer with nothing in it, and no abstention.
    """

    ANSWERED = "answered"
    ABSTAINED = "abstained"
    DROPPED = "dropped"
    UNPARSED = "unparsed"
    TRUNCATED = "truncated"
    MISSING = "missing"

    @property
    def is_answer(self) -> bool:
        """Whether the model committed itself, be it to nothing."""
        return self in (State.ANSWERED, State.ABSTAINED, State.DROPPED)


class Dropped(NamedTuple):
    """An object that a model named and that was not kept; rule: what it went against, in a word or two."""

    text: str
    rule: str


@dataclass(frozen=True, slots=True)
class CandidateSet:
    """All candidates of one query, best first once pooled, the state of each draw that made them, what was dropped."""

    query: Query
    candidates: tuple[Candidate, ...] = ()
    draws: tuple[State, ...] = (State.ANSWERED,)
    dropped: tuple[Dropped, ...] = ()

    @property
    def failed(self) -> bool:
        """True when no draw gave an answer, so that the query must be asked again, not answered with nothing."""
        return not any(state.is_answer for state in self.draws)

    def without(self, wrong: Callable[[Candidate], bool], rule: str) -> CandidateSet:
        """The set without some candidates, which are noted as dropped by a rule; draws that named no others are so."""
        dropped = [Dropped(one.text, rule) for one in self.candidates if wrong(one)]
        if not dropped:
            return self
        kept = tuple(one for one in self.candidates if not wrong(one))
        draws = self.draws
        if not any(one.text for one in kept):
            draws = tuple(State.DROPPED if state is State.ANSWERED else state for state in draws)
        return replace(self, candidates=kept, draws=draws, dropped=(*self.dropped, *dropped))


@dataclass(frozen=True, slots=True)
class Prediction:
    """What is kept for one query. `failed` marks a query that no model answered; it is not an empty answer."""

    query: Query
    objects: tuple[Candidate, ...] = ()
    failed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Relation:
    """One relation, whatever an edition calls it: what to ask and what an answer looks like.

    names: the spellings of the editions. cardinality: edition name -> (fewest, most) objects in its train split.
    clozes use {subject} and {mask} once each, question uses {subject}, statement uses {subject} and {object};
    triple is the verb phrase between subject and object. symmetric: (s, r, o) implies (o, r, s). preconditions are
    what a masked model is asked first. paraphrases: more clozes, kept in paraphrases.toml for recipes that ask many.
    """

    name: str
    names: tuple[str, ...]
    property: str
    subject_type: EntityType
    object_type: EntityType
    kind: Kind
    may_be_empty: bool
    definition: str
    clozes: tuple[str, ...]
    question: str
    triple: str
    statement: str
    unit: str | None = None
    symmetric: bool = False
    cardinality: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    shape: Shape = field(default_factory=Shape)
    preconditions: tuple[Precondition, ...] = ()
    paraphrases: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Refuse a field that makes no sense: ValueError naming the field."""
        for text in ("name", "property", "definition", "triple"):
            if not getattr(self, text).strip():
                raise ValueError(f"{text} is empty")
        if not self.names:
            raise ValueError("names is empty: give at least one edition's spelling")
        if self.kind not in ("entity", "string", "number"):
            raise ValueError(f"kind is {self.kind!r}: use 'entity', 'string' or 'number'")
        if self.unit is not None and self.kind != "number":
            raise ValueError(f"unit is {self.unit!r} but kind is {self.kind!r}: only numbers have units")
        if not self.clozes:
            raise ValueError("clozes is empty: give at least one template with {subject} and {mask}")
        for name, clozes in (("clozes", self.clozes), ("paraphrases", self.paraphrases)):
            for cloze in clozes:
                require(name, cloze, {"subject", "mask"})
        require("question", self.question, {"subject"})
        require("statement", self.statement, {"subject", "object"})
        for edition, (fewest, most) in self.cardinality.items():
            if not 0 <= fewest <= most:
                raise ValueError(f"cardinality of {edition} is ({fewest}, {most}): fewest must not exceed most")

    def nullable(self, edition: str) -> bool:
        """Whether a subject may have no object in an edition: as its train split shows, else as declared."""
        return self.cardinality[edition][0] == 0 if edition in self.cardinality else self.may_be_empty


@dataclass(frozen=True, slots=True)
class Download:
    """Where a split is published and the SHA-256 of its bytes."""

    url: str
    sha256: str

    @staticmethod
    def github(repository: str, **sha256: str) -> dict[str, Download]:
        """Splits that lie as data/<split>.jsonl on the main branch of a GitHub repository, with their digests."""
        base = f"https://raw.githubusercontent.com/{repository}/main/data"
        return {split: Download(f"{base}/{split}.jsonl", digest) for split, digest in sha256.items()}


@dataclass(frozen=True, slots=True)
class Published:
    """A published result: who, on what split, and macro P, R, F1 in [0, 1] (None where not printed)."""

    system: str
    split: str
    f1: float
    p: float | None = None
    r: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Edition:
    """One benchmark edition: columns, splits, official metric and leaderboard.

    folder: directory of the splits, below the data directory. column: the scored column.
    target: "id" (QIDs, so predictions are linked) or "string". empty: how the gold writes "no object".
    held_out: the labelled split that tuning may use. repeats: (subject, relation) pairs that the published splits
    hold twice; any other repeated query is refused.
    """

    name: str
    folder: str
    relations: tuple[str, ...]
    splits: Mapping[str, Download] | Mapping[str, None]
    column: Literal["ObjectEntities", "ObjectEntitiesID"]
    target: Literal["id", "string"]
    metric: Metric
    held_out: str = "val"
    repeats: frozenset[tuple[str, str]] = frozenset()
    licence: str = ""
    rank: int = 0
    published: tuple[Published, ...] = ()

    def __post_init__(self) -> None:
        """Refuse a field that makes no sense: ValueError naming the field."""
        if not self.relations:
            raise ValueError("relations is empty: name the relations that the edition asks for")
        if len(set(self.relations)) != len(self.relations):
            raise ValueError("relations names a relation twice")
        for split in ("train", "test", self.held_out):
            if split not in self.splits:
                raise ValueError(f"splits lacks {split!r}")
        if self.target not in ("id", "string"):
            raise ValueError(f"target is {self.target!r}: use 'id' or 'string'")
        if (self.target == "id") != (self.column == "ObjectEntitiesID"):
            raise ValueError(f"target is {self.target!r} but column is {self.column!r}: QIDs stand in ObjectEntitiesID")

    def value(self, candidate: Candidate) -> str:
        """What a submission writes for a candidate: its QID (or literal), or its text."""
        return (candidate.id or "") if self.target == "id" else candidate.text

    def accepted(self, gold: GoldObject) -> tuple[str, ...]:
        """The spellings that the scorer accepts for a gold object; none where what it scores is not known."""
        if self.target == "id":
            return (gold.id,) if gold.id else ()
        return gold.names

    def gold(self, example: Example) -> list[tuple[str, ...]]:
        """The gold objects as the scorer counts them, each with its accepted spellings.

        A split name counts as its parts, as in the published column.
        """
        found: list[tuple[str, ...]] = []
        for gold in example.objects:
            if gold.parts and self.target == "string":
                found += [(part,) for part in gold.parts]
            elif spellings := self.accepted(gold):
                found.append(spellings)
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class System:
    """A recipe: which components do each step, with their settings; plus citation and published scores.

    generate: one table per generator. link: how names are linked (see `lmkbc.link.recipe`). clean: types = true drops
    objects that an index knows only as things of other kinds. published: "edition/split" -> macro-F1.
    """

    name: str
    description: str
    generate: Sequence[Mapping[str, Any]]
    select: Mapping[str, Any]
    link: Mapping[str, Any] = field(default_factory=dict)
    clean: Mapping[str, Any] = field(default_factory=dict)
    pool: Mapping[str, Any] = field(default_factory=dict)
    citation: str = ""
    published: Mapping[str, float] = field(default_factory=dict)


class Generator(Protocol):
    """Proposes candidates. Batch first: the order of results is free, each query comes back exactly once."""

    def generate(self, queries: Sequence[Query]) -> Iterator[CandidateSet]:
        """Yield one candidate set per query."""
        ...


class Selector(Protocol):
    """Decides what to keep of one query's candidates, and when to say nothing."""

    def select(self, candidates: CandidateSet) -> Prediction:
        """Return the kept objects."""
        ...


class Linker(Protocol):
    """Maps candidate texts to QIDs, given the relation and the subject."""

    def link(self, sets: Iterable[CandidateSet]) -> Iterator[CandidateSet]:
        """Yield each set, in order, with `id` filled where a link was found."""
        ...
