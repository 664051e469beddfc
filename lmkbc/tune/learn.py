"""Tuning: the selection rule and its parameters for each relation, and their score on unseen subjects.

The cross-validated score is the one to trust: every choice is repeated without the fold on which it is scored.
"""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from optuna.exceptions import StorageInternalError

from lmkbc.edition import Edition
from lmkbc.errors import InputError, LmkbcError, OptionError, check_known
from lmkbc.progress import Report, silent, tracked
from lmkbc.relation import Relation
from lmkbc.run.submission import answers
from lmkbc.scoring.table import WRONG, Table
from lmkbc.select.composed import with_verification
from lmkbc.select.mutual import both_sides as with_both_sides
from lmkbc.select.ranking import Mask
from lmkbc.select.rule import Rule
from lmkbc.tune.defaults import FOLDS, SEED, TRIALS
from lmkbc.tune.families import Task, check_rules
from lmkbc.tune.nested import WAYS, BothSides, Rules, Settings, by_subject, choose, fold_of
from lmkbc.tune.outcomes import Outcomes
from lmkbc.tune.promises import Confidences, assess
from lmkbc.tune.studies import close_storage, open_storage
from lmkbc.types import CandidateSet, Example, Prediction, Query, grouped

INNER_FOLDS = 4
STEP = "tune (relations x folds)"


@dataclass(frozen=True, slots=True)
class TunedRelation:
    """The rule chosen for a relation, its official F1 out of fold and in sample, and the number of its queries.

    cv_f1_without_optuna: F1 out of fold with the rules chosen by exact sweeps alone.
    """

    rule: Rule
    cv_f1: float
    cv_f1_without_optuna: float
    insample_f1: float
    rows: int


@dataclass(frozen=True, slots=True)
class Tuned:
    """Rules that tuning chose, and their scores.

    failed: number of queries that no model answered; every F1 counts them as wrong.
    predictions: out of fold, one per query, in the order of the candidate sets; failed ones stay failed.
    confidences: calibrations of candidates and their quality. They read both sides of a pair if the final rule does;
    only that choice was made on all rows.
    """

    relations: Mapping[str, TunedRelation]
    cv_macro_f1: float
    cv_macro_f1_without_optuna: float
    insample_macro_f1: float
    predictions: tuple[Prediction, ...]
    failed: int
    folds: int
    trials: int
    seed: int
    confidences: Confidences


def tune(
    sets: Sequence[CandidateSet],
    examples: Sequence[Example],
    edition: Edition,
    *,
    relations: Mapping[str, Relation],
    rules: Sequence[str] | None = None,
    both_sides: bool = False,
    folds: int = FOLDS,
    trials: int = TRIALS,
    seed: int = SEED,
    storage: str | None = None,
    report: Report = silent,
) -> Tuned:
    """Choose a rule per relation by its official F1, cross-validated over subjects.

    sets: pooled candidates, linked if the edition needs ids.
    relations: by the edition's spelling.
    rules: names of the families to try; None for all.
    both_sides: whether to try the rule `mutual` for relations whose other side is queried.
    trials: maximum Optuna trials per relation and fold, which end early without a gain; 0 for exact sweeps, grids and
    calibrations alone.
    storage: URL of an SQLite or PostgreSQL database in which processes share and resume studies.
    report: callback for progress, called after each relation and fold.

    Raise InputError for candidates without gold, or for wrong settings.
    """
    check(rules, folds, trials)
    pairs = _paired(sets, examples)
    database = open_storage(storage)
    try:
        study = f"lmkbc-{fingerprint(pairs, edition, rules, folds, trials, seed)}"
        how = Settings(rules, trials, seed, database, study)
        return _tune(pairs, edition, relations, how, folds, report, both_sides=both_sides)
    except StorageInternalError as error:
        raise LmkbcError("the storage stopped answering; run the same command again to resume") from error
    finally:
        close_storage(database)


