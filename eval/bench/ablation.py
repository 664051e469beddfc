"""Gain of each mechanism of 2026 on recorded answers of 2026 val, one line each.

    python eval/bench/ablation.py [--data DIR] [--partitions N] [--model NAME --rows N] [--figures FILE]

Each line shows official F1 without and with a mechanism. The first: channels for numbers, pooled and cut where most
draws agree (stab-mid), on numbers only. The second: a threshold per relation in place of one for all, both tuned out of
fold. The third: votes in two stages in place of one, untuned. The gain of a corroborating source needs answers of two
kinds, which no file has. With --model, a small real model gives both, on the first rows of the relation.

--partitions prints two more tables with F1 per relation. Their tuned columns are means over partitions into folds, out
of fold, with the standard deviation. Published rules are used as published.

The first table is about empty answers, with four rules. Two always or never give a non-empty answer. One uses the best
threshold on the evidence for an empty answer, as tuned. One uses expected F1 of calibrated probabilities; an empty
answer scores 1 if there is no object. The second table is about numbers: the most frequent draw, the median, and the
published rules; then the rule that tuning chooses.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import fmean, stdev

import figures
from pools import Bench as Pools
from recorded import GEMMA, QWEN, context_of

from lmkbc.cli.terminal import error_status
from lmkbc.generate.recorded import RecordedSpec
from lmkbc.pipeline import propose
from lmkbc.recipe import Recipe, read_recipe
from lmkbc.run.base import Run
from lmkbc.select.composed import AbstentionThreshold, Corroborated
from lmkbc.select.cutoffs import Cutoff, TopK
from lmkbc.select.expected_f1 import Calibrated
from lmkbc.select.numeric import ExpectedScore, StabMid, WeightedMedian
from lmkbc.select.ranking import Mask
from lmkbc.select.rule import PerRelation, Rule
from lmkbc.tune.families import Task, fit
from lmkbc.tune.nested import by_subject, fold_of
from lmkbc.tune.tune import official, tune
from lmkbc.types import CandidateSet, Example, Prediction, Query
from lmkbc.workspace import Workspace

GRID = [step / 20 for step in range(1, 21)]
Made = Mapping[Query, Prediction]
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


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="directory of the official splits (default: $LMKBC_DATA)")
    parser.add_argument("--partitions", type=int, default=0, help="of the tables per relation (default: none of them)")
    parser.add_argument("--model", help="a small real model of this machine, for the last line")
    parser.add_argument("--rows", type=int, default=2, help="first rows of the relation for the last line")
    figures.option(parser)
    given = parser.parse_args(argv)
    bench = Bench(Workspace(data=given.data))
    print(f"{'2026 val':44}  without    with")
    values = {}
    for line, without, with_it in bench.lines():
        values[line] = {"without": f"{without:.3f}", "with": f"{with_it:.3f}"}
        print(f"{line:44}  {without:7.4f}  {with_it:6.4f}", flush=True)
    figures.record(given.figures, "ablation", values)
    if given.partitions:
        for name, table in bench.tables(range(given.partitions)).items():
            figures.record(given.figures, f"ablation-{name}", table)
            shown(name, table)
    line = "award lists: corroborated by another source"
    if given.model:
        print(f"{line:44}  {bench.corroborated(given.model, given.rows)}")
    else:
        print(f"{line:44}  needs a model: --model SmolLM2-135M-Instruct")


def deviated(f1: Sequence[float]) -> str:
    """Return the mean, with the standard deviation if it is not zero."""
    return f"{fmean(f1):.3f}" + (f" ± {stdev(f1):.3f}" if stdev(f1) > 1e-9 else "")


def shown(name: str, table: Mapping[str, Mapping[str, str]]) -> None:
    """Print a table."""
    heads = next(iter(table.values()))
    print(f"{name:44}" + "".join(f"{head:>16}" for head in heads))
    for row, values in table.items():
        print(f"{row:44}" + "".join(f"{values[head]:>16}" for head in heads))


class Bench:
    """The pooled answers, and the scores of rules on them."""

    def __init__(self, workspace: Workspace) -> None:
        self.workspace = workspace
        self.edition = workspace.edition("2026")
        self.examples = workspace.examples(self.edition, "val")
        self.control = replace(read_recipe(workspace, "chironk26"), generate=(RecordedSpec(component="recorded"),))

    def lines(self) -> Iterator[tuple[str, float, float]]:
        """Yield name, F1 without and F1 with each mechanism."""
        both = self.sets((QWEN, GEMMA))
        numbers = {name for name, relation in context_of(self.workspace, self.edition).relations.items()}
        relations = context_of(self.workspace, self.edition).relations
        numbers = {name for name in numbers if relations[name].kind == "number"}
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

    def tables(self, seeds: Sequence[int]) -> dict[str, dict[str, dict[str, str]]]:
        """Return the two tables per relation: answers and relation -> mechanism -> F1."""
        made: dict[str, dict[str, dict[str, str]]] = {"empties": {}, "numbers": {}}
        pools = Pools(self.workspace)
        systems = {name: read_recipe(self.workspace, name).select for name in PUBLISHED}
        for answers, files in {"Qwen": (QWEN,), "Gemma": (GEMMA,), "both": (QWEN, GEMMA)}.items():
            pool = pools.recorded("2026", files)
            for kind, ways in (("empties", EMPTIES), ("numbers", NUMBERS)):
                for relation, task in pool.tasks.items():
                    if (kind == "numbers") != task.numeric or (kind == "empties" and not task.outcomes.empty.any()):
                        continue
                    known = {name: pool.f1_of(relation, select) for name, select in systems.items()}
                    own = {name: deviated(pool.out_of_fold(relation, way, seeds)) for name, way in ways.items()}
                    row = own | {name: f"{f1:.3f}" for name, f1 in known.items()}
                    made[kind][f"{answers}, {relation}"] = row
        return made

    def sets(self, files: Sequence[str]) -> Sequence[CandidateSet]:
        """Return the pooled candidates of some files."""
        run = context_of(self.workspace, self.edition, files)
        return propose(run, self.control, [example.query for example in self.examples]).sets

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
        own = tune(sets, self.examples, self.edition, relations=relations, rules=[Cutoff.name], trials=0)
        folds = fold_of(self.examples, by_subject(self.examples, 5, 0))
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

    def corroborated(self, model: str, rows: int) -> str:
        """Compare a small model's lists with and without the corroborating source, on a relation's first rows."""
        os.environ["HF_HUB_OFFLINE"] = "1"
        recipe, rule, relation = corroborating_rule(read_recipe(self.workspace, "cs2-26"), self.edition.relations)
        chosen: list[Example] = [example for example in self.examples if example.query.relation == relation][:rows]
        run = Run(workspace=self.workspace, edition=self.edition, model=model, offline=True)
        sets = propose(run, recipe, [example.query for example in chosen]).sets
        f1 = []
        for selector in (Corroborated(inner=rule.inner, source=rule.source, corroborating=""), rule):
            made = {one.query: one for one in selector.select_all(sets)}
            f1.append(official(made, chosen, self.edition).overall.f1)
        return f"{f1[0]:7.4f}  {f1[1]:6.4f}  ({model}, {len(chosen)} rows)"


def corroborating_rule(recipe: Recipe, relations: Sequence[str]) -> tuple[Recipe, Corroborated, str]:
    """Return a recipe, its rule with a corroborating source, and the relation of the rule, by the edition's name."""
    rules: Mapping[str, Rule] = recipe.select.rules
    for relation in relations:
        if isinstance(rule := rules.get(relation), Corroborated):
            return recipe, rule, relation
    raise ValueError(f"{recipe.name} has no rule with a corroborating source")


if __name__ == "__main__":
    with error_status():
        main()
