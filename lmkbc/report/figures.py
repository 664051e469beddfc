"""Figures of a report, of all relations and of each: scores beside baselines, precision, recall, sizes, candidates."""

from __future__ import annotations

import html
import io
import logging
import math
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from lmkbc.report.levels import Floats, ScoreCounts, ScoreLevels
from lmkbc.scoring.table import Summary

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from lmkbc.evaluation.comparison import Comparison

logger = logging.getLogger("lmkbc")

INK, MUTED, GRID, PAGE = "#010203", "#010204", "#010205", "#010206"
BLUE, ORANGE, GREEN = "#010207", "#010208", "#010209"
_VARIABLES = {INK: "ink", MUTED: "muted", GRID: "grid", PAGE: "page", BLUE: "blue", ORANGE: "orange", GREEN: "green"}
LIGHT = {"ink": "#1b1f24", "muted": "#575f6a", "grid": "#dfe3e8", "page": "#ffffff"}
LIGHT |= {"blue": "#0b62b5", "orange": "#b0480a", "green": "#1a6e3a"}
"""Colours of a figure outside a page, by variable: the colours of the page's light style."""
_COLOUR = re.compile("|".join(_VARIABLES))
_START = '<svg role="img" aria-label="'
_NAME = re.compile(r'(\bid="|url\(#|href="#)')
_STYLE: dict[Any, Any] = {
    "svg.fonttype": "none",
    "text.parse_math": False,
    "font.size": 9,
    "font.family": "sans-serif",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": MUTED,
    "axes.labelcolor": INK,
    "axes.axisbelow": True,
    "axes.grid": True,
    "grid.color": GRID,
    "grid.linewidth": 0.6,
    "text.color": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "figure.facecolor": "none",
    "axes.facecolor": "none",
    "legend.frameon": False,
    "legend.fontsize": 8,
}


UNDRAWN = "Figures are left out, since matplotlib is not installed: install lmkbc[pictures] to have them."


def drawable() -> bool:
    """Return whether matplotlib is installed; log a message if not."""
    there = find_spec("matplotlib") is not None
    if not there:
        logger.info(UNDRAWN)
    return there


@dataclass(frozen=True, slots=True)
class Plot:
    """A figure of a page. svg: its markup. caption: its caption, also part of its text alternative.

    panels: number of panels.
    """

    title: str
    svg: str
    caption: str
    panels: int = 1


def standalone(plot: Plot) -> bytes:
    """Return a figure as an SVG file in the colours of the light style."""
    return re.sub(r"var\(--(\w+)\)", lambda found: LIGHT[found[1]], plot.svg).encode()


def is_picture(path: Path) -> bool:
    """Return whether a file is such a figure."""
    with path.open("rb") as file:
        return file.read(len(_START)) == _START.encode()


class _Canvas:
    """A figure during drawing. `plot` is the result once it is closed."""

    def __init__(self, figure: Figure, axes: Axes) -> None:
        self.figure, self.axes = figure, axes
        self.plot = Plot("", "", "")


@contextmanager
def canvas(name: str, title: str, caption: str, height: float = 3.3, width: float = 5.0) -> Iterator[_Canvas]:
    """Open a figure to draw on. name: unique word on the page. height, width: in inches of 96 pixels."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    with rc_context({**_STYLE, "svg.hashsalt": name}):
        figure = Figure(figsize=(width, height), layout="constrained")
        drawn = _Canvas(figure, figure.add_subplot())
        yield drawn
        buffer = io.StringIO()
        figure.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None, "Type": None, "Format": None})
    drawn.plot = Plot(title, _inline(buffer.getvalue(), name, f"{title}. {caption}"), caption)


def _inline(svg: str, name: str, alt: str) -> str:
    """Return the SVG element with ids that are unique on the page, and with the page's colour variables."""
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    svg = _COLOUR.sub(lambda found: f"var(--{_VARIABLES[found[0]]})", svg)
    svg = _NAME.sub(lambda found: f"{found[0]}{name}-", svg)
    return svg.replace("<svg ", f'{_START}{html.escape(alt)}" ', 1)


BINS = 10
LARGEST = 30
"""Sizes of lists from here on are counted together."""