def check(rules: Sequence[str] | None, folds: int, trials: int, storage: str | None = None) -> None:
    """Raise InputError for wrong settings, LmkbcError for a storage that does not answer."""
    if folds < 2:
        raise OptionError("folds", f"is {folds}: give at least 2 folds")
    if trials < 0:
        raise OptionError("trials", f"is {trials}: give 0 for exact sweeps alone, or more")
    check_rules(rules)
    close_storage(open_storage(storage))


def _paired(sets: Sequence[CandidateSet], examples: Sequence[Example]) -> list[tuple[CandidateSet, Example]]:
    gold = {example.query: example for example in examples}
    by_name = {(example.query.subject, example.query.relation): example for example in examples}
    pairs = []
    for candidates in sets:
        example = gold.get(candidates.query) or by_name.get((candidates.query.subject, candidates.query.relation))
        if example is None:
            pair = f"({candidates.query.subject!r}, {candidates.query.relation!r})"
            raise InputError(f"{pair} has candidates but no gold: tune on the split that the candidates were made for")
        pairs.append((candidates, example))
    if all(candidates.failed for candidates, _ in pairs):
        raise InputError("there is no answered query to tune on: give candidates of a labelled split")
    return pairs


def fingerprint(pairs: Sequence[tuple[CandidateSet, Example]], edition: Edition, *settings: object) -> str:
    """Return a hash of everything on which a study depends, so that only a repeated run finds its studies."""
    digest = hashlib.sha256(repr((edition.name, settings)).encode())
    for pair in pairs:
        digest.update(repr(pair).encode("utf-8", "backslashreplace"))
    return digest.hexdigest()[:16]


def _tune(
    pairs: Sequence[tuple[CandidateSet, Example]],
    edition: Edition,
    relations: Mapping[str, Relation],
    how: Settings,
    folds: int,
    report: Report,
    *,
    both_sides: bool,
) -> Tuned:
    answered = [pair for pair in pairs if not pair[0].failed]
    tasks, verified = _tasks(answered, edition, relations, report), {}
    if any(candidate.verification is not None for candidates, _ in answered for candidate in candidates.candidates):
        verified = {
            way: _tasks(
                [(with_verification(candidates, way), example) for candidates, example in answered],
                edition,
                relations,
                report,
            )
            for way in WAYS
        }
    mutual = _mutual(answered, tasks, edition, relations, report) if both_sides else {}
    examples = [example for _, example in pairs]
    outer, inner = by_subject(examples, folds, how.seed), by_subject(examples, INNER_FOLDS, how.seed + 1)
    fold = {name: fold_of(task.outcomes.examples, outer) for name, task in tasks.items()}
    inner_fold = {name: fold_of(task.outcomes.examples, inner) for name, task in tasks.items()}
    steps = itertools.count(1)
    total = (folds + 1) * (len(tasks) * (1 + len(verified)) + len(mutual))
    report(STEP, 0, total)

    def choice(part: str, rows: Mapping[str, Mask]) -> Rules:
        step = partial(_next, steps, total, report)
        return choose(tasks, verified, rows, inner_fold, how.part(part), step, mutual=mutual)

    failed = {
        candidates.query: Prediction(candidates.query, failed=True) for candidates, _ in pairs if candidates.failed
    }
    held_out, swept = dict(failed), dict(failed)
    for number in range(folds):
        chosen = choice(f"fold{number}", {name: fold[name] != number for name in tasks})
        unseen = {name: fold[name] == number for name in tasks}
        held_out |= _selected(tasks, mutual, chosen.best, unseen)
        swept |= _selected(tasks, mutual, chosen.swept, unseen)
    everything = {name: np.ones(len(task.outcomes), dtype=np.bool_) for name, task in tasks.items()}
    final = choice("all", everything).best
    fitted = failed | _selected(tasks, mutual, final, everything)
    lost: dict[str, list[int]] = {}
    for candidates, example in pairs:
        if candidates.failed:
            lost.setdefault(candidates.query.relation, []).append(len(edition.gold_column(example)))
    cv, without, insample = (official(made, examples, edition) for made in (held_out, swept, fitted))
    return Tuned(
        relations={
            name: TunedRelation(
                rule=rule,
                cv_f1=cv.relations[name].f1,
                cv_f1_without_optuna=without.relations[name].f1,
                insample_f1=insample.relations[name].f1,
                rows=cv.relations[name].rows,
            )
            for name, rule in final.items()
        },
        cv_macro_f1=cv.overall.f1,
        cv_macro_f1_without_optuna=without.overall.f1,
        insample_macro_f1=insample.overall.f1,
        predictions=tuple(held_out[candidates.query] for candidates, _ in pairs),
        failed=len(failed),
        folds=folds,
        trials=how.trials,
        seed=how.seed,
        confidences=assess(
            {name: mutual[name].task if final[name].reads_others else task for name, task in tasks.items()},
            lost,
            fold,
            inner_fold,
        ),
    )


