"""A system as a recipe: the component and settings of each step. The file is read and checked here."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, ClassVar, Literal

from lmkbc.ask.wording import WordingSource
from lmkbc.components import code_of
from lmkbc.errors import InputError
from lmkbc.files.checksum import damaged, read_digests
from lmkbc.files.places import fetched_frames, fetched_record
from lmkbc.files.reader import read_toml
from lmkbc.generate.spec import GeneratorSpec, check_names, sources_of, specs
from lmkbc.link.cleaning import Cleaning
from lmkbc.link.linker import Linking
from lmkbc.models.located import generative, is_available
from lmkbc.relation import Relation
from lmkbc.select.pool import Pooling
from lmkbc.select.rule import Rule, build
from lmkbc.select.selector import PerRelation
from lmkbc.settings import check_read, checked
from lmkbc.workspace import Workspace, system_name


@dataclass(frozen=True, slots=True, kw_only=True)
class RecipeFile:
    """Top level of a recipe's file, with the tables of the steps unchecked.

    summary: what it does, in about five words, for lists.
    year: year of the challenge in which a published system took part.
    wording: whose words the prompts use, this project's ("own") or the authors', which 'lmkbc systems fetch' downloads.
    differs: sentences about parts of the system that cannot be reproduced.
    shortcuts: sentences about parts that could be, but are not.
    reworded: sentences about prompts in this project's words that 'lmkbc systems fetch' replaces by the authors'.
    source: where the authors' words are published.
    licence: of what they published, if there is no `source`, which has it; "none" if there is none.
    """

    description: str
    generate: tuple[Mapping[str, Any], ...]
    select: Mapping[str, Any]
    link: Mapping[str, Any] = field(default_factory=dict)
    clean: Mapping[str, Any] = field(default_factory=dict)
    pool: Mapping[str, Any] = field(default_factory=dict)
    summary: str = ""
    citation: str = ""
    year: int | None = None
    wording: Literal["own", "authors"] = "own"
    differs: tuple[str, ...] = ()
    shortcuts: tuple[str, ...] = ()
    reworded: tuple[str, ...] = ()
    source: WordingSource | None = None
    licence: str = ""
    published: Mapping[str, float] = field(default_factory=dict)

    REMOVED: ClassVar[Mapping[str, str]] = {"group": "write its settings, also component, in [pool]"}

    def __post_init__(self) -> None:
        """Raise ValueError if there is no generator, or if a published score has no split or is not in [0, 1]."""
        if not self.generate:
            raise ValueError("generate is empty: give a table [[generate]] for each generator")
        for place, score in self.published.items():
            if not re.fullmatch("[^/]+/[^/]+(/[^/]+)?", place):
                raise ValueError(
                    f"published names {place!r}: give an edition and a split, as in '2023/val', and behind them the "
                    "metric profile where it is not the edition's own"
                )
            if not 0 <= score <= 1:
                raise ValueError(f"published.{place} is {score}: give a macro-F1 from 0 to 1")

    @property
    def differences(self) -> dict[str, Sequence[str]]:
        """Return kind -> sentences; no words differ where the prompts are in the authors' words."""
        return {
            "differs": self.differs,
            "shortcuts": self.shortcuts,
            "reworded": () if self.wording == "authors" else self.reworded,
        }

    @property
    def models(self) -> tuple[str, ...]:
        """Return the models that the generators and the tables within them name, each once."""
        return tuple(dict.fromkeys(name for table in self.generate for name in _models(table)))

    @property
    def score(self) -> float | None:
        """Return the published score of the recipe's year: on test if there is one, else on the held-out split."""
        scores = {place: score for place, score in self.published.items() if place.startswith(f"{self.year}/")}
        return scores.get(f"{self.year}/test", next(iter(scores.values()), None))


