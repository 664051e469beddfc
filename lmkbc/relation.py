"""Relation as data, under any edition's name: types, the shape of an object, questions asked beforehand."""

from __future__ import annotations

import string
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeVar, get_args

from lmkbc.errors import refuse

Entry = TypeVar("Entry")
OTHERS = "*"
"""Key of a table by relation, for all that it does not name."""


def require(name: str, template: str, slots: set[str]) -> None:
    """Refuse a template without the given slots, each exactly once: ValueError naming the field."""
    named = [slot for _, slot, _, _ in string.Formatter().parse(template) if slot is not None]
    if sorted(named) != sorted(slots):
        wanted = " and ".join(f"{{{slot}}}" for slot in sorted(slots))
        raise ValueError(f"{name} holds {template!r}: it needs {wanted}, each exactly once")


@dataclass(frozen=True, slots=True)
class EntityType:
    """Kind of a subject or object: an English noun and its Wikidata class.

    classes: others that such things are listed under in Wikidata, or that they may be of.
    """

    noun: str
    qid: str
    classes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class EntityClass:
    """A Wikidata class: what it is called, its label first, and the QIDs of the classes that it lies below."""

    names: tuple[str, ...]
    below: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """Form of a relation's objects, as data: parsing and cleaning read it.

    separators: delimiters that part objects when the answer is no list literal.
    conjunction: whether "X and Y" names two objects.
    closed: canonical name -> variants; when given, anything else is dropped.
    variants: spelling -> canonical name, for open-ended relations.
    stop: words that are never an object (compared without case).
    minimum, maximum: bounds of a number, in the relation's unit; integer: only whole numbers.
    may_be_subject: whether the subject can be its own object.
    link_suffixes: words that a linker may append when the plain name links to nothing of the right type.
    """

    separators: tuple[str, ...] = (",", ";", "\n")
    conjunction: bool = True
    closed: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    variants: Mapping[str, str] = field(default_factory=dict)
    stop: frozenset[str] = frozenset()
    minimum: float | None = None
    maximum: float | None = None
    integer: bool = False
    may_be_subject: bool = False
    link_suffixes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Precondition:
    """A cloze asked before the relation's own, whose answer rewrites them or says that there is no object.

    cloze uses {subject} and {mask} once each. answers: the words compared at the mask; one that is a word of the
    subject's name wins where clozes are rewritten. type: in their place, a Wikidata class, for the names that train
    has of its things. top_k, min_prob: an answer counts only among so many best words of the model (0: among all), and
    with a higher probability. neutral: a subject that stands for none; an answer's probability is divided by the one
    it has there. times: how often the probability of an answer counts, where not once. decisive: only the likeliest
    answer counts, as if it were sure. clozes: asked in place of the relation's own where an answer counts, with
    {subject} and {mask} once each and {answer} wherever wanted. forms: of answers, what stands for the subject there,
    as in "the city of {subject}". drawn: where no answer counts, one is drawn by chance,
    always the same for the same subject. vetoes: the answers that mean "no object". required: where no answer counts,
    there is no object.
    """

    cloze: str
    answers: tuple[str, ...] = ()
    type: str = ""
    top_k: int = 0
    min_prob: float = 0.0
    neutral: str = ""
    times: Mapping[str, float] = field(default_factory=dict)
    decisive: bool = False
    clozes: tuple[str, ...] = ()
    forms: Mapping[str, str] = field(default_factory=dict)
    drawn: bool = False
    vetoes: frozenset[str] = frozenset()
    required: bool = False

    def __post_init__(self) -> None:
        """Refuse a field that makes no sense: ValueError naming the field."""
        require("cloze", self.cloze, {"subject", "mask"})
        for cloze in self.clozes:
            require("clozes", cloze.replace("{answer}", ""), {"subject", "mask"})
        for form in self.forms.values():
            require("forms", form, {"subject"})
        bounded, answers = bool(self.top_k or self.min_prob), set(self.answers)
        refuse(
            (
                bool(self.answers) == bool(self.type),
                "a precondition needs answers to compare, or a type that has them: give one of the two",
            ),
            (
                self.top_k < 0 or not 0 <= self.min_prob < 1,
                "top_k must be at least 0, and min_prob at least 0 and below 1",
            ),
            (
                answers and len(answers) < 2 - bounded,
                "answers holds fewer than two words: there is nothing to compare",
            ),
            (
                not self.vetoes <= answers or (self.vetoes == answers and self.vetoes and not bounded),
                "vetoes must be some of the answers, not all",
            ),
            (
                not set(self.times) <= answers or not all(number > 0 for number in self.times.values()),
                "times must give answers a number above 0",
            ),
            (
                self.drawn and not (bounded and self.clozes and self.answers),
                "drawn asks that none may count: give answers, clozes, and top_k or min_prob",
            ),
            (
                self.required and not bounded,
                "required asks that an answer counts: give top_k or min_prob, else every one does",
            ),
            (
                not (self.clozes or self.vetoes or self.required),
                "a precondition needs clozes, vetoes or required, else its answer changes nothing",
            ),
        )


