"""Options of the public functions: their list, a TypeError for unknown keywords, and the run that they describe."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Sequence
from dataclasses import fields, replace
from functools import wraps
from inspect import Parameter, getdoc, signature
from pathlib import Path
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from lmkbc.edition import Edition
from lmkbc.errors import InputError, OptionError, did_you_mean, lacking
from lmkbc.session.options import EMPTY_TEXTS, Inputs, RunOptions, Servers, described, settled
from lmkbc.session.subset import Subset
from lmkbc.settings import listed
from lmkbc.workspace import Workspace

if TYPE_CHECKING:
    from lmkbc.plan import Plan
    from lmkbc.session.quotes import Quoting

log = logging.getLogger(__name__)

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")


def keywords(function: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
    """Return a function that refuses unknown keywords, and lists the known ones in `help` and in notebooks.

    Its attribute `options` has those that a command takes too: name -> (type, help and bounds).
    """
    declared, shown = described(function), signature(function)
    own = [one for one in shown.parameters.values() if one.kind is not Parameter.VAR_KEYWORD]
    plain = [one.replace(annotation=declared[one.name][0]) if one.name in declared else one for one in own]
    plain += [
        Parameter(name, Parameter.KEYWORD_ONLY, default=False if hint is bool else None, annotation=hint)
        for name, (hint, _) in declared.items()
        if name not in shown.parameters
    ]
    named = {one.name for one in plain if one.kind in _BY_NAME}

    @wraps(function)
    def call(*values: Parameters.args, **given: Parameters.kwargs) -> Result:
        if unknown := [name for name in given if name not in named]:
            refused = "; ".join(f"{name!r}: {did_you_mean(name, named)}" for name in unknown)
            raise TypeError(f"{function.__name__}() takes no keyword {refused}")
        try:
            return function(*values, **given)
        except ModuleNotFoundError as error:
            raise lacking(error) or error from None

    call.__signature__, call.options = shown.replace(parameters=plain), declared  # type: ignore[attr-defined]
    lines = [f"{name}: {about.description}" for name, (_, about) in declared.items()]
    call.__doc__ = "\n".join([f"{getdoc(function)}\n", *lines])
    return call


_BY_NAME = (Parameter.POSITIONAL_OR_KEYWORD, Parameter.KEYWORD_ONLY)


def chosen_edition(workspace: Workspace, name: str | None, relation: str | None = None) -> Edition:
    """Return the named edition, else the workspace's own, else the newest whose data is here. The choice is logged.

    relation: any of its names; only editions with it are considered. InputError if there is none.
    """
    if name is not None:
        return workspace.edition(name)
    own = workspace.own_editions
    if workspace.is_empty and relation is None:
        raise InputError(
            f"the workspace {workspace.root} has no relations: make them with 'lmkbc relations new', or name a bundled "
            "edition with --edition"
        )
    newest = sorted(
        workspace.editions.values(),
        key=lambda edition: (edition.name in own, not edition.is_bundled, edition.name),
        reverse=True,
    )
    if relation is not None:
        wanted = workspace.relation(relation)
        newest = [edition for edition in newest if wanted in map(workspace.relation, edition.relations)]
        if not newest:
            raise InputError(f"no edition asks {relation!r}: see 'lmkbc relations list'")
    if newest[0].name in own:
        return newest[0]
    chosen = next(filter(workspace.has_data, newest), None)
    if chosen is None and relation is None:
        return newest[0]  # what reads its data says how to fetch them
    if chosen is None:
        name = newest[0].name
        log.info(
            "No data of edition %s here, so none is read: 'lmkbc data fetch %s' fetches examples and names.", name, name
        )
        return replace(newest[0], splits=dict.fromkeys(newest[0].splits))
    if chosen.is_bundled and not newest[0].is_bundled:
        log.info(
            "No data of edition %s here: using the small bundled edition '%s'. "
            "'lmkbc data fetch %s' fetches the real one.",
            newest[0].name,
            chosen.name,
            newest[0].name,
        )
    else:
        log.info("Edition %s: the newest whose data is here. --edition names another.", chosen.name)
    return chosen


def opened(options: RunOptions, relations: Sequence[str] | str | None = None) -> Plan:
    """Plan a run: of recorded answers if files are given, else of the default recipe. InputError for wrong input.

    relations: by any of their names; None for all.
    """
    inputs, space, edition = _placed(options)
    return _opened(options, inputs, space, edition, asked=Subset.of(edition, relations, None).relations)


def opened_subset(
    options: RunOptions, split: str | None, relations: Sequence[str] | str | None, limit: int | None
) -> tuple[Plan, Subset]:
    """Plan a run of a subset of a split. The subset is checked before models are loaded.

    split: default: the edition's labelled held-out split.
    """
    inputs, space, edition = _placed(options)
    split = edition.split_named(split or edition.held_out)
    space.split_path(edition, split)
    subset = Subset.of(edition, relations, limit)
    return _opened(options, inputs, space, edition, split, subset.relations), subset


def opened_relation(options: RunOptions, relation: str) -> tuple[Plan, str]:
    """Plan a run for one relation, given by any name. Return the plan, and the edition's name of the relation."""
    inputs, space, edition = _placed(options, relation)
    (name,) = Subset.of(edition, relation, None).relations
    return _opened(options, inputs, space, edition, asked=[name]), name


