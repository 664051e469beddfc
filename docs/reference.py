"""The reference: pages that are made of the code, from the command, the recipes' dataclasses, editions and recipes.

    python docs/reference.py

Write docs/reference/ anew. Its pages are committed, so that links to them lead somewhere in a clone; a test compares
them with fresh ones. Nothing in them depends on the terminal, the environment or installed plug-ins.
"""

from __future__ import annotations

import inspect
import re
import sys
import typing
from collections.abc import Iterator, Mapping
from dataclasses import MISSING, fields, is_dataclass
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

import typer

import lmkbc
from lmkbc.cli import PURPOSES, build
from lmkbc.edition import Edition
from lmkbc.generate.spec import spec_of
from lmkbc.link.cleaning import Cleaning
from lmkbc.link.linker import Linking
from lmkbc.recipe import RecipeFile
from lmkbc.registry import GENERATORS, RULES
from lmkbc.scoring.table import Metric
from lmkbc.select.pool import Pooling
from lmkbc.select.rule import LEARNED, Choice, PrefixRule, Range, Real
from lmkbc.workspace import Workspace

DOCS = Path(__file__).resolve().parent
sys.path[:0] = [str(DOCS)]
import systems  # noqa: E402 (beside this file)
from cells import cell, table  # noqa: E402 (beside this file)

FOLDER = DOCS / "reference"
WRITTEN = "python docs/reference.py"
"""The command that writes the pages anew."""
WORDS = {"str": "text", "int": "whole number", "float": "number", "bool": "true or false", "Any": "anything"}


def pages() -> dict[Path, str]:
    """Return path -> text of each page."""
    space = Workspace()
    made = {
        "reference/commands.md": commands(),
        "reference/recipes.md": recipes(),
        "reference/python.md": python(),
        "reference/scores.md": scores(space),
    } | systems.pages(space)
    return {DOCS / place: text.strip() + "\n" for place, text in made.items()}


def differing() -> list[str]:
    """Return the names of committed pages that are missing, are old, or should not be there."""
    fresh = pages()
    known = {path: path.read_text(encoding="utf-8") for path in FOLDER.rglob("*.*")}
    return sorted(str(path.relative_to(DOCS)) for path in fresh | known if fresh.get(path) != known.get(path))


def main() -> None:
    """Write the pages, and remove those that are no longer made."""
    fresh = pages()
    for path in set(FOLDER.rglob("*.*")) - set(fresh):
        path.unlink()
    for path, text in fresh.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    print(f"{FOLDER.relative_to(DOCS.parent)}: {len(fresh)} pages")


def commands() -> str:
    """Every command with its arguments and options; a table of the commands leads to them."""
    sections: list[str] = []
    rows: dict[str, tuple[str, list[str]]] = {}
    for words, command in _tree(typer.main.get_command(build()), ("lmkbc",)):
        context = typer.Context(command, info_name=" ".join(words), help_option_names=["-h", "--help"])
        name, told = " ".join(words), inspect.cleandoc(command.help or "")
        link = f"#{'-'.join(words)}"
        if len(words) == 2:
            rows[words[1]] = (f"[`{name}`]({link}): {cell(PURPOSES[words[1]])}", [])
        elif words[1:]:
            rows[words[1]][1].append(f"[`{' '.join(words[2:])}`]({link})")
        sections += [f"## `{name}`", "", told, ""]
        records = [record for one in command.get_params(context) if (record := one.get_help_record(context))]
        if words[1:] and not hasattr(command, "commands"):
            sections += table(("option", "what it does"), [(f"`{name.strip()}`", cell(text)) for name, text in records])
        if command.epilog and words[1:]:
            sections += ["```", command.epilog.removeprefix("Example: "), "```", ""]
    top = ["# Commands", "", "Made from the command itself; `lmkbc COMMAND --help` says the same.", ""]
    top += [f"- {about}{' ' if within else ''}{', '.join(within)}" for about, within in rows.values()]
    return "\n".join([*top, "", *sections])


def _tree(command: Any, words: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Any]]:
    yield words, command
    context = typer.Context(command)
    for name in command.list_commands(context) if hasattr(command, "list_commands") else ():
        yield from _tree(command.get_command(context, name), (*words, name))


