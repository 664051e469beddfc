"""Optuna's part: the parameters that no sweep finds, because they hang together, one study per relation.

A trial proposes them; the one that is left follows by an exact sweep, on the inner folds that the trial is not scored
on. A study begins with what the families found on their own, and ends early where nothing beats it.

A study lives in memory, or in a database that several processes share: each adds finished trials until there are
enough, and a killed process loses only the trial it was in.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from datetime import datetime
from typing import Any, get_args

import numpy as np
import optuna
from optuna.trial import BaseTrial, FixedTrial, FrozenTrial, TrialState, create_trial
from sqlalchemy.exc import SQLAlchemyError

from lmkbc.errors import InputError, LmkbcError
from lmkbc.select.composed import AbstentionThreshold, Evidence
from lmkbc.select.cutoffs import Cutoff, Quorum, Relative, Sticky
from lmkbc.select.ranking import Floats, Ints, Mask
from lmkbc.select.rule import CUT, Choice, Range, Real, Rule, SweptRule, significant
from lmkbc.tune.defaults import PATIENCE, SEED
from lmkbc.tune.families import UNFITTED, Task, applicable, fit
from lmkbc.tune.sweep import TIE, Curve, ThresholdSteps, gated, swept_steps

SEARCHED: Mapping[str, type[SweptRule]] = {kind.name: kind for kind in (Cutoff, Relative, Sticky, Quorum)}
STARTUP = 10
"""Trials, the first ones included, before the sampler has seen enough to prefer some parameters."""
OPEN = "open"


def open_storage(url: str | None) -> optuna.storages.BaseStorage | None:
    """Open the database of a URL, None for memory. Only SQLite and PostgreSQL: Optuna's journal file has no safe locks.

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


@dataclass(frozen=True, slots=True)
class Joint:
    """Proposal of a trial: a rule whose swept parameter is left open, and perhaps a gate before it."""

    rule: SweptRule
    evidence: Evidence | None = None
    threshold: float = 1.0

    def gate(self, inner: Rule) -> Rule:
        """Return a rule behind the gate."""
        evidence = self.evidence
        return AbstentionThreshold(inner=inner, threshold=self.threshold, evidence=evidence) if evidence else inner

    def steps(self, task: Task) -> ThresholdSteps:
        """Return how F1 depends on the swept parameter."""
        steps = swept_steps(task.outcomes, self.rule)
        gate = self.gate(self.rule)
        if not isinstance(gate, AbstentionThreshold):
            return steps
        return gated(steps, gate.open(task.outcomes.ranking), task.outcomes.empty.astype(float))

    def fit(self, steps: ThresholdSteps, rows: Mask) -> Rule:
        """Return the rule whose swept parameter is the exact best on some queries; `UNFITTED` if there are none."""
        if not rows.any():
            return UNFITTED
        return self.gate(replace(self.rule, **{self.rule.swept: Curve.of(steps, rows).best()[0]}))

    def held_out(self, task: Task, rows: Mask, inner: Ints) -> Floats:
        """Return F1 of each of the queries `rows`, by the rule fitted to those of the other inner folds."""
        steps = self.steps(task)
        return task.held_out(rows, inner, lambda others, _: self.fit(steps, others))


@dataclass(frozen=True)
class Space:
    """Search space of a relation: rules, and evidence for gates before them."""

    task: Task
    kinds: Sequence[str]
    gates: Sequence[Evidence]

    @classmethod
    def of(cls, task: Task, rows: Mask, rules: Sequence[str] | None) -> Space:
        """Return allowed rules whose joint parameters make a difference; gates make the cut-off one of them."""
        allowed = set(applicable(task, rules))
        gates = (
            [evidence for evidence in get_args(Evidence) if _varies(task, rows, evidence)]
            if AbstentionThreshold.name in allowed
            else []
        )
        idle = set() if gates else {name for name, kind in SEARCHED.items() if not kind.joint()}
        if not _spread(task.outcomes.ranking.scores[rows]):
            idle |= {Relative.name, Sticky.name}
        return cls(task, [name for name in SEARCHED if name in allowed - idle], gates)

    def suggest(self, trial: BaseTrial) -> Joint:
        """Return a trial's parameters as a rule and a gate, every number rounded to four digits."""
        kind = SEARCHED[trial.suggest_categorical("rule", list(self.kinds))]
        parameters: dict[str, Any] = {kind.swept: 0.0}
        for name, span in kind.joint().items():
            parameters[name] = _suggested(trial, f"{kind.name}.{name}", span)
        if "min" in {field.name for field in fields(kind)}:
            parameters["min"] = self.task.min_objects
        rule = kind(**parameters)
        gate = trial.suggest_categorical("gate", [OPEN, *self.gates]) if self.gates else OPEN
        if gate == OPEN:
            return Joint(rule)
        evidence = next(known for known in self.gates if known == gate)
        return Joint(rule, evidence, _suggested(trial, "gate.threshold", CUT))

    def known(self, rows: Mask) -> list[dict[str, Any]]:
        """Return trials to begin a study with: the parameters that each family alone was fitted to."""
        opened = {"gate": OPEN} if self.gates else {}
        starts: list[dict[str, Any]] = []
        for name in self.kinds:
            fitted = fit(self.task, name, rows)
            joint = SEARCHED[name].joint().items()
            own = {f"{name}.{parameter}": _within(getattr(fitted, parameter), span) for parameter, span in joint}
            starts.append({"rule": name, **own, **opened})
        if self.gates and isinstance(fitted := fit(self.task, AbstentionThreshold.name, rows), AbstentionThreshold):
            starts.append(
                {"rule": Cutoff.name, "gate": fitted.evidence, "gate.threshold": _within(fitted.threshold, CUT)}
            )
        return starts


