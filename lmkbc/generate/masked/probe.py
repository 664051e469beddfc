"""How a masked LM is asked, as a recipe's table says it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Literal, TypeVar, get_args

from lmkbc.errors import InputError, did_you_mean
from lmkbc.generate.masked.clozes import check_template
from lmkbc.generate.masked.ensemble import Ensemble
from lmkbc.generate.masked.forward import Precision
from lmkbc.types import Relation

Objects = Literal["token", "expand", "masks", "pll"]
Compose = Literal["mean", "frequency"]
Value = TypeVar("Value")
WHOLE = "all"


@dataclass(frozen=True, slots=True, kw_only=True)
class Probe:
    """How clozes are asked and what their answers become. Tables have relations as keys, in any spelling.

    clozes: how many of the relation's own, 0 for all, or a table of numbers and of other ones. weights: a table of
    theirs. ensemble: how clozes are merged. top_k: answers of one cloze; floor: what each must score more than;
    numbers, or tables of them. vocabulary: "all" words of the model, the objects of "train", or a list of names.
    softmax: over "all" tokens or the "subset" that is the vocabulary. prior_correction: divide by the probability with
    a neutral subject, and rescale. preconditions: ask those that the relation declares first (one that rewrites clozes
    replaces all others). clean: bring answers into
    the relation's shape. rescale: after cleaning, give the answers that remain the mass of all.
    objects: how those of several tokens are found: not at all ("token"), as new tokens for train's or the listed
    names ("expand"), by up to `masks`
    masks filled in `order` with a beam ("masks"), or as a closed list scored by pseudo-log-likelihood ("pll").
    compose: a new token's vector is the "mean" of its pieces', or weighted by inverse "frequency" (Yang et al. 2023),
    or, where the file `vectors` has the name, that vector mapped onto the model's space (see `entity_space`).
    """

    clozes: int | Mapping[str, int | Sequence[str]] = 0
    weights: Mapping[str, Sequence[float]] = field(default_factory=dict)
    ensemble: Ensemble = "mean"
    top_k: int | Mapping[str, int] = 100
    floor: float | Mapping[str, float] = 0.0
    vocabulary: str | Sequence[str] = WHOLE
    softmax: Literal["all", "subset"] = "all"
    prior_correction: bool = False
    preconditions: bool = False
    clean: bool = True
    rescale: bool = False
    objects: Objects = "token"
    masks: int = 3
    order: Literal["left", "confidence"] = "left"
    beam: int = 5
    compose: Compose = "mean"
    vectors: str = ""
    vector_map: Literal["orthogonal", "linear"] = "orthogonal"
    precision: Precision = "fp32"

    @classmethod
    def of(cls, settings: Mapping[str, Any], relations: Iterable[str]) -> Probe:
        """A probe from a recipe's table. InputError for a setting, a value or a relation that does not exist."""
        known, names = [one.name for one in fields(cls)], set(relations)
        for name, value in settings.items():
            if name not in known:
                raise InputError(f"probe has no setting {name!r}: {did_you_mean(name, known)}")
            for relation in value if isinstance(value, Mapping) else ():
                if relation not in names:
                    raise InputError(f"probe.{name} names relation {relation!r}: {did_you_mean(relation, names)}")
        return cls(**settings)

    def __post_init__(self) -> None:
        """InputError for a value that makes no sense."""
        self._one_of("ensemble", get_args(Ensemble))
        self._one_of("softmax", ("all", "subset"))
        self._one_of("objects", get_args(Objects))
        self._one_of("order", ("left", "confidence"))
        self._one_of("vector_map", ("orthogonal", "linear"))
        self._one_of("compose", get_args(Compose))
        self._one_of("precision", get_args(Precision))
        if isinstance(self.vocabulary, str):
            self._one_of("vocabulary", (WHOLE, "train"))
        if self.objects == "pll" and self.vocabulary == WHOLE:
            raise InputError("probe.objects 'pll' scores a closed list: set probe.vocabulary to 'train' or a list")
        for name in ("masks", "beam"):
            if getattr(self, name) < 1:
                raise InputError(f"probe.{name} is {getattr(self, name)}: give a whole number of at least 1")
        if self.vectors and self.objects != "expand":
            raise InputError('probe.vectors has no use without probe.objects = "expand": set both or neither')
        for templates in () if isinstance(self.clozes, int) else self.clozes.values():
            for template in () if isinstance(templates, int) else templates:
                check_template(template)

    def templates(self, relation: Relation) -> tuple[str, ...]:
        """The clozes to ask of a relation."""
        chosen = self.clozes if isinstance(self.clozes, int) else _entry(self.clozes, relation, 0)
        return relation.clozes[: chosen or None] if isinstance(chosen, int) else tuple(chosen)

    def cloze_weights(self, relation: Relation, clozes: int) -> Sequence[float]:
        """Their weights; none where all count alike. InputError when they are not as many."""
        weights = _entry(self.weights, relation, ())
        if weights and (len(weights) != clozes or min(weights) < 0 or not sum(weights)):
            raise InputError(
                f"probe.weights of {relation.name} are {list(weights)}: give {clozes} numbers of at least 0"
            )
        return weights

    def most(self, relation: Relation) -> int:
        """Answers of one cloze."""
        return _entry(self.top_k, relation, 100) if isinstance(self.top_k, Mapping) else self.top_k

    def least(self, relation: Relation) -> float:
        """The least probability of an answer."""
        return _entry(self.floor, relation, 0.0) if isinstance(self.floor, Mapping) else self.floor

    def _one_of(self, name: str, options: Sequence[str]) -> None:
        value = getattr(self, name)
        if value not in options:
            raise InputError(f"probe.{name} is {value!r}: {did_you_mean(str(value), options)}")


def _entry(table: Mapping[str, Value], relation: Relation, default: Value) -> Value:
    return next((table[name] for name in (relation.name, *relation.names) if name in table), default)
