"""The interval beside a probe's score: as wide as theory has it, and silent where it cannot know."""

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from command import Command
from rows import jsonl

from lmkbc.probe.kamel.kamel_data import KamelAnswer, KamelFact
from lmkbc.probe.kamel.kamel_scores import score

Asked = Sequence[tuple[int, bool]]
"""Questions with one answer each: the number of a fact, and whether the guess is right."""


@pytest.fixture
def kmir(command: Command, tmp_path: Path) -> Any:
    """Return KMIR's scores of questions."""

    def scored(asked: Asked) -> Any:
        about = {"type": "checking", "question": "", "answer": ["true"], "relation": "r"}
        jsonl(tmp_path / "asked.jsonl", [{"id": str(n), "fact": fact, **about} for n, (fact, _) in enumerate(asked)])
        said = [{"id": str(n), "ret": "true" if right else "false"} for n, (_, right) in enumerate(asked)]
        jsonl(tmp_path / "said.jsonl", said)
        words = ("probe", "kmir", "score", tmp_path / "asked.jsonl", tmp_path / "said.jsonl", "--json")
        return json.loads(command.done(*words)[0])

    return scored


@pytest.mark.parametrize(("share", "count"), [(0.5, 400), (0.1, 1000), (0.5, 12)])
def test_it_is_as_wide_as_that_of_a_share_in_any_order(kmir: Any, share: float, count: int) -> None:
    right = round(share * count)
    width = kmir([(place, place < right) for place in range(count)])["half_width"]
    assert width == pytest.approx(1.96 * math.sqrt(share * (1 - share) / (count - 1)), rel=0.1)
    assert kmir([(place, place >= count - right) for place in range(count)])["half_width"] == width


def kamel(*properties: tuple[int, int]) -> float | None:
    """Return the width beside KAMEL's F1. properties: right answers and questions of each."""
    gold = (KamelAnswer("Oslo"),)
    return score(
        (KamelFact(f"P{number}", f"land {place}", gold), "Oslo" if place < right else "Rome")
        for number, (right, count) in enumerate(properties)
        for place in range(count)
    ).half_width


def test_what_differs_between_strata_alone_widens_nothing() -> None:
    assert kamel((5, 5), (0, 5), (5, 5), (0, 5)) == 0.0


def test_a_lone_row_tells_nothing_of_how_rows_differ(kmir: Any) -> None:
    assert (kamel(), kamel((1, 1)), kamel((9, 9), (0, 1))) == (None, None, None)
    assert kmir([(0, True)])["half_width"] is None


def test_kamels_f1_has_that_of_its_properties_mean() -> None:
    assert kamel((30, 100), (30, 100)) == pytest.approx(1.96 * math.sqrt(0.3 * 0.7 / 99 / 2), rel=0.1)


def test_questions_on_one_fact_count_as_one_for_kmir(kmir: Any) -> None:
    plain = kmir([(fact, fact < 50) for fact in range(100)])
    twice = kmir([(fact, fact < 50) for fact in range(100) for _ in "ab"])
    always = kmir([(fact, right) for fact in range(100) for right in (False, True)])
    assert plain["half_width"] == plain["half_widths"]["checking"] == twice["half_width"]
    assert plain["half_width"] == pytest.approx(1.96 * 0.5 / math.sqrt(99), rel=0.1)
    assert (always["f1"], always["half_width"]) == (0.5, 0.0)  # "true" to everything is right on every other
