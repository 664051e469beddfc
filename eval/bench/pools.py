"""Gain from pooling sources: F1 out of fold of two sources, and of these with a third, on pools that chose the method.

Each cell is official macro-F1 out of fold by exact sweeps: the mean of several partitions into folds, with the standard
deviation. A pool has two sources, or those two with a third. Sources are recorded answers of 2023, systems fitted on
train alone, and simulated ones of known quality, which are drawn anew for each partition. The last rows show the mean
over pools, the mean gain from a third source with the standard error over pools, and the least gain. --shown measures
the recorded answers of 2026 in their place, which were never used for a choice.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean, stdev

from eval.bench import few_of, parsed
from eval.bench.figures import Table
from eval.bench.recorded import BERT, GEMMA, GPT4, GPT35, QWEN, RECODE, context_of, proposed, row_parser, tuned_rules
from lmkbc.recipe import read_recipe
from lmkbc.select.pool import Pool
from lmkbc.tune.tuning_set import TuningOptions
from lmkbc.types import Candidate, CandidateSet, Example, GoldObject, Nil, Query, Source, State
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
    parser = row_parser(__doc__, *POOLS)
    parser.add_argument("--partitions", type=int, default=10)
    parser.add_argument("--shown", action="store_true", help="measure the answers of 2026")
    parser.add_argument("--limit", type=int, help="queries of a split, about so many, evenly spaced")
    given = parsed(parser, argv, limit=40, partitions=2, folds=2)
    seeds = range(given.seed, given.seed + given.partitions)
    table = Table("pools-2026" if given.shown else "pools", "pool")
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


def with_error(values: Sequence[float]) -> str:
    """Return the mean with its standard error."""
    error = stdev(values) / math.sqrt(len(values)) if len(values) > 1 else 0.0
    return f"{fmean(values):+.4f} ± {error:.4f}"


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
            yield tuned_rules(pool, self._examples, self._edition, self._run.relations, how).cv_macro_f1

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
