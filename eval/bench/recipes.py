"""Recipes asked of one model about the labelled held-out split.

F1 is shown by each recipe's own rule and with rules tuned out of fold. Tokens are those of prompts and answers per
query, with those that shared beginnings of prompts saved. Answers are cut after --longest tokens, since small models go
on without an end where a recipe allows tens of thousands. --train N holds out about N rows of train in place of the
split, to choose by. "again" says whether a second run has the same candidates, all of them from the first one's kept
answers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from eval.bench import few_of, model_of, parsed, parser_of
from eval.bench.figures import Table
from eval.bench.models import PartRun
from eval.bench.recorded import scored, tuned_rules
from lmkbc.plan import Plan
from lmkbc.recipe import read_recipe
from lmkbc.run.pipeline import propose
from lmkbc.session.options import Servers
from lmkbc.tune.tuning_set import TuningOptions
from lmkbc.workspace import Workspace

TOKENS = ("prompt_tokens", "completion_tokens", "saved_by_prefixes")
RECIPES = ("few-shot", "few-shot-samples", "bl25", "minimal23", "llmke23")


def main(argv: Sequence[str]) -> None:
    parser = parser_of(__doc__)
    parser.add_argument("recipes", nargs="*", default=RECIPES, help="their names (default: those for any model)")
    parser.add_argument("--model", default="SmolLM2-135M-Instruct", help="a model of this machine")
    parser.add_argument("--edition", default="2025")
    parser.add_argument("--limit", type=int, help="queries, about so many, evenly spaced")
    parser.add_argument("--longest", type=int, default=400, help="most tokens of an answer")
    parser.add_argument("--train", type=int, help="rows of train to hold out, about so many")
    given = parsed(parser, argv, recipes=["few-shot"], edition="mini", limit=6, longest=4)
    workspace, table = Workspace(data=given.data), Table("recipes", given.model)
    edition = workspace.edition(given.edition)
    train = workspace.examples(edition, "train")
    asked = few_of(train, given.train) if given.train else workspace.examples(edition, edition.held_out)
    held = {id(example) for example in asked}
    rows = tuple(example for example in train if id(example) not in held)
    asked = few_of(asked, given.limit)
    with model_of(given) as model, TemporaryDirectory() as folder:
        servers = Servers(store=Path(folder) / "answers.sqlite")
        for name in given.recipes:
            tables = dict(read_recipe(workspace, name).tables)
            recipe = read_recipe(
                workspace, tables | {"generate": [_short(one, given.longest) for one in tables["generate"]]}
            )
            run = PartRun(workspace=workspace, edition=edition, model=model, offline=True, servers=servers, rows=rows)
            queries, plan = [example.query for example in asked], Plan.of(run, recipe)
            whole, again = propose(plan, queries), propose(plan, queries)
            tuned = None
            if not all(one.failed for one in whole.sets):
                how = TuningOptions(trials=0)
                tuned = tuned_rules(whole.sets, asked, edition, run.relations, how, recipe.select).cv_macro_f1
            used = _counted(whole.usage, *TOKENS)
            table.add(
                name,
                {
                    "queries": str(len(asked)),
                    "failed": str(sum(one.failed for one in whole.sets)),
                    "again": "same" if again.sets == whole.sets and not _counted(again.usage, "calls") else "differs",
                    "untuned": f"{scored(recipe, whole.sets, asked, edition):.3f}",
                    "out of fold": "-" if tuned is None else f"{tuned:.3f}",
                    "tokens a query": f"{used / len(asked):.0f}",
                },
            )


def _counted(usage: Mapping[str, Mapping[str, int]], *kinds: str) -> int:
    return sum(used.get(kind, 0) for used in usage.values() for kind in kinds)


def _short(generator: Mapping[str, Any], longest: int) -> Any:
    """Return a generator's settings with at most so many tokens an answer, in its further variants and steps too."""
    return _cut({**generator, "sampling": {"max_tokens": longest, **generator.get("sampling", {})}}, longest)


def _cut(setting: Any, longest: int) -> Any:
    if isinstance(setting, list):
        return [_cut(one, longest) for one in setting]
    if not isinstance(setting, dict):
        return setting
    return {
        name: min(longest, value) if name == "max_tokens" else _cut(value, longest) for name, value in setting.items()
    }
