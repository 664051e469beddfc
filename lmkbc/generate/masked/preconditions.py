"""Asks what a relation declares must be known first, and turns the answers into clozes and vetoes.

Li T. et al. (2022, section 3.2): what kind of place the subject is, put into the cloze, nearly doubles their baseline
on bordering states; whether a person is dead is read from calibrated answers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch

from lmkbc.errors import InputError
from lmkbc.generate.masked.clozes import Clozes
from lmkbc.generate.masked.forward import Forward
from lmkbc.generate.masked.words import Words
from lmkbc.shape import Precondition
from lmkbc.types import Relation

Answers = Mapping[str, float]


def ask(
    precondition: Precondition, subjects: Sequence[str], forward: Forward, clozes: Clozes, words: Words
) -> list[dict[str, float]]:
    """Each subject's answers with probabilities that sum to 1, calibrated where the precondition says how.

    InputError when an answer is no single token of the model.
    """
    ids = [words.single(answer) for answer in precondition.answers]
    for answer, index in zip(precondition.answers, ids, strict=True):
        if index is None:
            raise InputError(
                f"precondition {precondition.cloze!r} compares {answer!r}, which is not one token of "
                f"{forward.backbone.name}: choose another word, or set probe.preconditions = false"
            )
    asked = [*subjects, *([precondition.neutral] if precondition.neutral else [])]
    scores = torch.zeros(len(asked), len(ids))
    for indices, logits in forward.logits(clozes.fill(precondition.cloze, asked), torch.tensor(ids)):
        scores[indices] = logits[:, 0].cpu()
    if precondition.neutral:
        scores = scores[:-1] - scores[-1]  # a quotient of probabilities is a difference of logits
    shares = scores.softmax(dim=1).tolist()
    return [dict(zip(precondition.answers, row, strict=True)) for row in shares]


def rewritten(precondition: Precondition, subject: str, answers: Answers) -> tuple[str, ...]:
    """The clozes for a subject: with the answer that its name holds as a word, else with the best one."""
    said = set(subject.casefold().split())
    best = next((answer for answer in answers if answer in said), max(answers, key=lambda answer: answers[answer]))
    return tuple(cloze.replace("{answer}", best) for cloze in precondition.clozes)


def veto(precondition: Precondition, answers: Answers) -> float:
    """The probability that there is no object."""
    return sum(share for answer, share in answers.items() if answer in precondition.vetoes)


def prepare(
    relation: Relation, subjects: Sequence[str], forward: Forward, clozes: Clozes, words: Words
) -> tuple[list[tuple[str, ...]], list[float]]:
    """Each subject's clozes (none where no precondition rewrites them), and its probability of having no object."""
    templates: list[tuple[str, ...]] = [()] * len(subjects)
    vetoed = [0.0] * len(subjects)
    for precondition in relation.preconditions:
        for index, answers in enumerate(ask(precondition, subjects, forward, clozes, words)):
            if precondition.clozes:
                templates[index] = rewritten(precondition, subjects[index], answers)
            vetoed[index] = 1 - (1 - vetoed[index]) * (1 - veto(precondition, answers))
    return templates, vetoed
