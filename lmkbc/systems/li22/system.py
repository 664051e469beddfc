"""Rescale scores; weigh, draw and word the answers to a precondition (Li T. et al., LM-KBC 2022)."""

from __future__ import annotations

import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from lmkbc.errors import refuse
from lmkbc.masked.cloze_settings import RescaledProbe
from lmkbc.relation import Precondition, require


@dataclass(frozen=True, slots=True, kw_only=True)
class WeighedPrecondition(Precondition):
    """A precondition whose answers count more than once, alone or by chance, and that gives the subject a form.

    times: answer -> factor of its probability; 1 if not given.
    decisive: whether only the likeliest answer counts, with probability 1.
    forms: answer -> form of the subject in the clozes, such as "the city of {subject}".
    drawn: whether one is drawn if no answer counts, at random, but always the same for a subject.
    """

    times: Mapping[str, float] = field(default_factory=dict)
    decisive: bool = False
    forms: Mapping[str, str] = field(default_factory=dict)
    drawn: bool = False

    def __post_init__(self) -> None:
        """Raise ValueError, with the name of the field, if a field is inconsistent."""
        Precondition.__post_init__(self)
        for form in self.forms.values():
            require("forms", form, {"subject"})
        refuse(
            (
                not self.times.keys() <= set(self.answers) or not all(number > 0 for number in self.times.values()),
                "times must give answers a number above 0",
            ),
            (
                self.drawn and not (self.is_bounded and self.clozes and self.answers),
                "drawn asks that none may count: give answers, clozes, and top_k or min_prob",
            ),
        )

    def weighed(self, answers: Mapping[str, float], beside: Sequence[Mapping[str, float]]) -> Mapping[str, float]:
        """Return the log-weights of the answers, or the likeliest alone."""
        logs = Precondition.weighed(self, answers, beside)
        logs = {answer: log + math.log(self.times.get(answer, 1.0)) for answer, log in logs.items()}
        return {max(logs, key=logs.__getitem__): 0.0} if self.decisive and logs else logs

    def said(self, subject: str, answers: Mapping[str, float]) -> str | None:
        """Return the answer that rewrites clozes; one is drawn if none counts."""
        answer = Precondition.said(self, subject, answers)
        return random.Random(subject).choice(self.answers) if answer is None and self.drawn else answer

    def form(self, answer: str) -> str:
        """Return the form of the subject for an answer."""
        return self.forms.get(answer, "{subject}")


COMPONENTS = {"li22/precondition": WeighedPrecondition, "li22/probe": RescaledProbe}
