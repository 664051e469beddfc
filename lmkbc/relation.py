"""Relation as data: its names in all editions, types, questions and the form of its objects."""

from __future__ import annotations

import logging
import math
import string
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from typing import Any, ClassVar, TypeVar

from lmkbc.errors import InputError, refuse
from lmkbc.names import as_qid, name_key
from lmkbc.registry import KINDS, RELATIONS
from lmkbc.settings import check_fields

Entry = TypeVar("Entry")
OTHERS = "*"
"""Key, in a table by relation, for all relations that it does not name."""


@cache
def kind_named(name: str) -> Any:
    """Return the kind of objects of a name, which `lmkbc.kinds.kind` describes. InputError for an unknown name."""
    return KINDS.get(name)


def require(name: str, template: str, slots: set[str]) -> None:
    """Raise ValueError, with the field's name, if a template does not hold each of the given slots exactly once."""
    named = [slot for _, slot, _, _ in string.Formatter().parse(template) if slot is not None]
    if sorted(named) != sorted(slots):
        wanted = " and ".join(f"{{{slot}}}" for slot in sorted(slots))
        raise ValueError(f"{name} holds {template!r}: it needs {wanted}, each exactly once")


def _joined(name: str) -> str:
    """Return the key of a relation's name: its words without case, blanks and signs between them."""
    return "".join(name_key(name.replace("_", " ")).split())


class RelationNames:
    """The one lookup of a name of a relation that a user, a file or a model writes.

    names: own name -> other names. Case, blanks and signs between words do not count: "has area" is hasArea. A name
    that several relations share is of none, unless it is the own name of one.
    """

    def __init__(self, names: Mapping[str, Iterable[str]]) -> None:
        meant = defaultdict[str, set[str]](set)
        for own, others in names.items():
            for other in (own, *others):
                meant[_joined(other)].add(own)
        self._own = {key: min(owns) for key, owns in meant.items() if len(owns) == 1} | {own: own for own in names}

    def own(self, name: str) -> str:
        """Return the own name of a relation by any of its names; "" if there is none."""
        return self._own.get(name) or self._own.get(_joined(name), "")


@dataclass(frozen=True, slots=True)
class EntityType:
    """Type of a subject or object: a noun and its Wikidata class. A class of one's own needs no QID.

    qid: without it, the folded noun, by which the class is known then. classes: other classes that may list such
    entities, by QID, or by a word if they are your own.
    """

    noun: str
    qid: str = ""
    classes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Raise ValueError for a noun or a QID that is none."""
        refuse(
            (
                not name_key(self.noun) or (not self.qid and as_qid(self.noun) is not None),
                f"the noun of a type is {self.noun!r}: give a word",
            ),
            (
                self.qid not in ("", name_key(self.noun)) and as_qid(self.qid) != self.qid,
                f"{self.noun!r} has {self.qid!r} in place of a QID: leave it out if the class is one of your own",
            ),
        )
        object.__setattr__(self, "qid", self.qid or name_key(self.noun))
        object.__setattr__(self, "classes", tuple(as_qid(one) or name_key(one) for one in self.classes))


ANYTHING = EntityType("thing", "Q35120")
"""The type of subjects and objects where no class is known: Wikidata's "entity"."""


