"""Origin of candidates: the models that proposed them, and the wording of their prompts."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from pathlib import Path
from typing import Any

import msgspec

from lmkbc.ask.builder import Frames
from lmkbc.files.checksum import sha256
from lmkbc.files.places import name_of
from lmkbc.generate.access import served
from lmkbc.generate.recorded_rows import models_in
from lmkbc.generate.replay import shares
from lmkbc.generate.spec import GeneratorSpec
from lmkbc.models.identity import model_name, portable
from lmkbc.models.reference import ModelReference
from lmkbc.recipe import Recipe
from lmkbc.session.run import Run

LONGEST = 100
"""Maximum characters of the origin in a file's name; a longer text is cut, and ends with a hash of the whole."""
NOT_ASKED = {item.name for item in fields(ModelReference)} - {"component"}
"""Settings of a generator's table that name a model and how to reach it; they do not change the prompt."""
WORDS = ("question", "triple", "statement", "definition", "clozes")
"""Fields of a relation that prompts contain."""


@dataclass(frozen=True, kw_only=True)
class Origin:
    """Origin of candidates. Scores are not comparable between models, or between prompts.

    models: names, sorted; () if no model is asked.
    wording: "own" or "authors", as in the recipe; "" if no model is asked.
    wording_sha256: hash of the settings and texts that make up the prompts.
    steps_sha256: hash of the settings of the steps before selection; "" for the usual ones.
    """

    models: tuple[str, ...] = ()
    wording: str = ""
    wording_sha256: str = ""
    steps_sha256: str = ""

    @property
    def suffix(self) -> str:
        """Return the origin as part of a file's name, such as "--gpt-4--authors"; the wording "own" is left out."""
        parts = ["+".join(self.models), "" if self.wording == "own" else self.wording]
        text = "".join(f"--{re.sub(r'[^A-Za-z0-9._+-]+', '_', part)}" for part in parts if part)
        if len(text) <= LONGEST:
            return text
        return f"{text[: LONGEST - 9]}-{sha256(text.encode())[:8]}"


def origin_of(run: Run, recipe: Recipe) -> Origin:
    """Return the origin of a run's candidates, before any model is asked."""
    models = set[str]()
    asks = False
    for spec, files in zip(recipe.generate, shares(recipe.generate, run.files, run.edition), strict=True):
        asks |= any(_named(run, spec)) or any(part.asks_model for part in spec.whole())
        if spec.reads_files and not spec.asks_model:
            models |= set(_recorded(run, run.files))
        else:
            models |= set(_asked(run, spec) if files is None else _recorded(run, [file.path for file in files]))
    steps = {name: table for name, table in recipe.tables.items() if table and name not in ("generate", "select")}
    origin = Origin(models=tuple(sorted(models)), steps_sha256=_hash(portable(steps)) if steps else "")
    if not asks:
        return origin
    asked = {
        "generate": portable(_worded(recipe.tables["generate"])),
        "relations": {name: {word: getattr(one, word) for word in WORDS} for name, one in run.relations.items()},
    }
    return replace(origin, wording=recipe.wording, wording_sha256=_hash(asked))


def _hash(tables: Any) -> str:
    return sha256(msgspec.json.encode(tables, order="deterministic"))


def _asked(run: Run, spec: GeneratorSpec) -> Iterator[str]:
    """Yield the models that a generator asks; for a model left to the server, the name that the server reports."""
    for part in spec.whole():
        name = served(part, run) if isinstance(part, ModelReference) else None
        yield from [model_name(name)] if name else _named(run, part)


def _named(run: Run, value: Any) -> Iterator[str]:
    """Yield the models named in a table and in the tables within it; `run.model` (--model) replaces them all."""
    if is_dataclass(value):
        value = {one.name: getattr(value, one.name) for one in fields(value)}
    if isinstance(value, Mapping):
        if "model" in value and (name := run.model or value["model"]):
            yield model_name(str(name))
        for inner in value.values():
            yield from _named(run, inner)
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from _named(run, inner)


def _recorded(run: Run, files: Sequence[Path]) -> Iterator[str]:
    """Yield the models whose answers the files hold. If the rows name none, use the file's name without the split."""
    for path in files:
        yield from models_in(path) or filter(None, [_unsplit(path, {*run.edition.splits, "val", "dev"})])


def _unsplit(path: Path, splits: set[str]) -> str:
    stem = name_of(path).removesuffix(".gz").removesuffix(".jsonl").removesuffix(".candidates")
    return "-".join(word for word in re.split(r"[-_.\s]+", stem) if word.casefold() not in splits)


def _worded(value: Any) -> Any:
    """Return tables without the settings that do not change a prompt. Names of files of frames become their content."""
    if isinstance(value, Mapping):
        return {
            key: Frames.read(inner).tables if key == "frames" and isinstance(inner, str) else _worded(inner)
            for key, inner in value.items()
            if key not in NOT_ASKED
        }
    return [_worded(inner) for inner in value] if isinstance(value, list | tuple) else value
