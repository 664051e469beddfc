"""Contradictions between facts, settled as in 'lmkbc build': the effect on F1 and precision.

    python eval/bench/settlement.py [--data DIR] [--folds N] [--seed N] [--figures FILE] [ROW ...]

A row is one constraint on a relation of some answers. It is one subject per object (`distinct_values`), or one object
per subject (`functional`). Facts are those that rules keep, tuned on other subjects. "removed" counts facts that lose
to facts of higher scores, and "right" those of them in the gold. F1 is macro-F1, and P the precision of all facts
together. R@P90 is by confidences out of fold, for candidates that are settled before selection. "greedy" and "milp" are
sums of the remaining scores: after settlement, and the maximum found by an integer program.

A row "denied" tests a rule that the engine does not have. It removes a fact of a symmetric relation if the other side
was asked and does not keep it. A row without a conflict is left out.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import figures
import numpy as np
from constraints import ROWS as SYMMETRIC
from recorded import GPT3, context_of
from scipy.optimize import LinearConstraint, milp

from lmkbc.build.settle import Claim, settled
from lmkbc.cli.terminal import error_status
from lmkbc.edition import Edition
from lmkbc.names import folded_key
from lmkbc.pipeline import propose
from lmkbc.recipe import read_recipe
from lmkbc.relation import Relation
from lmkbc.select.mutual import AskedSides
from lmkbc.tune.defaults import FOLDS, SEED
from lmkbc.tune.tune import official, tune
from lmkbc.types import Candidate, CandidateSet, Example, Prediction, Query
from lmkbc.workspace import Workspace

ROWS = {
    **SYMMETRIC,
    "GPT-3": ("2022", "recorded", (GPT3,)),
    "`embedded` 2022": ("2022", "embedded", ()),
    "`embedded` 2026": ("2026", "embedded", ()),
}
COLUMNS = (
    *("facts", "removed", "right", "F1", "F1 settled", "P", "P settled", "R@P90", "R@P90 settled", "greedy", "milp"),
)
Kept = Mapping[Query, Sequence[Candidate]]


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rows", nargs="*", choices=[*ROWS, []], metavar="ROW", help=f"of {', '.join(ROWS)}")
    parser.add_argument("--data", type=Path, help="directory of the official splits (default: $LMKBC_DATA)")
    parser.add_argument("--folds", type=int, default=FOLDS)
    parser.add_argument("--seed", type=int, default=SEED)
    figures.option(parser)
    given = parser.parse_args(argv)
    workspace = Workspace(data=given.data)
    values: dict[str, dict[str, str]] = {}
    print(f"{'answers, relation':50}  {'  '.join(COLUMNS)}")
    for name in given.rows or ROWS:
        edition_name, system, files = ROWS[name]
        edition = workspace.edition(edition_name)
        context, recipe = context_of(workspace, edition, files), read_recipe(workspace, system)
        bound = {
            one: relation
            for one, relation in context.relations.items()
            if relation.distinct_values or relation.functional or relation.symmetric
        }
        examples = [x for x in workspace.examples(edition, edition.held_out) if x.query.relation in bound]
        sets = propose(context, recipe, [example.query for example in examples]).sets
        for row, cells in measured(sets, examples, edition, bound, given.folds, given.seed):
            values[f"{name}, {row}"] = dict(zip(COLUMNS, cells, strict=True))
            print(f"{f'{name}, {row}':50}  {'  '.join(cells)}", flush=True)
    figures.record(given.figures, "settlement", values)


def measured(
    sets: Sequence[CandidateSet],
    examples: Sequence[Example],
    edition: Edition,
    relations: Mapping[str, Relation],
    folds: int,
    seed: int,
) -> Iterator[tuple[str, list[str]]]:
    """Yield each relation with a conflict among its kept facts, and its cells."""
    own = tune(sets, examples, edition, relations=relations, folds=folds, seed=seed, trials=0)
    named = {one.query: one.candidates for one in sets if not one.failed}
    stay = without(named, gone(claims(named), relations))
    read = [one if one.failed else replace(one, candidates=tuple(stay[one.query])) for one in sets]
    after = tune(read, examples, edition, relations=relations, folds=folds, seed=seed, trials=0)
    whole: dict[Query, Sequence[Candidate]] = {made.query: made.objects for made in own.predictions}
    failed = {made.query: made for made in own.predictions if made.failed}

    def score(kept: Kept, name: str) -> tuple[float, float, int, int]:
        made = {query: Prediction(query, tuple(objects)) for query, objects in kept.items()} | failed
        table = official(made, examples, edition).relations[name]
        predicted = table.average_predictions * table.rows
        return table.f1, table.micro_p, round(table.micro_p * predicted), round(predicted)

    for name, relation in relations.items():
        kept = {query: objects for query, objects in whole.items() if query.relation == name}
        facts = claims(kept)
        lost = denied(kept) if relation.symmetric else gone(facts, relations)
        if not lost:
            continue
        before, then = score(whole, name), score({**whole, **without(kept, lost)}, name)
        sums, recalls = ["-", "-"], ["-", "-"]
        if not relation.symmetric:
            stays = sum(fact.confidence for fact in facts if (fact.shard, fact.place) not in lost)
            sums = [f"{stays:.3f}", f"{best(facts, relation):.3f}"]
            recalls = [f"{one.confidences.relations[name].recall:.3f}" for one in (own, after)]
        cells = [str(before[3]), str(before[3] - then[3]), str(before[2] - then[2])]
        cells += [f"{number:.3f}" for pair in zip(before[:2], then[:2], strict=True) for number in pair]
        yield name + ", denied" * relation.symmetric, [*cells, *recalls, *sums]


def claims(kept: Kept) -> list[Claim]:
    """Return facts as claims of a build.

    A fact's shard is its query's number, its place its index among the objects.
    """
    return [
        Claim(query.relation, query, one.id or folded_key(one.text), one.score, bool(one.id), number, place)
        for number, (query, objects) in enumerate(kept.items())
        for place, one in enumerate(objects)
    ]


def gone(facts: Iterable[Claim], relations: Mapping[str, Relation]) -> set[tuple[int, int]]:
    """Return the places of the facts that are removed."""
    return {(one.shard, one.place) for one, *_ in settled(facts, relations)}


def denied(kept: Kept) -> set[tuple[int, int]]:
    """Return the places of facts whose other side was asked, and keeps another answer."""
    asked = AskedSides(CandidateSet(query) for query in kept)
    lost = set()
    for number, (query, objects) in enumerate(kept.items()):
        for place, one in enumerate(objects):
            other = asked.find(query.relation, one)
            if other and other != query and query not in [asked.find(query.relation, back) for back in kept[other]]:
                lost.add((number, place))
    return lost


def without(kept: Kept, lost: set[tuple[int, int]]) -> dict[Query, list[Candidate]]:
    """Return facts without some."""
    return {
        query: [one for place, one in enumerate(objects) if (number, place) not in lost]
        for number, (query, objects) in enumerate(kept.items())
    }


def best(facts: Sequence[Claim], relation: Relation) -> float:
    """Return the highest sum of confidences with at most one fact in each slot."""
    slots = {slot: number for number, slot in enumerate(dict.fromkeys(s for one in facts for s in one.slots(relation)))}
    table = np.zeros((len(slots), len(facts)))
    for column, one in enumerate(facts):
        table[[slots[slot] for slot in one.slots(relation)], column] = 1
    weights = np.array([one.confidence for one in facts])
    found = milp(-weights, integrality=np.ones(len(facts)), bounds=(0, 1), constraints=LinearConstraint(table, ub=1))
    return float(-found.fun)


if __name__ == "__main__":
    with error_status():
        main()
