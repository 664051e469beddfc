"""Small multiples per relation: precision against recall over score cuts, and reliability of scores."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from lmkbc.report.counts import Floats, ScoreCounts, ScoreLevels
from lmkbc.report.figures import BLUE, MUTED, Plot, canvas

if TYPE_CHECKING:
    from matplotlib.axes import Axes

FEWEST = 20
"""Fewest scored candidates of a relation with a panel."""
MOST_PANELS = 24
COLUMNS = 3
CUTS = 16
"""Most cuts of a curve."""
BINS = 5
Z = 1.959964
"""Quantile of the normal distribution for 95 % intervals."""


def wilson(hits: Floats, of: Floats) -> tuple[Floats, Floats]:
    """Return the 95 % intervals of shares (Wilson 1927). hits, of: counts, (n,); `of` is at least 1."""
    share, weight = hits / of, Z**2 / of
    middle = (share + weight / 2) / (1 + weight)
    half = Z * np.sqrt(share * (1 - share) / of + weight / (4 * of)) / (1 + weight)
    return np.maximum(middle - half, 0.0), np.minimum(middle + half, 1.0)


def shown(pool: Mapping[str, ScoreCounts], relations: Sequence[str]) -> dict[str, ScoreLevels]:
    """Return the candidates of each relation with a panel, in the order of the relations."""
    sizes = {name: len(pool[name]) for name in relations if name in pool}
    enough = [name for name, size in sizes.items() if size >= FEWEST]
    most = set(sorted(enough, key=lambda name: -sizes[name])[:MOST_PANELS])
    return {name: pool[name].levels() for name in enough if name in most}


def curves(panels: Mapping[str, ScoreLevels], gold: Mapping[str, int]) -> Plot:
    """Draw precision against recall of each relation. gold: number of gold objects per relation."""

    def draw(axes: Axes, name: str, own: ScoreLevels) -> None:
        right, taken = cuts(own)
        recall = np.minimum(right / max(gold.get(name, 0), 1), 1.0)
        low, high = wilson(right, taken)
        axes.fill_between(recall, low, high, color=BLUE, alpha=0.2, lw=0)
        axes.plot(recall, right / taken, "-", color=BLUE, lw=1.1)

    caption = (
        "All candidates of a relation with at least a score, from the highest score down. Bands: 95 % intervals of "
        f"precision (Wilson). {_which()}"
    )
    return _panels("curves", "Precision and recall as the cut moves", caption, ("recall", "precision"), panels, draw)


def reliabilities(panels: Mapping[str, ScoreLevels]) -> Plot:
    """Draw the share of right candidates by score, per relation."""

    def draw(axes: Axes, _: str, own: ScoreLevels) -> None:
        mean, right, count = own.binned(BINS)
        low, high = wilson(right, count)
        axes.plot([0, 1], [0, 1], ":", color=MUTED, lw=0.9)
        axes.vlines(mean, low, high, color=BLUE, lw=1.4)
        axes.plot(mean, right / count, "o", color=BLUE, ms=3.5)

    caption = f"Five bins of equal width. Bars: 95 % intervals of the share (Wilson). {_which()}"
    title = "Reliability of the scores, per relation"
    return _panels("reliabilities", title, caption, ("mean score", "share that is right"), panels, draw)


def cuts(own: ScoreLevels) -> tuple[Floats, Floats]:
    """Return the numbers of right and of all candidates above each cut, (n,), highest cut first; at most `CUTS` cuts.

    Candidates of a level are taken together.
    """
    levels = len(own.count)
    some = sorted({round(step) for step in np.linspace(0, levels - 1, min(CUTS, levels))})
    return np.cumsum(own.right)[some], np.cumsum(own.count)[some]


def _which() -> str:
    return f"Relations with {FEWEST} scored candidates or more, at most {MOST_PANELS} of them."


def _panels(
    name: str,
    title: str,
    caption: str,
    axis_names: tuple[str, str],
    panels: Mapping[str, ScoreLevels],
    draw: Callable[[Axes, str, ScoreLevels], None],
) -> Plot:
    """Draw a figure with one panel per relation. Axes go from 0 to 1."""
    lines = math.ceil(len(panels) / COLUMNS)
    with canvas(name, title, caption, 0.4 + 1.5 * lines) as drawn:
        drawn.axes.remove()
        places: Iterator[Axes] = iter(
            drawn.figure.subplots(lines, COLUMNS, sharex=True, sharey=True, squeeze=False).flat
        )
        for (relation, own), axes in zip(panels.items(), places, strict=False):
            draw(axes, relation, own)
            axes.set_title(relation if len(relation) <= 30 else f"{relation[:29]}…", fontsize=6.5)
            axes.set(xlim=(-0.04, 1.04), ylim=(-0.04, 1.04), xticks=(0, 0.5, 1), yticks=(0, 0.5, 1))
            axes.tick_params(labelsize=7, labelbottom=True)
        for axes in places:
            axes.set_axis_off()
        drawn.figure.supxlabel(axis_names[0], fontsize=8)
        drawn.figure.supylabel(axis_names[1], fontsize=8)
    return drawn.plot