def _models(table: Mapping[str, Any]) -> Iterator[str]:
    """Yield the models of a generator's table, and of the tables within it, source by source."""
    for source in sources_of(table) if isinstance(table.get("each"), list) else [table]:
        model = source.get("model")
        named = model if isinstance(model, Mapping) else {"name": model}  # a name with settings, or models by relation
        each = [named["name"]] if "name" in named else named.values()
        yield from (name for name in each if isinstance(name, str))
        for value in source.values():
            for within in value if isinstance(value, list) else [value]:
                if isinstance(within, Mapping):
                    yield from _models(within)


TABLES: Mapping[str, type[Any]] = {"link": Linking, "clean": Cleaning, "pool": Pooling}
STEPS = ("generate", "link", "clean", "pool", "select")
NEEDED = ("description", "generate", "select")


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """Components of all steps, with published scores: "edition/split" or "edition/split/profile" -> macro-F1.

    The metric profile is given if it is not the edition's own. tables: the steps as written in the file, for a run's
    records.
    """

    name: str
    generate: tuple[GeneratorSpec, ...]
    select: PerRelation
    link: Linking = field(default_factory=Linking)
    clean: Cleaning = field(default_factory=Cleaning)
    pool: Pooling = field(default_factory=Pooling)
    wording: str = "own"
    published: Mapping[str, float] = field(default_factory=dict)
    tables: Mapping[str, Any] = field(default_factory=dict)

    @property
    def parts(self) -> list[GeneratorSpec]:
        """Return the tables of all generators, each before the tables of the generators within it."""
        return [part for spec in self.generate for part in spec.whole()]

    @property
    def takes_answers(self) -> bool:
        """Return whether the files of a run are recorded answers, and not texts or vectors that a part reads."""
        return not any(part.reads_files and part.asks_model for part in self.parts)

    @property
    def learns(self) -> bool:
        """Return whether a step learns from labelled rows; examples in prompts and names for links do not count."""
        return self.pool.train_sides or any(part.learns for part in self.parts)


def read_recipe(workspace: Workspace, system: str | Mapping[str, Any]) -> Recipe:
    """Read a bundled recipe by name, another by path, or one that is given as the table of a file, and its `name`.

    Raise InputError with file, table and setting.
    """
    if isinstance(system, str):
        path = workspace.recipe_path(system)
        where, called, name, file = str(path), system, system_name(path), read_file(path)
        workspace.load_code(path)
    else:
        where, called = "system", str(system.get("name", "recipe"))
        if not re.fullmatch(r"[\w-][\w.-]*", called):
            raise InputError(f"system: name is {called!r}: give a file's name, as in 'my-recipe'")
        name, table = called, {"description": called} | {key: system[key] for key in system if key != "name"}
        file = _file_of(table, where)
    words = ""
    try:
        words = authors_words(name, Path(called).name) if file.wording == "authors" else ""
        return make_recipe(name, file, workspace.relations, words)
    except InputError as error:
        anew = (
            f"; 'lmkbc systems fetch {Path(called).name}' converts them anew" if words and words in str(error) else ""
        )
        raise InputError(f"{where}: {error}{anew}") from None


def read_file(path: Path) -> RecipeFile:
    """Read the file of a recipe. Raise InputError if it is no TOML or lacks a part."""
    return _file_of(read_toml(path), str(path))


def _file_of(table: Mapping[str, Any], where: str) -> RecipeFile:
    lacking = [part for part in NEEDED if part not in table]
    if lacking and table.keys() <= {field.name for field in fields(RecipeFile)}:  # else one is misspelt
        raise InputError(f"{where}: lacks {lacking[0]}; a recipe needs description, [[generate]] and [select]")
    return checked(RecipeFile, table, f"{where}: a recipe")


