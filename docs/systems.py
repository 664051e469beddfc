"""The site's pages of published systems: a table of all, and a page for each recipe."""

from __future__ import annotations

from collections.abc import Iterator

from cells import cell, table

from lmkbc.cli.systems import columns
from lmkbc.recipe import RecipeFile, read_file
from lmkbc.workspace import Workspace

HEAD = """
# Published systems

Made from the recipes. Each name leads to the page of its system.

- **F1** is what its authors published: on test where they say it, else on the split that is held out. Compare systems
  of one year only, since each edition has its own data and score.
- **N** counts differences that are necessary: they cannot be closed here.
- **S** counts shortcuts: they could be closed, and are not.
"""

ABSENT = """
No recipe:

- REAP (2026, arXiv 2608.10963, .62) and CoRe (2026, .548 on val): no repository and no paper of theirs was found.
- Bara, and Machado et al. (2024): they read the asked property, or pages that state it, from the web. Their .922 and
  .908 are of retrieval, not of what a model knows.
"""


def pages(space: Workspace) -> dict[str, str]:
    """Return place -> page, for the table and for each published system."""
    files = {name: read_file(space.recipe_path(name)) for name in space.system_names()}
    published = {name: file for name, file in files.items() if file.published}
    made = {f"reference/systems/{name}.md": system(name, file) for name, file in published.items()}
    return {"reference/systems.md": overview(published)} | made


def overview(files: dict[str, RecipeFile]) -> str:
    """Return the table of all, by year, the best of each year first."""
    rows = []
    for name, file in sorted(files.items(), key=lambda item: (item[1].year or 0, -(item[1].score or 0), item[0])):
        _, *values = columns(name, file)
        shown = ["" if one is None else f"{one:.3f}" if isinstance(one, float) else cell(str(one)) for one in values]
        rows.append((f"[`{name}`](systems/{name}.md)", *shown))
    return "\n".join([HEAD.strip(), "", *table(("system", "year", "model", "F1", "N", "S"), rows), ABSENT.strip()])


def system(name: str, file: RecipeFile) -> str:
    """Return the page of one system: its source, its scores, its commands and its differences."""
    year = f", {file.year}" if file.year else ""
    lines = [f"# `{name}`", "", f"[Published systems](../systems.md){year}", "", cell(file.description), ""]
    lines += [cell(file.citation), "", "## Published scores", ""]
    lines += table(("split", "F1"), [(place, f"{score:.3f}") for place, score in file.published.items()])
    models = ", ".join(f"`{model}`" for model in file.models) or "none"
    lines += ["## Run it", "", "```", *_reproduced(name, file), "```", "", f"Models: {models}.", ""]
    lines += [f"Prompts in {'the authors' if file.wording == 'authors' else 'our own'} words.", ""]
    for title, points in (("Necessary differences", file.differs), ("Shortcuts", file.shortcuts)):
        lines += [f"## {title}", "", *(f"- {cell(one)}" for one in points), ""] if points else []
    return "\n".join(lines)


def _reproduced(name: str, file: RecipeFile) -> Iterator[str]:
    """Yield the commands of the first published split with labels, or of the first split if none has labels."""
    places = [place.split("/") for place in file.published]
    edition, split, *profile = next((place for place in places if place[1] != "test"), places[0])
    yield f"lmkbc predict --edition {edition} --split {split} --system {name}"
    if split != "test":
        scorer = f" --profile {profile[0]}" if profile else ""
        yield f"lmkbc evaluate submissions/{edition}-{split}-{name}{scorer}"
