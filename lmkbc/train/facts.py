"""Facts to train on: challenge train splits, KAMEL's train and silver triples, each with the clozes that word it.

Which of them may be trained on is decided elsewhere: see `held_out`.
"""

from __future__ import annotations

import tarfile
import tomllib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path

import msgspec

from lmkbc.errors import InputError
from lmkbc.files import packed
from lmkbc.files.jsonl import read_jsonl
from lmkbc.relation import Relation
from lmkbc.types import Example, Fact

KAMEL, SILVER = Path("kamel/KAMEL.tar.xz"), Path("silver2023")


class _Answer(msgspec.Struct):
    sub_label: str
    obj_label: list[str]


class _Row(msgspec.Struct):
    SubjectEntity: str
    ObjectEntities: list[str]


@cache
def phrases() -> dict[str, str]:
    """Wikidata property -> the verb phrase between subject and object."""
    return tomllib.loads(Path(__file__).with_name("phrases.toml").read_text(encoding="utf-8"))


def of_examples(examples: Iterable[Example], relations: Mapping[str, Relation]) -> Iterator[Fact]:
    """The facts of a labelled split, worded as the relation's module words them; an id is no text to learn."""
    for example in examples:
        relation = relations[example.query.relation]
        ids = tuple(gold.id or "" for gold in example.objects if gold.name)
        if ids or not example.objects:
            yield Fact(example.query.subject, relation.name, relation.clozes, example.names, ids)


def of_kamel(path: Path, relations: Mapping[str, Relation], split: str = "train") -> Iterator[Fact]:
    """KAMEL's facts (Kalo and Fichtel 2022), from its archive. Its one line that is no JSON is passed over.

    A property of exactly one relation is worded, and named, as that relation's module does.
    """
    modules = defaultdict[str, dict[str, Relation]](dict)
    for module in relations.values():
        modules[module.property][module.name] = module
    for name, raw in members(path, f"/{split}.jsonl"):
        if len(modules[name]) == 1:
            (module,) = modules[name].values()
            called, clozes = module.name, module.clozes
        elif name in phrases():
            called, clozes = name, (f"{{subject}} {phrases()[name]} {{mask}}.",)
        else:
            continue
        for line in raw.splitlines():
            try:
                row = msgspec.json.decode(line, type=_Answer)
            except msgspec.DecodeError:
                continue
            yield Fact(row.sub_label, called, clozes, tuple(row.obj_label), ("",) * len(row.obj_label))


def members(path: Path, ending: str) -> Iterator[tuple[str, bytes]]:
    """Property and content of the archive's files of one split, in their order."""
    try:
        for name, content in packed.members(path, lambda name: name.endswith(ending)):
            yield Path(name).parent.name, content
    except (OSError, EOFError, tarfile.TarError) as error:
        raise InputError(f"{path} cannot be read as KAMEL's archive: {error}; fetch KAMEL.tar.xz again") from error


def of_silver(folder: Path, relations: Mapping[str, Relation]) -> Iterator[Fact]:
    """Distant triples, one JSONL file per relation, named as an edition names it."""
    for path in sorted(folder.glob("*.jsonl.gz")):
        name = path.name.removesuffix(".jsonl.gz")
        if name not in relations:
            raise InputError(f"{path} is named after no relation: rename it to one that 'lmkbc relations list' shows")
        relation = relations[name]
        for row in read_jsonl(path, _Row):
            objects = tuple(dict.fromkeys(text for text in row.ObjectEntities if text and not _is_id(text)))
            if objects:
                yield Fact(row.SubjectEntity, relation.name, relation.clozes, objects, ("",) * len(objects))


def _is_id(text: str) -> bool:
    return text[:1] == "Q" and text[1:].isdigit()
