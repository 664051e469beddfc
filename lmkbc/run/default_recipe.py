"""The default recipe."""

from __future__ import annotations

from lmkbc.models.located import is_available
from lmkbc.models.packaged import generative
from lmkbc.models.reference import ModelReference
from lmkbc.recipe import Recipe, read_recipe
from lmkbc.workspace import Workspace

DEFAULT, WITHOUT_MODEL = "smollm2-embedded", "embedded"
"""The default recipe, and its replacement if its model is missing."""


def default_recipe(space: Workspace, model: str | None = None) -> tuple[Recipe, str]:
    """Return the default recipe, and a remark for the user, "" for none.

    model: the user's model, None for the recipe's.

    A model that is not on this machine is not downloaded.
    """
    recipe = read_recipe(space, DEFAULT)
    if model:
        return recipe, ""
    parts = [part for spec in recipe.generate for part in spec.whole()]
    models = [part.model for part in parts if isinstance(part, ModelReference) and part.model]
    lacking = [name for name in models if not is_available(name)]
    if not lacking:
        return recipe, ""
    known = generative(lacking[0])
    how = f" ({known.install})" if known else ""
    remark = f"{lacking[0]} is not on this machine{how}: {WITHOUT_MODEL} answers without it"
    return read_recipe(space, WITHOUT_MODEL), remark