def scores(relations: Mapping[str, Summary], floors: Mapping[str, Mapping[str, float]]) -> Plot:
    """Draw the F1 of each relation, and that of its baselines."""
    names = list(relations)
    places = np.arange(len(names))[::-1]
    marks = (("D", ORANGE), ("o", PAGE))
    caption = "Bars: this run. Marks: what needs no model. A bar that ends left of a mark is below that floor."
    with canvas("scores", "F1 per relation, beside the floors", caption, 1.1 + 0.22 * len(names)) as drawn:
        axes = drawn.axes
        axes.barh(places, [relations[name].f1 for name in names], height=0.62, color=BLUE, label="this run")
        for (label, values), (mark, colour) in zip(floors.items(), marks, strict=False):
            reached = [values[name] for name in names]
            axes.plot(reached, places, mark, mfc=colour, mec=INK, ms=5.5, mew=0.9, ls="", label=label, clip_on=False)
        axes.set(yticks=places, yticklabels=names, xlim=(0, 1), xlabel="F1")
        axes.grid(visible=False, axis="y")
        drawn.figure.legend(loc="outside lower center", ncols=3)
    return drawn.plot


def precision_recall(relations: Mapping[str, Summary]) -> Plot:
    """Draw the precision of each relation against its recall, with lines of equal F1."""
    caption = "Numbers are those of the table's relations; dotted lines have equal F1."
    with canvas("pr", "Precision against recall", caption, 4.2) as drawn:
        axes = drawn.axes
        for f1 in (0.2, 0.4, 0.6, 0.8):
            recall = np.linspace(f1 / (2 - f1), 1, 60)
            axes.plot(recall, f1 * recall / (2 * recall - f1), ":", color=MUTED, lw=0.9)
            axes.text(0.995, f1 / (2 - f1) + 0.012, f"F1 {f1}", color=MUTED, fontsize=7, ha="right")
        for number, summary in enumerate(relations.values(), start=1):
            axes.plot(summary.r, summary.p, "o", color=BLUE, ms=13, alpha=0.9)
            axes.text(summary.r, summary.p, f"{number}", color=PAGE, fontsize=7.5, ha="center", va="center_baseline")
        axes.set(xlim=(-0.04, 1.04), ylim=(-0.04, 1.04), xlabel="recall", ylabel="precision")
    return drawn.plot


def sizes(counts: Mapping[tuple[int, int], int]) -> Plot:
    """Draw the number of kept objects against the number of gold objects. counts: (gold, kept) -> queries."""
    caption = (
        f"Areas show how many queries; the line is as many kept as there are. {LARGEST} stands for all from there on."
    )
    shown = Counter[tuple[int, int]]()
    for (true, own), queries in counts.items():
        shown[min(true, LARGEST), min(own, LARGEST)] += queries
    gold, kept = zip(*shown, strict=True) if shown else ((), ())
    areas = 420 * np.sqrt(np.array(list(shown.values())) / max(shown.values(), default=1))
    with canvas("sizes", "Objects kept against gold objects", caption, 4.2) as drawn:
        axes = drawn.axes
        most = max(*gold, *kept, 4) + 1
        axes.plot([0, most], [0, most], "-", color=MUTED, lw=0.9)
        axes.scatter(gold, kept, s=areas, color=BLUE, alpha=0.55, lw=0)
        axes.set(xlim=(-1, most), ylim=(-1, most), xlabel="gold objects", ylabel="objects kept")
        axes.locator_params(integer=True)
    return drawn.plot


def distributions(pool: ScoreLevels) -> Plot:
    """Draw the scores of right and of wrong candidates over all relations."""
    caption = "All candidates of all queries; the vertical axis is logarithmic, since most candidates are wrong."
    edges, places = np.linspace(0, 1, 26), pool.places(25)
    with canvas("spread", "Scores of right and wrong candidates", caption) as drawn:
        for count, colour, label, style in (
            (pool.count - pool.right, ORANGE, "wrong", "--"),
            (pool.right, BLUE, "right", "-"),
        ):
            named = f"{label} ({int(count.sum()):,})"
            drawn.axes.stairs(np.bincount(places, count, 25), edges, lw=1.8, color=colour, label=named, ls=style)
        drawn.axes.set(yscale="log", ylim=(0.7, None), xlim=(0, 1), xlabel="score", ylabel="candidates")
        drawn.axes.yaxis.set_major_formatter("{x:,.0f}")
        drawn.axes.yaxis.set_minor_formatter("")  # its labels would be formulas
        drawn.figure.legend(loc="outside lower center", ncols=2)
    return drawn.plot


