"""Function `invented`: how much a model or a system says about names that do not exist."""

from __future__ import annotations

import logging
from contextlib import nullcontext
from typing import TYPE_CHECKING, Annotated, Unpack

from msgspec import Meta

from lmkbc.api.keywords import check_kept, keywords, opened_subset
from lmkbc.errors import OptionError
from lmkbc.models.base import Quantise
from lmkbc.progress import Report, silent
from lmkbc.session.options import (
    HeldOutSplit,
    Inputs,
    OneRelation,
    SelectedRunOptions,
    Selection,
    Servers,
    described,
    settled,
)

if TYPE_CHECKING:
    from lmkbc.probe.benchmark import Findings

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
    selector, how = selector_for(plan, settled(Selection, options))
    log.info("%s: %s", plan.recipe.name, how["how"])
    run = plan.run
    examples = list(subset.rows(run.workspace.examples(run.edition, run.split), lambda row: row.query.relation))
    return silence(plan, selector, examples, subjects, report=progress)
