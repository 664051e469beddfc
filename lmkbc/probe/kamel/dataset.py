"""KAMEL: facts of 234 Wikidata properties with one to ten objects, read from the published archive or its directory.

Kalo and Fichtel, KAMEL: Knowledge Analysis with Multitoken Entities in Language Models, AKBC 2022.
"""

from __future__ import annotations

import logging
import re
import tarfile
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import msgspec

from lmkbc.errors import InputError
from lmkbc.files import jsonl, reader
from lmkbc.names import folded_key

SPLITS = ("train", "dev", "test")
Split = Literal["train", "dev", "test"]

LAMA = frozenset(
    "P17 P19 P20 P27 P30 P31 P36 P37 P39 P47 P101 P103 P106 P108 P127 P131 P136 P138 P140 P159 P176 P178 P190 P264 "
    "P276 P279 P361 P364 P407 P413 P449 P463 P495 P527 P740 P937 P1001 P1303 P1376 P1412".split()
)
"""The properties that KAMEL shares with LAMA's T-REx (all of its 41 but P530)."""

_LOG = logging.getLogger(__name__)
_MEMBER = re.compile(r"(?:^|/)(P\d+)/(train|dev|test)\.jsonl$")


@dataclass(frozen=True, slots=True)
class KamelAnswer:
    """Gold object: its label (None for literals of the test split) and its alternative spellings."""

    label: str | None
    alternatives: tuple[str, ...] = ()
    chosen: str = ""

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
    """The facts by (property, split) in file order, and the skipped lines as "file, line: reason"."""

    facts: Mapping[tuple[str, str], tuple[KamelFact, ...]]
    skipped: tuple[str, ...] = field(default=())

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
        own = {(fact.property, folded_key(fact.subject)) for fact in asked}
        for name in dict.fromkeys(fact.property for fact in asked):
            for fact in self.of(name, "train"):
                if (name, folded_key(fact.subject)) not in own:
                    yield fact


class _Name(msgspec.Struct, gc=False):
    rdf: str | None = None
    chosen: str | None = None
    alternative: list[str] = []


class _Row(msgspec.Struct, gc=False):
    sub_label: str
    obj_label: list[str | _Name]


def read(path: Path, *, properties: Collection[str] | None = None, splits: Collection[str] = SPLITS) -> Kamel:
    """Read an archive (KAMEL.tar.xz) or a directory with P*/{train,dev,test}.jsonl. properties: None for all.

    A line that is not a query is skipped and reported. InputError if there is nothing to read. For a missing property,
    `of` raises InputError later.
    """
    facts: dict[tuple[str, str], tuple[KamelFact, ...]] = {}
    skipped: list[str] = []
    decoder = msgspec.json.Decoder(_Row)
    for name, split, raw in _members(path):
        if split in splits and (properties is None or name in properties):
            facts[name, split] = tuple(_facts(name, split, raw, decoder, skipped))
    if not facts:
        wanted = f"{', '.join(properties)} of KAMEL" if properties and len(properties) < 4 else "KAMEL's files"
        raise InputError(f"{path} does not hold {wanted}: give KAMEL.tar.xz or the directory that holds P36/test.jsonl")
    return Kamel(facts, tuple(skipped))


def _members(path: Path) -> Iterator[tuple[str, str, bytes]]:
    """Yield (property, split, bytes) of every file. An archive is not unpacked to disk."""
    if not path.exists():
        raise InputError(f"{path} does not exist: give KAMEL.tar.xz or the directory that holds P36/test.jsonl")
    if path.is_dir():
        for file in sorted(path.rglob("P*/*.jsonl")):
            if match := _MEMBER.search(file.as_posix()):
                yield match[1], match[2], reader.whole(file)
        return
    try:
        for name, content in reader.members(path, lambda name: _MEMBER.search(name) is not None):
            if match := _MEMBER.search(name):
                yield match[1], match[2], content
    except (OSError, EOFError, tarfile.TarError) as error:
        raise InputError(f"{path} cannot be read as KAMEL's archive ({error}): give KAMEL.tar.xz or its tree") from None


def _facts(
    name: str, split: str, raw: bytes, decoder: msgspec.json.Decoder[_Row], skipped: list[str]
) -> Iterator[KamelFact]:
    for number, line in jsonl.numbered_lines(raw):
        try:
            row = decoder.decode(line)
        except msgspec.MsgspecError as error:
            skipped.append(f"{name}/{split}.jsonl, line {number}: {error}")
            _LOG.info("skipped %s", skipped[-1])
            continue
        yield KamelFact(name, row.sub_label, tuple(map(_answer, row.obj_label)))


def _answer(given: str | _Name) -> KamelAnswer:
    if isinstance(given, str):
        return KamelAnswer(given, chosen=given)
    return KamelAnswer(given.rdf, tuple(given.alternative), given.chosen or "")
