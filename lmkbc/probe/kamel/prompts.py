"""KAMEL's prompts: a question of each property, after solved examples from its train split."""

from __future__ import annotations

import hashlib
import random
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib.resources import files
from itertools import islice
from pathlib import Path

from lmkbc.errors import InputError
from lmkbc.files.reader import whole
from lmkbc.models.base import Form, Message, Prompt
from lmkbc.names import folded_key
from lmkbc.probe.kamel.dataset import KamelFact
from lmkbc.probe.kamel.score import END, SEPARATOR

TASK = "Answer each question with names, years or numbers alone, parted by semicolons."
"""Instruction for chat models. A completion prompt has none."""

SUBJECT = "{subject}"
_LINE = re.compile(r"\s*(P\d+)\s*[,\t](.*)")
_SLOT = re.compile(r"\{subject\}|\[[SX]\]", re.IGNORECASE)


def questions(path: Path | None = None) -> dict[str, str]:
    """Return property -> question with {subject}: ours, or those of a file with lines such as "P36, What is ... [S]?".

    The separator is a comma or a tab. [S], [X] or {subject} stands for the subject. Other lines are ignored as headers.
    InputError for a question without exactly one place for the subject.
    """
    if path is None:
        raw, name = files("lmkbc.probe.kamel").joinpath("questions.tsv").read_text(encoding="utf-8"), "kamel_questions"
    else:
        raw, name = whole(path).decode("utf-8", "replace"), str(path)
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


def prompts(
    facts: Sequence[KamelFact],
    train: Sequence[KamelFact],
    wording: Mapping[str, str],
    shots: int,
    *,
    fixed: bool = False,
    seed: int = 0,
    form: Form = "completion",
) -> Iterator[tuple[KamelFact, Prompt]]:
    """Yield each fact of one property with its prompt, which ends with the fact's question.

    fixed: whether all queries have the same examples. The paper draws new ones for each query. With fixed examples, a
    local model reads them only once. No example has the query's own subject, in any spelling. InputError for a property
    without a question or with too few examples.
    """
    if not facts:
        return
    name = facts[0].property
    check_wording([name], wording)
    examples = [(folded_key(example.subject), example) for example in train]
    of_all = _random(seed, name).sample(examples, len(examples)) if fixed else []
    for place, fact in enumerate(facts):
        own = folded_key(fact.subject)
        drawn = of_all or _random(seed, f"{name} {place} {fact.subject}").sample(
            examples, min(len(examples), 4 * shots + 8)
        )
        chosen = list(islice((example for key, example in drawn if key != own), shots))
        if len(chosen) < shots:
            raise InputError(f"{name} has {len(train)} train facts, too few for {shots} shots: lower --shots")
        yield fact, _prompt(chosen, fact, wording, form)


def check_wording(properties: Iterable[str], wording: Mapping[str, str]) -> None:
    """Raise InputError for a property without a question."""
    lacking = [name for name in properties if name not in wording]
    if lacking:
        more = f" (and {len(lacking) - 1} more)" if lacking[1:] else ""
        raise InputError(f"{lacking[0]}{more} has no question template: add a line for it to the templates file")


def _prompt(chosen: Sequence[KamelFact], fact: KamelFact, wording: Mapping[str, str], form: Form) -> Prompt:
    """Return the prompt: one text in which `%` ends each answer, as in the paper, or turns of a chat."""
    own = (Message("user", _question(fact, wording)),)
    if form == "completion":
        solved = "".join(f"{_question(example, wording)} {answered(example)}{END}\n" for example in chosen)
        return Prompt((Message("user", solved),), own, "completion")
    turns = [Message("system", TASK)]
    for example in chosen:
        turns += Message("user", _question(example, wording)), Message("assistant", answered(example))
    return Prompt(tuple(turns), own, "chat")


def answered(fact: KamelFact) -> str:
    """Return a fact's objects in the form of an example."""
    return f"{SEPARATOR} ".join(answer.shown for answer in fact.objects)


def _question(fact: KamelFact, wording: Mapping[str, str]) -> str:
    return wording[fact.property].replace(SUBJECT, fact.subject)


def _random(seed: int, name: str) -> random.Random:
    return random.Random(hashlib.sha256(f"{seed} {name}".encode()).digest())
