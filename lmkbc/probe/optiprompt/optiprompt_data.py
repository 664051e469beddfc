"""OptiPrompt: manual cloze, soft prompts and fine-tuning, each on a model and on its random controls.

Zhong, Friedman and Chen, Factual Probing Is [MASK], NAACL 2021. A control with random weights can only answer what it
learned from the train facts. Test facts that it answers are easy. Only the score on the other, hard facts shows what a
model knew before.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import msgspec

from lmkbc.errors import InputError
from lmkbc.files.jsonl import read_jsonl
from lmkbc.names import folded_key
from lmkbc.probe.kamel.kamel_data import LAMA, SPLITS
from lmkbc.probe.lama.lama_data import Pair, RelationFacts, as_cloze, is_lama, kamel_clozes, pairs_of, read_kamel
from lmkbc.probe.lama.lama_data import read as read_trex
from lmkbc.types import grouped

MODELS = ("pretrained", "random", "embeddings")
METHODS = ("manual", "soft-5", "soft-10", "soft-manual", "finetune")
_LOG = logging.getLogger(__name__)


def read(
    source: Path, train: Path | None, properties: Collection[str] | None, *, lama: bool = False
) -> list[RelationFacts]:
    """Read LAMA's directory with train/P36/{train,dev}.jsonl for learning and early stopping, or KAMEL.

    properties: None for all. lama: whether to read only LAMA's properties from KAMEL. InputError for LAMA's facts
    without train facts, and for a missing property.
    """
    if not is_lama(source):
        return read_kamel(source, properties, LAMA if lama else None, kamel_clozes(), SPLITS)
    if train is None:
        raise InputError(f"{source} has facts to be tested on only: name those to learn with --train")
    return [
        replace(
            relation,
            train=pairs_of(train / relation.name / "train.jsonl"),
            dev=pairs_of(train / relation.name / "dev.jsonl"),
        )
        for relation in read_trex(source, properties)
    ]


def learnable(
    relations: Iterable[RelationFacts], known: Callable[[str], bool], *, least: int, most: int
) -> list[RelationFacts]:
    """Return the facts that can be learned and tested: the object is one word of the model, and is in a train fact.

    No train or dev fact has a test subject, in any spelling. Relations that are left out are logged. least: fewest
    train facts of a relation; it also needs a dev fact and a fifth as many test facts. most: most facts of each kind.
    """
    apart = [_apart(relation) for relation in relations]
    named = {object_ for relation in apart for _, object_ in relation.train if known(object_)}

    def kept(pairs: Sequence[Pair]) -> tuple[Pair, ...]:
        return tuple(pair for pair in pairs if pair[1] in named)[:most]

    cut = [replace(one, train=kept(one.train), dev=kept(one.dev), facts=kept(one.facts)) for one in apart]
    enough = [one for one in cut if len(one.train) >= least and one.dev and len(one.facts) >= max(least // 5, 1)]
    if left := [one.name for one in apart if one.name not in {kept.name for kept in enough}]:
        _LOG.info("left out, with fewer than %d facts to learn or too few to test: %s", least, ", ".join(left))
    if not enough:
        raise InputError(
            f"no relation keeps {least} facts to learn whose object is one word of the model: "
            "lower --least, or name a model with a larger vocabulary"
        )
    return enough


def _apart(relation: RelationFacts) -> RelationFacts:
    """Return the relation without train and dev facts about its test subjects."""
    tested = {folded_key(subject) for subject, _ in relation.facts}

    def others(pairs: Sequence[Pair]) -> tuple[Pair, ...]:
        return tuple(pair for pair in pairs if folded_key(pair[0]) not in tested)

    return replace(relation, train=others(relation.train), dev=others(relation.dev))


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
    for file in sorted(place.glob("*.jsonl")) if place.is_dir() else [place]:
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
