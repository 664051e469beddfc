"""BEAR: relations of Wikidata with a closed set of options, three templates each, and floors from the other items.

Wiland, Ploner and Akbik, BEAR: A Unified Framework for Evaluating Relational Knowledge in Causal and Masked Language
Models, Findings of NAACL 2024.
"""

from __future__ import annotations

import random
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from lmkbc.errors import InputError
from lmkbc.files import jsonl, reader
from lmkbc.probe.lama.lama_data import as_cloze

PUBLISHED: Mapping[str, float] = {
    "Llama-3-8B": 68.6,
    "Mistral-7B": 65.4,
    "Llama-3-8B-Instruct": 64.1,
    "gemma-7b": 63.7,
    "gemma-2b": 51.5,
    "opt-6.7b": 43.8,
    "SmolLM2-1.7B": 40.9,
    "opt-1.3b": 31.5,
    "SmolLM2-360M": 27.7,
    "gpt2-xl": 26.2,
    "gpt2-large": 22.2,
    "roberta-large": 21.5,
    "SmolLM2-135M": 19.9,
    "bert-large-cased": 19.9,
    "SmolLM-135M": 19.4,
    "gpt2-medium": 19.0,
    "bert-base-cased": 18.4,
    "roberta-base": 16.5,
    "opt-125m": 16.4,
    "gpt2": 13.5,
    "xlm-roberta-base": 11.4,
}
"""Model -> accuracy in percent, mean over the three templates: the leaderboard of the authors' library."""
PUBLISHED_ERRORS: Mapping[str, float] = {"Llama-3-8B": 1.3, "SmolLM2-135M": 1.2, "gpt2": 0.8, "bert-base-cased": 0.4}
"""Model -> its standard error over the templates, where it is known here."""

FOLDS = 10
"""Folds of the floors: an item is answered from the items of other folds."""
_FILE = re.compile(r"(?:^|/)(metadata_relations|relation_info|P\d+)\.jsonl?$")


class _Relation(msgspec.Struct):
    templates: list[str]
    answer_space_labels: list[str]


class _Info(msgspec.Struct):
    domains: list[str] = []


class BearItem(msgspec.Struct, frozen=True):
    """A subject, and the place of its object among the options."""

    sub_label: str
    answer_idx: int


@dataclass(frozen=True, slots=True)
class BearRelation:
    """A relation: clozes with {subject} and {mask}, options, items, and the domains that it belongs to."""

    name: str
    clozes: tuple[str, ...]
    options: tuple[str, ...]
    items: tuple[BearItem, ...]
    domains: tuple[str, ...] = ()

    @property
    def cardinality(self) -> str:
        """Return whether each option belongs to one item."""
        answers = [item.answer_idx for item in self.items]
        return "one item an option" if len(set(answers)) == len(answers) else "several items an option"

    def places(self, limit: int | None) -> list[int]:
        """Return the places of at most `limit` items, spread evenly: the file has them sorted by answer."""
        count = len(self.items)
        return [place * count // limit for place in range(limit)] if limit and limit < count else list(range(count))

    def sentence(self, cloze: str, subject: str, option: str) -> str:
        """Return a sentence that begins with a capital."""
        text = cloze.format(subject=subject, mask=option)
        return text[:1].upper() + text[1:]


def read_bear(path: Path, names: Collection[str] | None = None) -> list[BearRelation]:
    """Read the archive or its tree. names: relations to read; None for all.

    InputError for a missing relation, and for a relation whose files do not belong together.
    """
    files = {match[1]: raw for match, raw in reader.tree(path, _FILE, "BEAR's")}
    metadata = _decoded(path, files.get("metadata_relations", b"{}"), dict[str, _Relation])
    info = _decoded(path, files.get("relation_info", b"{}"), dict[str, _Info])
    wanted = sorted(metadata if names is None else set(names), key=lambda name: (len(name), name))
    if lacking := [name for name in wanted if name not in metadata or name not in files]:
        raise InputError(f"{path} holds no items of {lacking[0]}: give relations that are there, as in P36")
    if not wanted:
        raise InputError(f"{path} does not hold BEAR's files: give BEAR.tar.xz, or the tree of metadata_relations.json")
    relations = [_relation(path, name, metadata[name], files[name], info.get(name, _Info())) for name in wanted]
    counts = {len(relation.clozes): relation.name for relation in relations}
    if len(counts) > 1:
        few, most = min(counts), max(counts)
        raise InputError(
            f"{path}: {counts[few]} has {few} templates and {counts[most]} has {most}, over which averages are made: "
            "give relations with equally many"
        )
    return relations


def _relation(path: Path, name: str, about: _Relation, raw: bytes, info: _Info) -> BearRelation:
    where = f"{path}: {name}"
    items = tuple(jsonl.decoded(path, raw, msgspec.json.Decoder(BearItem)))
    if not items or not about.templates:
        raise InputError(f"{where} has no items or no templates: unpack the archive again")
    if wrong := [item for item in items if not 0 <= item.answer_idx < len(about.answer_space_labels)]:
        raise InputError(
            f"{where} has no option {wrong[0].answer_idx}: its items and its options do not belong together"
        )
    clozes = tuple(as_cloze(template, where) for template in about.templates)
    return BearRelation(name, clozes, tuple(about.answer_space_labels), items, tuple(info.domains))


def _decoded(path: Path, raw: bytes, kind: Any) -> Any:
    try:
        return msgspec.json.decode(raw, type=kind)
    except msgspec.MsgspecError as error:
        raise InputError(f"{path}: the metadata cannot be read ({error}): unpack or fetch the archive again") from None


FLOORS = ("chance", "class prior", "naive Bayes")


def floors(relation: BearRelation, places: Sequence[int]) -> dict[str, list[float]]:
    """Return floor -> the probability that it answers each item right, without a model.

    The class prior and naive Bayes learn from the items of other folds that are about other subjects.
    """
    from lmkbc.train.random_controls import LearnedControls

    order = list(range(len(relation.items)))
    random.Random(relation.name).shuffle(order)
    folds = {place: number % FOLDS for number, place in enumerate(order)}
    right: dict[str, dict[int, float]] = {name: {} for name in FLOORS}
    for fold in range(FOLDS):
        asked = [place for place in places if folds[place] == fold]
        tested = {relation.items[place].sub_label for place in asked}
        others = (item for place, item in enumerate(relation.items) if folds[place] != fold)
        taught = [
            (item.sub_label, "", relation.options[item.answer_idx]) for item in others if item.sub_label not in tested
        ]
        controls = LearnedControls(taught)
        for place in asked:
            item = relation.items[place]
            gold = relation.options[item.answer_idx]
            right["chance"][place] = 1 / len(relation.options)
            right["class prior"][place] = controls.majority("", "") == gold
            right["naive Bayes"][place] = controls.naive_bayes(item.sub_label, "") == gold
    return {name: [by_place[place] for place in places] for name, by_place in right.items()}
