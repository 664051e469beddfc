"""Costs of published recipes that have no outcome here: calls and tokens for one query of each relation.

They are asked of a stand-in for a server, and then replayed from the kept answers. The tokens are those of prompts, as
the sentence encoder counts them. docs/papers.md shows them beside the published scores. Texts that a recipe shows are
one short sentence each.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from tokenizers import Tokenizer

from eval.bench import parsed, parser_of
from eval.bench.figures import Table
from eval.bench.recorded import context_of
from lmkbc.models.encoder import TOKENIZER, find_encoder
from lmkbc.plan import Plan
from lmkbc.recipe import read_recipe
from lmkbc.run.pipeline import propose
from lmkbc.session.options import Servers
from lmkbc.session.run import Run
from lmkbc.types import Query, grouped
from lmkbc.workspace import Workspace

RECIPES: Mapping[str, Sequence[str]] = {
    "2022": ("prop22",),
    "2023": ("bl23-gpt-ids", "bl23-opt", "llmke23-best", "lix23", "biester23", "llm2kb23"),
}
SHOWN_TEXTS = ("llmke23-best", "llm2kb23")
"""Recipes that show texts about the subject."""


def main(argv: Sequence[str]) -> None:
    from loopback import Loopback, prompt_of

    given = parsed(parser_of(__doc__, figures=True), argv)
    count, table = token_counter(), Table("papers-costs", "recipe", given.figures)
    for name, systems in ({"mini": ("few-shot",)} if given.small else RECIPES).items():
        space = Workspace(data=given.data)
        edition, queries = space.edition(name), first_of_each(space, name)
        for system in systems:
            recipe = read_recipe(space, system)
            context = Run(workspace=space, edition=edition) if given.small else context_of(space, edition)
            with tempfile.TemporaryDirectory() as folder, Loopback() as server:
                server.tells["models"] = {"data": [{"id": "stand-in"}]}
                texts = Path(folder) / "texts.jsonl"
                passages = ({"title": query.subject, "text": f"About {query.subject}."} for query in queries)
                texts.write_text("".join(json.dumps(row) + "\n" for row in passages), encoding="utf-8")
                run = replace(
                    context,  # with recorded searches, so that nothing is looked up
                    offline=False,
                    servers=Servers(base_url=server.url, any_model=True, store=Path(folder) / "answers.sqlite"),
                    files=(texts,) if system in SHOWN_TEXTS else (),
                )
                sets = propose(Plan.of(run, recipe), queries).sets
                asked = list(server.requests)
                again = propose(Plan.of(run, recipe), queries).sets
                same = again == sets and len(server.requests) == len(asked)
            tokens = sum(count(prompt_of(body)) for body in asked)
            cells = {
                "calls a query": f"{len(asked) / len(queries):.1f}",
                "tokens a query": f"{tokens / len(queries):,.0f}",
                "replayed": "the same" if same else "otherwise",
            }
            table.add(f"`{system}`", cells, failed=sum(one.failed for one in sets))


def first_of_each(space: Workspace, name: str) -> list[Query]:
    """Return the first query of each relation of an edition's held-out split."""
    edition = space.edition(name)
    by_relation = grouped((query.relation, query) for query in space.queries(edition, edition.held_out))
    return [queries[0] for queries in by_relation.values()]


def token_counter() -> Callable[[str], int]:
    """Return a function from a text to the number of its tokens; without the encoder, of its words."""
    encoder = find_encoder()
    if encoder is None:
        return lambda text: len(text.split())
    tokenizer = Tokenizer.from_file(str(encoder.directory / TOKENIZER))
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return lambda text: len(tokenizer.encode(text, add_special_tokens=False).ids)