def recipes() -> str:
    """Every setting of a recipe, from the dataclasses that check it."""
    lines = [
        "# Recipe settings",
        "",
        "Made from the dataclasses that check a recipe, which are the only lists there are.",
    ]
    inner: dict[str, type[Any]] = {}
    lines += ["", "## Top level", "", *_settings(RecipeFile, inner)]
    tables: dict[type[Any], list[str]] = {}
    for name in GENERATORS:
        tables.setdefault(spec_of(name), []).append(f'"{name}"')
    for spec, names in tables.items():
        lines += [f"## `[[generate]]` with `component = {' or '.join(names)}`", "", *_settings(spec, inner)]
    for name, kind in (("link", Linking), ("clean", Cleaning), ("pool", Pooling)):
        lines += [f"## `[{name}]`", "", *_settings(kind, inner)]
    lines += ["## Tables within", ""]
    done: set[str] = set()
    while todo := [name for name in inner if name not in done]:
        for name in todo:
            done.add(name)
            lines += [f"### {name}", "", *_settings(inner[name], inner)]
    lines += ["## `[select]`: rules", "", "`rule` names one of these; the rest are its parameters.", ""]
    lines += ["### Rules that keep the best", "", *_settings(PrefixRule, inner)]
    for name in sorted(RULES):
        rule = RULES.get(name)
        keeps_best = issubclass(rule, PrefixRule)
        lines += [f"### `{name}`", "", *_settings(rule, inner, PrefixRule if keeps_best else None)]
        lines += ["It keeps the best, so it has `min` and `max` too.", ""] if keeps_best else []
        lines += [f"`lmkbc tune` searches `{parameter}`: {_range(span)}." for parameter, span in rule.search.items()]
        if learned := _learned(rule):
            names = ", ".join(f"`{parameter}`" for parameter in learned)
            lines += [f"`lmkbc tune` learns {names}, for its thresholds; a recipe has no such setting.", ""]
    return "\n".join(lines)


def _settings(kind: type[Any], inner: dict[str, type[Any]], base: type[Any] | None = None) -> list[str]:
    """Return a dataclass's docstring and a table of its fields; dataclasses within go to `inner`.

    base: class whose fields stand elsewhere.
    """
    hints = typing.get_type_hints(kind)
    rows = []
    without = {field.name for field in fields(base)} if base else set()
    for field in (field for field in fields(kind) if field.name not in {*without, *_learned(kind)}):
        default = field.default if field.default_factory is MISSING else field.default_factory()
        shown = "needed" if default is MISSING else "" if default is None or is_dataclass(default) else f"`{default!r}`"
        rows.append((f"`{field.name}`", cell(_kind(hints[field.name], inner)), cell(shown)))
    told = inspect.cleandoc(kind.__doc__ or "").replace("<", "&lt;")
    return [told, "", *(table(("setting", "is", "default"), rows) if rows else [])]


def _learned(kind: type[Any]) -> list[str]:
    """Return the parameters of a rule that tuning learns, and that no recipe may set."""
    hints = typing.get_type_hints(kind, include_extras=True)
    return [field.name for field in fields(kind) if LEARNED in getattr(hints[field.name], "__metadata__", ())]


def _range(span: Range) -> str:
    """Return what a search range covers, as a phrase."""
    if isinstance(span, Choice):
        return " or ".join(f"`{option}`" for option in span.options)
    scale = ", on a logarithmic scale" if isinstance(span, Real) and span.log else ""
    return f"{span.low:g} to {span.high:g}{scale}"


def _kind(hint: Any, inner: dict[str, type[Any]]) -> str:
    """Return the name of a type in TOML."""
    origin, args = get_origin(hint), get_args(hint)
    if origin is Literal:
        return " or ".join(f"`{value!r}`" for value in args)
    if isinstance(hint, type) and is_dataclass(hint):
        inner.setdefault(hint.__name__, hint)
        return f"table {hint.__name__}"
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return f"table of {_kind(args[1], inner)}"
    if origin in (tuple, list) or (isinstance(origin, type) and issubclass(origin, typing.Sequence)):
        return f"list of {_kind(args[0], inner)}" if args else "list"
    if args:
        return " or ".join(dict.fromkeys(_kind(one, inner) for one in args if one is not type(None)))
    name = getattr(hint, "__name__", str(hint))
    return WORDS.get(name, f"table with a rule ({name})" if name.endswith("Rule") else name)


