"""Effect of a prompt's wording on 2022 dev: one recipe, each wording of the relation modules, F1 per relation.

    python eval/bench/wording.py [--limit 10] [--wordings 6] [--relations river-countries ...] [--figures FILE]

The recipe is a small model that ranks train objects by likelihood, after worked examples in the same wording. Wordings
are the module's question and triple, and its clozes and paraphrases that end with the slot, which a causal model can
continue. Columns: question, triple, the best and the worst cloze, the number of wordings, and the spread. The spread is
the best less the worst, with the bias of a maximum. The last rows are the papers' figures for larger models.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import figures

from lmkbc.cli.terminal import error_status
from lmkbc.files.places import cache_dir
from lmkbc.pipeline import propose
from lmkbc.recipe import RecipeFile, make_recipe
from lmkbc.relation import Relation
from lmkbc.run.base import Run
from lmkbc.run.options import Servers
from lmkbc.tune.tune import official
from lmkbc.types import Example
from lmkbc.workspace import Workspace

MODEL = "SmolLM2-135M-Instruct"
AVERAGE = "average"
GPT4 = {
    "company-parent": (0.582, 0.622, 0.562),
    "compound-elements": (0.443, 0.449, 0.951),
    "country-borders": (0.774, 0.773, 0.783),
    "country-languages": (0.945, 0.945, 0.941),
    "cause-of-death": (0.700, 0.730, 0.737),
    "employer": (0.307, 0.341, 0.313),
    "place-of-death": (0.515, 0.535, 0.505),
    "profession": (0.282, 0.322, 0.312),
    "instrument": (0.565, 0.575, 0.557),
    "spoken-languages": (0.810, 0.824, 0.803),
    "river-countries": (0.829, 0.837, 0.809),
    "state-borders": (0.489, 0.485, 0.501),
}
"""Relation -> F1 of GPT-4 on 2023 val by the relation's name in camel case, spaced, reworded (Minimal Probe)."""
GPT3 = {"question": 0.634, "triple": 0.660}
"""F1 of text-davinci-002 on 2022 dev, mean over relations, by form (ProP)."""


@dataclass(frozen=True)
class Scored:
    """F1 of a relation by wording. forms: question and triple. clozes: in the order of the module."""

    forms: Mapping[str, float]
    clozes: Sequence[float]

    @property
    def spread(self) -> float:
        """Return the best F1 less the worst."""
        every = (*self.forms.values(), *self.clozes)
        return max(every) - min(every)

    def cells(self) -> dict[str, str]:
        """Return the row's values for documents."""
        shown = {name: f"{f1:.3f}" for name, f1 in self.forms.items()}
        if self.clozes:
            shown |= {"best cloze": f"{max(self.clozes):.3f}", "worst cloze": f"{min(self.clozes):.3f}"}
        return shown | {"wordings": str(len(self.forms) + len(self.clozes)), "spread": f"{self.spread:.3f}"}


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="directory of the official splits (default: $LMKBC_DATA)")
    parser.add_argument("--limit", type=int, default=10, help="queries of each relation, the first ones")
    parser.add_argument("--wordings", type=int, default=6, help="of each relation, at most")
    parser.add_argument("--relations", nargs="+", help="names of modules (default: all of the edition)")
    parser.add_argument("--model", default=MODEL, help="a name of this machine's, or FILE.gguf")
    parser.add_argument("--store", type=Path, default=cache_dir() / "wording.sqlite", help="where scores are kept")
    figures.option(parser)
    given = parser.parse_args(argv)
    os.environ["HF_HUB_OFFLINE"] = "1"
    workspace = Workspace(data=given.data)
    edition = workspace.edition("2022")
    servers = Servers(store=given.store)
    run = Run(workspace=workspace, edition=edition, model=given.model, offline=True, servers=servers)
    asked = [name for name in edition.relations if not given.relations or run.relations[name].name in given.relations]
    print(f"2022 dev, the first {given.limit} queries of each relation, {given.model}")
    heads = ("question", "triple", "best cloze", "worst cloze", "wordings", "spread", "GPT-4's spread")
    print(f"{'relation':20}" + "".join(f"{head:>16}" for head in heads) + "  seconds")
    found, values = [], {}
    for name in asked:
        start = time.perf_counter()
        rows = [one for one in workspace.examples(edition, "dev") if one.query.relation == name][: given.limit]
        module = run.relations[name]
        scores = {wording: f1_of(run, block, rows) for wording, block in wordings(module, given.wordings)}
        forms = {wording: f1 for wording, f1 in scores.items() if wording in GPT3}
        found.append(Scored(forms, [f1 for wording, f1 in scores.items() if wording not in forms]))
        values[module.name] = found[-1].cells()
        if module.name in GPT4:
            values[module.name]["GPT-4's spread"] = f"{max(GPT4[module.name]) - min(GPT4[module.name]):.3f}"
        show(module.name, values[module.name], heads, time.perf_counter() - start)
    means = {form: sum(one.forms[form] for one in found) / len(found) for form in GPT3}
    values[AVERAGE] = {form: f"{f1:.3f}" for form, f1 in means.items()}
    values[AVERAGE]["spread"] = f"{sum(one.spread for one in found) / len(found):.3f}"
    values["GPT-3 on all of dev (ProP)"] = {form: f"{f1:.3f}" for form, f1 in GPT3.items()}
    for label in list(values)[-2:]:
        show(label, values[label], heads)
    figures.record(given.figures, "wording", values)


def wordings(relation: Relation, most: int) -> Iterator[tuple[str, str]]:
    """Yield name and block of each wording of a relation that a causal model can continue."""
    yield "question", "Question: {question}\nAnswer:"
    yield "triple", "{subject}, {phrase}:"
    count = 2
    for place, cloze in enumerate((*relation.clozes, *relation.paraphrases)):
        before, after = cloze.split("{mask}")
        if "{subject}" in before and not after.strip(" .") and count < most:
            count += 1
            yield f"cloze {place + 1}", before.rstrip()


def f1_of(run: Run, block: str, rows: Sequence[Example]) -> float:
    """Return the official F1 of the recipe with one wording."""
    recipe = make_recipe("wording", RecipeFile(description="", generate=(table(block),), select=SELECT), run.relations)
    sets = propose(run, recipe, [row.query for row in rows]).sets
    made = {one.query: one for one in recipe.select.select_all(sets)}
    return official(made, rows, run.edition).overall.f1


SELECT = {"rule": "expected-f1"}


def table(block: str) -> dict[str, Any]:
    """Return the table of a source that ranks train objects after a block."""
    return {
        "component": "causal",
        "model": MODEL,
        "prompt": {"form": "completion", "block": block, "listing": "comma", "null": "none"},
        "shots": {"method": "random", "k": 4, "names": 10},
        "ranking": {"calibration": "nothing", "objects": 30},
    }


def show(label: str, cells: Mapping[str, str], heads: Sequence[str], seconds: float | None = None) -> None:
    """Print one row."""
    took = "" if seconds is None else f"{seconds:9.0f}"
    print(f"{label:26}"[:26] + "".join(f"{cells.get(head, '-'):>16}" for head in heads)[6:] + took, flush=True)


if __name__ == "__main__":
    with error_status():
        main()
