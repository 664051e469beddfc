"""Gain from pooling sources: F1 out of fold of two sources, and of these with a third, on pools that chose the method.

Each cell is official macro-F1 out of fold by exact sweeps: the mean of several partitions into folds, with the standard
deviation. A pool has two sources, or those two with a third. Sources are recorded answers of 2023, systems fitted on
train alone, and simulated ones of known quality, which are drawn anew for each partition. The last rows show the mean
over pools, the mean gain from a third source with the standard error over pools, and the least gain. --shown measures
the recorded answers of 2026 in their place, which were never used for a choice.

--published compares, on these answers, each relation's rule with those of the published systems of 2025 and 2026: the
same draws, and their pooling and rules. Their numbers of wordings become shares of draws, and evidence that the draws
lack counts for nothing. A cell is F1, and our F1 out of fold less theirs, mean over partitions, with the standard error
over queries. Nothing of theirs is tuned here; rules whose authors chose them on this split are in sample.
"""

from __future__ import annotations

import argparse
import math
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from statistics import fmean, stdev

from eval.bench import few_of, parsed
from eval.bench.figures import Table
from eval.bench.recorded import BERT, GEMMA, GPT4, GPT35, QWEN, RECODE, context_of, proposed, row_parser, tuned_rules
from lmkbc.edition import Edition
from lmkbc.recipe import Recipe, make_recipe, read_file, read_recipe
from lmkbc.select.composed import SourceFilter
from lmkbc.select.cutoffs import Cutoff, Quorum
from lmkbc.select.pool import Pool
from lmkbc.select.rule import Rule
from lmkbc.tune.learn import official
from lmkbc.tune.tuning_set import TuningOptions
from lmkbc.types import (
    Candidate,
    CandidateSet,
    Example,
    GoldObject,
    Nil,
    Prediction,
    Query,
    Source,
    State,
    grouped,
)
from lmkbc.workspace import Workspace

DRAWS = 5
"""Draws of a simulated source."""


@dataclass(frozen=True)
class Simulation:
    """A simulated source. known: share of the gold objects that it knows. wrong: mean number of wrong objects.

    like: source whose knowledge and errors it shares; "" for its own.
    """

    known: float
    wrong: float
    like: str = ""


SIMULATED = {
    "good": Simulation(0.5, 2.0),
    "fair": Simulation(0.45, 2.5),
    "useless": Simulation(0.0, 3.0),
    "correlated": Simulation(0.45, 2.5, like="good"),
    "better": Simulation(0.6, 1.5),
}

THIRD = ("useless", "correlated", "better")
Named = str | tuple[str, ...]
"""A simulated source, a system, or files of recorded answers."""
POOLS: Mapping[str, tuple[str, tuple[Named, ...]]] = {
    "2023, GPT-4 and GPT-3.5": ("2023", ((GPT4,), (GPT35,))),
    "2023, GPT-4 and GPT-3.5 + BERT": ("2023", ((GPT4,), (GPT35,), (RECODE,))),
    **{
        f"{edition}, simulated{third and f' + {third}'}": (edition, ("good", "fair", *filter(None, [third])))
        for edition in ("2025", "2022")
        for third in ("", *THIRD)
    },
    **{
        f"{edition}, of train{third and f' + {third}'}": (edition, ("embedded", "naive-bayes", *filter(None, [third])))
        for edition in ("mini", "2024", "2025", "2026", "2022")
        for third in ("", "prior")
    },
    "2023, BERT and BERT with recode": ("2023", ((RECODE,), (BERT,))),
}
"""Pools for the choice: two sources, and these with a third one."""
SHOWN: Mapping[str, tuple[str, tuple[Named, ...]]] = {
    "Qwen": ("2026", ((QWEN,),)),
    "Gemma": ("2026", ((GEMMA,),)),
    "Qwen and Gemma": ("2026", ((QWEN, GEMMA),)),
}
"""Recorded answers of 2026, which are never used for a choice."""
FEW: Mapping[str, tuple[str, tuple[Named, ...]]] = {
    "mini, simulated": ("mini", ("good", "fair")),
    "mini, simulated + better": ("mini", ("good", "fair", "better")),
}
"""Pools of the small run."""
COLUMN = "out of fold"


