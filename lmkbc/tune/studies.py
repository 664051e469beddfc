"""Optuna search over parameters that depend on each other and that no sweep finds, with one study per relation.

A trial proposes them. The remaining parameter follows from an exact sweep, on inner folds on which the trial is not
scored. A study starts with the results of the single families, and ends early if nothing beats them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, get_args

import numpy as np
import optuna
from optuna.trial import BaseTrial, FixedTrial, FrozenTrial, create_trial

from lmkbc.select.composed import AbstentionThreshold, Evidence
from lmkbc.select.cutoffs import Cutoff, Quorum, Relative, Sticky
from lmkbc.select.ranking import Floats, Ints, Mask
from lmkbc.select.rule import Choice, Range, Real, Rule, SweptRule, significant
from lmkbc.tune.families import UNFITTED, Task, applicable, fit
from lmkbc.tune.outcomes import TIE, Curve, ThresholdSteps, gated, swept_steps
from lmkbc.tune.tuning_set import PATIENCE, TuningOptions

SEARCHED: Mapping[str, type[SweptRule]] = {kind.name: kind for kind in (Cutoff, Relative, Sticky, Quorum)}
STARTUP = 10
"""Trials before the sampler starts to prefer some parameters, those from the families included."""
OPEN = "open"
GATE = AbstentionThreshold.search["threshold"]


@dataclass(frozen=True, slots=True)
class Joint:
    """Proposal of a trial: a rule with its swept parameter left open, optionally with an abstention threshold."""

    rule: SweptRule
    gate: AbstentionThreshold | None = None

    def steps(self, task: Task) -> ThresholdSteps:
        """Return F1 as a step function of the swept parameter."""
        steps = swept_steps(task.outcomes, self.rule)
        if self.gate is None:
            return steps
        return gated(steps, self.gate.open(task.outcomes.ranking), task.outcomes.prefix_f1[:, 0])

    def fit(self, steps: ThresholdSteps, rows: Mask) -> Rule:
        """Return the rule with the exact best swept parameter on some queries; `UNFITTED` if there are none."""
        if not rows.any():
            return UNFITTED
        fitted = replace(self.rule, **{self.rule.swept: Curve.of(steps, rows).best()[0]})
        return replace(self.gate, inner=fitted) if self.gate else fitted

    def held_out(self, task: Task, rows: Mask, inner: Ints) -> Floats:
        """Return the F1 of each query in `rows`, by the rule fitted to the other inner folds."""
        steps = self.steps(task)
        return task.held_out(rows, inner, lambda others, _: self.fit(steps, others))


@dataclass(frozen=True)
class Space:
    """Search space of a relation: rules, and evidence for abstention thresholds around them."""

    task: Task
    kinds: Sequence[str]
    gates: Sequence[Evidence]

    @classmethod
    def of(cls, task: Task, rows: Mask, rules: Sequence[str] | None) -> Space:
        """Return the allowed rules with parameters that matter.

        The cut-off is included if there are abstention thresholds.
        """
        allowed = set(applicable(task, rules))
        gates = (
            [evidence for evidence in get_args(Evidence) if _varies(task, rows, evidence)]
            if AbstentionThreshold.name in allowed
            else []
        )
        idle = set() if gates else {name for name, kind in SEARCHED.items() if not kind.search}
        if not _spread(task.outcomes.ranking.scores[rows]):
            idle |= {Relative.name, Sticky.name}
        return cls(task, [name for name in SEARCHED if name in allowed - idle], gates)

    def suggest(self, trial: BaseTrial) -> Joint:
        """Return a trial's parameters as a rule with its gate; numbers are rounded to four digits."""
        kind = SEARCHED[trial.suggest_categorical("rule", list(self.kinds))]
        parameters: dict[str, Any] = {kind.swept: 0.0}
        for name, span in kind.search.items():
            parameters[name] = _suggested(trial, f"{kind.name}.{name}", span)
        if "min" in {field.name for field in fields(kind)}:
            parameters["min"] = self.task.min_objects
        rule = kind(**parameters)
        gate = trial.suggest_categorical("gate", [OPEN, *self.gates]) if self.gates else OPEN
        if gate == OPEN:
            return Joint(rule)
        evidence = next(known for known in self.gates if known == gate)
        threshold = _suggested(trial, "gate.threshold", GATE)
        return Joint(rule, AbstentionThreshold(inner=rule, threshold=threshold, evidence=evidence))

    def known(self, rows: Mask) -> list[dict[str, Any]]:
        """Return the first trials of a study: the parameters fitted to each family alone."""
        opened = {"gate": OPEN} if self.gates else {}
        starts: list[dict[str, Any]] = []
        for name in self.kinds:
            fitted = fit(self.task, name, rows)
            joint = SEARCHED[name].search.items()
            values = {f"{name}.{parameter}": _within(getattr(fitted, parameter), span) for parameter, span in joint}
            starts.append({"rule": name, **values, **opened})
        if self.gates and isinstance(fitted := fit(self.task, AbstentionThreshold.name, rows), AbstentionThreshold):
            starts.append(
                {"rule": Cutoff.name, "gate": fitted.evidence, "gate.threshold": _within(fitted.threshold, GATE)}
            )
        return starts


def _spread(scores: Floats) -> bool:
    """Return whether candidates of some query differ in score, so that a relative rule can matter."""
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
    task: Task, rows: Mask, inner: Ints, options: TuningOptions, patience: int = PATIENCE
) -> dict[Joint, Floats]:
    """Run a relation's study to its end. Return proposal -> held-out F1, by trial number.

    The result is {} if no rule has parameters to search. rows: training rows, at least one. inner: fold of each query,
    (n,).
    """
    space = Space.of(task, rows, options.rules)
    tried: dict[Joint, Floats] = {}
    if not space.kinds:
        return tried

    def mean(joint: Joint) -> float:
        if joint not in tried:
            tried[joint] = joint.held_out(task, rows, inner)
        return float(tried[joint].mean())

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    study = optuna.create_study(direction="maximize")
    known = space.known(rows)
    while not is_over(done := study.get_trials(deepcopy=False), options.trials, patience):
        taken = [trial.params for trial in done]
        if (start := next((parameters for parameters in known if parameters not in taken), None)) is not None:
            fixed = FixedTrial(start)
            value = mean(space.suggest(fixed))
            study.add_trial(create_trial(params=fixed.params, distributions=fixed.distributions, value=value))
        else:
            seed = options.seed + len(done)
            study.sampler = optuna.samplers.TPESampler(seed=seed, n_startup_trials=STARTUP, constant_liar=False)
            trial = study.ask()
            study.tell(trial, mean(space.suggest(trial)))
    return tried


def is_over(done: Sequence[FrozenTrial], trials: int, patience: int) -> bool:
    """Return whether a study has all its trials, or its last `patience` trials brought no gain."""
    values = np.array([trial.value for trial in done])
    if len(values) in (0, trials) or len(values) > trials:
        return len(values) >= trials
    return len(values) - 1 - int(np.argmax(values >= values.max() - TIE)) >= patience
