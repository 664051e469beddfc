"""Choice of a run's selector: the thresholds tuned for its candidates, else the recipe's own rule."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import msgspec

from lmkbc.ask.frames import Frames
from lmkbc.errors import InputError, OptionError, counted
from lmkbc.files.checksum import content_sha256, sha256
from lmkbc.files.places import name_of
from lmkbc.generate.access import served
from lmkbc.generate.recorded_rows import models_in
from lmkbc.generate.replay import shares
from lmkbc.generate.spec import GeneratorSpec
from lmkbc.models.identity import model_name, portable
from lmkbc.models.reference import ModelReference
from lmkbc.recipe import Recipe
from lmkbc.run.run import Run
from lmkbc.select import thresholds
from lmkbc.select.selector import PerRelation, Unstated, at_precision, check_precision
from lmkbc.select.thresholds import Origin

NOT_ASKED = {item.name for item in fields(ModelReference)} - {"component"} | {"executor"}
"""Settings of a generator's table that name a model and how to reach it; they do not change the prompt."""
WORDS = ("question", "triple", "statement", "definition", "clozes")
"""Fields of a relation that prompts contain."""


def selector_for(
    run: Run, recipe: Recipe, *, any_thresholds: bool = False, untuned: bool = False, precision: float | None = None
) -> tuple[PerRelation, dict[str, Any]]:
    """Return a run's selector and a description of its origin: the workspace's thresholds, else the recipe's own rule.

    any_thresholds: whether to accept thresholds tuned for other models, words or data.
    untuned: whether to ignore all thresholds.
    precision: keep what reaches this expected precision and withhold the rest (see `at_precision`), instead of
    maximising F1.

    What labelled rows state is left out if the run learns from none. Raise InputError if the thresholds do not fit, or
    if a precision is given without tuned thresholds.
    """
    if precision is not None:
        check_precision(precision)
    if any_thresholds and untuned:
        raise OptionError("untuned", "uses no thresholds, and any thresholds are asked for too: give one of the two")
    selector, how = own_selector(run, recipe) if untuned else _selector(run, recipe, any_thresholds)
    if precision is not None:
        selector, how = _at_precision(run, recipe, selector, how, precision)
    if run.learn_from == ():
        selector = Unstated.of(selector, run.statements)
        how |= {"how": f"{how['how']}, without what labelled rows state"}
    return selector, how


def _at_precision(
    run: Run, recipe: Recipe, selector: PerRelation, how: dict[str, Any], precision: float
) -> tuple[PerRelation, dict[str, Any]]:
    """Return the selector that promises a precision, with a description. InputError without tuned thresholds."""
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


def own_selector(run: Run, recipe: Recipe) -> tuple[PerRelation, dict[str, Any]]:  # noqa: ARG001
    """Return what a run keeps without thresholds, with a description: the rules of the recipe.

    Tuning learns its rules under this selector, and runs apply them under it.
    """
    own = ", another for some relations" if recipe.select.rules else ""
    return recipe.select, {"how": f"selected by the recipe's rule {recipe.select.general.name!r}{own}, untuned"}


def _selector(run: Run, recipe: Recipe, any_thresholds: bool) -> tuple[PerRelation, dict[str, Any]]:
    """Return the selector of the thresholds tuned for a run, else of the recipe's own rule, with a description."""
    edition, folders = run.edition, run.workspace.folders("thresholds")
    origin = origin_of(run, recipe)
    files = (path for folder in folders for path in thresholds.files(folder, edition.name, recipe.name, origin))
    path = next(files, None)
    if path is None:
        return own_selector(run, recipe)
    tuned = thresholds.read(path, own_selector(run, recipe)[0])
    name = f"thresholds/{edition.name}/{path.name}"
    labelled = {split_sha256(run, split) for split in ("train", edition.held_out)}
    other = tuned.provenance.differs(recipe.name, origin, labelled)
    if other and not any_thresholds:
        raise InputError(
            f"{name} {other}: run lmkbc tune for these answers, give --any-thresholds to use it as it is, or --untuned "
            "for the recipe's own rule"
        )
    remark = f", which {other}" if other else ""
    about = {"how": f"selected by {name}{remark}", **tuned.about, "file_sha256": sha256(path.read_bytes())}
    return tuned.selector, about | ({"differs": other} if other else {})


def split_sha256(run: Run, split: str) -> str:
    """Return the SHA-256 of a split's file."""
    return content_sha256(run.workspace.split_path(run.edition, split))


def origin_of(run: Run, recipe: Recipe) -> Origin:
    """Return the origin of a run's candidates, before any model is asked."""
    models = set[str]()
    asks = False
    for spec, files in zip(recipe.generate, shares(recipe.generate, run.files, run.edition), strict=True):
        asks |= any(_named(run, spec)) or any(part.asks_model for part in spec.whole())
        if spec.reads_files and not spec.asks_model:
            models |= set(_recorded(run, run.files))
        else:
            models |= set(_asked(run, spec) if files is None else _recorded(run, [file.path for file in files]))
    if not asks:
        return Origin(models=tuple(sorted(models)))
    asked = {
        "generate": portable(_worded(recipe.tables["generate"])),
        "relations": {name: {word: getattr(one, word) for word in WORDS} for name, one in run.relations.items()},
    }
    digest = hashlib.sha256(msgspec.json.encode(asked, order="deterministic")).hexdigest()
    return Origin(models=tuple(sorted(models)), wording=recipe.wording, wording_sha256=digest)


def _asked(run: Run, spec: GeneratorSpec) -> Iterator[str]:
    """Yield the models that a generator asks; for a model left to the server, the name that the server reports."""
    for part in spec.whole():
        name = served(part, run) if isinstance(part, ModelReference) else None
        yield from [model_name(name)] if name else _named(run, part)


def _named(run: Run, value: Any) -> Iterator[str]:
    """Yield the models named in a table and in the tables within it; `run.model` (--model) replaces them all."""
    if is_dataclass(value):
        value = {one.name: getattr(value, one.name) for one in fields(value)}
    if isinstance(value, Mapping):
        if "model" in value and (name := run.model or value["model"]):
            yield model_name(str(name))
        for inner in value.values():
            yield from _named(run, inner)
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from _named(run, inner)


def _recorded(run: Run, files: Sequence[Path]) -> Iterator[str]:
    """Yield the models whose answers the files hold. If the rows name none, use the file's name without the split."""
    for path in files:
        yield from models_in(path) or filter(None, [_unsplit(path, {*run.edition.splits, "val", "dev"})])


def _unsplit(path: Path, splits: set[str]) -> str:
    stem = name_of(path).removesuffix(".gz").removesuffix(".jsonl").removesuffix(".candidates")
    return "-".join(word for word in re.split(r"[-_.\s]+", stem) if word.casefold() not in splits)


def _worded(value: Any) -> Any:
    """Return tables without the settings that do not change a prompt. Names of files of frames become their content."""
    if isinstance(value, Mapping):
        return {
            key: Frames.read(inner).tables if key == "frames" and isinstance(inner, str) else _worded(inner)
            for key, inner in value.items()
            if key not in NOT_ASKED
        }
    return [_worded(inner) for inner in value] if isinstance(value, list | tuple) else value