def main(argv: Sequence[str]) -> None:
    parser = row_parser(__doc__, *POOLS, figures=True)
    parser.add_argument("--partitions", type=int, default=10)
    parser.add_argument("--shown", action="store_true", help="measure the answers of 2026")
    parser.add_argument("--published", action="store_true", help="the same beside the rules of published systems")
    parser.add_argument("--limit", type=int, help="queries of a split, about so many, evenly spaced")
    given = parsed(parser, argv, limit=40, partitions=2, folds=2)
    seeds = range(given.seed, given.seed + given.partitions)
    if given.published:
        compare_published(given, seeds)
        return
    table = Table("pools-2026" if given.shown else "pools", "pool", given.figures)
    made = dict[str, list[float]]()
    chosen = SHOWN if given.shown else FEW if given.small else {name: POOLS[name] for name in given.rows}
    for name, (edition, sources) in chosen.items():
        pooled = Sources(Workspace(data=given.data), edition, given.limit, whole=given.shown)
        made[name] = list(pooled.f1s(sources, seeds, given.folds))
        table.add(name, {COLUMN: f"{fmean(made[name]):.3f} ± {stdev(made[name]):.3f}"})
    pairs = [(name, name.partition(" + ")[0]) for name in made if " + " in name and name.partition(" + ")[0] in made]
    if pairs:
        gains = [[x - y for x, y in zip(made[three], made[two], strict=True)] for three, two in pairs]
        table.add("mean over pools", {COLUMN: f"{fmean(map(fmean, made.values())):.4f}"})
        table.add("a third source adds", {COLUMN: with_error([*map(fmean, gains)])})
        table.add("at least", {COLUMN: with_error(min(gains, key=fmean))})


def with_error(values: Sequence[float], digits: int = 4) -> str:
    """Return the mean with its standard error."""
    error = stdev(values) / math.sqrt(len(values)) if len(values) > 1 else 0.0
    return f"{fmean(values):+.{digits}f} ± {error:.{digits}f}"


def compare_published(given: argparse.Namespace, seeds: Sequence[int]) -> None:
    """Print a row per pool of recorded answers and relation: F1 out of fold, and each published system's."""
    workspace, table = Workspace(data=given.data), Table("published-rules", "pool, relation", given.figures)
    recipes = {name: of_draws(workspace, name) for name in workspace.system_names() if is_new(workspace, name)}
    for pool, (name, (files,)) in SHOWN.items():
        edition = workspace.edition(name)
        examples = few_of(workspace.examples(edition, edition.held_out), given.limit)
        run = context_of(workspace, edition, files)
        sets = proposed(run, read_recipe(workspace, "recorded"), examples)
        ways = [TuningOptions(folds=given.folds, trials=0, seed=seed) for seed in seeds]
        own = read_recipe(workspace, "recorded").select
        ours = [tuned_rules(sets, examples, edition, run.relations, how, own).predictions for how in ways]
        theirs = {system: one.select.select_all(proposed(run, one, examples)) for system, one in recipes.items()}
        made = [row_f1s(predictions, examples, edition) for predictions in (*ours, *theirs.values())]
        for relation in edition.relations:
            columns = [f1s[relation] for f1s in made]
            parts, published = columns[: len(ours)], dict(zip(theirs, columns[len(ours) :], strict=True))
            mean = [fmean(values) for values in zip(*parts, strict=True)]
            shown = {
                system: f"{fmean(f1s):.3f} ({with_error([x - y for x, y in zip(mean, f1s, strict=True)], 3)})"
                for system, f1s in published.items()
            }
            cells = {COLUMN: f"{fmean(mean):.3f} ± {stdev(map(fmean, parts)):.3f}"}
            best = max(published, key=lambda system: fmean(published[system]))
            table.add(f"{pool}, {relation}", cells | {"best published": f"{best} {shown[best]}"} | shown)


def is_new(workspace: Workspace, name: str) -> bool:
    """Return whether a recipe is of a published system of the editions with the relations of 2026."""
    return read_file(workspace.recipe_path(name)).year in (2025, 2026)


def of_draws(workspace: Workspace, name: str) -> Recipe:
    """Return a recipe that reads recorded draws, and pools and selects as a published system does."""
    theirs = read_recipe(workspace, name)
    pool = {setting: value for setting, value in theirs.tables["pool"].items() if setting != "weights"}
    file = replace(read_file(workspace.recipe_path("recorded")), pool=pool)
    own, relations = make_recipe("recorded", file, workspace.relations), workspace.relations
    asked = {
        spelt: [spec for spec in theirs.generate if one.is_in(spec.only or [spelt])] for spelt, one in relations.items()
    }
    rules = {spelt: by_share(theirs.select.rule(spelt), len(specs) or 1) for spelt, specs in asked.items()}
    return replace(own, select=replace(theirs.select, rules=rules))


