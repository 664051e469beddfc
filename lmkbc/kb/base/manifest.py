"""Manifest of a knowledge base: its relations, shards and outputs, and its inputs, by hash and never by path."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import quote

import msgspec

from lmkbc.errors import InputError
from lmkbc.files import checksum
from lmkbc.files.atomic import versions
from lmkbc.files.reader import whole
from lmkbc.kb.base.schemas import SCHEMA_VERSION
from lmkbc.names import QID
from lmkbc.relation import EntityType, Relation, RelationNames

MANIFEST, TIMING, UNFINISHED = "manifest.json", "timing.json", "unfinished"
"""Names of a base's manifest, of the file for what differs from run to run, and of an unfinished build's folder."""
SHA256_FIELD = b',\n  "sha256": "%s"\n}\n'
_SHA256_FIELD = re.compile(SHA256_FIELD.replace(b"%s", b"([0-9a-f]{64})") + rb"\Z")
PART = re.compile(r"(?:facts/relation=[^/]+|nothing|missing|removed|entities|subjects|replies)/part-[0-9]{6,}\.parquet")
_PID = re.compile("P[1-9][0-9]{0,11}")
PACKAGES = ("lmkbc", "numpy", "polars", "scikit-learn", "torch", "transformers")
Sha256 = Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{64}$")]
Count = Annotated[int, msgspec.Meta(ge=0)]


def partition(relation: str) -> str:
    """Return the directory of a relation's facts."""
    return f"facts/relation={quote(relation, safe='')}"


class About(msgspec.Struct, frozen=True):
    """Description of a relation, for readers of facts that have no workspace.

    property: of Wikidata; the relation's own name, quoted, if it is of no property. subject, object: nouns for their
    classes. one_object: whether a subject has at most one object. other_side: name of the relation that states the same
    facts from the object's side. tolerance, absolute_tolerance: of numbers and places beside known ones.
    names: its other names, as in files of users.
    """

    property: Annotated[str, msgspec.Meta(pattern=r"^[A-Za-z0-9_.~%-]+\Z")]
    kind: str
    unit: str | None = None
    unit_id: Annotated[str, msgspec.Meta(pattern=f"^{QID}$")] | None = None
    subject: str = ""
    object: str = ""
    definition: str = ""
    one_object: bool = False
    other_side: str = ""
    language: str = ""
    tolerance: float = 0.0
    absolute_tolerance: float = 0.0
    names: tuple[str, ...] = ()

    @classmethod
    def of(cls, relation: Relation) -> About:
        """Return the description of a relation."""
        return cls(
            relation.property if _PID.fullmatch(relation.property) else quote(relation.name, safe=""),
            relation.kind,
            relation.unit,
            relation.unit_id,
            relation.subject_type.noun,
            relation.object_type.noun,
            relation.definition,
            relation.has_one_object(),
            relation.other_side(),
            relation.language,
            relation.tolerance,
            relation.absolute_tolerance,
            relation.names,
        )

    def relation(self) -> Relation:
        """Return a relation by which values are read, of the same kind, unit and language; it asks no question."""
        about = self.definition or self.property
        return Relation(
            name=self.property,
            names=(self.property,),
            property=self.property,
            subject_type=EntityType(self.subject or "thing"),
            object_type=EntityType(self.object or "thing"),
            kind=self.kind,
            may_be_empty=True,
            definition=about,
            clozes=("{subject}: {mask}",),
            question=f"{{subject}}: {re.sub(r'[{}]', ' ', about)}",
            triple=self.property,
            statement="{subject}: {object}",
            functional=self.one_object,
            unit=self.unit,
            language=self.language,
        )

    def is_of_wikidata(self) -> bool:
        """Return whether the relation is of a property of Wikidata."""
        return _PID.fullmatch(self.property) is not None


