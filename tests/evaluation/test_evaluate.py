"""Odd predictions files: the official treatment by default, refusal when strict, always counted."""

import gzip
import json
import tracemalloc
from pathlib import Path

import pytest
from space import SPACE

import lmkbc
from lmkbc import InputError
from lmkbc.evaluation.official import evaluate
from lmkbc.files import reader


def write(path: Path, edition: str, rows: list[tuple[str, object]]) -> Path:
    column = SPACE.edition(edition).column
    lines = [{"SubjectEntity": subject, "Relation": "awardWonBy", column: value} for subject, value in rows]
    path.write_text("\n".join(map(json.dumps, lines)))
    return path


def test_missing_unknown_and_repeated_rows_are_counted(tmp_path: Path) -> None:
    edition = SPACE.edition("2026")
    gold = write(tmp_path / "gold", "2026", [("a", [["x"]]), ("b", []), ("c", [["y"]])])
    predicted = write(tmp_path / "p", "2026", [("a", ["x"]), ("a", ["x"]), ("stranger", []), ("c", [["y"]])])
    result = evaluate(predicted, gold, edition, rows=True)
    assert result.remarks == "1 missing, 1 unknown, 1 repeated, 1 malformed"
    assert [score.f1 for _, score in result.table.rows] == [1.0, 1.0, 1.0]
    with pytest.raises(InputError, match=r"1 missing, 1 unknown, 1 repeated and 1 malformed rows, first \('b'"):
        evaluate(predicted, gold, edition, strict=True)


def test_where_the_official_script_stops_on_a_missing_row_so_do_we(tmp_path: Path) -> None:
    gold = write(tmp_path / "gold", "2023", [("a", ["Q1"]), ("b", ["Q2"])])
    predicted = write(tmp_path / "p", "2023", [("a", ["Q1"])])
    with pytest.raises(InputError, match=r"lacks 1 of 2 queries, first \('b', 'awardWonBy'\)"):
        evaluate(predicted, gold, SPACE.edition("2023"))


def test_a_value_that_is_no_list_scores_nothing_in_2023_and_stops_2024(tmp_path: Path) -> None:
    for name in ("2023", "2024"):
        write(tmp_path / name, name, [("a", ["Q1"])])
        write(tmp_path / f"p{name}", name, [("a", None)])
    result = evaluate(tmp_path / "p2023", tmp_path / "2023", SPACE.edition("2023"))
    assert (result.table.overall.f1, result.malformed) == (0.0, 1)
    with pytest.raises(InputError, match=r"row \('a', 'awardWonBy'\), field ObjectEntitiesID: not a list of strings"):
        evaluate(tmp_path / "p2024", tmp_path / "2024", SPACE.edition("2024"))


def test_rows_that_disagree_are_refused(tmp_path: Path) -> None:
    edition = SPACE.edition("2026")
    gold = write(tmp_path / "gold", "2026", [("a", [["x"]])])
    predicted = write(tmp_path / "p", "2026", [("a", ["z"]), ("a", ["x"])])
    with pytest.raises(InputError, match=r"p, line 2, field ObjectEntities: \('a', 'awardWonBy'\) .* line 1; keep one"):
        evaluate(predicted, gold, edition)


def test_a_query_that_the_split_repeats_may_be_answered_as_often(tmp_path: Path) -> None:
    edition = SPACE.edition("2023")
    gold = write(tmp_path / "gold", "2023", [("a", ["Q1"]), ("b", ["Q2"]), ("b", ["Q2"])])
    assert evaluate(gold, gold, edition, strict=True).repeated == 0
    more = write(tmp_path / "p", "2023", [("a", ["Q1"]), ("a", ["Q1"]), *[("b", ["Q2"])] * 3])
    assert evaluate(more, gold, edition).remarks == "2 repeated"