@dataclass(frozen=True, slots=True)
class EntityClass:
    """A Wikidata class: its names, the label first, and the QIDs of its superclasses."""

    names: tuple[str, ...]
    below: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """Form of a relation's objects; parsing and cleaning read it.

    separators: delimiters between objects in an answer that is no list literal.
    conjunction: whether "X and Y" names two objects.
    closed: canonical name -> variants; if given, any other object is dropped.
    variants: spelling -> canonical name, for open-ended relations.
    stop: words that are never an object (compared without case).
    minimum, maximum: bounds of a number, in the relation's unit.
    integer: whether only whole numbers are allowed.
    may_be_subject: whether the subject can be its own object.
    link_suffixes: words that a linker may append if the plain name links to nothing of the right type.
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

    def spelled_as(self, names: Iterable[str]) -> Shape:
        """Return the shape with the canonical names of an open-ended relation as `names` spell them, such as gold.

        If a canonical name is not among `names`, its first variant among them replaces it.
        """
        used, pairs = set(names), reversed([*self.variants.items()])
        better = {name: variant for variant, name in pairs if variant in used and name not in used}
        variants = {spelling: better.get(name, name) for spelling, name in self.variants.items()} | better
        return replace(self, variants=variants) if better else self


@dataclass(frozen=True, slots=True, kw_only=True)
class FirstCloze:
    """A cloze that is asked before the relation's clozes. Its answer rewrites them, or shows that there is no object.

    cloze: template with {subject} and {mask} once each.
    answers: words that are compared at the mask. If clozes are rewritten, a word of the subject's name wins.
    top_k, min_prob: an answer counts only among the model's top_k words (0: all) and above this probability.
    clozes: replace the relation's clozes if an answer counts; {subject} and {mask} once each, {answer} any number of
    times.
    vetoes: the answers that mean "no object"; "" stands for none that counts.
    """

    cloze: str
    answers: tuple[str, ...] = ()
    top_k: int = 0
    min_prob: float = 0.0
    clozes: tuple[str, ...] = ()
    vetoes: frozenset[str] = frozenset()

    REMOVED: ClassVar[Mapping[str, str]] = {"required": 'write vetoes = [""], where "" stands for no answer'}

    def __post_init__(self) -> None:
        """Raise ValueError, with the name of the field, if a field is inconsistent."""
        require("cloze", self.cloze, {"subject", "mask"})
        for cloze in self.clozes:
            require("clozes", cloze.replace("{answer}", ""), {"subject", "mask"})
        answers = set(self.answers)
        refuse(
            (
                not self.compares,
                "a precondition needs answers to compare: give some",
            ),
            (
                self.top_k < 0 or not 0 <= self.min_prob < 1,
                "top_k must be at least 0, and min_prob at least 0 and below 1",
            ),
            (
                answers and len(answers) < 2 - self.is_bounded,
                "answers holds fewer than two words: there is nothing to compare",
            ),
            (
                not self.vetoes <= answers | {""} or (self.vetoes == answers and self.vetoes and not self.is_bounded),
                "vetoes must be some of the answers, not all",
            ),
            (
                "" in self.vetoes and not self.is_bounded,
                'vetoes has "", for no answer that counts: give top_k or min_prob, else every one does',
            ),
            (
                not (self.clozes or self.vetoes),
                "a precondition needs clozes or vetoes, else its answer changes nothing",
            ),
        )

    @property
    def compares(self) -> bool:
        """Return whether there are answers to compare."""
        return bool(self.answers)

    def words(self, named: Callable[[str], Sequence[str]]) -> Sequence[str]:  # noqa: ARG002
        """Return the answers that are compared. named: a Wikidata class -> the names in train of its entities."""
        return self.answers

    @property
    def is_bounded(self) -> bool:
        """Return whether an answer may not count."""
        return bool(self.top_k or self.min_prob)

    @property
    def beside(self) -> tuple[str, ...]:
        """Return subjects that are asked too, for comparison."""
        return ()

    def weighed(self, answers: Mapping[str, float], beside: Sequence[Mapping[str, float]]) -> Mapping[str, float]:  # noqa: ARG002
        """Return the log-weights of the answers that count. answers, beside: answer -> log-probability, by subject."""
        return answers

    def said(self, subject: str, answers: Mapping[str, float]) -> str | None:
        """Return the answer that rewrites clozes: a word of the subject's name, else the best; None if none counts."""
        words = set(subject.casefold().split())
        in_name = next((answer for answer in self.answers if answer in words), None)
        return in_name or max(answers, key=lambda answer: answers[answer], default=None)

    def form(self, answer: str) -> str:  # noqa: ARG002
        """Return the form of the subject in rewritten clozes."""
        return "{subject}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Precondition(FirstCloze):
    """A cloze that a masked model is asked first, as a relation declares it.

    neutral: a neutral subject; the probability of an answer is divided by its probability for this subject.
    """

    neutral: str = ""

    @property
    def beside(self) -> tuple[str, ...]:
        """Return the neutral subject."""
        return (self.neutral,) if self.neutral else ()

    def weighed(self, answers: Mapping[str, float], beside: Sequence[Mapping[str, float]]) -> Mapping[str, float]:
        """Return the log-weights of the answers, less those for the neutral subject."""
        return {answer: p - sum(of[answer] for of in beside) for answer, p in answers.items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class Relation:
    """Relation: its names, its questions, and the form of its answers.

    names: spellings of the editions.
    kind: name of the kind of its objects, in `lmkbc.registry.KINDS`.
    cardinality: edition -> (fewest, most) objects in its train split.
    clozes: use {subject} and {mask} once each.
    question: uses {subject}.
    statement: uses {subject} and {object}.
    triple: verb phrase between subject and object.
    unit: unit of a number ("km2", "minutes"), or what it counts ("spectators"). Numbers in other units of the dimension
    are converted.
    tolerance, absolute_tolerance: greatest difference at which a number counts as right, as a share of gold and in the
    unit. The greater one holds. Without a tolerance, whole numbers are exact, and others right within 5 %. Scorers of
    official scripts have their own.
    unit_id: Wikidata item of the unit, in which numbers are exported; None if the number counts things.
    language: code of the language of its texts, as in "fr"; "" if it is not known.
    symmetric: (s, r, o) implies (o, r, s).
    inverse_of: name of the relation t for which (s, r, o) implies (o, t, s).
    functional: a subject has at most one object, as for numbers (Wikidata's single-value constraint).
    distinct_values: an object has at most one subject (Wikidata's distinct-values constraint).
    subject_class: class of the subjects that a knowledge base asks about, if many subjects of the type have no object.
    preconditions: clozes that a masked model is asked first.
    paraphrases: more clozes, from paraphrases.toml, for recipes that ask many.
    """

    name: str
    names: tuple[str, ...]
    property: str
    subject_type: EntityType
    object_type: EntityType
    kind: str
    may_be_empty: bool
    definition: str
    clozes: tuple[str, ...]
    question: str
    triple: str
    statement: str
    unit: str | None = None
    unit_id: str | None = None
    tolerance: float = math.nan
    absolute_tolerance: float = 0.0
    language: str = ""
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
        """Raise ValueError, with the name of the field, if a field is inconsistent."""
        if math.isnan(self.tolerance):
            object.__setattr__(self, "tolerance", 0.0 if self.shape.integer else 0.05)
        texts = ("name", "property", "definition", "triple")
        if self.kind not in KINDS:
            raise ValueError(f"kind is {self.kind!r}: use {', '.join(map(repr, [*KINDS, *KINDS.plugged()]))}")
        refuse(
            *((not getattr(self, text).strip(), f"{text} is empty") for text in texts),
            (not self.names, "names is empty: give at least one edition's spelling"),
            (
                not (self.tolerance >= 0 and self.absolute_tolerance >= 0),
                "tolerance and absolute_tolerance must be at least 0",
            ),
            (
                self.unit is not None and not kind_named(self.kind).has_unit,
                f"unit is {self.unit!r} but kind is {self.kind!r}: only numbers have units",
            ),
            (
                self.unit_id is not None and self.unit is None,
                f"unit_id is {self.unit_id!r} but unit is not given: name the unit too",
            ),
            (
                bool(self.inverse_of) and (self.symmetric or not self.has_entities()),
                f"inverse_of is {self.inverse_of!r}, but the relation is symmetric, or its objects are no subjects",
            ),
            (
                self.distinct_values and (self.symmetric or not self.has_entities()),
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
        """Return its name in the engine and its names in the editions."""
        return (self.name, *self.names)

    def is_in(self, only: Sequence[str]) -> bool:
        """Return whether a setting `only` has the relation by any name; an empty one stands for all relations."""
        return not only or not set(only).isdisjoint(self.spellings())

    def entry(self, table: Mapping[str, Entry], default: Entry) -> Entry:
        """Return the table's entry for the relation by any name, else for all others, else the default."""
        return next((table[name] for name in (*self.spellings(), OTHERS) if name in table), default)

    def other_side(self) -> str:
        """Return the relation that states the same facts from the object's side; "" if there is none."""
        return self.name if self.symmetric else self.inverse_of

    def has_one_object(self) -> bool:
        """Return whether a subject has at most one object."""
        return self.functional or bool(kind_named(self.kind).one_object)

    def has_entities(self) -> bool:
        """Return whether its objects are entities, which have names and can be subjects."""
        return bool(kind_named(self.kind).is_entity)

    def has_values(self) -> bool:
        """Return whether its objects are read from a text, and compared by what they mean, as numbers and dates are."""
        return bool(kind_named(self.kind).has_values)

    def has_numbers(self) -> bool:
        """Return whether its objects are numbers."""
        return bool(kind_named(self.kind).is_numeric)

    def is_verbatim(self) -> bool:
        """Return whether its objects are texts that are not cleaned."""
        return not (self.has_entities() or self.has_values())

    def nullable(self, edition: str) -> bool:
        """Return whether a subject may have no object: from the edition's train split if known, else as declared."""
        return self.cardinality[edition][0] == 0 if edition in self.cardinality else self.may_be_empty


class Relations(Mapping[str, Relation]):
    """Relations by every spelling: those of the workspace, then those of plug-ins.

    own: those of the workspace. A plug-in that cannot be loaded is skipped with a warning, unless its own name is
    looked up.
    """

    def __init__(self, own: Mapping[str, Relation]) -> None:
        self.own = own

    def __getitem__(self, name: str) -> Relation:
        if name in self.own:
            return self.own[name]
        return _of_plug_in(name) if name in RELATIONS else self._plugged[name]

    def __contains__(self, name: object) -> bool:
        return name in self.own or name in RELATIONS or name in self._plugged

    def __iter__(self) -> Iterator[str]:
        yield from self.own
        yield from self._plugged.keys() - self.own.keys()

    def __len__(self) -> int:
        return len(self.own.keys() | self._plugged.keys())

    @cached_property
    def _plugged(self) -> dict[str, Relation]:
        found: dict[str, Relation] = {}
        for name in RELATIONS.plugged():
            try:
                relation = _of_plug_in(name)
            except InputError as error:
                logging.getLogger(__name__).warning("%s", error)
                continue
            found |= dict.fromkeys(relation.spellings(), relation)
        return found


def _of_plug_in(name: str) -> Relation:
    relation: Relation = RELATIONS.get(name)
    check_fields(relation, RELATIONS.called(name))
    return relation