def cuts(pool: Mapping[str, ScoreCounts], relations: Sequence[str]) -> Plot:
    """Draw the range of scores of right and wrong candidates per relation, and the least score that was kept."""
    caption = (
        "Lines reach from the 10th to the 90th percentile, dots are medians. The bar marks the rule's cut as it came "
        "out: the least score that was kept."
    )
    with canvas("cuts", "Scores and the rule's cut, per relation", caption, 1.1 + 0.26 * len(relations)) as drawn:
        axes = drawn.axes
        places = np.arange(len(relations))[::-1]
        for place, name in zip(places, relations, strict=True):
            if name not in pool:
                continue
            own, least = pool[name].levels(), pool[name].least
            for right, colour, shift in ((True, BLUE, 0.17), (False, ORANGE, -0.17)):
                count = own.right if right else own.count - own.right
                if count.any():
                    low, middle, high = np.quantile(own.mean, [0.1, 0.5, 0.9], weights=count, method="inverted_cdf")
                    axes.plot([low, high], [place + shift] * 2, color=colour, lw=2, solid_capstyle="round")
                    axes.plot(middle, place + shift, "o" if right else "s", color=colour, ms=4.5)
            if least is not None:
                axes.plot([least] * 2, [place - 0.38, place + 0.38], color=INK, lw=1.6)
        axes.set(yticks=places, yticklabels=relations, xlim=(-0.02, 1.02), xlabel="score")
        axes.plot([], [], "o-", color=BLUE, label="right")
        axes.plot([], [], "s-", color=ORANGE, label="wrong")
        axes.plot([], [], "|", color=INK, ms=9, mew=1.6, label="least score kept")
        drawn.figure.legend(loc="outside lower center", ncols=3)
    return drawn.plot


def reliability(pool: ScoreLevels) -> tuple[Plot, float]:
    """Draw the share of right candidates by score. Return the figure and the expected calibration error."""
    mean, right, counts = pool.binned(BINS)
    share = right / counts
    error = float(counts @ np.abs(mean - share) / max(counts.sum(), 1))
    caption = f"Ten bins of equal width; areas show how many candidates. Expected calibration error: {error:.3f}."
    with canvas("reliability", "Reliability of the scores", caption, 4.2) as drawn:
        axes = drawn.axes
        axes.plot([0, 1], [0, 1], ":", color=MUTED)
        axes.plot(mean, share, "-", color=BLUE, lw=1.2)
        axes.scatter(mean, share, s=20 + 260 * counts / counts.max(), color=BLUE, alpha=0.6, lw=0)
        axes.set(xlim=(-0.04, 1.04), ylim=(-0.04, 1.04), xlabel="mean score", ylabel="share that is right")
    return drawn.plot, error


def forest(comparison: Comparison, name: str) -> Plot:
    """Draw the difference of each relation with its interval."""
    parts = {**comparison.relations, "average": comparison.overall}
    places = np.arange(len(parts))[::-1]
    caption = "Differences of F1 with their 95 % intervals. Filled: significant once corrected; hollow: not."
    title = f"{comparison.second} minus {comparison.first}"
    with canvas(name, title, caption, 0.9 + 0.24 * len(parts), width=9.0) as drawn:
        axes = drawn.axes
        axes.axvline(0, color=MUTED, lw=1)
        for place, part in zip(places, parts.values(), strict=True):
            if part.low is not None and part.high is not None:
                axes.plot([part.low, part.high], [place] * 2, color=BLUE, lw=1.6)
            filled = (GREEN if part.difference > 0 else ORANGE) if part.is_significant else "none"
            axes.plot(part.difference, place, "o", ms=6, mfc=filled, mec=INK)
        axes.set(yticks=places, yticklabels=list(parts), xlabel="difference of F1")
        axes.axhline(0.5, color=GRID)
    return drawn.plot


def costs(points: Sequence[tuple[str, float, float]]) -> Plot:
    """Draw the F1 of runs against their cost. points: name of a run, cost in USD, F1."""
    caption = "Each point is a run. Answers that were stored before cost nothing."
    with canvas("costs", "F1 against cost", caption, 3.6, 7.0) as drawn:
        axes = drawn.axes
        for name, cost, f1 in points:
            axes.plot(cost, f1, "o", color=BLUE, ms=6)
            axes.annotate(name, (cost, f1), xytext=(5, 4), textcoords="offset points", fontsize=7.5)
        axes.set(xlabel="cost, USD", ylabel="F1")
        axes.margins(x=0.25, y=0.15)
    return drawn.plot


FEWEST = 20
"""Fewest scored candidates of a relation with a panel."""
SPREAD = 5
"""Fewest candidates with another score than most have. With fewer, figures of scores show nothing."""
MOST_PANELS = 24
COLUMNS = 3
CUTS = 16
"""Most cuts of a curve."""
PANEL_BINS = 5
PANEL = (-0.04, 1.04)
"""Ends of a panel's axes."""
STEP = 1.36
"""Distance of the origins of neighbouring panels."""
Z = 1.959964
"""Quantile of the normal distribution for 95 % intervals."""


def wilson(hits: Floats, of: Floats) -> tuple[Floats, Floats]:
    """Return the 95 % intervals of shares (Wilson 1927). hits, of: counts, (n,); `of` is at least 1."""
    share, weight = hits / of, Z**2 / of
    middle = (share + weight / 2) / (1 + weight)
    half = Z * np.sqrt(share * (1 - share) / of + weight / (4 * of)) / (1 + weight)
    return np.maximum(middle - half, 0.0), np.minimum(middle + half, 1.0)


