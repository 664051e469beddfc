"""The interval beside a probe's score: as wide as theory has it, and silent where it cannot know."""

import math
import random
from typing import Any

import pytest

from lmkbc.probe.benchmark import half_width
from lmkbc.probe.kamel.kamel_data import KamelAnswer, KamelFact
from lmkbc.probe.kamel.kamel_scores import score
from lmkbc.probe.kmir.kmir_scores import score as kmir_score
from lmkbc.probe.kmir.questions import Question


@pytest.mark.parametrize(("share", "count"), [(0.5, 400), (0.1, 1000), (0.5, 12)])
def test_it_is_as_wide_as_that_of_a_share(share: float, count: int) -> None:
    right = round(share * count)
    rows = [(float(place < right), 1.0) for place in range(count)]
    width = half_width([rows], lambda means: means[:, 0, 0])
    assert width == pytest.approx(1.96 * math.sqrt(share * (1 - share) / (count - 1)), rel=0.1)
    random.Random(1).shuffle(rows)
    assert half_width([rows], lambda means: means[:, 0, 0]) == width


def test_what_differs_between_strata_alone_widens_nothing() -> None:
    strata = [[(float(place), 0.0)] * 5 for place in range(9)]
    assert half_width(strata, lambda means: means[:, :, 0].mean(axis=1)) == 0.0


def test_a_lone_row_tells_nothing_of_how_rows_differ() -> None:
    for strata in ([], [[(1.0, 1.0)]], [[(1.0, 1.0)] * 9, [(0.0, 0.0)]]):
        assert half_width(strata, lambda means: means[:, :, 0].mean(axis=1)) is None


def kamel(right: int, count: int) -> float | None:
    gold = (KamelAnswer("Oslo"),)
    return score(
        (KamelFact(name, f"land {place}", gold), "Oslo" if place < right else "Rome")
        for name in ("P36", "P47")
        for place in range(count)
    ).half_width


def test_kamels_f1_has_that_of_its_properties_mean() -> None:
    assert kamel(30, 100) == pytest.approx(1.96 * math.sqrt(0.3 * 0.7 / 99 / 2), rel=0.1)
    assert (kamel(0, 5), kamel(5, 5), kamel(0, 1)) == (0.0, 0.0, None)


def kmir(asked: list[tuple[int, bool]]) -> Any:
    """The scores of questions with one answer each, given as the number of a fact and whether the guess is right."""
    questions = [Question(str(n), "checking", "", ["true"], "r", fact) for n, (fact, _) in enumerate(asked)]
    return kmir_score(questions, {str(n): ["true" if right else "false"] for n, (_, right) in enumerate(asked)})


def test_questions_on_one_fact_count_as_one_for_kmir() -> None:
    plain = kmir([(fact, fact < 50) for fact in range(100)])
    twice = kmir([(fact, fact < 50) for fact in range(100) for _ in "ab"])
    always = kmir([(fact, right) for fact in range(100) for right in (False, True)])
    assert plain.half_width == plain.half_widths["checking"] == twice.half_width
    assert plain.half_width == pytest.approx(1.96 * 0.5 / math.sqrt(99), rel=0.1)
    assert (always.f1, always.half_width) == (0.5, 0.0)  # one who says "true" to everything is right on every other
