"""A recipe's table `probe`: settings of cloze questions to a masked LM (not the benchmarks in `lmkbc.probe`)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, ClassVar, Literal, Self

from torch import Tensor

from lmkbc.answer.clean import sifted
from lmkbc.errors import did_you_mean, refuse
from lmkbc.masked.backbone import Backbone, check_template
from lmkbc.masked.forward import Forward, Ids
from lmkbc.relation import FirstCloze, Relation

WHOLE = "all"
TOP_K = 100
"""Answers per cloze if a table does not name the relation."""
Ensemble = Literal["mean", "max", "count"]


@dataclass(frozen=True, kw_only=True)
class ProbeSettings:
    """Settings of a masked generator: its clozes, and the use of their answers.

    Tables have relations as keys, in any spelling, and "*" for all others.

    clozes: number of clozes, first the relation's, then its paraphrases; 0 for all of the relation's; or a table of
    numbers and of lists of clozes.
    ensemble: how clozes are merged.
    top_k: maximum number of answers per cloze.
    min_prob: lower bound of their probability. Both are numbers or tables.
    vocabulary: "all" words of the model, the objects of "train", or a list of names.
    preconditions: whether to ask those of the relation, or a table of others. If several rewrite clozes, the last one
    counts.

    clean: whether to bring answers into the relation's shape.
    null: word for no object.
    """

    clozes: int | Mapping[str, int | Sequence[str]] = 0
    ensemble: Ensemble = "mean"
    top_k: int | Mapping[str, int] = 100
    min_prob: float | Mapping[str, float] = 0.0
    vocabulary: str | Sequence[str] = WHOLE
    preconditions: bool | Mapping[str, Sequence[FirstCloze]] = False
    clean: bool = True
    null: str = ""

    REMOVED: ClassVar[Mapping[str, str]] = {
        "soft_prompts": "soft prompts that lie beside a model are always asked",
    }
    reads_files: ClassVar[bool] = False
    """Whether the files of `--from` are for `opened`."""

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
                for value in values_of(getattr(self, name))
            ),
            *(refuse_share("min_prob", value) for value in values_of(self.min_prob)),
        )
        for templates in values_of(self.clozes):
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

    def check(self, relation: Relation) -> None:
        """Raise InputError if a setting does not suit a relation that is asked."""

    def opened(self, files: Sequence[Path]) -> Self:  # noqa: ARG002 -- for the code of systems, as are those below
        """Return the settings with what the files of `--from` hold."""
        return self

    def prepared(self, backbone: Backbone, names: Collection[str]) -> Backbone:  # noqa: ARG002
        """Return the model that is asked. names: of objects that are known, the word for no object, and listed ones."""
        return backbone

    def forward(self, backbone: Backbone) -> Forward:
        """Return the forward pass."""
        return Forward(backbone)

    def shares(self, forward: Forward, inputs: Sequence[Ids], listed: Tensor) -> Iterator[tuple[list[int], Tensor]]:
        """Yield batches: the indices of b inputs, and the probabilities of the listed words at the first mask, (b, n).

        listed: vocabulary ids, (n,).
        """
        for indices, logits in forward.logits(inputs):
            yield indices, logits[:, 0].softmax(dim=-1)[:, listed.to(logits.device)]

    def subject_words(self, subject: str, relation: Relation) -> tuple[str, ...]:  # noqa: ARG002
        """Return the words of a subject's name that are asked too."""
        return ()

    def named_in(self, subject: str, relation: Relation) -> Mapping[str, float]:  # noqa: ARG002
        """Return the objects that a subject's name says, with their scores."""
        return {}

    def objects_of(self, word: str, relation: Relation) -> tuple[str, ...]:
        """Return the objects for which a word may stand, as an answer to a relation."""
        if word.casefold() in FUNCTION_WORDS and not (word.isupper() and len(word) > 1):
            return ()
        return sifted([word], relation, "")[0]

    def weighed(self, kept: dict[str, float], scores: Mapping[str, float]) -> dict[str, float]:  # noqa: ARG002
        """Return the scores of the objects that are kept. scores: of all answers."""
        return kept


@dataclass(frozen=True, kw_only=True)
class RescaledProbe(ProbeSettings):
    """Clozes of which the answers that remain after cleaning get the total probability of all (Li T. et al. 2022)."""

    REPLACES: ClassVar[tuple[str, ...]] = ("rescale",)

    def weighed(self, kept: dict[str, float], scores: Mapping[str, float]) -> dict[str, float]:
        """Return the scores of the objects that are kept."""
        factor = sum(scores.values()) / sum(kept.values()) if kept else 1.0
        return {name: min(score * factor, 1.0) for name, score in kept.items()}


FUNCTION_WORDS = frozenset(
    """a about above across after again against all along also although always among an and another any anyone anything
    are around as at back be because been before behind being below between both but by came can come could did do does
    done down during each either else ever every everyone everything few for from further get go had has have he her
    here hers herself him himself his how however if in instead into is it its itself just later least less made many
    me more most much my myself near neither never next none nor not now of off often on once only onto or other
    others our ours out over own per same several shall she should since so some someone something still such than that
    the their theirs them themselves then there these they this those though through to together too toward towards
    under until up upon very was we well were what when where whether which while whom whose why with within without
    would yet you your yours""".split()
)
"""English function words, without those that are also names or numbers: who, us, may, will, one."""


def is_number(word: str) -> bool:
    """Return whether a word is a number in digits."""
    return word.isascii() and word.isdecimal()


def for_relation(setting: Any, relation: Relation, default: Any) -> Any:
    """Return a setting for a relation: the table's entry, else that of "*", else the default."""
    return relation.entry(setting, default) if isinstance(setting, Mapping) else setting


def values_of(setting: Any) -> Iterable[Any]:
    """Return the values of a table, or the single value for all relations."""
    return setting.values() if isinstance(setting, Mapping) else (setting,)


def refuse_share(name: str, value: float) -> tuple[bool, str]:
    """Return a check of a number from 0 to 1, for `refuse`."""
    return not 0 <= value <= 1, f"{name} is {value}: give a number from 0 to 1"
