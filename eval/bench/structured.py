"""A recipe's replies as a list in words, as JSON, and as JSON that is held to a schema: F1, unreadable replies, tokens.

Rows of train are asked, evenly spaced; no row is among its own examples. val is not read.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from eval.bench import few_of, parsed, parser_of
from eval.bench.figures import Table
from lmkbc.generate.language_model import LanguageModelSpec
from lmkbc.plan import Plan
from lmkbc.recipe import read_recipe
from lmkbc.run.pipeline import propose
from lmkbc.session.run import Run
from lmkbc.tune.learn import official
from lmkbc.types import State
from lmkbc.workspace import Workspace

FORMS: dict[str, dict[str, str]] = {
    "semicolon": {"listing": "semicolon", "null": "None"},
    "json": {"listing": "json", "null": "[]"},
    "schema": {},
}
"""Listing -> fields of the prompt; the last is the recipe's own."""
TASKS = {
    "semicolon": "Answer with names parted by semicolons, and with nothing else. Write {{ null }} if there is no "
    "answer.",
    "json": "Answer with a JSON list of names, and with nothing else. Write {{ null }} if there is no answer.",
}
UNREAD = (State.UNPARSED, State.TRUNCATED)


def main(argv: Sequence[str]) -> None:
    parser = parser_of(__doc__, *FORMS)
    parser.add_argument("--edition", default="2025")
    parser.add_argument("--model", default="SmolLM2-135M-Instruct")
    parser.add_argument("--limit", type=int, default=120, help="rows of train")
    given = parsed(parser, argv, rows=["schema"], limit=2, edition="mini")
    workspace = Workspace(data=given.data)
    edition = workspace.edition(given.edition)
    asked = few_of(workspace.examples(edition, "train"), given.limit)
    recipe, table = read_recipe(workspace, "few-shot"), Table("structured", given.model)
    (spec,) = recipe.generate
    assert isinstance(spec, LanguageModelSpec)
    for form in given.rows:
        fields: dict[str, Any] = FORMS[form] | ({"task": TASKS[form]} if form in TASKS else {})
        own = replace(recipe, generate=(replace(spec, prompt=replace(spec.prompt, **fields)),))
        plan = Plan.of(Run(workspace=workspace, edition=edition, model=given.model, split="train"), own)
        block = propose(plan, [row.query for row in asked])
        made = plan.recipe.select.select_all(block.sets)
        f1 = official({one.query: one for one in made}, asked, edition).overall.f1
        unread = sum(state in UNREAD for candidates in block.sets for state in candidates.draws)
        tokens = sum(int(usage.get("completion_tokens", 0)) for usage in block.usage.values())
        row = {"rows": str(len(asked)), "F1": f"{f1:.3f}", "unreadable": str(unread), "tokens": str(tokens)}
        table.add(form, row)