def python() -> str:
    """Return the page of the public names, with their signatures and docstrings."""
    lines = [
        "# Python",
        "",
        "The public names of `lmkbc`, made from their docstrings. [How they go together](../python.md).",
        "",
    ]
    for name in sorted(lmkbc.__all__, key=lambda name: (name[0].isupper(), name)):
        value = getattr(lmkbc, name)
        lines += [f"## `{name}`", "", *_signature(name, value), _told(value), ""]
        for own, member in vars(value).items() if inspect.isclass(value) else ():
            if not own.startswith("_") and (told := inspect.getdoc(member)) and _is_own(member):
                mark = "()" if inspect.isfunction(member) else ""
                lines += [f"- `{own}{mark}`: {cell(told)}"]
        lines.append("")
    return "\n".join(lines)


def _is_own(member: Any) -> bool:
    return inspect.isfunction(member) or isinstance(member, property | classmethod) or hasattr(member, "attrname")


def _signature(name: str, value: Any) -> list[str]:
    if not inspect.isfunction(value):
        return []
    shown, own = inspect.signature(value).parameters, inspect.signature(inspect.unwrap(value)).parameters
    written = ",\n    ".join(_parameter(shown.get(parameter, declared)) for parameter, declared in own.items())
    return ["```", f"{name}(\n    {written},\n)", "```", ""]


def _parameter(one: inspect.Parameter) -> str:
    default = getattr(one.default, "__name__", repr(one.default))
    shown = "" if one.default is inspect.Parameter.empty else f" = {default}"
    stars = {inspect.Parameter.VAR_POSITIONAL: "*", inspect.Parameter.VAR_KEYWORD: "**"}.get(one.kind, "")
    kind = one.annotation if isinstance(one.annotation, str) else inspect.formatannotation(one.annotation)
    kind = re.sub(r"\b(collections\.abc|pathlib|typing)\.", "", kind)
    return f"{stars}{one.name}: {kind}{shown}"


def _told(value: Any) -> str:
    """Return a docstring, and what each parameter of a function means that is an option too."""
    own = inspect.unwrap(value) if inspect.isfunction(value) else value
    told = [(inspect.getdoc(own) or "").replace("<", "&lt;")]
    if inspect.isfunction(value) and (options := getattr(value, "options", {})):
        parameters = inspect.signature(own).parameters
        own_options = [(name, about) for name, (_, about) in options.items() if name in parameters]
        told += ["", *(f"- `{name}`: {about.description}" for name, about in own_options)]
        if not options.keys() <= parameters.keys():
            link = f"[`lmkbc {own.__name__}`](commands.md#lmkbc-{own.__name__})"
            told += [f"- `options`: those of {link}, with `_` for `-`; `--from` is `files`."]
    return "\n".join(told)


def scores(space: Workspace) -> str:
    """How each edition scores, from its module and scorer."""
    lines = ["# How scores are computed", "", inspect.cleandoc(SCORED), ""]
    for edition in space.editions.values():
        lines += [f"## {edition.name}", "", inspect.cleandoc(_about(edition)), ""]
        for profile, metric in (("", edition.metric), *edition.profiles.items()):
            lines += [f"**{f'Profile `{profile}`' if profile else 'Metric'}.** {_metric(metric)}", ""]
        rows = [
            (cell(one.system), one.split, *map(_printed, (one.p, one.r, one.f1)), one.profile)
            for one in edition.published
        ]
        lines += table(("published", "split", "P", "R", "F1", "profile"), rows) if rows else []
    return "\n".join(lines)


SCORED = """
Of each query, precision is the share of predicted objects that are right, recall the share of gold objects that are
found, F1 their harmonic mean. Nothing predicted has precision 1, nothing to find has recall 1: an empty answer to an
empty gold scores 1, and either alone scores 0. Macro figures are means over queries, and over relations where the
edition says so. A query that no model answered is no empty answer: it is never submitted as one unless that is asked
for.
"""


def _printed(score: float | None) -> str:
    return "" if score is None else f"{score:.3f}"


def _about(edition: Edition) -> str:
    names = ", ".join(f"`{name}`" for name in edition.relations)
    target = "QIDs, so names are linked" if edition.target == "id" else "strings"
    return f"Column `{edition.column}`: {target}. Tuned on the split `{edition.held_out}`. Relations: {names}."


def _metric(metric: Metric) -> str:
    average = "the mean over relations" if metric.average == "relation" else "the mean over queries"
    missing = "counts as empty" if metric.missing == "empty" else "is refused"
    parts = [_told(type(metric.scorer)), f"Overall: {average}. A query that a file lacks {missing}."]
    if metric.vacuous != 1.0:
        parts.append(
            f"Precision of no answer where there is one, and recall of one where there is none: {metric.vacuous:g}."
        )
    return "\n\n".join(parts)


if __name__ == "__main__":
    main()