def by_share(rule: Rule, wordings: int) -> Rule:
    """Return a rule without names of sources; a number of the wordings becomes a share of the draws."""
    if isinstance(rule, SourceFilter):
        return by_share(rule.inner, wordings)
    if isinstance(rule, Quorum):
        return Cutoff(threshold=rule.models / wordings - 1e-9)
    parts = {field.name: getattr(rule, field.name) for field in fields(rule)}  # type: ignore[arg-type]
    inner = {name: by_share(part, wordings) for name, part in parts.items() if isinstance(part, Rule)}
    return replace(rule, **inner)  # type: ignore[type-var]


def row_f1s(
    predictions: Sequence[Prediction], examples: Sequence[Example], edition: Edition
) -> Mapping[str, Sequence[float]]:
    """Return relation -> official F1 of each query."""
    scores = official({one.query: one for one in predictions}, examples, edition, rows=True).rows
    return grouped((relation, score.f1) for (_, relation), score in scores)


class Sources:
    """Sources of an edition's held-out split. whole: whether all draws of a source count, else its first."""

    def __init__(self, workspace: Workspace, edition: str, limit: int | None, *, whole: bool) -> None:
        self._workspace, self._edition, self._whole = workspace, workspace.edition(edition), whole
        self._run = context_of(workspace, self._edition)
        held_out = few_of(workspace.examples(self._edition, self._edition.held_out), limit)
        self._examples = held_out if whole else list({one.query: one for one in held_out}.values())

    def f1s(self, names: Sequence[Named], seeds: Sequence[int], folds: int) -> Iterator[float]:
        """Yield official F1 out of fold of the pooled sources in each partition. Simulated ones are drawn for each."""
        fixed = {name: self._sets(name) for name in names if name not in SIMULATED}
        train = self._workspace.examples(self._edition, "train")
        for seed in seeds:
            drawn = {name: simulated(name, train, self._examples, seed=seed) for name in SIMULATED if name in names}
            pool = Pool(self._edition).merge([(fixed | drawn)[name] for name in names])
            how = TuningOptions(folds=folds, trials=0, seed=seed)
            own = read_recipe(self._workspace, "recorded").select
            yield tuned_rules(pool, self._examples, self._edition, self._run.relations, how, own).cv_macro_f1

    def _sets(self, name: Named) -> Sequence[CandidateSet]:
        """Return the sets of a source, in the order of the examples."""
        system = name if isinstance(name, str) else "recorded"
        run = context_of(self._workspace, self._edition, () if isinstance(name, str) else name)
        run = replace(run, search_table=None) if isinstance(name, str) else run
        sets = proposed(run, read_recipe(self._workspace, system), self._examples)
        return sets if self._whole else [replace(one, draws=one.draws[:1]) for one in sets]


def simulated(
    name: str, train: Sequence[Example], examples: Sequence[Example], *, seed: int = 0
) -> Sequence[CandidateSet]:
    """Return the draws of a simulated source. An object has a difficulty that all sources of a seed share."""
    how = SIMULATED[name]
    objects: dict[str, list[GoldObject]] = {}
    for example in train:
        objects.setdefault(example.query.relation, []).extend(example.objects)
    made = []
    for example in examples:
        query = example.query
        common = random.Random(f"{seed}, {query.subject}, {query.relation}")
        own = random.Random(f"{seed}, {query.subject}, {query.relation}, {how.like or name}")
        draw = random.Random(f"{seed}, {query.subject}, {query.relation}, {name}")
        shares: dict[tuple[str, str | None], float] = {}
        for gold in example.objects:
            hard, luck = common.random(), own.random()
            knows = (hard + luck) / 2 < how.known
            if how.known:
                shares[gold.name or gold.id or "", gold.id] = own.betavariate(5, 2) if knows else own.betavariate(1, 12)
        for _ in range(round(own.expovariate(1 / how.wrong))):
            wrong = own.choice(objects[query.relation]) if objects.get(query.relation) else None
            if wrong:
                shares.setdefault((wrong.name or wrong.id or "", wrong.id), own.betavariate(1, 3))
        made.append(drawn_set(query, name, shares, draw))
    return made


def drawn_set(
    query: Query, model: str, shares: Mapping[tuple[str, str | None], float], draw: random.Random
) -> CandidateSet:
    """Return draws that name each object with the probability of its share."""
    candidates, states, nothing = [], [], []
    for number in map(str, range(DRAWS)):
        source = (Source(model, number),)
        named = [Candidate(text, 1.0, source, id_) for (text, id_), share in shares.items() if draw.random() < share]
        candidates += named
        states.append(State.ANSWERED if named else State.ABSTAINED)
        nothing += [] if named else [Nil(1.0, source)]
    return CandidateSet(query, tuple(candidates), tuple(states), nothing=tuple(nothing))
