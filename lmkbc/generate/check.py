"""Settings of fact verification: how the model is asked whether a fact holds, and how its answer is read."""

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
    """A question about a fact. ask: over {subject}, {object} and {question}, the relation's own.

    holds: the word that a reply begins with where the fact holds; a reply with another word denies it.
    """

    ask: str
    holds: str = "Yes"

    def __post_init__(self) -> None:
        """ValueError for a question that is not about the object, and for more than a word."""
        check_slots("verify.questions", self.ask, ("subject", "object", "question"))
        refuse(
            ("{object}" not in self.ask, f"verify.questions asks {self.ask!r}: say which object, with {{object}}"),
            (len(self.holds.split()) != 1, f"holds is {self.holds!r}: give one word"),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """Settings of fact verification, as a recipe's plain data.

    variants: how a fact is put: the relation's "statement", its "clozes" (a paraphrase each), its "question" with the
    answer, or in "reverse", where the model names the subject of an object. by: what is read, the probability of the
    two words or the text. words: for true and for false. shots: worked examples, half of them true.
    relations: examples of the fact's "own" relation, or the same for all facts, the first rows of "all" in turn.
    denial: by text, a fact is denied by the "word" for false that a reply begins with; or only by a "reply" that is
    that word and nothing else, and every other reply holds it true.
    facts: relation, by any name, -> worked examples of one's own in place of drawn ones, in their order. bare: a fact
    stands by itself, without the task before the examples and the cue behind it. questions: of one's own, besides the
    variants (which may be none): each is asked by itself, without examples, and its reply read as text.
    aggregation: a fact's score is the "mean" of the variants, or their "votes", the share that holds it true. only: the
    relations that are checked, all if none is named. max_sources: candidates that more sources name are not checked.
    samples: texts per question. temperature: at which they are drawn; if left out, 1 for several and 0 for one. match:
    backwards, the share of the subject's words that a name must hold; 1 takes its own name alone.
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
        """ValueError for a value that makes no sense."""
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
        """The temperature at which texts are drawn."""
        return float(self.samples > 1) if self.temperature is None else self.temperature
