"""The site's pages of published systems: a table of all, and a page for each recipe."""

from __future__ import annotations

import inspect
import itertools
import math
from collections.abc import Iterator, Sequence

from cells import cell, table

from lmkbc.api.standings import Standing, standings
from lmkbc.cli.systems import HEADS, columns
from lmkbc.components import components_of
from lmkbc.recipe import RecipeFile, read_file
from lmkbc.workspace import Workspace

HEAD = """
# Published systems

Made from the recipes and the editions; `lmkbc systems compare EDITION` sorts and filters. A linked name leads to the
page of its recipe. Compare results on one split of one edition only.

- **B** is parameters in billions, as the models' names say.
- **Draws** are the most answers to a query, and **tokens** the most that a model writes about it by the recipe's
  limits, checks of facts left out. Both are means of the relations.
- **Retrieval** is text that a system reads. `answer`: it states what is asked, so the score is not of what a model
  knows.
- **Licence** is that of what the authors published.
- **N** counts differences that are necessary: they cannot be closed here. **S** counts shortcuts: they could be
  closed, and are not. **W** counts prompts in our words, which `lmkbc systems fetch` replaces by the authors'.
- Our own systems are measured on the split that is held out. They learn from train alone, and nothing is fitted to
  that split.
"""


def pages(space: Workspace) -> dict[str, str]:
    """Return place -> page: the tables of all editions, their pictures, and a page for each published system."""
    files = {name: read_file(space.recipe_path(name)) for name in space.system_names()}
    published = {name: file for name, file in files.items() if file.published}
    made = {f"reference/systems/{name}.md": system(name, file) for name, file in published.items()}
    lines = [HEAD.strip(), ""]
    for edition in sorted(space.editions, reverse=True):
        if not (rows := standings(space, edition)):
            continue
        lines += [f"## {space.edition(edition).title}", ""]
        marks = list({row.system: row for row in reversed(rows) if row.tokens}.values())
        if len(marks) >= FEWEST:
            name = f"systems-{edition}.svg"
            made[f"reference/{name}"] = picture(f"{space.edition(edition).title}: F1 against tokens a query", marks)
            lines += [f"![F1 against tokens, the figures of the table below]({name})", ""]
        cells = [("" if one is None else _shown(one) for one in columns(row)) for row in rows]
        lines += table(
            HEADS,
            [
                (f"[`{row.system}`](systems/{row.system}.md)" if row.system in published else first, *others)
                for row, (first, *others) in zip(rows, cells, strict=True)
            ],
        )
    return {"reference/systems.md": "\n".join(lines)} | made


def _shown(value: object) -> str:
    return f"{value:.3f}" if isinstance(value, float) else cell(str(value))


FEWEST = 5
"""Fewest systems with known tokens for a picture."""
WIDTH, HEIGHT, LEFT, BOTTOM = 720, 420, 44, 372


def picture(title: str, rows: list[Standing]) -> str:
    """Return a drawing of F1 against tokens, whose scale is logarithmic. rows: a result of each system.

    A hollow mark is a result on another split than test. A label that would cover a mark or a label is moved down.
    """
    sizes = [math.log10(row.tokens or 1) for row in rows]
    low, high = math.floor(min(sizes)), math.ceil(max(sizes))
    top = math.ceil(10 * max(row.f1 for row in rows)) / 10

    def at(tokens: float, f1: float) -> tuple[float, float]:
        across = LEFT + (WIDTH - LEFT - 80) * (math.log10(tokens) - low) / (high - low)
        return round(across, 1), round(BOTTOM - (BOTTOM - 40) * f1 / top, 1)

    lines = [START.format(title=title, width=WIDTH, height=HEIGHT).strip()]
    for tenth in range(round(10 * top) + 1):
        _, y = at(10**low, tenth / 10)
        lines += [f'<line x1="{LEFT}" x2="{WIDTH - 20}" y1="{y}" y2="{y}"/>']
        lines += [f'<text x="{LEFT - 8}" y="{y + 4}" class="end">{tenth / 10:.1f}</text>']
    for power in range(low, high + 1):
        x, _ = at(10**power, 0)
        lines += [f'<text x="{x}" y="{BOTTOM + 18}" class="middle">{10**power:,}</text>']
    lines += [f'<text x="{WIDTH / 2}" y="{HEIGHT - 10}" class="middle">tokens a query, at most</text>']
    lines += [f'<text x="{LEFT}" y="22">{title}; hollow: on the held-out split</text>']
    boxes = [(x - 6, x + 6, y - 6, y + 6) for x, y in (at(row.tokens or 1, row.f1) for row in rows)]
    for row in sorted(rows, key=lambda row: (-row.f1, row.system)):
        x, y = at(row.tokens or 1, row.f1)
        hollow = "" if row.split == "test" else ' class="hollow"'
        lines += [f'<circle cx="{x}" cy="{y}" r="4.5"{hollow}/>']
        boxes.append(_label(x, y, 6.6 * len(row.system), boxes))
        lines += [f'<text x="{boxes[-1][0]:.1f}" y="{boxes[-1][3] - 1:.1f}">{cell(row.system)}</text>']
    return "\n".join([*lines, "</svg>"])


