"""Inputs of a build: all that its facts depend on, besides its subjects."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from lmkbc.files.arrays import key
from lmkbc.files.checksum import sha256
from lmkbc.plan import Plan
from lmkbc.relation import Relation
from lmkbc.select.selector import PerRelation


def inputs_of(plan: Plan, provenance: Mapping[str, Any], relations: Mapping[str, Relation]) -> dict[str, Any]:
    """Return the inputs, besides the subjects, that facts depend on: prompts, models and selection."""
    asked = {relation.name: msgspec.to_builtins(relation, order="deterministic") for relation in relations.values()}
    for table in asked.values():
        if not table["language"]:  # bases of before know no such field
            del table["language"]
    run, servers = plan.run, plan.served()
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


def rules_of(selector: PerRelation, relations: Mapping[str, Relation]) -> dict[str, str]:
    """Return relation -> SHA-256 of what decides its facts: its rule, calibration and narrowings.

    relations: relations by their names in queries.
    """
    made = dict[str, str]()
    for own, relation in relations.items():
        narrowings = [narrowing.decides(own) for narrowing in selector.narrowings]
        made[relation.name] = sha256(repr((selector.rule(own), selector.calibration(own), narrowings)).encode())
    return made