def test_two_subjects_of_one_name_are_told_in_splits_of_one_s_own(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    about = {"SubjectEntity": "Weir", "Relation": "children"}
    rows = [about | {"SubjectEntityID": f"Q{number}", "ObjectEntitiesID": [str(number)]} for number in range(1, 4)]
    gold = tmp_path / "gold"
    gold.write_text("\n".join(map(json.dumps, rows)))
    evaluate(gold, gold, SPACE.edition("mini"))
    assert "1 query is asked twice, first about 'Weir'" in caplog.text
    caplog.clear()
    rivers = [about | {"Relation": "RiverBasinsCountry", "SubjectEntityID": key} for key in ("Q206850", "Q156032")]
    official = tmp_path / "lmkbc2023" / "val.jsonl"
    official.parent.mkdir()
    official.write_text("\n".join(json.dumps(row | {"ObjectEntitiesID": ["Q30"]}) for row in rivers))
    space = lmkbc.Workspace(data=tmp_path)
    assert len(space.queries(space.edition("2023"), "val")) == 2
    assert not caplog.text


@pytest.mark.parametrize("zipped", [False, True], ids=["plain", "gzip"])
@pytest.mark.parametrize("order", ["same", "reversed"])
@pytest.mark.parametrize("block", [1, 64, 1 << 20])
def test_rows_in_any_order_and_blocks_of_any_size_score_alike(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, block: int, order: str, zipped: bool
) -> None:
    monkeypatch.setattr(reader, "STEP", block)
    names = [f"s{number}" for number in range(30)]
    gold = write(tmp_path / "gold", "2024", [(name, ["Q1", "Q2"]) for name in names])
    rows: list[tuple[str, object]] = [(name, ["Q1", f"Q{len(name)}"]) for name in names]
    rows += [("s3", ["Q2", "Q1"]), ("s3", ["Q1", "Q2"]), ("stranger", [])]
    predicted = write(tmp_path / "p", "2024", rows if order == "same" else [*rows[:30][::-1], *rows[30:]])
    if zipped:
        predicted.write_bytes(gzip.compress(predicted.read_bytes()))
    result = evaluate(predicted, gold, SPACE.edition("2024"), rows=True)
    assert result.remarks == "1 unknown, 2 repeated"
    scores = {pair[0]: score for pair, score in result.table.rows}
    assert [pair[0] for pair, _ in result.table.rows] == sorted(names)
    assert scores["s3"] == (1.0, 1.0, 1.0, 2, 2, 2)
    assert scores["s10"] == (0.5, 0.5, 0.5, 1, 2, 2)
    assert [result.table.rows[place] for place in range(30)] == list(result.table.rows)
    assert result.table.rows[-1] == result.table.rows[29]


def test_repeated_gold_rows_count_once_and_the_last_of_them(tmp_path: Path) -> None:
    gold = write(tmp_path / "gold", "2023", [("a", ["Q1"]), ("b", ["Q2"]), ("a", ["Q3"])])
    predicted = write(tmp_path / "p", "2023", [("b", ["Q2"]), ("a", ["Q3"])])
    result = evaluate(predicted, gold, SPACE.edition("2023"), rows=True)
    assert (result.table.overall.rows, result.table.overall.f1, result.remarks) == (2, 1.0, "")


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b'{"SubjectEntity": "a", "Relation": "r", "ObjectEntitiesID": []}\n' * 5 + b"{oops", "line 6: not valid JSON"),
        (b'\n{"SubjectEntity": 5}', "line 2, field SubjectEntity"),
        (b'{"SubjectEntity": "\xff"}', "line 1: not UTF-8"),
        (b'{"SubjectEntity": "a", "Relation": "r", "ObjectEntitiesID": ' + b"[" * 10_000, "line 1: nested too deeply"),
        (b"\n\n", "is empty"),
        (gzip.compress(b"x" * 100, mtime=0)[:-9], "cannot be read"),
    ],
)
@pytest.mark.parametrize("side", ["predictions", "gold"])
def test_a_file_that_cannot_be_read_is_told_by_file_line_and_field(
    tmp_path: Path, side: str, content: bytes, told: str
) -> None:
    paths = {name: write(tmp_path / name, "2023", [("a", ["Q1"])] * 40) for name in ("predictions", "gold")}
    paths[side].write_bytes(content)
    with pytest.raises(InputError, match=told) as error:
        evaluate(paths["predictions"], paths["gold"], SPACE.edition("2023"))
    assert str(paths[side]) in str(error.value)


@pytest.mark.parametrize("kind", ["completions", "candidates"])
def test_answers_that_nothing_was_selected_of_are_no_predictions(tmp_path: Path, kind: str) -> None:
    answers = tmp_path / "a.jsonl"
    answers.write_text(f'{{"SubjectEntity": "a", "Relation": "r", "{kind}": []}}\n')
    gold = write(tmp_path / "gold", "2023", [("a", ["Q1"])])
    with pytest.raises(InputError, match=f"holds {kind}, and ObjectEntitiesID is wanted: 'lmkbc predict --from .*a.j"):
        evaluate(answers, gold, SPACE.edition("2023"))


def test_gold_that_is_no_list_is_the_gold_files_fault(tmp_path: Path) -> None:
    gold, predicted = write(tmp_path / "gold", "2022", [("a", None)]), write(tmp_path / "p", "2022", [("a", ["x"])])
    with pytest.raises(InputError, match=r"gold, row \('a', 'awardWonBy'\), field ObjectEntities: no list of objects"):
        evaluate(predicted, gold, SPACE.edition("2022"))


@pytest.mark.whole
def test_memory_grows_by_counts_not_by_rows(tmp_path: Path) -> None:
    """Ten times the rows take a tenth of the memory that the rows themselves would take."""
    peaks = []
    for count in (2_000, 20_000):
        objects = [f"name {number} of some length" for number in range(20)]
        path = write(tmp_path / str(count), "2025", [(f"s{number}", objects) for number in range(count)])
        tracemalloc.start()
        evaluate(path, path, SPACE.edition("2025"))
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] - peaks[0] < 18_000 * 300


@pytest.mark.parametrize("limit", [None, 2])
def test_subjects_in_another_unicode_form_are_matched_and_counted(
    tmp_path: Path, limit: int | None, caplog: pytest.LogCaptureFixture
) -> None:
    edition = SPACE.edition("2023")
    gold = write(tmp_path / "gold", "2023", [("Rhône", ["Q1"]), ("São Tomé", ["Q2"]), ("Elbe", ["Q3"])])
    rows = [("Elbe", ["Q3"]), ("Rho\u0302ne ", ["Q1"]), ("Sa\u0303o\xa0Tomé", ["Q2"])]
    found = lmkbc.score(write(tmp_path / "p", "2023", rows), gold, "2023", limit=limit).evaluation
    assert (found.table.overall.f1, found.missing, found.unknown) == (1.0, 0, 0)
    assert "p: 2 rows are matched by Unicode form (NFC) and blanks, first" in caplog.text
    assert "the official script finds exact spellings alone" in caplog.text
    with pytest.raises(InputError, match="2 missing, 2 unknown"):
        evaluate(tmp_path / "p", gold, edition, strict=True)
