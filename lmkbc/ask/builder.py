"""Plans of questions per relation: style, examples and sampling, from a recipe's tables and its file of frames.

A file of frames words each relation separately. It is a TOML table per relation, by any edition's name, with "*" for
all others. A table holds settings of a recipe's table `prompt`, and of its table `shots` under `shots`. [parts.NAME]
holds another such file, which a recipe names as "FILE#NAME".
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from lmkbc.ask.examples import ExampleSelector, KnownNames, Shots, read_bank
from lmkbc.ask.prompts import Composer, worded
from lmkbc.ask.slots import one_line
from lmkbc.ask.steps import Step
from lmkbc.ask.style import PromptStyle
from lmkbc.edition import Edition
from lmkbc.errors import InputError, did_you_mean
from lmkbc.files.reader import read_toml
from lmkbc.models.base import Message, Prompt, Sampling
from lmkbc.relation import Relation
from lmkbc.settings import changed, checked
from lmkbc.types import Example, Query
from lmkbc.workspace import bundled

Slots = Mapping[str, str]
"""Values of a chain's slots, by the names of their steps."""


PARTS = "parts"
"""Key of the parts in a file of frames."""


@dataclass(frozen=True, slots=True)
class Frames:
    """A file of frames, or a part of it. tables: relation, by any name, or "*" -> settings of its prompt."""

    name: str = ""
    tables: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    @classmethod
    def read(cls, name: str) -> Frames:
        """Return the frames of a bundled file or a path, optionally followed by "#PART".

        Raise InputError for a mistake.
        """
        if not name:
            return cls()
        place, _, part = name.partition("#")
        path = bundled("frames", place, ".toml")
        tables = _tables(path, read_toml(path))
        parts = _tables(path, tables.pop(PARTS, {}))
        if part and part not in parts:
            raise InputError(f"{path} has no part {part!r}: {did_you_mean(part, parts)}")
        if part:
            tables = _tables(path, parts[part])
        return cls(f"{path}#{part}" if part else str(path), tables)

    def of(self, relation: Relation) -> tuple[str, Mapping[str, Any]]:
        """Return the file's name for a relation, and the settings of its prompt; ("", {}) if there are none."""
        return relation.entry({name: (name, table) for name, table in self.tables.items()}, ("", {}))

    def check(self, asked: Mapping[str, Relation], edition: str) -> None:
        """Raise InputError for a relation of an edition without a frame.

        asked: the edition's relations, by its names.
        """
        for name, relation in asked.items() if self.name else ():
            if not self.of(relation)[0]:
                raise InputError(
                    f'{self.name}: no frame for relation {name!r} of edition {edition}: add a table [{name}], or ["*"] '
                    "for all that are not named"
                )


def part(file: str, name: str) -> str:
    """Return a file of frames, or "FILE#NAME" if it has a part of that name; "" if it has only other parts."""
    tables = _tables(Path(file), read_toml(Path(file)))
    if name in tables.get(PARTS, {}):
        return f"{file}#{name}"
    return "" if tables.keys() == {PARTS} else file


def _tables(path: Path, table: Mapping[str, Any]) -> dict[str, Any]:
    """Return a table of tables. Raise InputError for any other value in it."""
    wrong = next((name for name, value in table.items() if not isinstance(value, Mapping)), None)
    if wrong is not None:
        raise InputError(f"{path}: {wrong!r} is no table: give one per relation, as in [{wrong}]")
    return dict(table)


@dataclass(frozen=True, slots=True, kw_only=True)
class Differs:
    """Settings of one relation that replace those of the recipe's general tables."""

    prompt: Mapping[str, Any] = field(default_factory=dict)
    shots: Mapping[str, Any] = field(default_factory=dict)
    sampling: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class PromptSettings:
    """Settings of the questions to a model, as in a recipe.

    relations: relation, by any edition's name -> settings that differ for it. frames: file of frames, bundled by name
    or a path, optionally with "#PART"; its words replace those of the recipe.
    """

    prompt: PromptStyle = field(default_factory=PromptStyle)
    shots: Shots = field(default_factory=Shots)
    sampling: Sampling = field(default_factory=Sampling)
    relations: Mapping[str, Differs] = field(default_factory=dict)
    frames: str = ""

    def __post_init__(self) -> None:
        """Raise InputError for a wrong setting of a relation or frame, ValueError for wrong sampling of a step."""
        list(self.styles)

    @classmethod
    def reworded(cls, table: Mapping[str, Any], frames: str) -> Mapping[str, Any]:
        """Return a generator's table with a file of frames, or with the file's part of the table's name."""
        named = part(frames, str(table.get("name", "")))
        return {**table, "frames": named} if named else table

    @property
    def variants(self) -> Iterator[tuple[PromptStyle, Shots, Sampling]]:
        """Yield the style, examples and sampling of all tables and frames."""
        yield from (self.about(name) for name in ("", *self.relations))
        for name, frame in self.framing.tables.items():
            yield *self._in_frame(self.prompt, self.shots, name, frame), self.sampling

    @property
    def styles(self) -> Iterator[PromptStyle]:
        """Yield the styles of all tables and frames."""
        return (style for style, _, _ in self.variants)

    @cached_property
    def framing(self) -> Frames:
        """Return the file of frames."""
        return Frames.read(self.frames)

    def about(self, name: str) -> tuple[PromptStyle, Shots, Sampling]:
        """Return the style, examples and sampling of a relation, by its name in the table."""
        differs, where = self.relations.get(name, Differs()), f"relations.{name}"
        style = changed(self.prompt, differs.prompt, f"{where}.prompt")
        sampling = changed(self.sampling, differs.sampling, f"{where}.sampling")
        for step in style.steps:
            step.sampling(sampling)
        return style, changed(self.shots, differs.shots, f"{where}.shots"), sampling

    @property
    def chained(self) -> bool:
        """Return whether any relation is asked in steps."""
        return any(style.steps for style in self.styles)

    def framed(self, style: PromptStyle, shots: Shots, relation: Relation) -> tuple[PromptStyle, Shots]:
        """Return a relation's style in the words of its frame, and the examples that the frame prescribes."""
        name, frame = self.framing.of(relation)
        return self._in_frame(style, shots, name, frame) if name else (style, shots)

    def _in_frame(
        self, style: PromptStyle, shots: Shots, name: str, frame: Mapping[str, Any]
    ) -> tuple[PromptStyle, Shots]:
        settings, where = dict(frame), f"{self.framing.name}, {name}"
        shown = checked(Differs, {"shots": settings.pop("shots", {})}, where).shots
        words = {tuple(key.split(".")[1:]): settings.pop(key) for key in [*settings] if key.startswith("steps.")}
        framed = changed(style, settings, where)
        if words:
            framed = replace(framed, steps=tuple(_reworded(step, words, where) for step in framed.steps))
        return framed, changed(shots, shown, f"{where}.shots")


