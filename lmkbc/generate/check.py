"""Settings of fact verification: the question whether a fact holds, and the reading of its answer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from lmkbc.ask.frames import check_slots
from lmkbc.errors import refuse

Variant = Literal["statement", "clozes", "question", "reverse"]
Fact = tuple[str, str, bool]
"""Subject, object, and whether the fact holds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FactQuestion:
    """A question about a fact.

    ask: template over {subject}, {object} and {question}, the relation's question. holds: first word of a reply if the
    fact holds; any other word denies it.
    """

    ask: str
    holds: str = "Yes"

    def __post_init__(self) -> None:
        """Raise ValueError for a question without the object, and for `holds` with several words."""
        check_slots("verify.questions", self.ask, ("subject", "object", "question"))
        refuse(
            ("{object}" not in self.ask, f"verify.questions asks {self.ask!r}: say which object, with {{object}}"),
            (len(self.holds.split()) != 1, f"holds is {self.holds!r}: give one word"),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """Settings of fact verification, as in a recipe.

    variants: wordings of a fact: the relation's "statement", each of its "clozes", or its "question" with the answer.
    The variant "reverse" asks for the subject of an object.
    by: whether to read the probability of the two words, or the text.
    words: for true and for false.
    shots: number of worked examples, half of them true.
    relations: examples of the fact's "own" relation, or the same examples for all facts, from the first rows of "all"
    relations in turn.
    denial: with by = "text", the replies that deny a fact. The value "word" means all that begin with the word for
    false. The value "reply" means only this word alone; every other reply then affirms the fact.
    facts: relation, by any name -> worked examples to use in order, instead of drawn ones.
    bare: whether to omit the task before the examples and the cue after the fact.
    questions: questions besides the variants, which may be (). Each is asked separately without examples, and its reply
    is read as text.
    aggregation: score of a fact: "mean" of the variants, or "votes", the share of variants that affirm it.
    only: relations to check; () for all.
    max_sources: do not check candidates that more sources name.
    samples: texts per question.
    temperature: of the texts; by default 1 for several samples and 0 for one.
    match: for "reverse", share of the subject's words that a name must contain; 1 requires the same name.
    """

    variants: tuple[Variant, ...] = ("statement",)
    by: Literal["probability", "text"] = "probability"
    words: tuple[str, str] = ("True", "False")
    denial: Literal["word", "reply"] = "word"
    shots: int = 4
    relations: Literal["own", "all"] = "own"
    facts: Mapping[str, tuple[Fact, ...]] = field(default_factory=dict)
    bare: bool = False
    questions: tuple[FactQuestion, ...] = ()
    seed: int = 0
    aggregation: Literal["mean", "votes"] = "mean"
    only: tuple[str, ...] = ()
    max_sources: int | None = None
    samples: int = 1
    temperature: float | None = None
    match: float = 1.0

    def __post_init__(self) -> None:
        """Raise ValueError for a wrong value."""
        refuse(
            (not 0 < self.match <= 1, f"match is {self.match}: give a share of words, above 0 and up to 1"),
            (
                not (self.variants or self.questions)
                or len(set(map(str.casefold, self.words))) < 2
                or not all(self.words),
                "give at least one variant or question, and two different words",
            ),
            (
                self.shots < 0 or self.samples < 1 or (self.temperature or 0.0) < 0,
                "shots and temperature are at least 0, and samples at least 1",
            ),
            (
                self.denial == "reply" and (self.by != "text" or self.samples > 1),
                "denial 'reply' reads the one greedy reply to each fact: use by = 'text' and one sample",
            ),
        )

    @property
    def sampling_temperature(self) -> float:
        """Return the temperature of texts."""
        return float(self.samples > 1) if self.temperature is None else self.temperature
