"""Inputs of a build: all that its facts depend on, besides its subjects."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from lmkbc.files.arrays import key
from lmkbc.generate.access import served
from lmkbc.models.identity import model_name, portable
from lmkbc.models.reference import ModelReference
from lmkbc.recipe import Recipe
from lmkbc.relation import Relation
from lmkbc.run.directory import inputs, local_models
from lmkbc.session.options import EMPTY_TEXTS
from lmkbc.session.run import Run


def inputs_of(
    run: Run, recipe: Recipe, provenance: Mapping[str, Any], relations: Mapping[str, Relation]
) -> dict[str, Any]:
    """Return the inputs, besides the subjects, that facts depend on: prompts, models and selection."""
    asked = {relation.name: msgspec.to_builtins(relation, order="deterministic") for relation in relations.values()}
    for table in asked.values():
        if not table["language"]:  # bases of before know no such field
            del table["language"]
    tables = [spec for table in recipe.generate for spec in table.whole() if isinstance(spec, ModelReference)]
    servers = [name for spec in tables if not run.files and (name := served(spec, run)) is not None]
    return {
        "edition": run.edition.name,
        "title": run.edition.title,
        "system": recipe.name,
        "model": run.model and model_name(run.model),
        **({} if run.learn_from in (None, ("train",)) else {"learn_from": run.learn_from}),
        **({} if run.empty in (None, EMPTY_TEXTS[0]) else {"empty": run.empty}),
        **({"served": servers} if servers else {}),
        "recipe": portable(recipe.tables),
        "selection": provenance,
        "thresholds": provenance.get("file_sha256"),
        "relations": {name: key(table) for name, table in asked.items()},
        "files": {**dict(inputs(run)), **dict(local_models(run, recipe))},
    }