def _reworded(step: Step, words: Mapping[tuple[str, ...], Any], where: str) -> Step:
    """Return a step in other words. words: (step, setting) -> text."""
    texts = {key[-1]: text for key, text in words.items() if key[:-1] == (step.name,)}
    return changed(step, texts, f"{where}.steps.{step.name}")


@dataclass(frozen=True, slots=True)
class _Plan:
    """Style, examples, sampling and prompts of a relation's questions."""

    style: PromptStyle
    selector: ExampleSelector
    sampling: Sampling
    composer: Composer

    @property
    def redraws(self) -> bool:
        """Return whether each draw has examples of its own."""
        return self.selector.shots.per == "draw" and self.selector.shots.k > 0


class PromptBuilder:
    """Prompts and sampling for queries of an edition.

    known: all relations by all spellings. Settings of relations that the edition does not ask are ignored.
    """

    def __init__(
        self,
        edition: Edition,
        relations: Mapping[str, Relation],
        train: Sequence[Example],
        settings: PromptSettings,
        known: Mapping[str, Relation] | None = None,
    ) -> None:
        self._relations = {**(known or {}), **relations}
        spelt = {(known or relations)[name].name: name for name in settings.relations}
        selectors: dict[Shots, ExampleSelector] = {}
        names: KnownNames | None = None
        self._plans: dict[str, _Plan] = {}
        for name, relation in relations.items():
            style, shots, sampling = settings.about(spelt.get(relation.name, ""))
            style, shots = settings.framed(style, shots, relation)
            if shots not in selectors:
                spelt_as = relations if shots.relations == "own" else {}
                bank = read_bank(shots.path, self._relations, spelt_as) if shots.path else None
                if bank is None and names is None:
                    names = KnownNames(train)
                selectors[shots] = ExampleSelector(shots, train, bank, names if bank is None else None)
            composer = Composer(style, self._relations, name, edition=edition.name)
            self._plans[name] = _Plan(style, selectors[shots], sampling, composer)

    def plan(self, query: Query) -> _Plan:
        """Return the plan of a query's relation."""
        return self._plans[query.relation]

    def prompt(
        self, query: Query, context: str = "", slots: Slots | None = None, unseen: Query | None = None, draw: int = 0
    ) -> Prompt:
        """Return the prompt of a query.

        context: text that was found about it.
        slots: values from earlier steps.
        unseen: another query whose subject no example may show.
        draw: the draw that it is for.
        """
        return self._composed(query, context, slots, self._plans[query.relation].selector.select(query, unseen, draw))

    def showing(self, query: Query, shots: Sequence[Example]) -> Prompt:
        """Return the prompt of a query with the given worked examples instead of the recipe's."""
        return self._composed(query, "", None, shots)

    def shorter(self, query: Query, context: str, slots: Slots, draw: int = 0) -> Iterator[Prompt]:
        """Yield the same prompt with fewer and fewer examples, if the shots allow it."""
        for shots in self._plans[query.relation].selector.fewer(query, draw):
            yield self._composed(query, context, slots, shots)

    def step(self, query: Query, step: Step, slots: Slots) -> Prompt:
        """Return the prompt of a step. slots: values from earlier steps."""
        task, text = (self.filled(one, query, **slots) for one in (step.task, step.ask))
        return Prompt((Message("system", task),) if task else (), (Message("user", text),), self.plan(query).style.form)

    def _composed(self, query: Query, context: str, slots: Slots | None, shots: Sequence[Example]) -> Prompt:
        plan = self._plans[query.relation]
        style = plan.style
        if stop := next((stop for stop in style.stop if stop in one_line(query.subject)), ""):
            raise InputError(
                f"subject {query.subject!r} of {query.relation} holds {stop!r}, at which its prompt's answers stop, so "
                "that one which names it would be cut off: give prompt.stop another text"
            )
        if style.steps and slots is None:
            raise InputError(f"prompt.steps of {query.relation}: a model that is not asked to write fills no slots")
        return plan.composer.prompt(query, shots, context=context, slots=slots)

    def worded(self, template: str, query: Query, **slots: str) -> Prompt:
        """Return a template of the style as a prompt of its own, filled for a query."""
        return Prompt((), (Message("user", self.filled(template, query, **slots)),), self.plan(query).style.form)

    def filled(self, template: str, query: Query, **slots: str) -> str:
        """Return a template of the style, filled for a query."""
        return worded(template, self.plan(query).style, self._relations, query, **slots)
