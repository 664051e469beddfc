"""Facts of a base by their least confidence: number, precision and mean confidence.

    python eval/bench/sure.py [--system S ...] [--data DIR] [--figures FILE] [EDITION ...]

Rows of train are asked, each by a fit without the fold of its subject. So a base's floor (`build.facts.LEAST`) is
chosen without a held-out split. A cell has the number of facts at or above a confidence, their precision, and their
mean confidence. In a relation with one object, only the best candidate counts.

"of 2022" tests a shift of subjects, as a base has it: a system of 2023 answers about 2022's train subjects of the same
relations. They were drawn in another way. For example, a quarter of its musicians have no instrument. Subjects in both
train splits are also asked without their fold.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import figures
import numpy as np
from recorded import context_of

from lmkbc.cli.terminal import error_status
from lmkbc.edition import Edition
from lmkbc.groups import grouped
from lmkbc.pipeline import propose
from lmkbc.recipe import read_recipe
from lmkbc.relation import Relation
from lmkbc.select.ranking import Floats
from lmkbc.tune.outcomes import Outcomes
from lmkbc.types import CandidateSet, Example, Query
from lmkbc.workspace import Workspace

EDITIONS = ("2022", "2023", "2024", "2025", "2026")
ASKED, OTHER = "2023", "2022"
"""Edition whose system is asked, and the edition of the subjects."""
FLOORS = (0.1, 0.5, 0.6, 0.7, 0.8, 0.9)
FEWEST = 20
"""Least number of facts of a relation with its own row, at the second floor."""


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("editions", nargs="*", choices=[*EDITIONS, []], metavar="EDITION", help=", ".join(EDITIONS))
    parser.add_argument("--system", nargs="+", default=["smollm2-embedded", "embedded"])
    parser.add_argument("--data", type=Path, help="directory of the official splits (default: $LMKBC_DATA)")
    figures.option(parser)
    given = parser.parse_args(argv)
    workspace = Workspace(data=given.data)
    values: dict[str, dict[str, str]] = {}
    for system in given.system:
        for name in given.editions or EDITIONS:
            edition = workspace.edition(name)
            examples = workspace.examples(edition, "train")
            made = measured(workspace, system, edition, [(one, one) for one in examples], edition)
            values |= shown(f"`{system}` {name}", made, detailed=name == ASKED)
            if name == ASKED:
                other = workspace.edition(OTHER)
                made = measured(workspace, system, edition, shifted(workspace, edition, other), other)
                values |= shown(f"`{system}` {name}, of {OTHER}", made, detailed=True)
    figures.record(given.figures, "sure", values)


def shifted(workspace: Workspace, edition: Edition, other: Edition) -> list[tuple[Example, Example]]:
    """Return pairs of a row of another edition: with this edition's name of the relation, and unchanged."""
    spelled = {workspace.relation(name).name: name for name in edition.relations}
    rows = [
        (row, spelled.get(workspace.relation(row.query.relation).name)) for row in workspace.examples(other, "train")
    ]
    return [(replace(row, query=Query(row.query.subject, name)), row) for row, name in rows if name]


def measured(
    workspace: Workspace, system: str, edition: Edition, rows: Sequence[tuple[Example, Example]], gold: Edition
) -> Mapping[str, tuple[Floats, Floats]]:
    """Return confidences and right facts, (f,) each, by relation. rows: pairs of a row to ask and a row to score."""
    run, recipe = context_of(workspace, edition), read_recipe(workspace, system)
    sets = propose(run, recipe, [asked.query for asked, _ in rows]).sets
    pairs = grouped((one.query.relation, (one, row)) for one, (_, row) in zip(sets, rows, strict=True))
    return {name: facts(run.relations[name], its, gold) for name, its in pairs.items()}


def facts(relation: Relation, pairs: Sequence[tuple[CandidateSet, Example]], gold: Edition) -> tuple[Floats, Floats]:
    """Return the confidence of each candidate of a relation, and 1 for a right one, else 0."""
    sets = [replace(found, query=row.query) for found, row in pairs]
    outcomes = Outcomes(sets, [row for _, row in pairs], gold, numeric=relation.kind == "number")
    p, right = outcomes.ranking.scores, outcomes.gains > 0
    if relation.has_one_object():
        p, right = p[:, :1], right[:, :1]
    return p[p >= 0], right[p >= 0].astype(np.float64)


def shown(name: str, made: Mapping[str, tuple[Floats, Floats]], *, detailed: bool) -> dict[str, dict[str, str]]:
    """Print and return a row for all relations and, if detailed, a row for each with enough facts."""
    each = {relation: cells(p, right) for relation, (p, right) in made.items() if (p >= FLOORS[1]).sum() >= FEWEST}
    p, right = (np.concatenate(column) for column in zip(*made.values(), strict=True))
    rows = {name: cells(p, right)} | ({f"{name}, {one}": row for one, row in each.items()} if detailed else {})
    for label, row in rows.items():
        print(f"| {label} | {' | '.join(row.values())} |", flush=True)
    return rows


def cells(p: Floats, right: Floats) -> dict[str, str]:
    """Return the number of facts, their precision and mean confidence at each floor."""
    row = {}
    for floor in FLOORS:
        kept = p >= floor
        means = f"{right[kept].mean():.2f}, {p[kept].mean():.2f}" if kept.any() else "-"
        row[f"from {floor:g}"] = f"{kept.sum()}: {means}"
    return row


if __name__ == "__main__":
    with error_status():
        main()
