"""A recipe's table `probe`: how a masked LM is asked clozes (not the benchmarks in `lmkbc.probe`)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Literal

from lmkbc.errors import did_you_mean, refuse
from lmkbc.generate.masked.ensemble import Ensemble
from lmkbc.models.masked.clozes import check_template
from lmkbc.models.masked.forward import Match, Precision
from lmkbc.relation import Precondition, Relation

WHOLE = "all"


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeSettings:
    """Settings of a masked generator, per relation: its clozes, and the use of their answers.

    Tables have relations as keys, in any spelling, and "*" for all that they do not name.

    clozes: how many of the relation's own and then of its paraphrases, 0 for all of its own, or a table of numbers and
    of other ones. soft_prompts: those trained beside the model go before all clozes. ensemble: how clozes are merged.
    top_k: answers of one cloze; min_prob: what each must score more than; numbers, or tables of them. vocabulary: "all"
    words of the model, the objects of "train", or a list of names. softmax: over "all" tokens or the "subset" that is
    the vocabulary. match: see `Forward`. preconditions: ask those that the relation declares first, or a table of
    others (one that rewrites clozes replaces all others).

    clean: bring answers into the relation's shape. variants: a table of words and what they stand for. stems: how many
    first letters tell the names of the relation's closed list. name_words: ask the words of the subject's name too, and
    propose an object that one of them names with this score. digits: a number is written in digits alone. maximum: a
    table of the largest numbers that may be answered. null: the word that stands for no object. rescale: after
    cleaning, give the answers that remain the mass of all.

    objects: how those of several tokens are found: not at all ("token"), or as new tokens for train's or the listed
    names ("expand"). compose: a new token's vector is the "mean" of its pieces', or weighted by inverse "frequency"
    (Yang et al. 2023), or, where the file `vectors` has the name, that vector mapped onto the model's space (see
    `entity_space`).
    """

    clozes: int | Mapping[str, int | Sequence[str]] = 0
    soft_prompts: bool = False
    ensemble: Ensemble = "mean"
    top_k: int | Mapping[str, int] = 100
    min_prob: float | Mapping[str, float] = 0.0
    vocabulary: str | Sequence[str] = WHOLE
    softmax: Literal["all", "subset"] = "all"
    match: Match = "product"
    preconditions: bool | Mapping[str, Sequence[Precondition]] = False
    clean: bool = True
    variants: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    stems: Mapping[str, int] = field(default_factory=dict)
    name_words: Mapping[str, float] = field(default_factory=dict)
    digits: bool = False
    maximum: Mapping[str, float] = field(default_factory=dict)
    null: str = ""
    rescale: bool = False
    objects: Literal["token", "expand"] = "token"
    compose: Literal["mean", "frequency"] = "mean"
    vectors: str = ""
    precision: Precision = "fp32"

    def __post_init__(self) -> None:
        """ValueError for a value that makes no sense."""
        refuse(
            (
                isinstance(self.vocabulary, str) and self.vocabulary not in (WHOLE, "train"),
                f"vocabulary is {self.vocabulary!r}: {did_you_mean(str(self.vocabulary), (WHOLE, 'train'))}",
            ),
            *(
                (
                    isinstance(value, int) and value < least,
                    f"{name} is {value}: give a whole number of at least {least}",
                )
                for name, least in (("top_k", 1), ("clozes", 0))
                for value in _values(getattr(self, name))
            ),
            *(
                (not 0 <= value <= 1, f"{name} is {value}: give a number from 0 to 1")
                for name in ("min_prob", "name_words")
                for value in _values(getattr(self, name))
            ),
            (
                self.vectors and self.objects != "expand",
                'vectors has no use without objects = "expand": set both or neither',
            ),
        )
        for templates in _values(self.clozes):
            for template in () if isinstance(templates, int) else templates:
                check_template(template)

    @property
    def by_relation(self) -> dict[str, Mapping[str, Any]]:
        """The settings that are tables with relations as keys, by their names."""
        own = {field.name: getattr(self, field.name) for field in fields(self)}
        return {name: value for name, value in own.items() if isinstance(value, Mapping)}

    def templates(self, relation: Relation) -> tuple[str, ...]:
        """Return the clozes to ask of a relation."""
        chosen: int | Sequence[str] = for_relation(self.clozes, relation, 0)
        if not isinstance(chosen, int):
            return tuple(chosen)
        return (*relation.clozes, *relation.paraphrases)[:chosen] if chosen else relation.clozes

    def preconditions_of(self, relation: Relation) -> Sequence[Precondition]:
        """Return the preconditions that are asked of a relation first."""
        chosen: bool | Sequence[Precondition] = for_relation(self.preconditions, relation, False)
        return chosen if not isinstance(chosen, bool) else relation.preconditions if chosen else ()


def for_relation(setting: Any, relation: Relation, default: Any) -> Any:
    """Return what a setting is for a relation: the table's entry, else that of "*", else the default."""
    return relation.entry(setting, default) if isinstance(setting, Mapping) else setting


def _values(setting: Any) -> Iterable[Any]:
    """Return the values of a table, or the one for all relations."""
    return setting.values() if isinstance(setting, Mapping) else (setting,)