Box = tuple[float, float, float, float]
"""Left, right, top and bottom."""


def _label(x: float, y: float, width: float, boxes: Sequence[Box]) -> Box:
    """Return the place of a label that covers no box: right or left of its mark, else further down."""
    places = (
        (begin, begin + width, y - 5 + down, y + 5 + down)
        for down in itertools.count(step=2)
        for begin in (x + 9, x - 9 - width)
    )
    return next(one for one in places if not any(_overlap(one, box) for box in boxes))


def _overlap(one: Box, other: Box) -> bool:
    return one[0] < other[1] and other[0] < one[1] and one[2] < other[3] and other[2] < one[3]


START = """
<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img" aria-labelledby="title">
<title id="title">{title}</title>
<style>
text {{ font: 12px sans-serif; fill: #222; }}
.end {{ text-anchor: end; }}
.middle {{ text-anchor: middle; }}
line {{ stroke: #ddd; }}
circle {{ fill: #0b62b5; stroke: #0b62b5; stroke-width: 1.5; }}
rect, .hollow {{ fill: #fff; }}
@media (prefers-color-scheme: dark) {{
text {{ fill: #e4e6ea; }}
line {{ stroke: #444a55; }}
circle {{ fill: #7db4ec; stroke: #7db4ec; }}
rect, .hollow {{ fill: #1e2129; }}
}}
</style>
<rect width="{width}" height="{height}" rx="8"/>
"""


def system(name: str, file: RecipeFile) -> str:
    """Return the page of one system: its source, its scores, its commands and its differences."""
    year = f", {file.year}" if file.year else ""
    lines = [f"# `{name}`", "", f"[Published systems](../systems.md){year}", "", cell(file.description), ""]
    lines += [cell(file.citation), "", "## Published scores", ""]
    lines += table(("split", "F1"), [(place, f"{score:.3f}") for place, score in file.published.items()])
    models = ", ".join(f"`{model}`" for model in file.models) or "none"
    lines += ["## Run it", "", "```", *_reproduced(name, file), "```", "", f"Models: {models}.", ""]
    lines += [f"Prompts in {'the authors' if file.wording == 'authors' else 'our own'} words.", ""]
    for title, points in (
        ("Necessary differences", file.differs),
        ("Shortcuts", file.shortcuts),
        ("Words of ours, which `lmkbc systems fetch` replaces", file.reworded),
    ):
        lines += [f"## {title}", "", *(f"- {cell(one)}" for one in points), ""] if points else []
    if parts := components_of(name):
        lines += ["## Code of its own", "", "A recipe of yours may name these too.", ""]
        for part, kind in parts.items():
            lines += [f"### `{part}`", "", inspect.cleandoc(kind.__doc__ or "").replace("<", "&lt;"), ""]
    return "\n".join(lines)


def _reproduced(name: str, file: RecipeFile) -> Iterator[str]:
    """Yield the commands of the first published split with labels, or of the first split if none has labels."""
    places = [place.split("/") for place in file.published]
    edition, split, *profile = next((place for place in places if place[1] != "test"), places[0])
    yield f"lmkbc predict --edition {edition} --split {split} --system {name}"
    if split != "test":
        scorer = f" --profile {profile[0]}" if profile else ""
        yield f"lmkbc evaluate submissions/{edition}-{split}-{name}{scorer}"