def make_recipe(name: str, file: RecipeFile, relations: Mapping[str, Relation], words: str = "") -> Recipe:
    """Return a recipe with all tables checked.

    relations: all relations, by every name. words: file of frames that replaces the recipe's own. Raise InputError for
    a wrong setting.
    """
    recipe = Recipe(
        name=name,
        generate=specs(file.generate, words),
        select=_selector(file.select, relations),
        **{step: checked(kind, table, step) for step, kind in TABLES.items() if (table := getattr(file, step))},
        wording=file.wording,
        published=file.published,
        tables={step: getattr(file, step) for step in STEPS}
        | ({"generate": tuple({**table, "frames": words} for table in file.generate)} if words else {}),
    )
    if code := code_of(recipe.tables):
        recipe = replace(recipe, tables={**recipe.tables, "code": code})
    parts: list[Any] = [*recipe.generate, recipe.link, recipe.clean, recipe.pool]
    for part in parts:
        part.check(relations)
    return recipe


def check_all_read(recipe: Recipe, selector: PerRelation) -> None:
    """Raise InputError for a setting of a recipe that has no effect with a selector."""
    whole = replace(recipe, select=selector)
    for spec in recipe.generate:
        check_read(spec, (whole,), f"generator {spec.name or spec.component!r}")
    for name in TABLES:
        check_read(getattr(recipe, name), (whole,), name)


def authors_words(name: str, called: str) -> str:
    """Return the file of frames in the words of a system's authors. Raise InputError if it is missing or changed.

    called: the system for messages, by name or file.
    """
    path = fetched_frames(name)
    if not path.is_file():
        raise InputError(
            "wording is 'authors', whose words are not on this machine: run 'lmkbc systems fetch "
            f"{called}', or say wording = 'own'"
        )
    digests = read_digests(fetched_record(name))
    made = {file: digest for file, digest in digests.items() if "/" not in file}  # the others are addresses
    if changed := next(damaged(path.parent, made), ""):
        raise InputError(
            f"{path.with_name(changed)} is not as it was fetched: run 'lmkbc systems fetch {called}' "
            "again, or give a copy of the words another name, as frames of a recipe of yours"
        )
    return str(path)


def _selector(table: Mapping[str, Any], relations: Mapping[str, Relation]) -> PerRelation:
    """Return the selector of the table `select`: the general rule, and the rules of single relations in `relations`."""
    general = _rule({name: value for name, value in table.items() if name != "relations"}, "select")
    tables = checked(dict[str, dict[str, Any]], table.get("relations", {}), "select.relations")
    check_names(tables, relations, "select.relations")
    rules: dict[str, Rule] = {}
    for name, part in tables.items():
        if relations[name].name in rules:
            raise InputError(f"select.relations names {relations[name].name} twice: {name!r} is another name of it")
        rules |= dict.fromkeys(relations[name].spellings(), _rule(part, f"select.relations.{name}"))
    return PerRelation(general, rules)


def _rule(table: Mapping[str, Any], what: str) -> Rule:
    try:
        rule = build(table)
    except InputError as error:
        raise InputError(f"{what}: {error}") from None
    check_read(rule, (), what)
    return rule


DEFAULT, WITHOUT_MODEL = "smollm2-embedded", "embedded"
"""The default recipe, and its replacement if its model is missing."""


def default_recipe(space: Workspace, model: str | None = None) -> tuple[Recipe, str]:
    """Return the workspace's default recipe, else the bundled one, and a remark for the user, "" for none.

    model: the user's model, None for the recipe's.

    The bundled recipe's model is not downloaded if it is not on this machine.
    """
    recipe = read_recipe(space, space.settings.system or DEFAULT)
    if model or space.settings.system:
        return recipe, ""
    lacking = [name for part in recipe.parts for name in part.models if name and not is_available(name)]
    if not lacking:
        return recipe, ""
    known = generative(lacking[0])
    how = f" ({known.install})" if known else ""
    remark = f"{lacking[0]} is not on this machine{how}: {WITHOUT_MODEL} answers without it"
    return read_recipe(space, WITHOUT_MODEL), remark
