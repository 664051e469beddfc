"""The plan of a run: who answers each generator's questions, in which words they are asked, and what they learn from.

It is made once, before any model is asked. Steps, thresholds, estimates and the manifests of runs and bases read it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, replace
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Any

import msgspec

from lmkbc.ask.builder import Frames
from lmkbc.components import CODE
from lmkbc.errors import InputError, counted
from lmkbc.files.checksum import content_sha256, file_sha256, sha256
from lmkbc.files.places import RecordedFile, given_as, name_of
from lmkbc.generate.access import is_given, served
from lmkbc.generate.recorded_rows import by_model, models_of
from lmkbc.generate.replay import shares
from lmkbc.generate.spec import GeneratorSpec
from lmkbc.models.identity import file_digest, model_name, paths_in, portable
from lmkbc.models.reference import ModelReference
from lmkbc.recipe import Recipe
from lmkbc.select.composed import Agreement
from lmkbc.select.selector import PerRelation
from lmkbc.session.options import EMPTY_TEXTS
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


@dataclass(frozen=True, kw_only=True)
class PlannedGenerator:
    """A generator of a plan.

    spec: its settings. files: recorded answers in place of its model; () if no file holds any, None if it is asked.
    """

    spec: GeneratorSpec
    files: tuple[RecordedFile, ...] | None

    def reads(self, run: Run) -> Run:
        """Return a run as the generator reads it: with the recorded answers in place of its model."""
        return run if self.files is None else replace(run, answers=self.files)


@dataclass(frozen=True, kw_only=True)
class Plan:
    """All that decides a run's candidates.

    run: data and options. recipe: the settings of the steps, with the rules that these files allow. generators: in the
    recipe's order.
    """

    run: Run
    recipe: Recipe
    generators: tuple[PlannedGenerator, ...]

    @classmethod
    def of(cls, run: Run, recipe: Recipe) -> Plan:
        """Plan a run. Raise InputError for recorded answers whose model is unknown, and for a rule that keeps nothing.

        One source has none to agree with, so its rules need no agreement, and blocks do not depend on one another.
        """
        parts = recipe.parts
        asked = sum(max(1, len(part.models)) for part in parts)
        for rule in (recipe.select.general, *recipe.select.rules.values()):
            if rule.models_needed > asked and not run.files and all(part.asks_model for part in parts):
                raise InputError(
                    f"select: rule {rule.name} keeps what {rule.models_needed} models name, and {recipe.name} asks "
                    f"{counted(asked, 'model')}, so it would keep nothing: lower its models, or add a generator"
                )
        answers = zip(recipe.generate, shares(recipe.generate, run), strict=True)
        recorded = run.files if recipe.takes_answers else ()
        generators = tuple(PlannedGenerator(spec=spec, files=files) for spec, files in answers)
        chosen = any(one.files is not None and one.spec.reads_files for one in generators)
        if len(generators) < 2 and (chosen or len(by_model(recorded, run.edition)) < 2):
            recipe = replace(recipe, select=alone(recipe.select))
        return cls(run=run, recipe=recipe, generators=generators)

    @property
    def is_replayed(self) -> bool:
        """Return whether recorded answers replace a model."""
        return any(generator.files is not None and generator.spec.is_replayed for generator in self.generators)

    @property
    def absent(self) -> list[str]:
        """Return the names of generators without answers in any file, whose models cannot be asked."""
        return [
            spec.called[0]
            for spec in (generator.spec for generator in self.generators if generator.files == ())
            if not (isinstance(spec, ModelReference) and is_given(spec, self.run))
        ]

    @cached_property
    def origin(self) -> Origin:
        """Return the origin of the candidates. A server whose model is left to it is asked for that model's name."""
        run, recipe = self.run, self.recipe
        models = {name for generator in self.generators for name in self._models(generator) if name}
        steps = {name: table for name, table in recipe.tables.items() if table and name not in ("generate", "select")}
        origin = Origin(models=tuple(sorted(models)), steps_sha256=_hash(portable(steps)) if steps else "")
        if not any(part.models for part in recipe.parts):
            return origin
        asked = {
            "generate": portable(_worded(recipe.tables["generate"])),
            **({"documents": True} if run.documents else {}),
            "relations": {
                name: {word: getattr(relation, word) for word in WORDS} for name, relation in run.relations.items()
            },
        }
        return replace(origin, wording=recipe.wording, wording_sha256=_hash(asked))

    def _models(self, generator: PlannedGenerator) -> Iterator[str]:
        """Yield the models whose answers a generator uses: recorded, served, or named; --model replaces the latter."""
        files, spec = generator.files, generator.spec
        if files is not None or (spec.reads_files and not spec.asks_model):
            for file in map(RecordedFile, self.run.files) if files is None else files:
                yield from models_of(file, self.run.edition)
            return
        for part in spec.whole():
            chosen = self._served(part)
            yield from map(model_name, [chosen] if chosen else [self.run.model or name for name in part.models])

    def _served(self, part: GeneratorSpec) -> str | None:
        return served(part, self.run) if isinstance(part, ModelReference) else None

    def served(self) -> list[str]:
        """Return the models of the servers that choose them, for the generators that ask."""
        asking = [generator.spec for generator in self.generators if generator.files is None]
        return [name for spec in asking for part in spec.whole() if (name := self._served(part)) is not None]

    @property
    def inputs(self) -> dict[str, str]:
        """Return name -> SHA-256 of each input file and local model. A name is never a path of this machine."""
        run, space, edition = self.run, self.run.workspace, self.run.edition
        splits = dict.fromkeys(filter(None, (*run.labelled_splits, run.split)))
        found = {f"{edition.folder}/{name}": content_sha256(space.split_path(edition, name)) for name in splits}
        found |= {
            name_of(given_as(Path(path))): content_sha256(path) for path in (*run.files, run.search_table) if path
        }
        found |= {name_of(path): file_sha256(path) for path in (run.index,) if path}
        found |= {f"{name_of(texts.folder)}/": texts.sha256 for texts in (run.documents,) if texts}
        asking = [self.recipe.tables.get(step, ()) for step in ("generate", "link", "pool")]
        return found | {model_name(path): file_digest(path) for path in paths_in([{"model": run.model}, *asking])}

    @property
    def code(self) -> dict[str, str]:
        """Return name -> SHA-256 of the workspace's own modules, without systems' code, which their recipes have."""
        own = [*chain.from_iterable(files.items() for files in self.run.workspace.code.values())]
        return {
            f"{path.parent.name}/{path.name}": sha256(text)
            for path, text in own
            if path.suffix == ".py" and path.name != CODE
        }

    @property
    def about(self) -> dict[str, Any]:
        """Return what the records of runs and of bases share, without paths of this machine."""
        run = self.run
        return {
            "edition": run.edition.name,
            **({} if run.empty in (None, EMPTY_TEXTS[0]) else {"empty": run.empty}),
            "system": self.recipe.name,
            "model": run.model and model_name(run.model),
            "recipe": portable(self.recipe.tables),
        }


def alone(selector: PerRelation) -> PerRelation:
    """Return a selector whose rules need no agreement of sources."""
    general = selector.general
    return replace(selector, general=general.then) if isinstance(general, Agreement) else selector


def _hash(tables: Any) -> str:
    return sha256(msgspec.json.encode(tables, order="deterministic"))


def _worded(value: Any) -> Any:
    """Return tables without the settings that do not change a prompt. Names of files of frames become their content."""
    if isinstance(value, Mapping):
        return {
            key: Frames.read(inner).tables if key == "frames" and isinstance(inner, str) else _worded(inner)
            for key, inner in value.items()
            if key not in NOT_ASKED
        }
    return [_worded(inner) for inner in value] if isinstance(value, list | tuple) else value
