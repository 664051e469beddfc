"""Verified: another rule on the candidates as verification leaves them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import ClassVar, Literal, get_args

from msgspec import structs

from lmkbc.errors import InputError
from lmkbc.select.rule import Rule
from lmkbc.types import Candidate, CandidateSet, Prediction

Combine = Literal["veto", "product", "mean", "replace"]


@dataclass(frozen=True, kw_only=True)
class Verified(Rule):
    """Let verification's verdicts count, then select as `inner` does; without this rule they count nothing.

    combine: a "veto" drops what is held true with less than `least` (fact probing, Alivanistos et al. 2022); else the
    score becomes its "product" or "mean" with the truth, or is "replace"d by it. What nobody judged stays as it is.
    """

    name: ClassVar[str] = "verified"
    inner: Rule
    combine: Combine = "veto"
    least: float = 0.5

    def __post_init__(self) -> None:
        """Refuse an unknown way to combine."""
        if self.combine not in get_args(Combine):
            known = ", ".join(get_args(Combine))
            raise InputError(f"combine of rule verified is {self.combine!r}: use one of {known}")

    def select(self, candidates: CandidateSet) -> Prediction:
        """What the inner rule selects of the candidates that the verdicts leave."""
        return self.inner.select(judged(candidates, self.combine, self.least))


def judged(candidates: CandidateSet, combine: Combine, least: float = 0.5) -> CandidateSet:
    """The set with each object's score weighed by its verdicts, best first."""
    weighed = _weighed(candidates.candidates, combine, least)
    return replace(candidates, candidates=tuple(sorted(weighed, key=lambda candidate: -candidate.score)))


def _weighed(candidates: Iterable[Candidate], combine: Combine, least: float) -> Iterator[Candidate]:
    for candidate in candidates:
        if candidate.truth is None:
            yield candidate
        elif combine != "veto":
            scores = {
                "product": candidate.score * candidate.truth,
                "mean": (candidate.score + candidate.truth) / 2,
                "replace": candidate.truth,
            }
            yield structs.replace(candidate, score=scores[combine])
        elif candidate.truth >= least:
            yield candidate
