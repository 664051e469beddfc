"""A cascade: a larger system answers only the queries of which a smaller one is unsure.

Queries are asked in the order of the smaller system's expected F1, lowest first, which needs no gold. Rows are shares
of train's queries that the larger system answers, and the limit of expected F1 below which it is asked for this share.
F1 is by the official scorer; rows of train are answered out of fold. "Asked" is the share of the held-out queries below
the limit. "Any order" is the mean over all orders of asking the same share.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from eval.bench import parsed, parser_of
from eval.bench.figures import Table
from lmkbc.edition import Edition
from lmkbc.plan import Plan
from lmkbc.recipe import read_recipe
from lmkbc.run.pipeline import propose
from lmkbc.select.expected_f1 import ExpectedF1
from lmkbc.select.ranking import Floats, Mask, Ranking
from lmkbc.select.selector import PerRelation
from lmkbc.session.run import Run
from lmkbc.tune.learn import official
from lmkbc.types import CandidateSet, Example
from lmkbc.workspace import Workspace

SHARES = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.75, 1.0)


def main(argv: Sequence[str]) -> None:
    parser = parser_of(__doc__)
    parser.add_argument("--editions", nargs="+", default=("2024", "2025", "2026"))
    parser.add_argument("--smaller", default="smollm2-embedded", help="a system whose scores are probabilities")
    parser.add_argument("--larger", default="qwen-coder-embedded")
    given = parsed(parser, argv, editions=["mini"], smaller="prior", larger="naive-bayes")
    workspace, table = Workspace(data=given.data), Table("cascade", "edition, share asked")
    for name in given.editions:
        edition = workspace.edition(name)
        train, held = (
            Answered.of(workspace, edition, split, given.smaller, given.larger) for split in ("train", edition.held_out)
        )
        for share in SHARES:
            limit = float(np.quantile(train.sure, share)) if share < 1 else np.inf
            asked = held.sure < limit
            table.add(
                f"{name}, {share:.0%}",
                {
                    "train": f"{train.f1(train.sure < limit):.3f}",
                    "train, any order": f"{train.any_order(share):.3f}",
                    "limit": f"{limit:.3f}",
                    "asked": f"{asked.mean():.0%}",
                    "held-out, by the limit": f"{held.f1(asked):.3f}",
                    "held-out, any order": f"{held.any_order(float(asked.mean())):.3f}",
                },
            )


class Answered(NamedTuple):
    """What each query has by the smaller and the larger system, all (n,).

    Both have their official F1 times the query's weight in the mean, and the smaller one its expected F1.
    """

    smaller: Floats
    larger: Floats
    sure: Floats

    @classmethod
    def of(cls, workspace: Workspace, edition: Edition, split: str, smaller: str, larger: str) -> Answered:
        """Ask two systems about a split. Rows of train are answered out of fold."""
        examples = workspace.examples(edition, split)
        run = Run(workspace=workspace, edition=edition, offline=True)
        queries = [example.query for example in examples]
        recipes = [read_recipe(workspace, name) for name in (smaller, larger)]
        sets = [propose(Plan.of(run, recipe), queries).sets for recipe in recipes]
        scores = [_scores(own, examples, edition, recipe.select) for own, recipe in zip(sets, recipes, strict=True)]
        return cls(scores[0], scores[1], sure(sets[0]))

    def f1(self, asked: Mask) -> float:
        """Return macro-F1 if the larger system answers these queries."""
        return float(np.where(asked, self.larger, self.smaller).sum())

    def any_order(self, share: float) -> float:
        """Return the expected macro-F1 if the larger system answers a share of the queries, drawn at random."""
        return float(((1 - share) * self.smaller + share * self.larger).sum())


def sure(sets: Sequence[CandidateSet]) -> Floats:
    """Return the highest expected F1 that an answer to each query can have, (n,)."""
    ranking = Ranking.of(sets)
    return np.asarray(ExpectedF1().values(np.clip(ranking.scores, 0.0, 1.0), ranking.nothing).max(axis=1))


def _scores(
    sets: Sequence[CandidateSet], examples: Sequence[Example], edition: Edition, selector: PerRelation
) -> Floats:
    made = selector.select_all(sets)
    rows = dict(official({one.query: one for one in made}, examples, edition, rows=True).rows)
    count = Counter(relation for _, relation in rows)
    macro = edition.metric.average == "relation"
    weights = [len(count) * count[relation] if macro else len(rows) for _, relation in rows]
    return np.array([row.f1 for row in rows.values()]) / weights
