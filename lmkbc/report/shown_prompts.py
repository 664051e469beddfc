"""Prompts of a run's queries, from recorded files or from its recipe."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from lmkbc.files.jsonl import row_blocks
from lmkbc.generate.spec import converses, sources_of, specs
from lmkbc.models.base import Prompt
from lmkbc.models.identity import same_model
from lmkbc.report.rows import LONGEST_REPLY, LONGEST_TEXT, cut
from lmkbc.run.saved import SavedRun
from lmkbc.session.run import Run
from lmkbc.types import Pair, Query

MOST_PROMPTS = 8
"""Most prompts of a query."""
"""The generator whose prompts are composed here. Other generators have no prompts, or load large models."""

Shown = tuple[tuple[str, str], ...]
"""Prompts of a query: the origin of each, such as its model, and its text."""


class _AskedRow(msgspec.Struct):
    """Fields of a recorded row about its prompt."""

    SubjectEntity: str
    Relation: str
    model: str | None = None
    prompt: Any = None


def asked_in(files: Sequence[Path]) -> Iterator[tuple[Pair, str, Shown]]:
    """Yield the query of each row of recorded files, its model ("" if unknown), and its prompt if it has one."""
    for path in files:
        for row in (row for rows, _ in row_blocks(path, msgspec.json.Decoder(_AskedRow)) for row in rows):
            name, has_prompt = cut(row.model or "", LONGEST_TEXT), isinstance(row.prompt, str) and row.prompt
            prompt = ((f"{name or path.name}, as recorded", cut(row.prompt, LONGEST_REPLY)),) if has_prompt else ()
            yield (row.SubjectEntity, row.Relation), name, prompt


def asked_by(saved: SavedRun, run: Run) -> Callable[[Query], Shown]:
    """Return a function that gives the prompts of a run's recipe for a query, with slots where answers stand.

    No model is asked. InputError, from here or from the function, for a recipe that this version cannot read.
    """
    from lmkbc.generate.language_model import LanguageModelSpec

    planners = []
    asking = (table for table in tables_of(saved) if converses(table.get("component")))
    for spec in specs(list(asking)):
        if isinstance(spec, LanguageModelSpec):
            bare = "" if spec.context.provider == "none" else ", without the passages that it held"
            of = f"{cut(asked_of(saved, spec.called), LONGEST_TEXT)}, as the recipe words it{bare}"
            planners.append((of, spec.asked(run), spec.planner(run)))

    def shown(query: Query) -> Shown:
        planned = ((of, plan(query, "")) for of, relations, plan in planners if query.relation in relations)
        texts = {
            cut(_text(one.request.prompt), LONGEST_REPLY): f"{one.name}: {of}"
            for of, requests in planned
            for one in requests
        }
        return tuple((of, text) for text, of in texts.items())[:MOST_PROMPTS]

    return shown


def asked_of(saved: SavedRun, names: Sequence[str]) -> str:
    """Return the model that a run asked for a generator, as its manifest names it, else as the recipe does.

    names: the generator's name, its model, and the model without the owner.
    """
    models = [model for model in saved.manifest.get("models") or () if isinstance(model, str)]
    own = [model for model in models if any(same_model(name, model) for name in names)]
    return models[0] if len(models) == 1 and not own else names[0]


def tables_of(saved: SavedRun) -> Iterator[Mapping[str, Any]]:
    """Yield a table for each source of a run's recipe, also those that give features to other generators.

    InputError for a list `each` that is none.
    """
    yield from _tables(saved.table("recipe").get("generate"))


def _tables(generate: Any) -> Iterator[Mapping[str, Any]]:
    for table in generate if isinstance(generate, list) else ():
        if isinstance(table, Mapping):
            yield from sources_of(table)
            yield from _tables(table.get("features"))


def _text(prompt: Prompt) -> str:
    """Return a prompt as text. Turns of a chat stand below their roles."""
    turns = prompt.messages()
    return turns[0]["content"] if len(turns) == 1 else "\n\n".join(f"[{x['role']}]\n{x['content']}" for x in turns)
