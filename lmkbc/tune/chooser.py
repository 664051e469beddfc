"""The selector of a run: tuned rules of the workspace, else the recipe's own, and what options leave of the answers."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import asdict
from typing import Any

from lmkbc.errors import InputError, LmkbcError, OptionError, did_you_mean
from lmkbc.files.checksum import sha256
from lmkbc.plan import Plan, alone
from lmkbc.recipe import check_all_read
from lmkbc.select.calibration import PROMISES, SURE
from lmkbc.select.narrowings import AtPrecision, Narrowing, Unstated, surest
from lmkbc.select.selector import PerRelation
from lmkbc.session.options import BEST, Selection
from lmkbc.tune.tuned_rules import files, named_few, path_of, read, split_sha256


def selector_for(plan: Plan, selection: Selection, asked: Collection[str] = ()) -> tuple[PerRelation, dict[str, Any]]:
    """Return a run's selector, and a description of its origin and of what it leaves out.

    asked: the relations that are described, by the edition's names; all if there are none.

    Raise InputError if the thresholds do not fit, or if a precision is given without tuned thresholds, and LmkbcError
    if no relation reaches it.
    """
    asked = asked or plan.run.relations
    untuned = selection["untuned"]
    if selection["any_thresholds"] and untuned:
        raise OptionError("untuned", "uses no thresholds, and any thresholds are asked for too: give one of the two")
    selector, how = _untuned(plan) if untuned else _tuned(plan, selection["any_thresholds"], asked)
    check_all_read(plan.recipe, selector)
    made = ((option, narrowing(plan, selection, selector, asked)) for option, narrowing in NARROWINGS.items())
    narrowings = {option: one for option, one in made if one is not None}
    for narrowing in narrowings.values():
        how |= {**narrowing.about, "how": f"{how['how']}{narrowing.words}"}
    return selector.narrowed(*narrowings.values()), how | ({"narrowed": [*narrowings]} if narrowings else {})


def _at_precision(
    plan: Plan, selection: Selection, selector: PerRelation, relations: Collection[str]
) -> AtPrecision | None:
    """Return the narrowing to the precision that is asked for. InputError without tuned thresholds."""
    asked, promise = selection["precision"], selection["promise"] or SURE
    if promise not in PROMISES:
        raise OptionError("promise", f"is {promise!r}: {did_you_mean(promise, PROMISES)}")
    if asked is None:
        if selection["promise"]:
            raise OptionError("promise", "says what a precision promises: give --precision too, as in 0.9")
        return None
    curves = selector.curves.get(promise, {})
    if not curves:
        edition, system = plan.run.edition.name, plan.recipe.name
        raise OptionError(
            "precision",
            f"needs thresholds of edition {edition} and system {system}, tuned with confidences: run "
            f"'lmkbc tune --edition {edition} --system {system}' first",
        )
    curves = {name: curve for name, curve in curves.items() if name in relations}
    precision = surest(curves.values(), float(asked.removeprefix(BEST))) if isinstance(asked, str) else asked
    sure = AtPrecision.of(curves, selector.calibration, precision, asked, promise)
    if not sure.reached:
        raise nothing_sure(selector, precision, promise, relations)
    return sure


def _unstated(plan: Plan, *_: object) -> Unstated | None:
    """Return the narrowing of a run that learns from no labelled rows, so that it keeps nothing that they state."""
    return Unstated(plan.run.statements) if plan.run.learn_from == () else None


NARROWINGS: dict[str, Callable[[Plan, Selection, PerRelation, Collection[str]], Narrowing | None]] = {
    "precision": _at_precision,
    "learn_from": _unstated,
}
"""Option -> function that makes its narrowing, None if it is not asked for. Scores of tuning do not hold for these."""


def nothing_sure(selector: PerRelation, precision: float, promise: str, asked: Collection[str]) -> LmkbcError:
    """Return the error that nothing reaches a precision, with the best of each relation and what to give instead."""
    curves = {name: curve for name, curve in selector.curves[promise].items() if name in asked}
    if PROMISES[promise].together and curves:
        curves = {"all relations together": next(iter(curves.values()))}
    best = sorted(
        ((curve.points[-1], name) for name, curve in curves.items() if curve.points),
        key=lambda one: (-one[0].precision, one[1]),
    )
    less = max((one for curve in curves.values() for one in curve.precision if one < precision), default=0.0)
    lower = f"give --precision {less:g}" if less else "tune on more rows, or on better answers"
    if 0 < surest(curves.values(), 0.1) < precision:
        lower += ", or best:0.1 for the surest"
    return LmkbcError(
        f"no object reaches --precision {precision:g}, so nothing was written; {lower}; the best of each relation in "
        "tuning: "
        + (
            "; ".join(f"{name}: {point.precision:.2f} at recall {point.recall:.2f}" for point, name in best)
            or "none promises any precision"
        )
    )


def _untuned(plan: Plan) -> tuple[PerRelation, dict[str, Any]]:
    """Return the selector of a recipe's own rules, with a description."""
    select = plan.recipe.select
    own = ", another for some relations" if select.rules else ""
    numbers = (f"{name} {n:g}" for name, n in select.general.to_table().items() if isinstance(n, int | float))
    rule = f"{select.general.name!r} ({', '.join(numbers)})".removesuffix(" ()")
    return select, {"how": f"selected by the recipe's rule {rule}{own}, untuned"}


def _tuned(plan: Plan, any_thresholds: bool, asked: Collection[str]) -> tuple[PerRelation, dict[str, Any]]:
    """Return the selector of the thresholds tuned for a run, else of the recipe's own rule, with a description."""
    run, recipe, origin, edition = plan.run, plan.recipe, plan.origin, plan.run.edition
    folders = run.workspace.folders("thresholds")
    path = next((path for folder in folders for path in files(folder, edition.name, recipe.name, origin)), None)
    if path is None:
        return _untuned(plan)
    tuned = read(path, alone(recipe.select))
    name = f"thresholds/{edition.name}/{path.name}"
    here = (split for split in ("train", edition.held_out) if run.workspace.has_data(edition, split))
    other = tuned.provenance.differs(recipe.name, origin, {split_sha256(run, split) for split in here})
    if other and not any_thresholds:
        there = path_of(run.workspace.own("thresholds"), edition.name, recipe.name, origin).exists()
        raise InputError(
            f"{name} {other}: run 'lmkbc tune{' --overwrite' * there}' for these answers, give --any-thresholds to use "
            "it as it is, or --untuned for the recipe's own rule"
        )
    remark = f", which {other}" if other else ""
    if own := [one for one in tuned.selector.rules if one in recipe.select.rules and one in asked]:
        remark += f", and not by the recipe's rule for {', '.join(own)}"
    few = {one: rows for one, rows in tuned.few.items() if one in asked}
    remark += f", with few answered rows and rough confidences for {named_few(few)}" if few else ""
    return tuned.selector, {
        "how": f"selected by {name}{remark}",
        **asdict(tuned.provenance),
        "cv_f1_by_relation": dict(tuned.cv_f1),
        "file_sha256": sha256(path.read_bytes()),
        "few": {run.relations[one].name: rows for one, rows in few.items()},
        **({"differs": other} if other else {}),
    }