def _spread(scores: Floats) -> bool:
    """Return whether some query's candidates differ in score, so that one's may be weighed against another's."""
    return bool(((scores >= 0) & (scores < scores.max(axis=1, initial=-1.0, keepdims=True))).any())


def _varies(task: Task, rows: Mask, evidence: Evidence) -> bool:
    gate = AbstentionThreshold(inner=UNFITTED, threshold=1.0, evidence=evidence)
    return bool(np.ptp(gate.strength(task.outcomes.ranking)[rows]) > 0)


def _suggested(trial: BaseTrial, label: str, span: Range) -> Any:
    if isinstance(span, Choice):
        return trial.suggest_categorical(label, span.options)
    if isinstance(span, Real):
        return significant(trial.suggest_float(label, span.low, span.high, log=span.log))
    return trial.suggest_int(label, span.low, span.high)


def _within(value: Any, span: Range) -> Any:
    return value if isinstance(span, Choice) else min(max(value, span.low), span.high)


def search(
    task: Task,
    rows: Mask,
    inner: Ints,
    rules: Sequence[str] | None,
    *,
    trials: int,
    patience: int = PATIENCE,
    seed: int = SEED,
    name: str,
    storage: Any = None,
) -> dict[Joint, Floats]:
    """Run a study to its end, with all processes that share it: each proposal tried, by trial number, -> held-out F1.

    rows: the training rows, at least one; inner: the fold of each query, (n,). Empty where no rule has parameters that
    hang together.
    """
    space = Space.of(task, rows, rules)
    tried: dict[Joint, Floats] = {}
    if not space.kinds:
        return tried

    def mean(joint: Joint) -> float:
        if joint not in tried:
            tried[joint] = joint.held_out(task, rows, inner)
        return float(tried[joint].mean())

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    study = optuna.create_study(storage=storage, study_name=name, direction="maximize", load_if_exists=True)
    began, known = datetime.now(), space.known(rows)
    while not is_over(done := _complete(study), trials, patience):
        taken = [trial.params for trial in done]
        if (start := next((parameters for parameters in known if parameters not in taken), None)) is not None:
            fixed = FixedTrial(start)
            value = mean(space.suggest(fixed))
            study.add_trial(create_trial(params=fixed.params, distributions=fixed.distributions, value=value))
        else:
            # it heeds finished trials alone, so that a resumed study goes on as it would have; a seed of its own for
            # each trial in progress keeps processes from trying the same
            own = seed + len(done) + _elsewhere(study, began)
            study.sampler = optuna.samplers.TPESampler(seed=own, n_startup_trials=STARTUP, constant_liar=False)
            trial = study.ask()
            study.tell(trial, mean(space.suggest(trial)))
    joints = [space.suggest(FixedTrial(trial.params)) for trial in _complete(study)]
    for joint in joints:
        mean(joint)
    return {joint: tried[joint] for joint in joints}


def is_over(done: Sequence[FrozenTrial], trials: int, patience: int) -> bool:
    """Return whether a study has all its trials, or the last `patience` of them brought no gain."""
    values = np.array([trial.value for trial in done])
    if len(values) in (0, trials) or len(values) > trials:
        return len(values) >= trials
    return len(values) - 1 - int(np.argmax(values >= values.max() - TIE)) >= patience


def _complete(study: optuna.Study) -> list[FrozenTrial]:
    return study.get_trials(deepcopy=False, states=(TrialState.COMPLETE,))


def _elsewhere(study: optuna.Study, began: datetime) -> int:
    """Return how many trials other processes are in; one that a killed process left before this one began is none."""
    running = study.get_trials(deepcopy=False, states=(TrialState.RUNNING,))
    return sum(trial.datetime_start is not None and trial.datetime_start >= began for trial in running)
