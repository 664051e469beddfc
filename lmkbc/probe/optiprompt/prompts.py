"""Prompts from files as further methods, such as those that LPAQA and AutoPrompt released."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import msgspec

from lmkbc.errors import InputError
from lmkbc.files.jsonl import read_jsonl
from lmkbc.groups import grouped
from lmkbc.probe.lama.dataset import RelationFacts, as_cloze
from lmkbc.probe.optiprompt.dataset import METHODS

WeightedClozes = tuple[tuple[str, float], ...]
"""Clozes of a relation, each with its weight."""
Prompts = Mapping[str, Mapping[str, WeightedClozes]]
"""Name of a collection -> relation -> its clozes."""


class _Row(msgspec.Struct):
    template: str
    relation: str = ""
    weight: float = 1.0


def read_prompts(given: Sequence[str]) -> dict[str, dict[str, WeightedClozes]]:
    """Read collections of prompts, each given as NAME=PLACE. InputError for a wrong name or prompt.

    PLACE: a JSONL file of {"relation", "template", "weight"}, or a directory with one such file per relation, whose
    name is the relation. A template holds [X] and [Y]. Without weights, all count the same.
    """
    collections: dict[str, dict[str, WeightedClozes]] = {}
    for text in given:
        name, _, place = text.partition("=")
        if not name or not place:
            raise InputError(f"--prompts is {text!r}: give NAME=FILE, a name and its prompts as JSONL")
        if name in collections or name in METHODS:
            raise InputError(f"--prompts names {name!r}, which is another way of asking: give it another name")
        collections[name] = {relation: tuple(clozes) for relation, clozes in grouped(_clozes(Path(place))).items()}
    return collections


def _clozes(place: Path) -> Iterator[tuple[str, tuple[str, float]]]:
    files = sorted(place.glob("*.jsonl")) if place.is_dir() else [place]
    if not files:
        raise InputError(f"{place} holds no file of prompts: name a directory of files such as P36.jsonl")
    for file in files:
        for row in read_jsonl(file, _Row):
            relation = row.relation or (file.stem if place.is_dir() else "")
            if not relation or row.weight < 0:
                raise InputError(f"{file}: template {row.template!r} needs a relation, and a weight of 0 or more")
            yield relation, (as_cloze(row.template, f"{file}: {relation}"), row.weight)


def check_prompts(prompts: Prompts, relations: Sequence[RelationFacts]) -> None:
    """Raise InputError for a collection without a prompt for a relation."""
    for name, collection in prompts.items():
        if lacking := [relation.name for relation in relations if relation.name not in collection]:
            raise InputError(
                f"the prompts of {name} ask nothing about {', '.join(lacking)}: name other relations with --properties"
            )
