"""A recipe's table `probe`: settings of cloze questions to a masked LM (not the benchmarks in `lmkbc.probe`)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Literal

from lmkbc.errors import did_you_mean, refuse
from lmkbc.masked.backbone import check_template
from lmkbc.masked.forward import Match
from lmkbc.relation import FirstCloze, Relation

WHOLE = "all"
TOP_K = 100
"""Answers per cloze if a table does not name the relation."""
Ensemble = Literal["mean", "max", "count"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeSettings:
    """Settings of a masked generator: its clozes, and the use of their answers.

    Tables have relations as keys, in any spelling, and "*" for all others.

    clozes: number of clozes, first the relation's, then its paraphrases; 0 for all of the relation's; or a table of
    numbers and of lists of clozes.
    soft_prompts: whether soft prompts trained beside the model replace the clozes.
    ensemble: how clozes are merged.
    top_k: maximum number of answers per cloze.
    min_prob: lower bound of their probability. Both are numbers or tables.
    vocabulary: "all" words of the model, the objects of "train", or a list of names.
    softmax: over "all" tokens or the "subset" in the vocabulary.
    match: see `Forward`.
    preconditions: whether to ask those of the relation, or a table of others. If several rewrite clozes, the last one
    counts.

    clean: whether to bring answers into the relation's shape.
    variants: table of words and their meanings.
    stems: number of first letters by which names of the relation's closed list are recognised.
    name_words: whether to ask the words of the subject's name too, and the score of an object that one of them names.
    digits: whether numbers must be digits.
    maximum: table of the largest numbers.
    null: word for no object.
    rescale: whether the answers that remain after cleaning get the total probability of all.

    objects: objects of several tokens: excluded ("token"), or added as new tokens for train's or the listed names
    ("expand"). compose: vector of a new token: "mean" of its pieces', or weighted by inverse "frequency" (Yang et al.
    2023). For names in the file `vectors`, it is that vector mapped into the model's space (see `entity_space`).
    """

    clozes: int | Mapping[str, int | Sequence[str]] = 0
    soft_prompts: bool = False
    ensemble: Ensemble = "mean"
    top_k: int | Mapping[str, int] = 100
    min_prob: float | Mapping[str, float] = 0.0
    vocabulary: str | Sequence[str] = WHOLE
    softmax: Literal["all", "subset"] = "all"
    match: Match = "product"
    preconditions: bool | Mapping[str, Sequence[FirstCloze]] = False
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

    def __post_init__(self) -> None:
        """Raise ValueError for a wrong value."""
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
        """Return the settings that are tables with relations as keys, by name."""
        settings = {field.name: getattr(self, field.name) for field in fields(self)}
        return {name: value for name, value in settings.items() if isinstance(value, Mapping)}

    def templates(self, relation: Relation) -> tuple[str, ...]:
        """Return the clozes of a relation."""
        chosen: int | Sequence[str] = for_relation(self.clozes, relation, 0)
        if not isinstance(chosen, int):
            return tuple(chosen)
        return (*relation.clozes, *relation.paraphrases)[:chosen] if chosen else relation.clozes

    def preconditions_of(self, relation: Relation) -> Sequence[FirstCloze]:
        """Return the preconditions that a relation is asked first."""
        chosen: bool | Sequence[FirstCloze] = for_relation(self.preconditions, relation, False)
        return chosen if not isinstance(chosen, bool) else relation.preconditions if chosen else ()


def for_relation(setting: Any, relation: Relation, default: Any) -> Any:
    """Return a setting for a relation: the table's entry, else that of "*", else the default."""
    return relation.entry(setting, default) if isinstance(setting, Mapping) else setting


def _values(setting: Any) -> Iterable[Any]:
    """Return the values of a table, or the single value for all relations."""
    return setting.values() if isinstance(setting, Mapping) else (setting,)
