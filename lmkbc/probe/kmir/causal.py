"""KMIR for causal models: each cloze is a text to continue, after solved questions of its type."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Sequence

from lmkbc.errors import InputError
from lmkbc.groups import grouped
from lmkbc.models.base import LanguageModel, Message, Prompt, Sampling
from lmkbc.probe.kmir.files import MASK, Question

BLANK = "___"
ASKS = f"Here {BLANK} stands for"
CLOSING = " .!?\"'"


def sampling(shots: int) -> Sampling:
    """Return greedy sampling to the end of a line, or to the instruction, which small models repeat.

    Without examples, a model does not know that one answer is enough, so a full stop ends it.
    """
    return Sampling(temperature=0.0, max_tokens=24, stop=("\n", f" {ASKS}" if shots else ". "))


def lead(question: Question) -> str:
    """Return the text before the answer: the cloze up to its mask, or the whole cloze with a blank and an instruction.

    InputError for a question without exactly one mask.
    """
    before, *after = question.question.split(MASK)
    if len(after) != 1:
        raise InputError(f"question {question.id!r} needs {MASK} exactly once: {question.question!r}")
    if before.strip() and not after[0].strip(CLOSING):
        return before.rstrip()
    return f"{before}{BLANK}{after[0]} {ASKS}"


def prompts(questions: Sequence[Question], train: Sequence[Question], shots: int, seed: int = 0) -> Iterator[Prompt]:
    """Yield a prompt per question, after `shots` solved questions of its type about other facts.

    InputError if `train` has too few of a type.
    """
    pools = grouped((example.type, example) for example in train)
    drawn = {kind: random.Random(f"{seed} {kind}").sample(pool, len(pool)) for kind, pool in pools.items()}
    for question in questions:
        known = (example for example in drawn.get(question.type, ()) if example.fact != question.fact)
        chosen = [example for example, _ in zip(known, range(shots), strict=False)]
        if len(chosen) < shots:
            raise InputError(
                f"the train file has {len(chosen)} questions of type {question.type!r} on other facts, too few for "
                f"{shots} shots: give more, or say --shots {len(chosen)}"
            )
        solved = "".join(f"{lead(example)} {example.answer[0]}.\n" for example in chosen)
        yield Prompt((Message("user", solved),) if solved else (), (Message("user", lead(question)),), "completion")


def options(question: Question) -> list[str]:
    """Return the choices of a question: true or false, the names that it lists, or []."""
    return ["true", "false"] if question.type == "checking" else list(question.options)


def chosen(model: LanguageModel, questions: Sequence[Question], requests: Sequence[Prompt]) -> dict[int, str]:
    """Return place -> likeliest option, for each question with options; "" if its prompt exceeds the window."""
    places = [place for place, question in enumerate(questions) if options(question)]
    choices = [options(questions[place]) for place in places]
    scored = model.option_scores([requests[place] for place in places], choices)
    return {
        place: max(zip(row, names, strict=True))[1] if row and max(row) > -math.inf else ""
        for place, names, row in zip(places, choices, scored, strict=True)
    }