class Shard(msgspec.Struct, frozen=True, kw_only=True):
    """Record of a shard. number: from 0. queries: number of queries, failed ones included.

    depth: its level, or its round if the base grows by value. facts, nothing, failed, removed, replies: relation ->
    rows. linked, stated_by_labels, quoted: relation -> facts that are linked, that labelled rows state, and that a
    document supports. tokens: relation -> tokens of prompts and replies, stored ones included.
    below_least: relation -> facts that were left out, since their confidence is below the least.
    """

    number: Count
    depth: Count = 0
    queries: Count
    facts: Mapping[str, Count]
    linked: Mapping[str, Count]
    stated_by_labels: Mapping[str, Count] = {}
    quoted: Mapping[str, Count] = {}
    nothing: Mapping[str, Count]
    failed: Mapping[str, Count]
    tokens: Mapping[str, Count] = {}
    below_least: Mapping[str, Count] = {}
    removed: Mapping[str, Count] = {}
    replies: Mapping[str, Count] = {}


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """Content of a manifest. inputs: values that must be equal to resume a build. run: their hash.

    shards: None if the build is not finished. outputs: file below the directory -> SHA-256. additions: what was added
    to the base later, in order. rules: relation -> hash of what decides its facts; {} in a base of an earlier version.
    """

    run: Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{16}$")]
    schema: str
    inputs: Mapping[str, Any]
    relations: Mapping[str, About]
    shards: tuple[Shard, ...] | None = None
    outputs: Mapping[str, Sha256] = {}
    additions: tuple[Mapping[str, Any], ...] = ()
    rules: Mapping[str, str] = {}


def relation_names(relations: Mapping[str, About]) -> RelationNames:
    """Return the lookup of the relations of a base by any of their names."""
    return RelationNames({name: (*about.names, about.property) for name, about in relations.items()})


def started(inputs: Mapping[str, Any], relations: Mapping[str, Relation]) -> dict[str, Any]:
    """Return the manifest before the first query. inputs: all that the facts depend on; their hash is the run's id."""
    inputs = {"schema": SCHEMA_VERSION, **json.loads(json.dumps(inputs, default=dict))}
    return {
        "run": checksum.sha256(msgspec.json.encode(inputs, order="deterministic"))[:16],
        "schema": SCHEMA_VERSION,
        "inputs": inputs,
        "relations": {relation.name: msgspec.to_builtins(About.of(relation)) for relation in relations.values()},
        "versions": versions(*PACKAGES),
    }


def written(manifest: Mapping[str, Any]) -> bytes:
    """Return the bytes of a manifest's file. The last field is the SHA-256 of everything before it."""
    content = json.dumps(manifest, ensure_ascii=False, indent=2).encode("utf-8", "backslashreplace")
    return content.removesuffix(b"\n}") + SHA256_FIELD % checksum.sha256(content).encode()


def read_manifest(path: Path) -> Manifest | None:
    """Read a manifest; None if there is none. InputError if it is damaged, or is another kind of file."""
    if not path.exists():
        return None
    content = whole(path)
    try:
        if field := _SHA256_FIELD.search(content):
            content = content[: field.start()] + b"\n}"
            if checksum.sha256(content) != field[1].decode():
                raise ValueError("its SHA-256 is another")
        return msgspec.json.decode(content, type=Manifest)
    except (ValueError, RecursionError) as error:
        raise InputError(
            f"{path} is no manifest of a build, or is damaged ({error}): build into a new directory"
        ) from None


def differing(mine: Mapping[str, Any], theirs: Mapping[str, Any]) -> str:
    """Return the name of the first input in which two builds differ."""
    for name in [*mine, *theirs]:
        if mine.get(name) != theirs.get(name):
            if isinstance(mine.get(name), Mapping) and isinstance(theirs.get(name), Mapping):
                return f"{name}: {differing(mine[name], theirs[name])}"
            return name
    return "nothing"


def finished(
    start: Mapping[str, Any], subjects: int, shards: Sequence[Shard], more: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the manifest of a build when every query was asked. more: further fields."""
    tables = {
        name: sum((Counter(getattr(shard, name)) for shard in shards), Counter[str]())
        for name in ("facts", "linked", "stated_by_labels", "quoted", "nothing", "failed", "below_least")
    }
    counts = {"subjects": subjects, "queries": sum(shard.queries for shard in shards)}
    counts |= {name: sum(rows.values()) for name, rows in tables.items()}
    of_each = {name: {table: rows.get(name, 0) for table, rows in tables.items()} for name in start["relations"]}
    return {**start, "counts": counts, "of_relations": of_each, **more, "shards": msgspec.to_builtins(list(shards))}