def _next(steps: Iterator[int], total: int, report: Report) -> None:
    report(STEP, next(steps), total)


def _selected(
    tasks: Mapping[str, Task], mutual: Mapping[str, BothSides], rules: Mapping[str, Rule], rows: Mapping[str, Mask]
) -> dict[Query, Prediction]:
    """Return the selection of each relation's rule for some of its queries, read as the rule reads them."""
    made: dict[Query, Prediction] = {}
    for name, task in tasks.items():
        sets = (mutual[name].task if rules[name].reads_others else task).outcomes.sets
        made |= {sets[row].query: rules[name].select(sets[row]) for row in np.flatnonzero(rows[name]).tolist()}
    return made


def _mutual(
    pairs: Sequence[tuple[CandidateSet, Example]],
    tasks: Mapping[str, Task],
    edition: Edition,
    relations: Mapping[str, Relation],
    report: Report,
) -> dict[str, BothSides]:
    """Return the tasks of relations with another side, on the mean of both sides, if that changes any candidate."""
    every = [candidates for candidates, _ in pairs]
    spelling = {relations[name].name: name for name in tasks}
    made: dict[str, BothSides] = {}
    for name, task in tasks.items():
        other = spelling.get(relations[name].other_side())
        if other is None:
            continue
        inverse = "" if other == name else other
        sets = with_both_sides(task.outcomes.sets, every, inverse)
        if any(one is not before for one, before in zip(sets, task.outcomes.sets, strict=True)):
            read = list(zip(sets, task.outcomes.examples, strict=True))
            made[name] = BothSides(_tasks(read, edition, relations, report)[name], inverse)
    return made


def _tasks(
    pairs: Sequence[tuple[CandidateSet, Example]], edition: Edition, relations: Mapping[str, Relation], report: Report
) -> dict[str, Task]:
    by_relation = grouped((pair[0].query.relation, pair) for pair in pairs)
    tasks = {}
    for name in tracked(sorted(by_relation), "score candidates (relations)", report):
        check_known(name, relations, f"unknown relation {name!r}")
        sets, examples = zip(*by_relation[name], strict=True)
        outcomes = Outcomes(sets, examples, edition, numeric=relations[name].kind == "number")
        nullable = relations[name].nullable(edition.name) or bool(outcomes.empty.any())
        tasks[name] = Task(name, outcomes, nullable)
    return tasks


def official(predictions: Mapping[Query, Prediction], examples: Sequence[Example], edition: Edition) -> Table:
    """Return the official table of predictions. A failed query is wrong, even if its gold is empty."""
    predicted = {
        (query.subject, query.relation): WRONG if made.failed else answers(edition, made)
        for query, made in predictions.items()
    }
    gold = {(x.query.subject, x.query.relation): edition.gold_column(x) for x in examples}
    return edition.metric.evaluate(predicted, gold)
