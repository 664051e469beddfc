"""Figures as SVG within a page: text stays text, colours follow the page's light or dark scheme, nothing is fetched.

Matplotlib draws them: its SVG is small, static and printed as it is shown, where a plotting library that runs in the
browser would bring megabytes of script.
"""

from __future__ import annotations

import html
import io
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

INK, MUTED, GRID, PAGE = "#010203", "#010204", "#010205", "#010206"
BLUE, ORANGE, GREEN = "#010207", "#010208", "#010209"
_VARIABLES = {INK: "ink", MUTED: "muted", GRID: "grid", PAGE: "page", BLUE: "blue", ORANGE: "orange", GREEN: "green"}
_COLOUR = re.compile("|".join(_VARIABLES))
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


@dataclass(frozen=True, slots=True)
class Plot:
    """A figure of a page. svg: its markup. alt: what it shows, for who does not see it."""

    title: str
    svg: str
    caption: str


class Canvas:
    """A figure that is being drawn; `plot` is what the page shows once it is closed."""

    def __init__(self, figure: Figure, axes: Axes) -> None:
        self.figure, self.axes = figure, axes
        self.plot = Plot("", "", "")


@contextmanager
def canvas(name: str, title: str, caption: str, height: float = 3.3, width: float = 5.0) -> Iterator[Canvas]:
    """Open a figure to draw on. name: a word of its own on the page. Inches, at 96 pixels as browsers have them."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    with rc_context({**_STYLE, "svg.hashsalt": name}):
        figure = Figure(figsize=(width, height), layout="constrained")
        drawn = Canvas(figure, figure.add_subplot())
        yield drawn
        buffer = io.StringIO()
        figure.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None, "Type": None, "Format": None})
    drawn.plot = Plot(title, _inline(buffer.getvalue(), name, f"{title}. {caption}"), caption)


def _inline(svg: str, name: str, alt: str) -> str:
    """Return the markup alone, with names that no other figure of the page has, and colours by the page's variables."""
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    svg = _COLOUR.sub(lambda found: f"var(--{_VARIABLES[found[0]]})", svg)
    svg = _NAME.sub(lambda found: f"{found[0]}{name}-", svg)
    return svg.replace("<svg ", f'<svg role="img" aria-label="{html.escape(alt)}" ', 1)
