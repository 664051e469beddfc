"""Optuna's part: rules with several parameters, searched together, one study per relation.

A study lives in memory, or in a database that several processes share: each adds finished trials until there are
enough, and a killed process loses only the trial it was in.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from typing import Any, get_args

import optuna
from optuna.study import MaxTrialsCallback
from optuna.trial import BaseTrial, FixedTrial, TrialState
from sqlalchemy.exc import SQLAlchemyError

from lmkbc.errors import InputError, LmkbcError
from lmkbc.select.cutoffs import Cutoff, Relative, Sticky
from lmkbc.select.gate import Evidence, NoneGate
from lmkbc.select.quorum import Quorum
from lmkbc.select.ranking import Mask
from lmkbc.select.registry import rule_class
from lmkbc.select.rule import CUT, Choice, Real, Rule, significant
from lmkbc.tune.families import Task, applicable, fit_cutoff

SEARCHED: tuple[type[Rule], ...] = (Cutoff, Relative, Sticky, Quorum)


def open_storage(url: str | None) -> optuna.storages.BaseStorage | None:
    """The database of a URL, None for memory. Only SQLite and PostgreSQL: Optuna's journal file has no locks to trust.

    InputError for another kind or a missing driver, LmkbcError where the database does not answer.
    """
    if url is None:
        return None
    kind, _, rest = url.partition("://")
    drivers = {"sqlite": "sqlite", "postgresql": "postgresql+psycopg", "postgres": "postgresql+psycopg"}
    if not rest or kind.partition("+")[0] not in drivers:
        raise InputError(f"storage {kind!r} is not supported: give sqlite:///FILE or postgresql://USER@HOST/DATABASE")
    try:
        return optuna.storages.RDBStorage(f"{drivers[kind.partition('+')[0]]}://{rest}")
    except ImportError:
        raise InputError("storage needs the PostgreSQL driver: install lmkbc[postgres]") from None
    except SQLAlchemyError as error:  # its text may quote the URL with a password: name the kind only
        raise LmkbcError(f"the {kind} storage does not answer ({type(error).__name__}): check its URL") from None


def close_storage(storage: optuna.storages.BaseStorage | None) -> None:
    """Give its connections back."""
    if isinstance(storage, optuna.storages.RDBStorage):
        storage.remove_session()
        storage.engine.dispose()


def search(
    task: Task, rows: Mask, rules: Sequence[str], *, trials: int, seed: int, name: str, storage: Any = None
) -> tuple[Rule, ...]:
    """Run a study up to `trials` finished trials, over all processes; the rules that it tried, by trial number.

    The exact best cut-off is tried first, so that no result is below it.
    """
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    sampler = optuna.samplers.TPESampler(seed=seed)
    study = optuna.create_study(
        storage=storage, sampler=sampler, study_name=name, direction="maximize", load_if_exists=True
    )
    done = [trial for trial in study.get_trials(deepcopy=False) if trial.state == TrialState.COMPLETE]
    if done:  # a later process must not repeat the draws of the first
        study.sampler = optuna.samplers.TPESampler(seed=seed + len(study.get_trials(deepcopy=False)))
    if len(done) < trials:
        study.enqueue_trial(_as_parameters(fit_cutoff(task, rows)), skip_if_exists=True)
        enough = MaxTrialsCallback(trials, states=(TrialState.COMPLETE,))
        study.optimize(
            lambda trial: float(task.outcomes.f1(suggested(trial, task, rules))[rows].mean()), callbacks=[enough]
        )
    finished = study.get_trials(deepcopy=False, states=(TrialState.COMPLETE,))
    return tuple(suggested(FixedTrial(trial.params), task, rules) for trial in finished)


def searched_rules(task: Task, rules: Sequence[str] | None) -> list[str]:
    """The names of the rules that a search of this relation may propose; none where cut-offs are ruled out."""
    names = [kind.name for kind in SEARCHED if kind.name in set(applicable(task, rules))]
    return names if Cutoff.name in names else []


def suggested(trial: BaseTrial, task: Task, rules: Sequence[str]) -> Rule:
    """The rule that a trial's parameters describe, every number rounded to four digits."""
    kind = rule_class(trial.suggest_categorical("rule", list(rules)))
    parameters: dict[str, Any] = {}
    for parameter, span in kind.search.items():
        label = f"{kind.name}.{parameter}"
        if isinstance(span, Choice):
            parameters[parameter] = trial.suggest_categorical(label, span.options)
        elif isinstance(span, Real):
            parameters[parameter] = significant(trial.suggest_float(label, span.low, span.high, log=span.log))
        else:
            parameters[parameter] = trial.suggest_int(label, span.low, span.high)
    if "least" in {field.name for field in fields(kind)}:
        parameters["least"] = task.least
    rule = kind(**parameters)
    if not task.nullable:
        return rule
    evidence = trial.suggest_categorical("gate", ["open", *get_args(Evidence)])
    if evidence == "open":
        return rule
    threshold = significant(trial.suggest_float("gate.threshold", *CUT[:2], log=CUT.log))
    return NoneGate(inner=rule, threshold=threshold, evidence=evidence)


def _as_parameters(rule: Cutoff) -> dict[str, Any]:
    threshold = min(max(rule.threshold, CUT.low), CUT.high)
    return {"rule": rule.name, f"{rule.name}.threshold": threshold, "gate": "open"}