def _placed(options: RunOptions, relation: str | None = None) -> tuple[Inputs, Workspace, Edition]:
    """Return the settled inputs of a run, and the workspace and edition that they name."""
    inputs = settled(Inputs, options)
    space = Workspace(inputs["workspace"], inputs["data"], trust=inputs["trust"])
    return inputs, space, chosen_edition(space, inputs["edition"], relation)


def _opened(
    options: RunOptions,
    inputs: Inputs,
    space: Workspace,
    edition: Edition,
    split: str = "",
    asked: Collection[str] = (),
) -> Plan:
    from lmkbc.generate.script_rows import as_recorded
    from lmkbc.plan import Plan
    from lmkbc.recipe import default_recipe, read_recipe
    from lmkbc.session.run import Run

    learn_from = _learned(inputs["learn_from"], space, edition, split)
    if inputs["empty"] not in ((None, *EMPTY_TEXTS) if inputs["files"] else (None,)):
        meanings = " or ".join(EMPTY_TEXTS)
        raise OptionError("empty", f"is {inputs['empty']!r}: give {meanings}, and recorded answers with --from")
    if inputs["api_url"] is not None and (edition.target != "id" or inputs["search_table"] is not None):
        raise OptionError("api_url", "is of searches for QIDs, which this run does not send: leave it out")
    system = "recorded" if inputs["system"] is None and inputs["files"] else inputs["system"]
    if system is not None:
        chosen = read_recipe(space, system)
    else:
        chosen, remark = default_recipe(space, inputs["model"])
        if remark:
            log.info("%s", remark)
    if not chosen.learns:
        if learn_from:
            raise OptionError("learn_from", f"has no effect: {chosen.name} learns from no labelled rows; leave it out")
        learn_from = ("train",) if learn_from is None else ()
    files = tuple(map(Path, inputs["files"] or ()))
    if chosen.takes_answers:
        files = as_recorded(files, space, edition, asked)
    values: dict[str, Any] = {
        **inputs,
        "workspace": space,
        "edition": edition,
        "split": split,
        "learn_from": learn_from,
        "files": files,
        "servers": settled(Servers, options),
        "documents": None if inputs["documents"] is None else _documents(inputs["documents"]),
    }
    run = Run(**{field.name: values[field.name] for field in fields(Run) if field.name in values})
    return Plan.of(run, chosen)


def _documents(folder: Any) -> Quoting:
    """Return the documents of a folder."""
    from lmkbc.domain.documents import Documents

    return Documents(folder)


def check_kept(plan: Plan, command: str) -> None:
    """Raise InputError if what labelled rows state is to be left out, for a command that scores all that is kept."""
    if plan.run.learn_from == ():
        raise OptionError("learn_from", f"is none, which leaves out right objects; {command} scores all: give train")


def _learned(given: str | None, space: Workspace, edition: Edition, split: str) -> tuple[str, ...] | None:
    """Return the splits that --learn-from names; None for the usual ones. InputError for others."""
    if given is None:
        return None
    names = [edition.split_named(name) for name in listed(given) or ()]
    if names == ["none"]:
        return ()
    if "train" not in names or not {*names} <= {"train", edition.held_out}:
        raise OptionError("learn_from", f"is {given!r}: give train, train,{edition.held_out} or none")
    if split == edition.held_out and split in names:
        raise OptionError("learn_from", f"names {split}, which is the split that is asked: give train")
    for name in names:
        space.gold_path(edition, name)
    return tuple(dict.fromkeys(("train", *names)))
