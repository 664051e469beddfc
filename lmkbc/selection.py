"""Which selector a run has: the thresholds that were tuned for what it asks, else its recipe's own rule."""

from __future__ import annotations

from typing import Any

from lmkbc import thresholds
from lmkbc.errors import InputError, OptionError, counted
from lmkbc.files import jsonl
from lmkbc.origin import origin_of
from lmkbc.recipe import Recipe
from lmkbc.run import submission
from lmkbc.run.base import Run
from lmkbc.select.confidence import at_precision, check_precision
from lmkbc.select.rule import PerRelation


def selector_for(
    run: Run, recipe: Recipe, *, any_thresholds: bool = False, untuned: bool = False, precision: float | None = None
) -> tuple[PerRelation, dict[str, Any]]:
    """Return the selector of a run, and where it comes from: the workspace's thresholds, else the recipe's own rule.

    any_thresholds: use those of other models, words or data too. untuned: use none. precision: keep what promises so
    much, and withhold the rest (`at_precision`), in place of what scores best. InputError for thresholds that are of
    others, and for a precision where none were tuned.
    """
    if precision is not None:
        check_precision(precision)
    if any_thresholds and untuned:
        raise OptionError("untuned", "uses no thresholds, and any thresholds are asked for too: give one of the two")
    selector, how = _own_rule(recipe) if untuned else _selector(run, recipe, any_thresholds)
    if precision is None:
        return selector, how
    edition = run.edition.name
    if not selector.curves:
        raise InputError(
            f"--precision needs thresholds of edition {edition} and system {recipe.name}, tuned with confidences: run "
            f"'lmkbc tune --edition {edition} --system {recipe.name}' first"
        )
    sure = at_precision(selector, precision)
    reached = len(sure.reached)
    below = sorted(set(selector.curves) - set(sure.reached))
    promised = f"precision {precision:g}, promised by {reached} of {counted(len(selector.curves), 'relation')}"
    return sure, how | {"how": f"{how['how']}, at {promised}", "precision": precision, "below_precision": below}


def _own_rule(recipe: Recipe) -> tuple[PerRelation, dict[str, Any]]:
    """Return the recipe's own rule."""
    own = ", another for some relations" if recipe.select.rules else ""
    return recipe.select, {"how": f"selected by the recipe's rule {recipe.select.general.name!r}{own}, untuned"}


def _selector(run: Run, recipe: Recipe, any_thresholds: bool) -> tuple[PerRelation, dict[str, Any]]:
    """Return the selector of the thresholds that were tuned for a run, else the recipe's own."""
    edition, folder = run.edition, run.workspace.folder("thresholds")
    origin = origin_of(run, recipe)
    path = next(iter(thresholds.files(folder, edition.name, recipe.name, origin)), None)
    if path is None:
        return _own_rule(recipe)
    tuned = thresholds.read(path, recipe.select)
    name = f"thresholds/{path.relative_to(folder).as_posix()}"
    labelled = {split_sha256(run, split) for split in ("train", edition.held_out)}
    other = tuned.provenance.differs(recipe.name, origin, labelled)
    if other and not any_thresholds:
        raise InputError(
            f"{name} {other}: run lmkbc tune for these answers, give --any-thresholds to use it as it is, or --untuned "
            "for the recipe's own rule"
        )
    unsaid = "" if tuned.provenance.models is not None else "does not say whose answers it was tuned on"
    remark = f", which {other or unsaid}" if other or unsaid else ""
    about = {"how": f"selected by {name}{remark}", **tuned.about, "file_sha256": submission.sha256(path.read_bytes())}
    return tuned.selector, about | ({"differs": other} if other else {})


def split_sha256(run: Run, split: str) -> str:
    """Return the hash of a split's file."""
    return submission.sha256(jsonl.read_bytes(run.workspace.split_path(run.edition, split)))
