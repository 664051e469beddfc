"""Gain of each mechanism of 2026 on recorded answers of 2026 val, one line each.

Each line shows official F1 without and with a mechanism. The first: channels for numbers, pooled and cut where most
draws agree (stab-mid), on numbers only. The second: a threshold per relation in place of one for all, both tuned out of
fold. The third: votes in two stages in place of one, untuned.

--partitions prints two more tables with F1 per relation. Their tuned columns are means over partitions into folds, out
of fold, with the standard deviation. Published rules are used as published.

The first table is about empty answers, with four rules. Two always or never give a non-empty answer. One uses the best
threshold on the evidence for an empty answer, as tuned. One uses expected F1 of calibrated probabilities; an empty
answer scores 1 if there is no object. The second table is about numbers: the most frequent draw, the median, and the
published rules; then the rule that tuning chooses.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from statistics import fmean, stdev

import numpy as np

from eval.bench import few_of, parsed, parser_of
from eval.bench.figures import Table
from eval.bench.recorded import GEMMA, QWEN, context_of, proposed, tuned_rules
from lmkbc.generate.recorded import RecordedSpec
from lmkbc.recipe import read_recipe
from lmkbc.select.composed import AbstentionThreshold
from lmkbc.select.cutoffs import Cutoff, TopK
from lmkbc.select.expected_f1 import Calibrated
from lmkbc.select.numeric import ExpectedScore, StabMid, WeightedMedian
from lmkbc.select.ranking import Mask
from lmkbc.select.rule import Rule
from lmkbc.select.selector import PerRelation
from lmkbc.tune.calibrate import CalibrationData, general
from lmkbc.tune.choice import by_subject, fold_of
from lmkbc.tune.families import Task, fit
from lmkbc.tune.learn import official
from lmkbc.tune.outcomes import Outcomes
from lmkbc.tune.tuning_set import FOLDS, TuningOptions
from lmkbc.types import CandidateSet, Prediction, Query
from lmkbc.workspace import Workspace

GRID = [step / 20 for step in range(1, 21)]
ANSWERS = {"Qwen": (QWEN,), "Gemma": (GEMMA,), "both": (QWEN, GEMMA)}
PUBLISHED = ("cs2-26", "thyl26", "mave26", "chironk26")
Way = Callable[[Task, Mask], Rule]


def way(family: str, *, nullable: bool = True) -> Way:
    """Return the fit of a family of rules. nullable: whether its empty answer is allowed."""
    return lambda task, rows: fit(replace(task, nullable=task.nullable and nullable), family, rows)


def fixed(rule: Rule) -> Way:
    """Return a way that always gives this rule, without a fit."""
    return lambda *_: rule


EMPTIES: Mapping[str, Way] = {
    "always": fixed(TopK(k=0)),
    "never": way(Calibrated.name, nullable=False),
    "threshold": way(AbstentionThreshold.name),
    "probability": way(Calibrated.name),
}
NUMBERS: Mapping[str, Way] = {
    "commonest": fixed(ExpectedScore(tolerance=0.0, max=1)),
    "median": fixed(WeightedMedian()),
    "expected score": fixed(ExpectedScore()),
}


def main(argv: Sequence[str]) -> None:
    parser = parser_of(__doc__)
    parser.add_argument("--partitions", type=int, default=0, help="of the tables per relation (default: none of them)")
    parser.add_argument("--answers", nargs="+", choices=ANSWERS, default=ANSWERS, help="of these tables")
    parser.add_argument("--limit", type=int, help="queries of a split, about so many, evenly spaced")
    given = parsed(parser, argv, partitions=1, answers=["Gemma"], limit=80)
    mechanisms = Mechanisms(Workspace(data=given.data), given.limit)
    table = Table("ablation", "2026 val")
    for line, without, with_it in mechanisms.lines():
        table.add(line, {"without": f"{without:.3f}", "with": f"{with_it:.3f}"})
    if given.partitions:
        mechanisms.tables(given.answers, range(given.partitions))


def deviated(f1: Sequence[float]) -> str:
    """Return the mean, with the standard deviation if it is not zero."""
    spread = stdev(f1) if len(f1) > 1 else 0.0
    return f"{fmean(f1):.3f}" + (f" ± {spread:.3f}" if spread > 1e-9 else "")


class Mechanisms:
    """The pooled answers, and the scores of rules on them."""

    def __init__(self, workspace: Workspace, limit: int | None) -> None:
        self.workspace = workspace
        self.edition = workspace.edition("2026")
        self.examples = few_of(workspace.examples(self.edition, "val"), limit)
        self.control = replace(read_recipe(workspace, "chironk26"), generate=(RecordedSpec(component="recorded"),))

    def lines(self) -> Iterator[tuple[str, float, float]]:
        """Yield name, F1 without and F1 with each mechanism."""
        both = self.sets((QWEN, GEMMA))
        relations = context_of(self.workspace, self.edition).relations
        numbers = {name for name in relations if relations[name].kind == "number"}
        middle = PerRelation(StabMid())
        for name, file in (("Qwen", QWEN), ("Gemma", GEMMA)):
            alone = self.f1(middle.select, self.sets((file,)), numbers)
            yield f"numbers, stab-mid: {name} alone, both pooled", alone, self.f1(middle.select, both, numbers)
        yield "one threshold for all, one per relation", *self.thresholds(both)
        once, staged = Cutoff(threshold=0.6), self.control.select
        strings = set(relations) - numbers
        yield (
            "names: one vote of all, two stages",
            self.f1(once.select, both, strings),
            self.f1(staged.select, both, strings),
        )

    def tables(self, answers: Sequence[str], seeds: Sequence[int]) -> None:
        """Print the two tables per relation: answers and relation -> mechanism -> F1."""
        tables = {kind: Table(f"ablation-{kind}") for kind in ("empties", "numbers")}
        systems = {name: read_recipe(self.workspace, name).select for name in PUBLISHED}
        for name in answers:
            tasks = self.tasks(ANSWERS[name])
            for relation, task in tasks.items():
                own = tables["numbers"] if task.numeric else tables["empties"] if task.outcomes.empty.any() else None
                ways = NUMBERS if task.numeric else EMPTIES
                if own:
                    row = {way: deviated(self.out_of_fold(tasks, relation, fit, seeds)) for way, fit in ways.items()}
                    for system, select in systems.items():
                        f1 = task.outcomes.f1(select.rules.get(relation, select.general))
                        row[system] = f"{f1.mean():.3f}"
                    own.add(f"{name}, {relation}", row)

    def tasks(self, files: Sequence[str]) -> dict[str, Task]:
        """Return relation -> task of tuning on the pooled answers, with all their draws."""
        run = context_of(self.workspace, self.edition, files)
        sets = proposed(run, read_recipe(self.workspace, "recorded"), self.examples)
        made: dict[str, Task] = {}
        for name, relation in run.relations.items():
            pairs = [
                pair
                for pair in zip(sets, self.examples, strict=True)
                if pair[0].query.relation == name and not pair[0].failed
            ]
            own, examples = zip(*pairs, strict=True)
            outcomes = Outcomes(own, examples, self.edition, numeric=relation.kind == "number")
            made[name] = Task(name, outcomes, relation.nullable(self.edition.name) or bool(outcomes.empty.any()))
        return made

    def out_of_fold(self, tasks: Mapping[str, Task], relation: str, way: Way, seeds: Sequence[int]) -> list[float]:
        """Return a relation's F1 of each partition, by a rule that is fitted to the other folds."""
        scores, outcomes = [], tasks[relation].outcomes
        for seed in seeds:
            dealt = by_subject(self.examples, FOLDS, seed)
            folds = {name: fold_of(task.outcomes.examples, dealt) for name, task in tasks.items()}
            f1 = np.zeros(len(outcomes))
            for number in range(FOLDS):
                data = [CalibrationData.of(task.outcomes, folds[name] != number) for name, task in tasks.items()]
                held = folds[relation] == number
                f1[held] = outcomes.f1(way(replace(tasks[relation], prior=general(data)), ~held))[held]
            scores.append(float(f1.mean()))
        return scores

    def sets(self, files: Sequence[str]) -> Sequence[CandidateSet]:
        """Return the pooled candidates of some files."""
        return proposed(context_of(self.workspace, self.edition, files), self.control, self.examples)

    def f1(
        self, select: Callable[[CandidateSet], Prediction], sets: Sequence[CandidateSet], relations: set[str]
    ) -> float:
        """Return the official F1 of a rule on the rows of some relations."""
        chosen = [example for example in self.examples if example.query.relation in relations]
        made = {one.query: select(one) for one in sets if one.query.relation in relations}
        return official(made, chosen, self.edition).overall.f1

    def thresholds(self, sets: Sequence[CandidateSet]) -> tuple[float, float]:
        """Return F1 out of fold with one cut-off for all relations, and with one for each relation."""
        relations = context_of(self.workspace, self.edition).relations
        own = tuned_rules(sets, self.examples, self.edition, relations, TuningOptions(rules=(Cutoff.name,), trials=0))
        folds = fold_of(self.examples, by_subject(self.examples, FOLDS, 0))
        made: dict[Query, Prediction] = {}
        tables = {cut: [Cutoff(threshold=cut).select(one) for one in sets] for cut in GRID}
        for fold in set(folds.tolist()):
            seen = [place for place in range(len(sets)) if folds[place] != fold]
            best = max(GRID, key=lambda cut: self._total(tables[cut], seen))
            made |= {sets[place].query: tables[best][place] for place in range(len(sets)) if folds[place] == fold}
        return official(made, self.examples, self.edition).overall.f1, own.cv_macro_f1

    def _total(self, predictions: Sequence[Prediction], rows: Sequence[int]) -> float:
        made = {predictions[place].query: predictions[place] for place in rows}
        return official(made, [self.examples[place] for place in rows], self.edition).overall.f1
