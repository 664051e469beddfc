"""Functions `invented` and `controls`: what is said about names that do not exist, and what train alone answers."""

from __future__ import annotations

import logging
from contextlib import nullcontext
from typing import TYPE_CHECKING, Annotated, NamedTuple, Unpack

from msgspec import Meta

from lmkbc.commands.keywords import check_kept, keywords, opened_subset
from lmkbc.errors import OptionError
from lmkbc.models.base import Quantise
from lmkbc.progress import Report, silent
from lmkbc.session.options import (
    Folds,
    HeldOutSplit,
    Inputs,
    Limit,
    OneRelation,
    RunOptions,
    SelectedRunOptions,
    Selection,
    Servers,
    Trials,
    described,
    settled,
)
from lmkbc.tune.tuning_set import FOLDS, SEED, TRIALS, TuningOptions

if TYPE_CHECKING:
    from lmkbc.edition import Edition
    from lmkbc.probe.benchmark import Findings
    from lmkbc.probe.controls import Controls

log = logging.getLogger("lmkbc")

OF_MODELS = ("model", "backend", "offline", *described(Servers))
"""Options that a model without a system has too."""


@keywords
def invented(
    split: HeldOutSplit = None,
    *,
    relation: OneRelation = None,
    subjects: Annotated[int, Meta(ge=1, description="Names of each kind, or subjects of each relation and kind.")] = 20,
    quantise: Annotated[
        Quantise, Meta(description="Weights of a local model asked without a system: all bits (none), 8bit or 4bit.")
    ] = "none",
    progress: Report = silent,
    **options: Unpack[SelectedRunOptions],
) -> Findings:
    """Count what a model says about invented and real names, or what a system answers. InputError for wrong input."""
    from lmkbc.probe.benchmark import BenchmarkRun, opened
    from lmkbc.probe.invented import free_triples, silence
    from lmkbc.tune.chooser import selector_for

    model = None if options.get("system") or options.get("edition") else options.get("model")
    if quantise != "none" and (options.get("base_url") or not model):
        raise OptionError("quantise", "is for a model of this machine, and for no system: leave it out")
    if model:
        others = {"split": split, "relation": relation, **options}
        if of_systems := [name for name, value in others.items() if value and name not in OF_MODELS]:
            raise OptionError(
                of_systems[0], "is of a system, and only a model is asked: name one with --system or --edition"
            )
        inputs = settled(Inputs, options)
        asked = BenchmarkRun(
            backend=inputs["backend"],
            offline=inputs["offline"],
            servers=settled(Servers, options),
            note=log.info,
            progress=lambda: nullcontext(progress),
        )
        return free_triples(opened(model, asked, quantise), subjects, asked)
    plan, subset = opened_subset(options, split, relation, None)
    check_kept(plan, "probe invented")
    selector, how = selector_for(plan, settled(Selection, options), subset.relations)
    log.info("%s: %s", plan.recipe.name, how["how"])
    run = plan.run
    examples = list(subset.rows(run.workspace.examples(run.edition, run.split), lambda row: row.query.relation))
    return silence(plan, selector, examples, subjects, report=progress)


class ControlScores(NamedTuple):
    """The scores of a system and of controls on a split."""

    table: Controls
    edition: Edition
    split: str


@keywords
def controls(
    split: HeldOutSplit = None,
    *,
    relation: OneRelation = None,
    limit: Limit = None,
    tuned: Annotated[
        bool,
        Meta(
            description="Tune selection and score out of fold, or use the recipes' rules.",
            extra={"flags": ("--tune/--no-tune",)},
        ),
    ] = True,
    trials: Trials = TRIALS,
    folds: Folds = FOLDS,
    seed: Annotated[int, Meta(description="Seed of folds, search and random weights.")] = SEED,
    random: Annotated[
        bool,
        Meta(description="Ask the same recipe on random weights too.", extra={"flags": ("--random/--no-random",)}),
    ] = True,
    progress: Report = silent,
    **options: Unpack[RunOptions],
) -> ControlScores:
    """Score a system beside controls that learn from the train split alone. InputError for wrong input."""
    from lmkbc.probe.controls import controls as run_controls

    how = TuningOptions(trials=trials, folds=folds, seed=seed)
    unread = () if tuned else ("trials", "folds") if random else ("trials", "folds", "seed")
    for name in unread:
        if getattr(how, name) != getattr(TuningOptions(), name):
            raise OptionError(name, "is of tuning, which is left out: leave it out too")
    plan, subset = opened_subset(options, split, relation, limit)
    check_kept(plan, "probe controls")
    run, recipe = plan.run, plan.recipe
    examples = list(subset.rows(run.workspace.examples(run.edition, run.split), lambda row: row.query.relation))
    table = run_controls(run, recipe, examples, how if tuned else None, random=random, seed=seed, report=progress)
    return ControlScores(table, run.edition, run.split)
