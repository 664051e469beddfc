"""Two bases side by side: what came, went and changed, in tables and on the screen."""

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from bases import fact, written
from command import Command

import lmkbc
from lmkbc import InputError


def borders(row: int, name: str, confidence: float, qid: str | None = None, **more: Any) -> dict[str, Any]:
    return fact(row, "country-borders", name, confidence, object_id=qid, **more)


def pair(folder: Path, first: list[dict[str, Any]], second: list[dict[str, Any]]) -> lmkbc.BaseComparison:
    return lmkbc.compare_bases(written(folder / "a", first), written(folder / "b", second))


@pytest.mark.parametrize(
    ("first", "second", "found"),
    [
        ([borders(0, "Mali", 0.9)], [borders(0, "MALI", 0.8)], []),
        ([borders(0, "Mali", 0.4)], [borders(0, "Mali", 0.5)], [["threshold"]]),
        ([borders(0, "Mali", 0.9)], [borders(0, "Mali", 0.9, "Q912")], [["link"]]),
        ([borders(0, "Mali", 0.9, "Q912")], [borders(0, "Republic of Mali", 0.9, "Q912")], []),
        ([borders(0, "Mali", 0.9, "Q912")], [borders(0, "Mali", 0.9, "Q1")], [["object"]]),
        ([borders(0, "Mali", 0.9)], [borders(0, "Chad", 0.3)], [["threshold", "object"]]),
        (
            [borders(0, "Mali", 0.9), borders(0, "Chad", 0.8)],
            [borders(0, "Chad", 0.9), borders(0, "Mali", 0.8)],
            [["rank"], ["rank"]],
        ),
        ([fact(0, "children", "4", 0.9, literal="4")], [fact(0, "children", "four", 0.9, literal="4")], []),
    ],
)
def test_a_fact_of_both_bases_is_the_same_or_changed(
    tmp_path: Path, first: list[dict[str, Any]], second: list[dict[str, Any]], found: list[list[str]]
) -> None:
    made = pair(tmp_path, first, second)
    assert made.changed["change"].to_list() == found
    assert (len(made.came), len(made.went)) == (0, 0)
    assert made.counts.select("same", "changed").row(0) == (len(first) - len(found), len(found))


def test_what_came_and_went_is_counted_and_says_what_the_other_base_has(tmp_path: Path) -> None:
    first = [borders(0, "Mali", 0.9), borders(0, "Chad", 0.8), borders(1, "Peru", 0.7), fact(3, "children", "2", 0.9)]
    second = [borders(0, "Mali", 0.9), borders(2, "Togo", 0.6), borders(2, "Benin", 0.8), borders(0, "Oman", 0.2)]
    made = pair(tmp_path, first, second)
    assert made.came.select("object", "other_base").rows() == [
        ("Benin", "not asked"),
        ("Togo", "not asked"),
        ("Oman", "other objects"),
    ]
    assert made.went.select("object", "other_base").rows() == [
        ("2", "not asked"),
        ("Chad", "other objects"),
        ("Peru", "not asked"),
    ]
    assert made.counts.select("relation", "first", "second", "same", "came", "went", "changed").rows() == [
        ("country-borders", 3, 4, 1, 3, 2, 0),
        ("children", 1, 0, 0, 0, 1, 0),
    ]
    one = lmkbc.compare_bases(tmp_path / "a", tmp_path / "b", relation="children")
    assert one.counts["relation"].to_list() == ["children"]
    with pytest.raises(InputError, match="no base has facts of 'country-languages'"):
        lmkbc.compare_bases(tmp_path / "a", tmp_path / "b", relation="country-languages")


def test_the_command_shows_some_and_says_where_the_rest_is(command: Command, tmp_path: Path) -> None:
    a = written(tmp_path / "a", [borders(0, "Mali", 0.9)])
    b = written(tmp_path / "b", [borders(row, f"\x1b[31mLand {row}", 0.9) for row in range(30)])
    shown, _ = command.done("compare", a, b)
    assert "\x1b" not in shown
    assert "29 facts came" in shown
    assert "9 more: --json has them all" in shown
    found = json.loads(command.done("compare", a, b, "--json")[0])
    assert (len(found["came"]), len(found["changed"])) == (29, 1)
    assert "--split is of runs" in command.fails("compare", a, b, "--split", "val")
    assert "takes two knowledge bases, and 3" in command.fails("compare", a, b, a)
    assert "holds no manifest.json" in command.fails("compare", a, tmp_path)


def test_equal_bases_differ_in_nothing(tmp_path: Path) -> None:
    facts = [borders(row % 9, f"land {row}", row % 7 / 7, f"Q{row + 1}" if row % 2 else None) for row in range(60)]
    made = pair(tmp_path, facts, facts)
    assert made.counts.select(pl.exclude("relation")).row(0) == (60, 60, 60, *[0] * 7)
