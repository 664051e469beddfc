"""KAMEL's prompts: a question of each property, and solved examples of its train split before it."""

from __future__ import annotations

import hashlib
import random
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from itertools import islice
from pathlib import Path
from typing import Literal, get_args

from lmkbc.errors import InputError, OptionError, did_you_mean
from lmkbc.files import jsonl, packed
from lmkbc.models.base import Message, Prompt
from lmkbc.names import folded_key
from lmkbc.probe.kamel.dataset import Fact
from lmkbc.probe.kamel.score import END, SEPARATOR

Drawing = Literal["random", "fixed"]
PromptForm = Literal["completion", "chat"]
TASK = "Answer each question with names, years or numbers alone, parted by semicolons."
"""What a chat model is told first; a text needs no such words."""

SUBJECT = "{subject}"
_LINE = re.compile(r"\s*(P\d+)\s*[,\t](.*)")
_SLOT = re.compile(r"\{subject\}|\[[SX]\]", re.IGNORECASE)


def questions(path: Path | None = None) -> dict[str, str]:
    """Property -> question with {subject}: ours, or those of a file with lines such as "P36, What is ... [S]?".

    A comma or a tab parts the two. [S], [X] or {subject} stands for the subject; other lines are headers. InputError
    for a question without exactly one place for the subject.
    """
    if path is None:
        raw, name = files("lmkbc.probe.kamel").joinpath("questions.tsv").read_text(encoding="utf-8"), "kamel_questions"
    else:
        raw, name = jsonl.read_bytes(path, packed.DOCUMENT).decode("utf-8", "replace"), str(path)
    prompts = {}
    for number, line in enumerate(raw.splitlines(), start=1):
        if not (row := _LINE.match(line)):
            continue
        question = _SLOT.sub(lambda _: SUBJECT, row[2].strip().strip('"'))
        if question.count(SUBJECT) != 1:
            raise InputError(f"{name}, line {number}: {row[2]!r} needs {{subject}} (or [S], [X]) exactly once")
        prompts[row[1]] = question
    if not prompts:
        raise InputError(f"{name} holds no templates: give lines such as P36,What is the capital of [S]?")
    return prompts


@dataclass(frozen=True, slots=True, kw_only=True)
class Shots:
    """How many examples, and how they are drawn: anew for each query as in the paper, or the same per property.

    Fixed examples make a property's prompts begin alike, so that a local model reads them once.
    """

    count: int = 5
    drawing: Drawing = "random"
    seed: int = 0

    def __post_init__(self) -> None:
        """InputError for numbers and names that make no sense."""
        if self.count < 0:
            raise OptionError("shots", f"is {self.count}: give 0 or more")
        if self.drawing not in get_args(Drawing):
            raise InputError(f"shots are drawn {self.drawing!r}: {did_you_mean(self.drawing, get_args(Drawing))}")


def prompts(
    facts: Sequence[Fact],
    train: Sequence[Fact],
    wording: Mapping[str, str],
    shots: Shots,
    form: PromptForm = "completion",
) -> Iterator[tuple[Fact, Prompt]]:
    """Each fact of one property with its prompt, which ends with the fact's question.

    No example has the query's own subject, however it is spelt. InputError for a property without a question or with
    too few examples.
    """
    if not facts:
        return
    name = facts[0].property
    check_wording([name], wording)
    lessons = [(folded_key(example.subject), example) for example in train]
    fixed = _random(shots.seed, name).sample(lessons, len(lessons)) if shots.drawing == "fixed" else []
    for place, fact in enumerate(facts):
        own = folded_key(fact.subject)
        drawn = fixed or _random(shots.seed, f"{name} {place} {fact.subject}").sample(
            lessons, min(len(lessons), 4 * shots.count + 8)
        )
        chosen = list(islice((example for key, example in drawn if key != own), shots.count))
        if len(chosen) < shots.count:
            raise InputError(f"{name} has {len(train)} train facts, too few for {shots.count} shots: lower --shots")
        yield fact, _prompt(chosen, fact, wording, form)


def check_wording(properties: Iterable[str], wording: Mapping[str, str]) -> None:
    """InputError for a property without a question."""
    lacking = [name for name in properties if name not in wording]
    if lacking:
        more = f" (and {len(lacking) - 1} more)" if lacking[1:] else ""
        raise InputError(f"{lacking[0]}{more} has no question template: add a line for it to the templates file")


def _prompt(chosen: Sequence[Fact], fact: Fact, wording: Mapping[str, str], form: PromptForm) -> Prompt:
    """As in the paper, one text in which `%` ends each answer; or turns of a chat, which end by themselves."""
    own = (Message("user", _question(fact, wording)),)
    if form == "completion":
        solved = "".join(f"{_question(example, wording)} {answered(example)}{END}\n" for example in chosen)
        return Prompt((Message("user", solved),), own, "completion")
    turns = [Message("system", TASK)]
    for example in chosen:
        turns += Message("user", _question(example, wording)), Message("assistant", answered(example))
    return Prompt(tuple(turns), own, "chat")


def answered(fact: Fact) -> str:
    """A fact's objects as an example shows them."""
    return f"{SEPARATOR} ".join(answer.shown for answer in fact.objects)


def _question(fact: Fact, wording: Mapping[str, str]) -> str:
    return wording[fact.property].replace(SUBJECT, fact.subject)


def _random(seed: int, name: str) -> random.Random:
    return random.Random(hashlib.sha256(f"{seed} {name}".encode()).digest())
