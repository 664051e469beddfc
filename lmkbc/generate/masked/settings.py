"""A recipe's table `probe`: how a masked LM is asked clozes (not the benchmarks in `lmkbc.probe`)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Literal, TypeVar

from lmkbc.errors import InputError, did_you_mean
from lmkbc.generate.masked.ensemble import Ensemble
from lmkbc.models.masked.clozes import check_template
from lmkbc.models.masked.forward import Match, Precision
from lmkbc.relation import Precondition, Relation

Objects = Literal["token", "expand", "masks", "pll"]
Compose = Literal["mean", "frequency"]
Value = TypeVar("Value")
WHOLE, ANY = "all", "*"


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeSettings:
    """How clozes are asked and what becomes of their answers, per relation: the settings of a masked generator.

    Tables have relations as keys, in any spelling, and "*" for all that they do not name.

    clozes: how many of the relation's own and then of its paraphrases, 0 for all of its own, or a table of numbers and
    of other ones. soft_prompts: those trained beside the model go before all clozes. weights: a table of the clozes'.
    ensemble: how clozes are merged. top_k: answers of one cloze; floor: what each must score more than; numbers, or
    tables of them. vocabulary: "all" words of the model, the objects of "train", or a list of names. softmax: over
    "all" tokens or the "subset" that is the vocabulary. match: see `Forward`. prior_correction: divide by the
    probability with a neutral subject, and rescale. preconditions: ask those that the relation declares first, or a
    table of others (one that rewrites clozes replaces all others).

    clean: bring answers into the relation's shape. variants: a table of words and what they stand for. stems: how many
    first letters tell the names of the relation's closed list. name_words: ask the words of the subject's name too, and
    propose an object that one of them names with this score. digits: a number is written in digits alone. maximum: a
    table of the largest numbers that may be answered. null: the word that stands for no object. rescale: after
    cleaning, give the answers that remain the mass of all.

    objects: how those of several tokens are found: not at all ("token"), as new tokens for train's or the listed
    names ("expand"), by up to `masks` masks filled in `order` with a beam ("masks"), or as a closed list scored by
    pseudo-log-likelihood ("pll"). compose: a new token's vector is the "mean" of its pieces', or weighted by inverse
    "frequency" (Yang et al. 2023), or, where the file `vectors` has the name, that vector mapped onto the model's space
    (see `entity_space`).
    """

    clozes: int | Mapping[str, int | Sequence[str]] = 0
    soft_prompts: bool = False
    weights: Mapping[str, Sequence[float]] = field(default_factory=dict)
    ensemble: Ensemble = "mean"
    top_k: int | Mapping[str, int] = 100
    floor: float | Mapping[str, float] = 0.0
    vocabulary: str | Sequence[str] = WHOLE
    softmax: Literal["all", "subset"] = "all"
    match: Match = "product"
    prior_correction: bool = False
    preconditions: bool | Mapping[str, Sequence[Precondition]] = False
    clean: bool = True
    variants: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    stems: Mapping[str, int] = field(default_factory=dict)
    name_words: Mapping[str, float] = field(default_factory=dict)
    digits: bool = False
    maximum: Mapping[str, float] = field(default_factory=dict)
    null: str = ""
    rescale: bool = False
    objects: Objects = "token"
    masks: int = 3
    order: Literal["left", "confidence"] = "left"
    beam: int = 5
    compose: Compose = "mean"
    vectors: str = ""
    vector_map: Literal["orthogonal", "linear"] = "orthogonal"
    precision: Precision = "fp32"

    def __post_init__(self) -> None:
        """ValueError for a value that makes no sense."""
        if isinstance(self.vocabulary, str) and self.vocabulary not in (WHOLE, "train"):
            hint = did_you_mean(self.vocabulary, (WHOLE, "train"))
            raise ValueError(f"vocabulary is {self.vocabulary!r}: {hint}")
        for name, least in (("masks", 1), ("beam", 1), ("top_k", 1), ("clozes", 0)):
            for value in _values(getattr(self, name)):
                if isinstance(value, int) and value < least:
                    raise ValueError(f"{name} is {value}: give a whole number of at least {least}")
        for name in ("floor", "name_words"):
            for value in _values(getattr(self, name)):
                if not 0 <= value <= 1:
                    raise ValueError(f"{name} is {value}: give a number from 0 to 1")
        for templates in _values(self.clozes):
            for template in () if isinstance(templates, int) else templates:
                check_template(template)
        self._check_together()

    def _check_together(self) -> None:
        """Refuse settings of which one would have no effect beside another."""
        if self.objects == "pll" and self.vocabulary == WHOLE:
            raise ValueError("objects 'pll' scores a closed list: set vocabulary to 'train' or a list")
        listed = not isinstance(self.vocabulary, str)
        if self.objects == "masks" and (self.prior_correction or self.softmax == "subset" or listed):
            raise ValueError(
                "objects 'masks' may answer with any words: leave out prior_correction, softmax = 'subset' and a "
                "list as vocabulary, or choose other objects"
            )
        if self.weights and self.ensemble != "mean":
            raise ValueError(f"weights are of averages, and ensemble is {self.ensemble!r}: set one of them")
        if self.vectors and self.objects != "expand":
            raise ValueError('vectors has no use without objects = "expand": set both or neither')

    @property
    def by_relation(self) -> dict[str, Mapping[str, Any]]:
        """The settings that are tables with relations as keys, by their names."""
        own = {field.name: getattr(self, field.name) for field in fields(self)}
        return {name: value for name, value in own.items() if isinstance(value, Mapping)}

    def templates(self, relation: Relation) -> tuple[str, ...]:
        """The clozes to ask of a relation."""
        chosen = self.clozes if isinstance(self.clozes, int) else _entry(self.clozes, relation, 0)
        if not isinstance(chosen, int):
            return tuple(chosen)
        return (*relation.clozes, *relation.paraphrases)[:chosen] if chosen else relation.clozes

    def cloze_weights(self, relation: Relation, clozes: int) -> Sequence[float]:
        """The weight of each cloze, () where all count alike. InputError when they are not as many."""
        weights = _entry(self.weights, relation, ())
        if weights and (len(weights) != clozes or min(weights) < 0 or not sum(weights)):
            raise InputError(
                f"probe.weights of {relation.name} are {list(weights)}: give {clozes} numbers of at least 0"
            )
        return weights

    def most(self, relation: Relation) -> int:
        """How many answers of one cloze count."""
        return _entry(self.top_k, relation, 100) if isinstance(self.top_k, Mapping) else self.top_k

    def least(self, relation: Relation) -> float:
        """The least probability of an answer."""
        return _entry(self.floor, relation, 0.0) if isinstance(self.floor, Mapping) else self.floor

    def preconditions_of(self, relation: Relation) -> Sequence[Precondition]:
        """The preconditions that are asked of a relation first."""
        if isinstance(self.preconditions, bool):
            return relation.preconditions if self.preconditions else ()
        return _entry(self.preconditions, relation, ())

    def variant(self, word: str, relation: Relation) -> str:
        """The object that a word stands for, by the table of variants; else the word."""
        return _entry(self.variants, relation, {}).get(word.casefold(), word)

    def stem(self, relation: Relation) -> int:
        """First letters that tell a name; 0 where they do not."""
        return _entry(self.stems, relation, 0)

    def too_large(self, word: str, relation: Relation) -> bool:
        """Whether a word is a number that no answer may be."""
        most = _entry(self.maximum, relation, None)
        return most is not None and word.isascii() and word.isdecimal() and int(word) > most

    def name_words_of(self, relation: Relation) -> float | None:
        """The score of an object that the subject's name holds, None where `name_words` is not set."""
        return _entry(self.name_words, relation, None)


def _values(setting: Any) -> Iterable[Any]:
    """The values of a table, or the one for all relations."""
    return setting.values() if isinstance(setting, Mapping) else (setting,)


def _entry(table: Mapping[str, Value], relation: Relation, default: Value) -> Value:
    return next((table[name] for name in (relation.name, *relation.names, ANY) if name in table), default)
