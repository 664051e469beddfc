"""Odd predictions files: the official treatment by default, refusal when strict, always counted."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from lmkbc.errors import InputError
from lmkbc.evaluate import evaluate_file
from lmkbc.workspace import Workspace

SPACE = Workspace()


def write(path: Path, edition: str, rows: list[tuple[str, object]]) -> Path:
    column = SPACE.edition(edition).column
    lines = [{"SubjectEntity": subject, "Relation": "awardWonBy", column: value} for subject, value in rows]
    path.write_text("\n".join(map(json.dumps, lines)))
    return path


def test_missing_unknown_and_repeated_rows_are_counted(tmp_path: Path) -> None:
    edition = SPACE.edition("2026")
    gold = write(tmp_path / "gold", "2026", [("a", [["x"]]), ("b", []), ("c", [["y"]])])
    predicted = write(tmp_path / "p", "2026", [("a", ["x"]), ("a", ["x"]), ("stranger", []), ("c", [["y"]])])
    result = evaluate_file(predicted, gold, edition, rows=True)
    assert result.remarks == "1 missing, 1 unknown, 1 repeated, 1 malformed"
    assert [score.f1 for _, score in result.table.rows] == [1.0, 1.0, 1.0]
    with pytest.raises(InputError, match=r"1 missing, 1 unknown, 1 repeated and 1 malformed rows, first \('b'"):
        evaluate_file(predicted, gold, edition, strict=True)


def test_a_file_without_odd_rows_passes_strict(tmp_path: Path) -> None:
    gold = write(tmp_path / "gold", "2024", [("a", ["Q1"])])
    assert evaluate_file(gold, gold, SPACE.edition("2024"), strict=True).remarks == ""


def test_where_the_official_script_stops_on_a_missing_row_so_do_we(tmp_path: Path) -> None:
    gold = write(tmp_path / "gold", "2023", [("a", ["Q1"]), ("b", ["Q2"])])
    predicted = write(tmp_path / "p", "2023", [("a", ["Q1"])])
    with pytest.raises(InputError, match=r"lacks 1 of 2 queries, first \('b', 'awardWonBy'\)"):
        evaluate_file(predicted, gold, SPACE.edition("2023"))


def test_a_value_that_is_no_list_scores_nothing_in_2023_and_stops_2024(tmp_path: Path) -> None:
    for name in ("2023", "2024"):
        write(tmp_path / name, name, [("a", ["Q1"])])
        write(tmp_path / f"p{name}", name, [("a", None)])
    result = evaluate_file(tmp_path / "p2023", tmp_path / "2023", SPACE.edition("2023"))
    assert (result.table.overall.f1, result.malformed) == (0.0, 1)
    with pytest.raises(InputError, match=r"row \('a', 'awardWonBy'\), field ObjectEntitiesID: not a list of strings"):
        evaluate_file(tmp_path / "p2024", tmp_path / "2024", SPACE.edition("2024"))


def test_rows_that_disagree_are_refused(tmp_path: Path) -> None:
    edition = SPACE.edition("2026")
    gold = write(tmp_path / "gold", "2026", [("a", [["x"]])])
    predicted = write(tmp_path / "p", "2026", [("a", ["z"]), ("a", ["x"])])
    with pytest.raises(InputError, match=r"p, line 2, field ObjectEntities: \('a', 'awardWonBy'\) .* line 1; keep one"):
        evaluate_file(predicted, gold, edition)


def test_a_query_that_the_split_repeats_may_be_answered_as_often(tmp_path: Path) -> None:
    edition = SPACE.edition("2023")
    gold = write(tmp_path / "gold", "2023", [("a", ["Q1"]), ("b", ["Q2"]), ("b", ["Q2"])])
    assert evaluate_file(gold, gold, edition, strict=True).repeated == 0
    more = write(tmp_path / "p", "2023", [("a", ["Q1"]), ("a", ["Q1"]), *[("b", ["Q2"])] * 3])
    assert evaluate_file(more, gold, edition).remarks == "2 repeated"
