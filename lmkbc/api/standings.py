"""Where the systems of an edition stand: published results and our own, with what each of them needs."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

from lmkbc.edition import Edition, Published
from lmkbc.errors import check_known
from lmkbc.files.reader import read_toml
from lmkbc.generate.language_model import LanguageModelSpec
from lmkbc.generate.spec import converses
from lmkbc.generate.verify import VERIFICATION
from lmkbc.recipe import RecipeFile, read_file, read_recipe
from lmkbc.session.run import Run
from lmkbc.types import Query
from lmkbc.workspace import Workspace

Order = Literal["f1", "billions", "draws", "tokens", "system"]
SIZE = re.compile(r"(?:^|[-_: ])e?(\d+(?:\.\d+)?)([bm])(?![a-z])", re.IGNORECASE)
"""Size of a model in its name, as in Qwen3-8B or SmolLM2-135M."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing(Published):
    """A result, and what its system needs.

    draws: answers to a query, at most; the mean of the relations, as `tokens` is.
    tokens: most tokens that its models write about a query, checks of facts left out. None if unknown or unlimited.
    billions: parameters of all its models, by their names; None if a name has no size.
    differs, shortcuts, reworded: sentences of its recipe; None for no recipe of a published system.
    measured: command that measured the result here; "" for a published one.
    """

    billions: float | None = None
    tokens: float | None = None
    differs: Sequence[str] | None = None
    shortcuts: Sequence[str] | None = None
    reworded: Sequence[str] | None = None
    measured: str = ""


def standings(space: Workspace, name: str, split: str | None = None, order: Order = "f1") -> list[Standing]:
    """Return the results of an edition, those of a split together, since only these can be compared: test comes first.

    split: only results on it. order: best F1 first, or least of another quantity. InputError for an unknown edition or
    split.
    """
    edition = space.edition(name)
    if split is not None:
        split = edition.split_named(split)
        check_known(split, edition.splits, f"edition {name} has no split {split!r}")

    def place(row: Standing) -> tuple[Any, ...]:
        value = {"f1": -row.f1, "system": 0}.get(order, getattr(row, order))
        return (
            row.split != "test",
            row.split != edition.held_out,
            row.split,
            row.profile,
            value is None,
            value or 0,
            row.system,
        )

    return sorted((row for row in _rows(space, edition) if split in (None, row.split)), key=place)


def _rows(space: Workspace, edition: Edition) -> Iterator[Standing]:
    measured = _measured(space, edition)
    for name in space.system_names():
        file = read_file(space.recipe_path(name))
        places = {place: (f1, "") for place, f1 in file.published.items()} | measured.get(name, {})
        results = {place: one for place, one in places.items() if place.startswith(f"{edition.name}/")}
        needs = _needs(space, edition, name, file) if results else {}
        for place, (f1, command) in results.items():
            _, split, scorer = f"{place}/".split("/")[:3]
            yield Standing(system=name, recipe=name, split=split, profile=scorer, f1=f1, measured=command, **needs)
    for one in edition.published:
        if not one.recipe:
            yield Standing(**asdict(one), billions=_billions(one.model.split(" + ")))


def _measured(space: Workspace, edition: Edition) -> dict[str, dict[str, tuple[float, str]]]:
    """Return system -> the edition and its held-out split -> F1 and command, from the figures of the benchmarks."""
    entries = read_toml(space.folders("eval")[-1] / "figures.toml").values()
    found = ((entry["rows"].get(edition.name, {}), entry["command"]) for entry in entries)
    systems, place = space.system_names(), f"{edition.name}/{edition.held_out}"
    return {name: {place: (float(row[name]), command)} for row, command in found for name in row if name in systems}


def _needs(space: Workspace, edition: Edition, name: str, file: RecipeFile) -> Mapping[str, Any]:
    """Return the fields of a row that a recipe decides."""
    writes = all(converses(table.get("component")) for table in file.generate)
    specs = read_recipe(space, name).generate if writes else ()  # others may load large libraries
    parts = [spec for spec in specs if isinstance(spec, LanguageModelSpec) and spec.asks_model]
    run, draws, tokens, limits = Run(workspace=space, edition=edition), 0, 0, list[int | None]()
    for part in parts:
        planned = part.planner(run, train=())
        for one in (one for relation in part.asked(run) for one in planned(Query("X", relation), "")):
            if one.name != VERIFICATION:
                count = len(one.request.draws) * one.times
                limits.append(one.request.sampling.max_tokens)
                draws += count if one.name == "question" else 0
                tokens += count * (limits[-1] or 0)
    return {
        "model": " + ".join(model.rpartition("/")[2] for model in file.models),
        "billions": _billions(file.models),
        "draws": draws / len(edition.relations) if parts else None,
        "tokens": tokens / len(edition.relations) if parts and None not in limits else None,
        "retrieval": "passages" if any(part.context.reads for part in parts) else "none",
        "licence": file.source.licence if file.source else file.licence,
        "about": file.summary or file.description,
        **(file.differences if file.published else {}),
    }


def _billions(models: Sequence[str]) -> float | None:
    """Return the sum of the sizes in the models' names, in billions; None if one is lacking."""
    found = [SIZE.search(model) for model in models]
    sizes = [float(one[1]) / (1 if one[2] in "bB" else 1000) for one in found if one]
    return sum(sizes) if sizes and len(sizes) == len(models) else None