Kind = Literal["entity", "string", "number"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Relation:
    """Relation, under any edition's name: its questions, and the form of its answers.

    names: the spellings of the editions. cardinality: edition name -> (fewest, most) objects in its train split.
    clozes use {subject} and {mask} once each, question uses {subject}, statement uses {subject} and {object};
    triple is the verb phrase between subject and object. unit_id: Wikidata's item for the unit, where the number is of
    no mere things that are counted. symmetric: (s, r, o) implies (o, r, s). inverse_of: the name of the relation t for
    which (s, r, o) implies (o, t, s). functional: a subject has at most one object, as it has of a number (Wikidata's
    single-value constraint). distinct_values: an object is of at most one subject (its distinct-values constraint).
    subject_class: the subjects that a knowledge base asks about, where not every subject of the type is likely to have
    an object. preconditions are what a masked model is asked first. paraphrases: more clozes, kept in paraphrases.toml
    for recipes that ask many.
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
    unit_id: str | None = None
    symmetric: bool = False
    inverse_of: str = ""
    functional: bool = False
    distinct_values: bool = False
    subject_class: EntityType | None = None
    cardinality: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    shape: Shape = field(default_factory=Shape)
    preconditions: tuple[Precondition, ...] = ()
    paraphrases: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Refuse a field that makes no sense: ValueError naming the field."""
        texts = ("name", "property", "definition", "triple")
        refuse(
            *((not getattr(self, text).strip(), f"{text} is empty") for text in texts),
            (not self.names, "names is empty: give at least one edition's spelling"),
            (self.kind not in get_args(Kind), f"kind is {self.kind!r}: use 'entity', 'string' or 'number'"),
            (
                self.unit is not None and self.kind != "number",
                f"unit is {self.unit!r} but kind is {self.kind!r}: only numbers have units",
            ),
            (
                self.unit_id is not None and self.unit is None,
                f"unit_id is {self.unit_id!r} but unit is not given: name the unit too",
            ),
            (
                bool(self.inverse_of) and (self.symmetric or self.kind != "entity"),
                f"inverse_of is {self.inverse_of!r}, but the relation is symmetric, or its objects are no subjects",
            ),
            (
                self.distinct_values and (self.symmetric or self.kind != "entity"),
                "distinct_values is given, but the relation is symmetric, or its objects are no entities",
            ),
            (not self.clozes, "clozes is empty: give at least one template with {subject} and {mask}"),
            *(
                (not 0 <= low <= high, f"cardinality of {edition} is ({low}, {high}): fewest must not exceed most")
                for edition, (low, high) in self.cardinality.items()
            ),
        )
        for name, clozes in (("clozes", self.clozes), ("paraphrases", self.paraphrases)):
            for cloze in clozes:
                require(name, cloze, {"subject", "mask"})
        require("question", self.question, {"subject"})
        require("statement", self.statement, {"subject", "object"})

    def spellings(self) -> tuple[str, ...]:
        """Return its own name, and those that editions give it."""
        return (self.name, *self.names)

    def entry(self, table: Mapping[str, Entry], default: Entry) -> Entry:
        """Return what a table says of the relation by any of its names, else of all others, else the default."""
        return next((table[name] for name in (*self.spellings(), OTHERS) if name in table), default)

    def other_side(self) -> str:
        """Return the name of the relation that states the same facts from the object's side; "" if none does."""
        return self.name if self.symmetric else self.inverse_of

    def has_one_object(self) -> bool:
        """Return whether a subject has at most one object."""
        return self.functional or self.kind == "number"

    def nullable(self, edition: str) -> bool:
        """Return whether a subject may have no object in an edition: as its train split shows, else as declared."""
        return self.cardinality[edition][0] == 0 if edition in self.cardinality else self.may_be_empty
