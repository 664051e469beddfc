"""Inputs of a build: all that its facts depend on, besides its subjects."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from lmkbc.files.arrays import key
from lmkbc.plan import Plan
from lmkbc.relation import Relation


def inputs_of(plan: Plan, provenance: Mapping[str, Any], relations: Mapping[str, Relation]) -> dict[str, Any]:
    """Return the inputs, besides the subjects, that facts depend on: prompts, models and selection."""
    asked = {relation.name: msgspec.to_builtins(relation, order="deterministic") for relation in relations.values()}
    for table in asked.values():
        if not table["language"]:  # bases of before know no such field
            del table["language"]
    run, servers = plan.run, plan.served
    return {
        "edition": run.edition.name,
        "title": run.edition.title,
        **plan.about,
        **({} if run.learn_from in (None, ("train",)) else {"learn_from": run.learn_from}),
        **({"served": servers} if servers else {}),
        "selection": provenance,
        "thresholds": provenance.get("file_sha256"),
        "relations": {name: key(table) for name, table in asked.items()},
        "files": plan.inputs,
    }
