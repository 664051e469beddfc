"""KAMEL: facts of 234 Wikidata properties with one to ten objects, and the prompts that ask for them.

Kalo and Fichtel, KAMEL: Knowledge Analysis with Multitoken Entities in Language Models, AKBC 2022.
"""

from __future__ import annotations

import hashlib
import logging
import random
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from itertools import islice
from pathlib import Path

import msgspec

from lmkbc.errors import InputError
from lmkbc.files import jsonl, reader
from lmkbc.models.base import Form, Message, Prompt
from lmkbc.names import folded_key

SPLITS = ("train", "dev", "test")

END = "%"
SEPARATOR = ";"
LAMA = frozenset(
    "P17 P19 P20 P27 P30 P31 P36 P37 P39 P47 P101 P103 P106 P108 P127 P131 P136 P138 P140 P159 P176 P178 P190 P264 "
    "P276 P279 P361 P364 P407 P413 P449 P463 P495 P527 P740 P937 P1001 P1303 P1376 P1412".split()
)
"""The properties that KAMEL shares with LAMA's T-REx (all of its 41 but P530)."""

_LOG = logging.getLogger(__name__)
_MEMBER = re.compile(r"(?:^|/)(P\d+)/(train|dev|test)\.jsonl$")


class KamelAnswer(msgspec.Struct, frozen=True, gc=False, rename={"label": "rdf", "alternatives": "alternative"}):
    """Gold object: its label (None for literals of the test split) and its alternative spellings."""

    label: str | None = None
    alternatives: tuple[str, ...] = ()
    chosen: str | None = ""

    @property
    def literal(self) -> bool:
        """Return whether it is a year or a number: without a label in the test split, plain digits in the others."""
        return self.label is None or self.label.isdecimal()

    @property
    def shown(self) -> str:
        """Return the spelling for prompts."""
        return next(iter(self.names), "")

    @property
    def names(self) -> tuple[str, ...]:
        """Return all spellings; the one for prompts is first."""
        return (*filter(None, (self.chosen, self.label)), *self.alternatives)


@dataclass(frozen=True, slots=True)
class KamelFact:
    """Query of KAMEL with its gold objects."""

    property: str
    subject: str
    objects: tuple[KamelAnswer, ...]


@dataclass(frozen=True, slots=True)
class Kamel:
    """The facts by (property, split) in file order."""

    facts: Mapping[tuple[str, str], tuple[KamelFact, ...]]

    @property
    def properties(self) -> list[str]:
        """Return the properties, in numeric order."""
        return sorted({name for name, _ in self.facts}, key=lambda name: int(name[1:]))

    def of(self, name: str, split: str) -> tuple[KamelFact, ...]:
        """Return a property's facts in a split. InputError if there are none."""
        if (name, split) not in self.facts:
            raise InputError(f"KAMEL has no {split} split of {name!r} here: name a property of the archive, as in P36")
        return self.facts[name, split]

    def train_of(self, asked: Sequence[KamelFact]) -> Iterator[KamelFact]:
        """Yield the train facts of the properties of some facts, without facts about the same subjects."""
        tested = {(fact.property, folded_key(fact.subject)) for fact in asked}
        for name in dict.fromkeys(fact.property for fact in asked):
            for fact in self.of(name, "train"):
                if (name, folded_key(fact.subject)) not in tested:
                    yield fact


class _Row(msgspec.Struct, gc=False):
    sub_label: str
    obj_label: list[str | KamelAnswer]


def read_kamel(path: Path, *, properties: Collection[str] | None = None, splits: Collection[str] = SPLITS) -> Kamel:
    """Read an archive (KAMEL.tar.xz) or a directory with P*/{train,dev,test}.jsonl. properties: None for all.

    A line that is not a query is skipped and logged. InputError if there is nothing to read. For a missing property,
    `of` raises InputError later.
    """
    facts: dict[tuple[str, str], tuple[KamelFact, ...]] = {}
    for match, raw in reader.tree(path, _MEMBER, "KAMEL's"):
        name, split = match.groups()
        if split in splits and (properties is None or name in properties):
            facts[name, split] = tuple(_facts(name, split, raw))
    if not facts:
        raise InputError(
            f"{path} does not hold KAMEL's files of these properties: "
            "give KAMEL.tar.xz or the directory that holds P36/test.jsonl"
        )
    return Kamel(facts)


def _facts(name: str, split: str, raw: bytes) -> Iterator[KamelFact]:
    decoder = msgspec.json.Decoder(_Row)
    for number, line in jsonl.numbered_lines(raw):
        try:
            row = decoder.decode(line)
        except msgspec.MsgspecError as error:
            _LOG.info("skipped %s/%s.jsonl, line %d: %s", name, split, number, error)
            continue
        answers = (KamelAnswer(given, chosen=given) if isinstance(given, str) else given for given in row.obj_label)
        yield KamelFact(name, row.sub_label, tuple(answers))


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
        raw, name = reader.whole(path).decode("utf-8", "replace"), str(path)
    prompts = {}
    for number, line in enumerate(raw.splitlines(), start=1):
        if not (row := _LINE.match(line)):
            continue
        question = _SLOT.sub(lambda _: SUBJECT, row[2].strip().strip('"'))
        if question.count(SUBJECT) != 1:
            raise InputError(f"{name}, line {number}: {row[2]!r} needs {{subject}} (or [S], [X]) exactly once")
        prompts[row[1]] = question
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
    with too few examples.
    """
    if not facts:
        return
    name = facts[0].property
    examples = [(folded_key(example.subject), example) for example in train]
    of_all = _random(seed, name).sample(examples, len(examples)) if fixed else []
    for place, fact in enumerate(facts):
        subject_key = folded_key(fact.subject)
        drawn = of_all or _random(seed, f"{name} {place} {fact.subject}").sample(
            examples, min(len(examples), 4 * shots + 8)
        )
        chosen = list(islice((example for key, example in drawn if key != subject_key), shots))
        if len(chosen) < shots:
            raise InputError(f"{name} has {len(train)} train facts, too few for {shots} shots: lower --shots")
        yield fact, _prompt(chosen, fact, wording, form)


def check_wording(properties: Iterable[str], wording: Mapping[str, str]) -> None:
    """Raise InputError for a property without a question."""
    if lacking := [name for name in properties if name not in wording]:
        raise InputError(f"{lacking[0]} has no question template: add a line such as P36,What is in [S]? to the file")


def _prompt(chosen: Sequence[KamelFact], fact: KamelFact, wording: Mapping[str, str], form: Form) -> Prompt:
    """Return the prompt: one text in which `%` ends each answer, as in the paper, or turns of a chat."""
    question = (Message("user", _question(fact, wording)),)
    if form == "completion":
        solved = "".join(f"{_question(example, wording)} {answered(example)}{END}\n" for example in chosen)
        return Prompt((Message("user", solved),), question, "completion")
    turns = [Message("system", TASK)]
    for example in chosen:
        turns += Message("user", _question(example, wording)), Message("assistant", answered(example))
    return Prompt(tuple(turns), question, "chat")


def answered(fact: KamelFact) -> str:
    """Return a fact's objects in the form of an example."""
    return f"{SEPARATOR} ".join(answer.shown for answer in fact.objects)


def _question(fact: KamelFact, wording: Mapping[str, str]) -> str:
    return wording[fact.property].replace(SUBJECT, fact.subject)


def _random(seed: int, name: str) -> random.Random:
    return random.Random(hashlib.sha256(f"{seed} {name}".encode()).digest())
