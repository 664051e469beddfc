"""Preconditions: clozes about the type of a subject that are asked first, and their results as clozes and vetoes.

In Li T. et al. (2022, section 3.2), the kind of place is inserted into the cloze, which nearly doubles their baseline
on bordering states. Calibrated answers show whether a person is dead. In Fang et al. (2022), the most probable country
is inserted into the cloze, and a person is dead if "died" is among the answers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import torch

from lmkbc.errors import InputError
from lmkbc.masked.backbone import Clozes
from lmkbc.masked.forward import Forward
from lmkbc.masked.vocabulary import Words
from lmkbc.relation import FirstCloze

Answers = Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Prepared:
    """Results about a subject: its clozes, () for the usual clozes, and the probability of no object."""

    clozes: tuple[str, ...] = ()
    vetoed: float = 0.0


class Asker:
    """Asks preconditions of one model. named: function from a Wikidata class to the names of its entities in train."""

    def __init__(self, forward: Forward, clozes: Clozes, words: Words, named: Callable[[str], Sequence[str]]) -> None:
        self._forward, self._clozes, self._words, self._named = forward, clozes, words, named

    def prepare(self, preconditions: Sequence[FirstCloze], subjects: Sequence[str]) -> list[Prepared]:
        """Return each subject's clozes and veto after all preconditions; the last one that rewrites clozes counts."""
        prepared = [Prepared()] * len(subjects)
        for precondition in preconditions:
            for index, answers in enumerate(self.answers(precondition, subjects)):
                before = prepared[index]
                clozes = rewritten(precondition, subjects[index], answers) or before.clozes
                prepared[index] = Prepared(clozes, 1 - (1 - before.vetoed) * (1 - veto(precondition, answers)))
        return prepared

    def answers(self, precondition: FirstCloze, subjects: Sequence[str]) -> list[dict[str, float]]:
        """Return each subject's answers that count, with probabilities that sum to 1, calibrated if declared.

        Raise InputError if a declared answer is not a single token of the model.
        """
        ids = self._ids(precondition)
        columns = torch.tensor(list(ids.values()), dtype=torch.int64)
        asked = [*subjects, *precondition.beside]
        logs, counts = torch.zeros(len(asked), len(ids)), torch.zeros(len(asked), len(ids), dtype=torch.bool)
        least = math.log(precondition.min_prob) if precondition.min_prob else -math.inf
        for indices, logits in self._forward.logits(self._clozes.fill(precondition.cloze, asked)):
            every = logits[:, 0].log_softmax(dim=-1).cpu()
            logs[indices] = every[:, columns]
            counts[indices] = logs[indices] > least
            if 0 < precondition.top_k < every.shape[-1]:
                counts[indices] &= logs[indices] >= every.topk(precondition.top_k).values[:, -1:]
        every_answer = [dict(zip(ids, row, strict=True)) for row in logs.tolist()]
        counted = [
            {answer: row[answer] for answer, its in zip(ids, mine, strict=True) if its}
            for row, mine in zip(every_answer, counts.tolist(), strict=True)
        ]
        beside = every_answer[len(subjects) :]
        return [_shares(precondition.weighed(row, beside)) for row in counted[: len(subjects)]]

    def _ids(self, precondition: FirstCloze) -> dict[str, int]:
        """Return the vocabulary id of each answer; for names of train, only of single tokens."""
        known = {answer: self._words.single(answer) for answer in precondition.words(self._named)}
        for answer in precondition.answers:
            if known[answer] is None:
                raise InputError(
                    f"precondition {precondition.cloze!r} compares {answer!r}, which is not one token of "
                    f"{self._forward.backbone.name}: choose another word, or set probe.preconditions = false"
                )
        return {answer: index for answer, index in known.items() if index is not None}


def _shares(logs: Answers) -> dict[str, float]:
    """Return shares that sum to 1 of log-weights."""
    highest = max(logs.values(), default=0.0)
    weights = {answer: math.exp(log - highest) for answer, log in logs.items()}
    return {answer: weight / math.fsum(weights.values()) for answer, weight in weights.items()}


def rewritten(precondition: FirstCloze, subject: str, answers: Answers) -> tuple[str, ...]:
    """Return the clozes for a subject with the answer that rewrites them; () if there is none."""
    answer = precondition.said(subject, answers)
    if answer is None:
        return ()
    form = precondition.form(answer)
    return tuple(cloze.replace("{answer}", answer).replace("{subject}", form) for cloze in precondition.clozes)


def veto(precondition: FirstCloze, answers: Answers) -> float:
    """Return the probability that there is no object."""
    return sum(share for answer, share in (answers or {"": 1.0}).items() if answer in precondition.vetoes)