def panels_of(pool: Mapping[str, ScoreCounts], relations: Sequence[str]) -> dict[str, ScoreLevels]:
    """Return the candidates of each relation with a panel, in the order of the relations."""
    sizes = {name: len(pool[name]) for name in relations if name in pool}
    levels = {name: pool[name].levels() for name, size in sizes.items() if size >= FEWEST}
    enough = [name for name, own in levels.items() if own.spread >= SPREAD]
    most = set(sorted(enough, key=lambda name: -sizes[name])[:MOST_PANELS])
    return {name: levels[name] for name in enough if name in most}


def curves(panels: Mapping[str, ScoreLevels], gold: Mapping[str, int]) -> Plot:
    """Draw precision against recall of each relation. gold: number of gold objects per relation."""

    def draw(axes: Axes, x: float, y: float, name: str, own: ScoreLevels) -> None:
        right, taken = cut_points(own)
        recall = x + np.minimum(right / max(gold.get(name, 0), 1), 1.0)
        low, high = wilson(right, taken)
        axes.fill_between(recall, y + low, y + high, color=BLUE, alpha=0.2, lw=0)
        axes.plot(recall, y + right / taken, "-", color=BLUE, lw=1.1)

    caption = (
        "All candidates of a relation with at least a score, from the highest score down. Bands: 95 % intervals of "
        f"precision (Wilson). {_which()}"
    )
    return _panels("curves", "Precision and recall as the cut moves", caption, ("recall", "precision"), panels, draw)


def reliabilities(panels: Mapping[str, ScoreLevels]) -> Plot:
    """Draw the share of right candidates by score, per relation."""

    def draw(axes: Axes, x: float, y: float, _: str, own: ScoreLevels) -> None:
        mean, right, count = own.binned(PANEL_BINS)
        low, high = wilson(right, count)
        axes.plot([x, x + 1], [y, y + 1], ":", color=MUTED, lw=0.9)
        axes.vlines(x + mean, y + low, y + high, color=BLUE, lw=1.4)
        axes.plot(x + mean, y + right / count, "o", color=BLUE, ms=3.5)

    caption = f"Five bins of equal width. Bars: 95 % intervals of the share (Wilson). {_which()}"
    title = "Reliability of the scores, per relation"
    return _panels("reliabilities", title, caption, ("mean score", "share that is right"), panels, draw)


def cut_points(own: ScoreLevels) -> tuple[Floats, Floats]:
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
    draw: Callable[[Axes, float, float, str, ScoreLevels], None],
) -> Plot:
    """Draw a figure with one panel per relation, from 0 to 1 each.

    draw: draws a panel from the place of its origin. All panels are on one pair of axes, since the layout of axes for
    each panel takes several times as long as everything else.
    """
    columns = min(COLUMNS, len(panels))
    lines = math.ceil(len(panels) / columns)
    height = 0.4 + 4.5 / columns * lines
    with canvas(name, title, caption, height) as drawn:
        axes, (low, high), ticks = drawn.axes, PANEL, np.array([0, 0.5, 1])
        drawn.figure.set_layout_engine("none")
        axes.set_axis_off()
        axes.set(position=(0.11, 0.45 / height, 0.88, 1 - 0.47 / height))
        axes.set(xlim=(low, (columns - 1) * STEP + 1.16), ylim=(low - (lines - 1) * STEP, high + 0.14))
        for place, (relation, own) in enumerate(panels.items()):
            x, y = STEP * (place % columns), -STEP * (place // columns)
            for colour, width, at in (GRID, 0.6, ticks), (MUTED, 0.8, low):
                axes.vlines(x + at, y + low, y + high, color=colour, lw=width, clip_on=False)
                axes.hlines(y + at, x + low, x + high, color=colour, lw=width, clip_on=False)
            draw(axes, x, y, relation, own)
            shown = relation if len(relation) <= 30 else f"{relation[:29]}…"
            axes.text(x + 0.5, y + high + 0.04, shown, fontsize=6.5, ha="center")
            for tick in ticks:
                axes.text(x + tick, y + low - 0.03, f"{tick:.1f}", fontsize=7, ha="center", va="top")
                if not x:
                    axes.text(low - 0.03, y + tick, f"{tick:.1f}", fontsize=7, ha="right", va="center")
        drawn.figure.supxlabel(axis_names[0], fontsize=8)
        drawn.figure.supylabel(axis_names[1], fontsize=8)
    return replace(drawn.plot, panels=len(panels))
