"""Small multiples of a report: whose panels there are, their curves, and the intervals."""

from __future__ import annotations

import json
import re
from pathlib import Path

import hostile
import numpy as np
import pytest
from command import Command

from lmkbc.report import panels
from lmkbc.report.figures import ScoredCandidate


def scored(relation: str, *rights: int, score: float | None = None) -> list[ScoredCandidate]:
    count = len(rights)
    given = (1 - place / count if score is None else score for place in range(count))
    return [ScoredCandidate(relation, one, bool(right), kept=False) for one, right in zip(given, rights, strict=True)]


def test_an_interval_is_wilson_s() -> None:
    low, high = panels.wilson(np.array([0.0, 8.0, 10.0]), np.array([10.0, 10.0, 10.0]))
    assert low == pytest.approx([0, 0.4902, 0.7225], abs=1e-4)
    assert high == pytest.approx([0.2775, 0.9433, 1], abs=1e-4)


def test_a_relation_of_few_candidates_has_no_panel() -> None:
    pool = scored("few", *[1] * 19) + scored("<b>$_x$</b>", *[1, 0] * 10)
    own = panels.shown(pool, ["few", "<b>$_x$</b>", "none"])
    assert list(own) == ["<b>$_x$</b>"]
    svg = panels.curves(own, {"<b>$_x$</b>": 15}).svg
    assert "<b>" not in svg
    assert "&lt;b&gt;$_x$&lt;/b&gt;" in svg


def test_panels_are_bounded() -> None:
    names = [f"r{place}" for place in range(40)]
    pool = [one for place, name in enumerate(names) for one in scored(name, *[1] * (20 + place))]
    assert list(panels.shown(pool, names)) == names[-panels.MOST_PANELS :]
    right, taken = panels.cuts(scored("r", *[1] * 5000))
    assert len(right) == panels.CUTS
    assert (right[-1], taken[-1]) == (5000, 5000)


def test_candidates_of_one_score_are_taken_together() -> None:
    right, taken = panels.cuts([*scored("r", 1, 0, 1, score=0.5), *scored("r", 1, score=0.9)])
    assert (right.tolist(), taken.tolist()) == ([1, 3], [1, 4])


def test_bins_that_are_empty_are_left_out() -> None:
    mean, right, count = panels.binned([*scored("r", 1, 0, score=0.5), *scored("r", 1, score=1.0)])
    assert (mean.tolist(), right.tolist(), count.tolist()) == ([0.5, 1], [1, 1], [2, 1])


def test_figures_of_nothing_are_left_out_and_floors_are_named(command: Command, tmp_path: Path) -> None:
    run, gold, _ = hostile.run(tmp_path, 14)
    (run / "candidates.jsonl.gz").unlink()
    asked = [json.loads(line) for line in gold.read_text().splitlines()]
    hostile.lines(run / "predictions.jsonl", [{**row, "ObjectEntitiesID": ["Q99999"]} for row in asked])
    titles = ("F1 per relation", "Precision against recall", "Objects kept", "Scores of right", "as the cut moves")
    for words, wanted in (((), titles[:3]), (("--relation", hostile.RELATIONS[0]), titles[2:3])):
        command.done("report", run, "--gold", gold, *words)
        page = (run / "report.html").read_text(encoding="utf-8")
        assert tuple(title for title in titles if f"<h3>{title}" in page) == wanted
        lines = 2 if words else 3  # of each relation, and of the average
        assert len(re.findall(">below (class prior and )?all-empty file</td>", page)) == lines
