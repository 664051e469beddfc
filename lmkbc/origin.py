"""What candidates come from: whose answers they are, and the wording in which models are asked.

Scores mean something else for another model and for another prompt, so thresholds keep both.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path
from typing import Any

import msgspec

from lmkbc.ask.frames import Frames
from lmkbc.generate.access import ServerSettings
from lmkbc.generate.recorded_rows import models_in
from lmkbc.generate.replay import shares
from lmkbc.generate.spec import GeneratorSpec
from lmkbc.models.files import model_name, portable
from lmkbc.recipe import Recipe
from lmkbc.run.base import Run

NOT_ASKED = frozenset(
    "model revision base_url any_model key_env limits prices dtype device trust_remote_code quantise executor".split()
)
"""Settings of a generator's table that say whom to ask and how to reach it, not what is asked."""
WORDS = ("question", "triple", "statement", "definition", "clozes")
"""Fields of a relation that prompts are made of."""
LONGEST = 100
"""Characters of a file's name that tell of the origin; a longer text is cut, and ends with a hash of the whole."""


@dataclass(frozen=True, kw_only=True)
class Origin:
    """What candidates come from. models: by name, sorted; none where no model is asked.

    wording: "own" or "authors", as the recipe says; "" where nothing is asked. wording_sha256: of the settings and
    texts that prompts are made of.
    """

    models: tuple[str, ...] = ()
    wording: str = ""
    wording_sha256: str = ""

    @property
    def suffix(self) -> str:
        """The origin as part of a file's name, such as "--gpt-4--authors"; the usual wording is left out."""
        parts = ["+".join(self.models), "" if self.wording == "own" else self.wording]
        text = "".join(f"--{re.sub(r'[^A-Za-z0-9._+-]+', '_', part)}" for part in parts if part)
        if len(text) <= LONGEST:
            return text
        return f"{text[: LONGEST - 9]}-{hashlib.sha256(text.encode()).hexdigest()[:8]}"


def origin_of(run: Run, recipe: Recipe) -> Origin:
    """Return what the candidates of a run come from, before any model is asked."""
    models = set[str]()
    asks = False
    for spec, files in zip(recipe.generate, shares(recipe.generate, run.files, run.edition), strict=True):
        asks |= any(_named(run, spec)) or any(part.asks_model for part in spec.whole())
        read = run.files if spec.reads_files and not spec.asks_model else files
        models |= set(_asked(run, spec) if read is None else _recorded(run, read))
    if not asks:
        return Origin(models=tuple(sorted(models)))
    asked = {
        "generate": portable(_worded(recipe.tables["generate"])),
        "relations": {name: {word: getattr(one, word) for word in WORDS} for name, one in run.relations.items()},
    }
    digest = hashlib.sha256(msgspec.json.encode(asked, order="deterministic")).hexdigest()
    return Origin(models=tuple(sorted(models)), wording=recipe.wording, wording_sha256=digest)


def _asked(run: Run, spec: GeneratorSpec) -> Iterator[str]:
    """Yield the models that a generator asks: by the name that their server says, where any is taken there."""
    for part in spec.whole():
        served = part.served(run) if isinstance(part, ServerSettings) else None
        yield from [model_name(served)] if served else _named(run, part)


def _named(run: Run, value: Any) -> Iterator[str]:
    """Yield the models that a table and the tables within it name; --model comes before all of them."""
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
    """The models whose answers files hold; a file's name, less the word for its split, where its rows name none."""
    for path in files:
        yield from models_in(path) or filter(None, [_unsplit(path, {*run.edition.splits, "val", "dev"})])


def _unsplit(path: Path, splits: set[str]) -> str:
    stem = path.name.removesuffix(".gz").removesuffix(".jsonl").removesuffix(".candidates")
    return "-".join(word for word in re.split(r"[-_.\s]+", stem) if word.casefold() not in splits)


def _worded(value: Any) -> Any:
    """Return tables less what does not change a prompt, with the content of files of frames in place of their names."""
    if isinstance(value, Mapping):
        return {
            key: Frames.read(inner).tables if key == "frames" and isinstance(inner, str) else _worded(inner)
            for key, inner in value.items()
            if key not in NOT_ASKED
        }
    return [_worded(inner) for inner in value] if isinstance(value, list | tuple) else value
