"""Prompts of a run, one per relation, from recorded files or from its recipe."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Container, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from lmkbc.files.jsonl import row_blocks
from lmkbc.generate.spec import GENERATORS, sources_of, specs
from lmkbc.models.base import RECALL, Prompt
from lmkbc.report.rows import LONGEST_REPLY, LONGEST_TEXT, cut
from lmkbc.run.run import Run
from lmkbc.run.saved import SavedRun
from lmkbc.scoring.table import Pair
from lmkbc.types import Query

MOST_PROMPTS = 4
"""Most prompts per relation, each of another model."""
CONVERSES = GENERATORS["chat"]
"""The generator whose prompts are composed here. Other generators have no prompts, or load large models."""


class ShownPrompt(NamedTuple):
    """A prompt. of: its model or generator, and the origin of its text."""

    of: str
    subject: str
    text: str


class RecordedPrompts(NamedTuple):
    """Models and prompts in recorded files. prompts: prompts by relation."""

    models: tuple[str, ...]
    prompts: Mapping[str, Sequence[ShownPrompt]]


class _AskedRow(msgspec.Struct):
    """Fields of a recorded row about its prompt."""

    SubjectEntity: str
    Relation: str
    model: str | None = None
    prompt: Any = None


def asked_in(files: Sequence[Path], queries: Container[Pair]) -> RecordedPrompts:
    """Return the models and prompts for some queries in recorded files."""
    models: dict[str, None] = {}
    prompts: defaultdict[str, dict[str, ShownPrompt]] = defaultdict(dict)
    for path in files:
        blocks = row_blocks(path, msgspec.json.Decoder(_AskedRow))
        for row in (row for rows, _ in blocks for row in rows):
            if (row.SubjectEntity, row.Relation) not in queries:
                continue
            name = cut(row.model or "", LONGEST_TEXT)
            if name:
                models[name] = None
            if isinstance(row.prompt, str) and row.prompt:
                made = ShownPrompt(
                    f"{name or path.name}, as recorded", row.SubjectEntity, cut(row.prompt, LONGEST_REPLY)
                )
                prompts[row.Relation].setdefault(name, made)
    shown = {name: tuple(own.values())[:MOST_PROMPTS] for name, own in prompts.items()}
    return RecordedPrompts(tuple(models), shown)


def worded(saved: SavedRun, run: Run, queries: Sequence[Query]) -> dict[str, Sequence[ShownPrompt]]:
    """Return relation -> the first prompt of a run's recipe; {} for a recipe without prompts.

    queries: one with a subject per relation. No model is asked. InputError for a recipe that this version cannot read.
    """
    first = {query.relation: query for query in queries}
    made: dict[str, list[ShownPrompt]] = {}
    for relation, prompt in _worded(_tables(saved.table("recipe").get("generate")), run, first):
        own = made.setdefault(relation, [])
        if len(own) < MOST_PROMPTS and prompt.text not in (one.text for one in own):
            own.append(prompt)
    return {name: made[name] for name in first if name in made}


def _tables(generate: Any) -> Iterator[Mapping[str, Any]]:
    """Yield the tables of conversational generators, also those that give features to other generators."""
    for table in generate if isinstance(generate, list) else ():
        if not isinstance(table, Mapping):
            continue
        if GENERATORS.get(str(table.get("component"))) == CONVERSES:
            yield from sources_of(table)
        yield from _tables(table.get("features"))


def _worded(
    tables: Iterator[Mapping[str, Any]], run: Run, first: Mapping[str, Query]
) -> Iterator[tuple[str, ShownPrompt]]:
    from lmkbc.generate.language_model import LanguageModelSpec

    for spec in specs(list(tables)):
        if not isinstance(spec, LanguageModelSpec):
            continue
        planned = spec.planner(run)
        bare = "" if spec.context.provider == "none" else ", without the passages that it held"
        of = f"{cut(spec.called[0], LONGEST_TEXT)}, as the recipe words it{bare}"
        for relation in filter(first.__contains__, spec.asked(run)):
            prompt = next(one.request.prompt for one in planned(first[relation], "") if one.name != RECALL)
            yield relation, ShownPrompt(of, first[relation].subject, cut(_text(prompt), LONGEST_REPLY))


def _text(prompt: Prompt) -> str:
    """Return a prompt as text. Turns of a chat stand below their roles."""
    turns = prompt.messages()
    return turns[0]["content"] if len(turns) == 1 else "\n\n".join(f"[{x['role']}]\n{x['content']}" for x in turns)
