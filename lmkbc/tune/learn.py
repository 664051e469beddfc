"""Tuning: the selection rule and its parameters for each relation, and their score on unseen subjects.

The cross-validated score is the one to trust: every choice is repeated without the fold on which it is scored.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from lmkbc.edition import Edition
from lmkbc.errors import check_known, counted
from lmkbc.progress import Report, silent, tracked
from lmkbc.run.submission import answers
from lmkbc.scoring.table import WRONG, Table
from lmkbc.select.composed import with_verification
from lmkbc.select.narrowings import AtMost
from lmkbc.select.ranking import Mask
from lmkbc.select.rule import Rule
from lmkbc.tune.choice import UNREAD, WAYS, Chosen, by_subject, choose, fold_of
from lmkbc.tune.confidence import Confidences, assess
from lmkbc.tune.families import Task, check_rules
from lmkbc.tune.outcomes import Outcomes
from lmkbc.tune.tuning_set import TuningOptions, TuningSet
from lmkbc.types import CandidateSet, Example, Prediction, Query, grouped

INNER_FOLDS = 4
STEP = "tune (relations x folds)"


@dataclass(frozen=True, slots=True)
class TunedRelation:
    """The rule chosen for a relation, its official F1 out of fold and in sample, and the number of its queries.

    untuned_f1: F1 of what a run keeps without tuned rules. answered: number of its queries with an answer, from which
    the rule is learned. most, reason: as in `Chosen`.
    """

    rule: Rule
    cv_f1: float
    insample_f1: float
    rows: int
    untuned_f1: float
    answered: int
    most: int | None = None
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Tuned:
    """Rules that tuning chose, and their scores.

    failed: number of queries that no model answered; every F1 counts them as wrong.
    predictions: out of fold, one per query, in the order of the candidate sets; failed ones stay failed.
    confidences: calibrations of candidates and their quality.
    untuned_macro_f1: F1 of what a run keeps without tuned rules.
    """

    relations: Mapping[str, TunedRelation]
    cv_macro_f1: float
    insample_macro_f1: float
    predictions: tuple[Prediction, ...]
    failed: int
    options: TuningOptions
    confidences: Confidences
    untuned_macro_f1: float

    @property
    def unanswered(self) -> str:
        """Return a sentence about the queries that no model answered; "" if there are none."""
        if not self.failed:
            return ""
        return (
            f"{self.failed} of {counted(len(self.predictions), 'query')} have no answer: they count as wrong, not as "
            f"empty, and rules are learned from the other {len(self.predictions) - self.failed}"
            + ", so most of the split is not answered: give answers to all of it"
            * (2 * self.failed > len(self.predictions))
        )


def tune(data: TuningSet, *, report: Report = silent) -> Tuned:
    """Choose a rule per relation by its official F1, cross-validated over subjects.

    report: callback for progress, called after each relation and fold.

    Raise InputError for rules that cannot be tuned.
    """
    check_rules(data.options.rules)
    with threadpool_limits(1):  # several threads mostly wait for each other: they take six times the processor time
        return _tune(data, report)


def _tune(data: TuningSet, report: Report) -> Tuned:
    options, edition = data.options, data.edition
    answered = data.answered
    plain = data.selector.select_all(answered.sets)
    tasks, verified = tasks_of(answered, report, plain), {}
    if any(candidate.verification is not None for found in answered.sets for candidate in found.candidates):
        verified = {
            way: tasks_of(replace(answered, sets=[with_verification(found, way) for found in answered.sets]), report)
            for way in WAYS
        }
    outer, inner = (
        by_subject(rows, folds, seed)
        for rows, folds, seed in (
            (data.scored, options.folds, options.seed),
            (data.examples, INNER_FOLDS, options.seed + 1),
        )
    )
    fold = {name: fold_of(task.outcomes.examples, outer) for name, task in tasks.items()}
    inner_fold = {name: fold_of(task.outcomes.examples, inner) for name, task in tasks.items()}
    steps = itertools.count(1)
    total = (options.folds + 1) * len(tasks) * (1 + len(verified))
    report(STEP, 0, total)

    def choice(rows: Mapping[str, Mask]) -> dict[str, Chosen]:
        return choose(tasks, verified, rows, inner_fold, options, partial(_next, steps, total, report))

    failed = {found.query: Prediction(found.query, failed=True) for found in data.sets if found.failed}
    held_out = dict(failed)
    for number in range(options.folds):
        chosen = choice({name: fold[name] != number for name in tasks})
        unseen = {subject for subject, dealt in outer.items() if dealt == number}
        held_out |= selected(answered, chosen, unseen)
    everything = {name: np.ones(len(task.outcomes), dtype=np.bool_) for name, task in tasks.items()}
    final = choice(everything)
    fitted = failed | selected(answered, final, outer.keys())
    untuned = failed | {made.query: made for made in plain if made.query.subject in outer}
    capped = {name: task.variants[-1] if final[name].most else task for name, task in tasks.items()}
    lost: dict[str, list[int]] = {}
    for found, example in zip(data.sets, data.examples, strict=True):
        if found.failed:
            lost.setdefault(found.query.relation, []).append(len(edition.gold_column(example)))
    read = Counter(found.query.relation for found, _ in zip(data.sets, data.scored, strict=False) if not found.failed)
    unread = {name: Chosen(data.selector.rule(name), np.zeros(0), reason=UNREAD) for name in lost}
    cv, insample, own = (official(made, data.scored, edition) for made in (held_out, fitted, untuned))
    return Tuned(
        relations={
            name: TunedRelation(
                rule=chosen.rule,
                cv_f1=cv.relations[name].f1,
                insample_f1=insample.relations[name].f1,
                rows=cv.relations[name].rows,
                untuned_f1=own.relations[name].f1,
                answered=read[name],
                most=chosen.most,
                reason=chosen.reason,
            )
            for name, chosen in (unread | final).items()
        },
        cv_macro_f1=cv.overall.f1,
        insample_macro_f1=insample.overall.f1,
        predictions=tuple(held_out[row.query] for row in data.scored),
        failed=len(failed),
        options=options,
        confidences=assess(capped, lost, fold, inner_fold),
        untuned_macro_f1=own.overall.f1,
    )


def _next(steps: Iterator[int], total: int, report: Report) -> None:
    report(STEP, next(steps), total)


def selected(data: TuningSet, chosen: Mapping[str, Chosen], subjects: Set[str]) -> dict[Query, Prediction]:
    """Return what a run on all candidates keeps of some subjects, by a rule per relation."""
    most = {name: one.most for name, one in chosen.items() if one.most}
    selector = data.selector.under({name: one.rule for name, one in chosen.items()}).narrowed(AtMost(most))
    sets = [found for found in selector.read(data.sets) if found.query.subject in subjects]
    return {made.query: made for made in selector.select_read(sets)}


def tasks_of(data: TuningSet, report: Report = silent, own: Sequence[Prediction | None] = ()) -> dict[str, Task]:
    """Return the task of each relation. own: what the recipe's own rules keep, for each set; () if it is no choice."""
    rows = zip(data.sets, data.examples, own or [None] * len(data.sets), strict=True)
    by_relation = grouped((row[0].query.relation, row) for row in rows)
    tasks = {}
    for name in tracked(sorted(by_relation), "score candidates (relations)", report):
        check_known(name, data.relations, f"unknown relation {name!r}")
        capped = _task(data, name, by_relation[name], 1) if data.relations[name].functional else None
        tasks[name] = replace(_task(data, name, by_relation[name]), capped=capped)
    return tasks


def _task(
    data: TuningSet, name: str, rows: Iterable[tuple[CandidateSet, Example, Prediction | None]], most: int | None = None
) -> Task:
    sets, examples, own = zip(*rows, strict=True)
    relation, selector = data.relations[name], data.selector.narrowed(AtMost({name: most})) if most else data.selector
    outcomes = Outcomes(sets, examples, data.edition, numeric=relation.has_numbers(), selector=selector)
    nullable = relation.nullable(data.edition.name) or bool(outcomes.empty.any())
    own_f1 = outcomes.f1_of([replace(made, objects=made.objects[:most]) for made in own if made is not None])
    return Task(name, outcomes, nullable, own=data.selector.rule(name), own_f1=own_f1, most=most)


def official(
    predictions: Mapping[Query, Prediction], examples: Sequence[Example], edition: Edition, *, rows: bool = False
) -> Table:
    """Return the official table of predictions. A failed query is wrong, even if its gold is empty."""
    predicted = {
        (query.subject, query.relation): WRONG if made.failed else answers(edition, made)
        for query, made in predictions.items()
    }
    gold = {(x.query.subject, x.query.relation): edition.gold_column(x) for x in examples}
    return edition.metric.evaluate(predicted, gold, rows)
