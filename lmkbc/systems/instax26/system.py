"""Space examples by value, rescue confirmed names, and veto an abstention by the dead (Instruction Tax, 2026)."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import ClassVar

from lmkbc.answer.formats import AnswerFormat
from lmkbc.ask.examples import Shots
from lmkbc.generate.conversation import Conversation
from lmkbc.generate.language_model import LanguageModelSpec
from lmkbc.models.base import Reply
from lmkbc.names import folded_key
from lmkbc.scoring.matchers import number
from lmkbc.select.rule import Rule
from lmkbc.types import CandidateSet, Example, Nil, Prediction, Query, Source


@dataclass(frozen=True, kw_only=True)
class SpacedShots(Shots):
    """Examples at equal distances along the sorted values, from the smallest on, in an order of the seed's."""

    REPLACES: ClassVar[tuple[str, ...]] = ("spaced",)

    def chosen(self, query: Query, free: Iterable[Example]) -> list[Example]:  # noqa: ARG002
        """Return every n-th example, k of them."""
        sized = ((number(one.names[0]) if one.names else None, one) for one in free)
        known = [(value, one.query.subject, one) for value, one in sized if value is not None]
        ranked = [one for *_, one in sorted(known, key=lambda row: row[:2])]
        kept = ranked[:: max(len(ranked) // max(self.k, 1), 1)][: self.k]
        random.Random(self.seed).shuffle(kept)
        return kept


@dataclass(frozen=True, kw_only=True)
class DeadFormat(AnswerFormat):
    """A word that says whether a person is dead: "yes" where a city of death is known, "no" in place of none."""

    joint: str = "; "
    tolerant: bool = False

    def write(self, objects: Sequence[str]) -> str:
        """Return yes."""
        return "yes" if objects else "no"

    def parts(self, answer: str) -> list[str]:
        """Return the word."""
        return answer.lower().split()[:1]


class Verdicts(Conversation):
    """Reads of the draws how many hold the person dead, and nothing else."""

    def candidates(self, query: Query, parts: Sequence[Sequence[Reply | None]]) -> CandidateSet:
        """Return the share of no among yes and no as the probability of no object."""
        words = [reply.text.lower().split()[:1] for reply in parts[0] if reply and not reply.failed]
        verdicts = [word[0].strip(".,") for word in words if word]
        counts = verdicts.count("yes"), verdicts.count("no")
        if not any(counts):
            return CandidateSet(query, draws=())
        return CandidateSet(query, draws=(), nil_probabilities=(Nil(counts[1] / sum(counts), (Source(self._name),)),))


@dataclass(frozen=True, kw_only=True)
class Dead(LanguageModelSpec):
    """A generator that asks whether somebody is dead."""

    talk: ClassVar[type[Conversation]] = Verdicts


@dataclass(frozen=True, kw_only=True)
class Rescue(Rule):
    """Keep what `inner` keeps, and what a check affirms; of two names of one person, the longer one.

    least: lowest score of a name that the check may add. affirmed: lowest verification score of such a name.
    """

    name: ClassVar[str] = "instax26/rescue"
    inner: Rule
    least: float
    affirmed: float

    @property
    def reads_verification(self) -> bool:
        """Return True."""
        return True

    def select(self, candidates: CandidateSet) -> Prediction:
        """Return the kept and the rescued names."""
        kept = self.inner.select(candidates)
        texts = {one.text for one in kept.objects}
        added = [
            one
            for one in sorted(candidates.candidates, key=lambda one: (-one.score, one.text))
            if one.text not in texts
            and one.score >= self.least - 1e-9
            and one.verification is not None
            and one.verification >= self.affirmed - 1e-9
        ]
        named = [*kept.objects, *([] if kept.failed else added)]
        words = {one.text: folded_key(one.text).split() for one in named}
        whole = tuple(one for one in named if not any(_is_short(words[one.text], words[other.text]) for other in named))
        return Prediction(kept.query, whole, kept.failed)


def _is_short(name: Sequence[str], other: Sequence[str]) -> bool:
    """Return whether a name has another one's first and last word, and some of its words."""
    ends = bool(name) and bool(other) and (name[0], name[-1]) == (other[0], other[-1])
    return ends and set(name) < set(other)


COMPONENTS = {
    "instax26/spaced": SpacedShots,
    "instax26/dead": DeadFormat(),
    "instax26/verdicts": Dead,
    Rescue.name: Rescue,
}
