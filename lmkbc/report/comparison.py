"""Runs compared, as a page."""

from __future__ import annotations

from collections.abc import Sequence

from lmkbc.compare import Comparison, shown_p
from lmkbc.edition import Edition
from lmkbc.report.figures import forest
from lmkbc.report.page import render


def page(edition: Edition, comparisons: Sequence[Comparison], remarks: Sequence[str] = ()) -> str:
    """Return the page of some comparisons. remarks: on the runs."""
    plots = [forest(one, f"forest{place}") for place, one in enumerate(comparisons)]
    pairs = list(zip(comparisons, plots, strict=True))
    title = f"LM-KBC {edition.name}: runs beside {comparisons[0].first}"
    return render("compare.html", title=title, pairs=pairs, remarks=remarks, shown_p=shown_p)
