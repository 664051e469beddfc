"""Manifest of a knowledge base: its inputs, by hash and never by path, and its outputs."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import msgspec

from lmkbc.errors import InputError
from lmkbc.files.arrays import key
from lmkbc.files.atomic import versions
from lmkbc.files.checksum import sha256
from lmkbc.files.reader import whole
from lmkbc.generate.access import served
from lmkbc.kb.build.facts import SCHEMA_VERSION
from lmkbc.models.identity import model_name, portable
from lmkbc.models.reference import ModelReference
from lmkbc.names import QID
from lmkbc.recipe import Recipe
from lmkbc.relation import Kind, Relation
from lmkbc.run.directory import inputs, local_models
from lmkbc.run.run import Run

MANIFEST, TIMING, UNFINISHED = "manifest.json", "timing.json", "unfinished"
"""Names of a base's manifest, of the file for what differs from run to run, and of an unfinished build's folder."""
SHA256_FIELD = b',\n  "sha256": "%s"\n}\n'
_SHA256_FIELD = re.compile(SHA256_FIELD.replace(b"%s", b"([0-9a-f]{64})") + rb"\Z")
PACKAGES = ("lmkbc", "numpy", "polars", "scikit-learn", "torch", "transformers")
Sha256 = Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{64}$")]
Count = Annotated[int, msgspec.Meta(ge=0)]


class About(msgspec.Struct, frozen=True):
    """Description of a relation, for readers of facts that have no workspace."""

    property: Annotated[str, msgspec.Meta(pattern="^P[1-9][0-9]{0,11}$")]
    kind: Kind
    unit: str | None = None
    unit_id: Annotated[str, msgspec.Meta(pattern=f"^{QID}$")] | None = None

    @classmethod
    def of(cls, relation: Relation) -> About:
        """Return the description of a relation."""
        return cls(relation.property, relation.kind, relation.unit, relation.unit_id)


class Shard(msgspec.Struct, frozen=True, kw_only=True):
    """Record of a shard. number: from 0. queries: number of queries, failed ones included.

    depth: its level, or its round if the base grows by value. facts, nothing, failed, removed: relation -> rows.
    linked, stated_by_labels: relation -> facts that are linked, and facts that labelled rows state. tokens: relation ->
    tokens of prompts and replies, stored ones included.
    """

    number: Count
    depth: Count = 0
    queries: Count
    facts: Mapping[str, Count]
    linked: Mapping[str, Count]
    stated_by_labels: Mapping[str, Count] = {}
    nothing: Mapping[str, Count]
    failed: Mapping[str, Count]
    tokens: Mapping[str, Count] = {}
    removed: Mapping[str, Count] = {}


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """Content of a manifest. inputs: values that must be equal to resume a build. run: their hash.

    shards: None if the build is not finished. outputs: file below the directory -> SHA-256.
    """

    run: Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{16}$")]
    schema: str
    inputs: Mapping[str, Any]
    relations: Mapping[str, About]
    shards: tuple[Shard, ...] | None = None
    outputs: Mapping[str, Sha256] = {}


def inputs_of(
    run: Run, recipe: Recipe, provenance: Mapping[str, Any], relations: Mapping[str, Relation]
) -> dict[str, Any]:
    """Return the inputs, besides the subjects, that facts depend on: prompts, models and selection."""
    asked = {one.name: msgspec.to_builtins(one, order="deterministic") for one in relations.values()}
    tables = [spec for table in recipe.generate for spec in table.whole() if isinstance(spec, ModelReference)]
    servers = [name for spec in tables if not run.files and (name := served(spec, run)) is not None]
    return {
        "edition": run.edition.name,
        "system": recipe.name,
        "model": run.model and model_name(run.model),
        **({} if run.learn_from in (None, ("train",)) else {"learn_from": run.learn_from}),
        **({"served": servers} if servers else {}),
        "recipe": portable(recipe.tables),
        "selection": provenance,
        "thresholds": provenance.get("file_sha256"),
        "relations": {name: key(table) for name, table in asked.items()},
        "files": {**dict(inputs(run)), **dict(local_models(run, recipe))},
    }


def started(inputs: Mapping[str, Any], relations: Mapping[str, Relation]) -> dict[str, Any]:
    """Return the manifest before the first query. inputs: all that the facts depend on; their hash is the run's id."""
    inputs = {"schema": SCHEMA_VERSION, **json.loads(json.dumps(inputs, default=dict))}
    return {
        "run": sha256(msgspec.json.encode(inputs, order="deterministic"))[:16],
        "schema": SCHEMA_VERSION,
        "inputs": inputs,
        "relations": {one.name: msgspec.to_builtins(About.of(one)) for one in relations.values()},
        "versions": versions(*PACKAGES),
    }


def written(manifest: Mapping[str, Any]) -> bytes:
    """Return the bytes of a manifest's file. The last field is the SHA-256 of everything before it."""
    content = json.dumps(manifest, ensure_ascii=False, indent=2).encode("utf-8", "backslashreplace")
    return content.removesuffix(b"\n}") + SHA256_FIELD % sha256(content).encode()


def read(path: Path) -> Manifest | None:
    """Read a manifest; None if there is none. InputError if it is damaged, or is another kind of file."""
    if not path.exists():
        return None
    content = whole(path)
    try:
        if field := _SHA256_FIELD.search(content):
            content = content[: field.start()] + b"\n}"
            if sha256(content) != field[1].decode():
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
        for name in ("facts", "linked", "stated_by_labels", "nothing", "failed")
    }
    counts = {"subjects": subjects, "queries": sum(shard.queries for shard in shards)}
    counts |= {name: sum(rows.values()) for name, rows in tables.items()}
    of_each = {name: {table: rows.get(name, 0) for table, rows in tables.items()} for name in start["relations"]}
    return {**start, "counts": counts, "of_relations": of_each, **more, "shards": msgspec.to_builtins(list(shards))}
