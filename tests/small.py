"""A relation and an edition with the least that they must have, and a part of the bundled edition, for tests."""

import shutil
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

from checkout import ROOT

from lmkbc import Edition, EntityType, Relation

THING = Relation(
    name="thing",
    names=("thing",),
    property="P1",
    subject_type=EntityType("place", "Q1"),
    object_type=EntityType("thing", "Q2"),
    kind="entity",
    may_be_empty=True,
    definition="A thing.",
    clozes=("{subject} has {mask}.",),
    question="What does {subject} have?",
    triple="has",
    statement="{subject} has {object}.",
)


def small_relation(name: str = "thing", **fields: Any) -> Relation:
    """Return a relation of this name. fields: those that differ from THING's."""
    return replace(THING, name=name, **{"names": (name,), **fields})


def small_edition(relations: Iterable[str], **fields: Any) -> Edition:
    """Return an edition of these relations, whose objects are strings."""
    given = {"column": "ObjectEntities", "target": "string", "splits": dict.fromkeys(("train", "val", "test"))}
    return Edition(**{"name": "tiny", "folder": "tiny", "relations": tuple(relations), **given, **fields})


def give_mini(folder: Path, only: str, rows: int | None = None) -> None:
    """Make a workspace with the rows of one relation of the bundled edition, or with all.

    rows: number of the first rows to keep in each split; all if not given.
    """
    shutil.copytree(ROOT / "eval" / "mini", folder / "eval" / "mini")
    (folder / "lmkbc.toml").touch()
    for path in (folder / "eval" / "mini").glob("*.jsonl"):
        kept = [line for line in path.read_text("utf-8").splitlines(True) if only in line]
        path.write_text("".join(kept[:rows]), "utf-8")
