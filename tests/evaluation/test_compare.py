"""Comparing runs: differences, those that are not significant, and runs that cannot be compared."""

import base64
import hashlib
import json
import re
import sys
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from command import Command
from scipy.special import stdtrit

import lmkbc
from lmkbc import InputError
from lmkbc.evaluation.comparison import student

COUNT = 40
RELATIONS = ("CountryBordersCountry", "PersonPlaysInstrument")


def write(path: Path, right: dict[str, range], relations: tuple[str, ...] = RELATIONS, queries: int = COUNT) -> Path:
    """Predictions for every query; right: of each relation, which of its subjects are answered rightly."""
    lines = [
        {"SubjectEntity": f"s{place}", "Relation": name}
        | {"ObjectEntitiesID": [f"Q{place + 1}"] if place in right[name] else ["Q99999"]}
        for name in relations
        for place in range(queries)
    ]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def everything(count: int) -> dict[str, range]:
    return dict.fromkeys(RELATIONS, range(count))


@pytest.fixture
def gold(tmp_path: Path) -> Path:
    return write(tmp_path / "gold.jsonl", everything(COUNT))


def compared(gold: Path, *runs: Path) -> Sequence[Any]:
    return lmkbc.compare(*runs, edition="mini", gold=gold).comparisons


@pytest.mark.parametrize("odd", [[["Q81230", "Q1"]], [7], [None], [{"id": "Q1"}], "Q81230", None])
def test_what_evaluate_scores_is_compared_and_shown(command: Command, tmp_path: Path, gold: Path, odd: Any) -> None:
    rows = [json.loads(line) for line in gold.read_text("utf-8").splitlines()]
    place = tmp_path / "odd.jsonl"
    rows[0]["ObjectEntitiesID"] = odd
    place.write_text("".join(json.dumps(row) + "\n" for row in rows))
    asked = ("--edition", "mini", "--gold", gold)
    scored = json.loads(command.done("evaluate", place, *asked, "--json")[0])
    (one,) = compared(gold, place, gold)
    assert one.overall.first == pytest.approx(scored["macro_f1"])
    (changed,) = one.changed
    assert (changed.subject, *changed.second_answer) == ("s0", "Q1")
    command.done("compare", place, gold, *asked)
    command.done("report", place, *asked, "--out", tmp_path / "odd.html")


def test_a_run_that_wins_everywhere_is_better(tmp_path: Path, gold: Path) -> None:
    (one,) = compared(gold, write(tmp_path / "a", everything(10)), write(tmp_path / "b", everything(30)))
    assert one.overall.difference == pytest.approx(0.5)
    assert (one.overall.won, one.overall.lost, one.subjects) == (40, 0, COUNT)  # both relations ask about each subject
    assert one.overall.low is not None
    assert 0.3 < one.overall.low < 0.5
    assert one.verdict.startswith("b is better than a (+0.500, ")
    assert ", p < 0.001); per relation, " in one.verdict
    assert [part.is_significant for part in one.relations.values()] == [True, True]
    assert all(part.corrected == pytest.approx(2 * part.p) for part in one.relations.values())


def test_a_difference_of_one_row_is_not_significant(tmp_path: Path, gold: Path) -> None:
    (one,) = compared(gold, write(tmp_path / "a", everything(10)), write(tmp_path / "b", everything(11)))
    assert not one.overall.is_significant
    assert one.overall.p == pytest.approx(1.0)
    assert "is not significant" in one.verdict


def test_alike_runs_are_said_to_be_so(tmp_path: Path, gold: Path) -> None:
    first = write(tmp_path / "a", everything(10))
    (one,) = compared(gold, first, write(tmp_path / "b", everything(10)))
    assert (one.overall.low, one.overall.high, one.overall.p) == (0.0, 0.0, 1.0)
    assert "on every row" in one.verdict


def test_a_part_of_the_queries_is_compared_where_both_have_it(tmp_path: Path, gold: Path) -> None:
    runs = [write(tmp_path / name, everything(5), queries=12) for name in "ab"]
    (one,) = compared(gold, *runs)
    assert (one.overall.rows, one.subjects) == (24, 12)
    with pytest.raises(InputError, match="a lacks 56 of 80 queries"):
        compared(gold, runs[0], write(tmp_path / "c", everything(5)))


def test_a_relation_of_one_row_has_no_interval(tmp_path: Path, gold: Path) -> None:
    (one,) = compared(gold, *(write(tmp_path / name, everything(1), queries=1) for name in "ab"))
    assert one.overall.low is None


def test_more_runs_are_compared_with_the_first_and_corrected(tmp_path: Path, gold: Path) -> None:
    runs = [write(tmp_path / name, everything(count)) for name, count in (("a", 10), ("b", 17), ("c", 10))]
    first, second = compared(gold, *runs)
    assert (first.first, second.first) == ("a", "a")
    assert first.overall.corrected == pytest.approx(2 * first.overall.p)


def test_each_baseline_is_compared_with_all_runs_after_it(command: Command, tmp_path: Path, gold: Path) -> None:
    runs = [write(tmp_path / f"{name}.jsonl", everything(count)) for name, count in (("a", 10), ("b", 17), ("c", 30))]
    words = ("compare", *runs, "--edition", "mini", "--gold", gold)
    found = json.loads(command.done(*words, "--baselines", 2, "--json")[0])["comparisons"]
    pairs = {(one["first"][0], one["second"][0]): one["overall"] for one in found}
    assert {pair: round(part["difference"], 3) for pair, part in pairs.items()} == {
        ("a", "b"): 0.175,
        ("a", "c"): 0.5,
        ("b", "c"): 0.325,
    }
    assert "--baselines is 3 of 3 runs" in command.fails(*words, "--baselines", 3)


def test_the_command_takes_files_and_zips(command: Command, tmp_path: Path, gold: Path) -> None:
    first, second = write(tmp_path / "a.jsonl", everything(10)), write(tmp_path / "b.jsonl", everything(30))
    with zipfile.ZipFile(tmp_path / "b.zip", "w") as zipped:
        zipped.write(second, "predictions.jsonl")
    words = ("compare", first, "b.zip", "--edition", "mini", "--gold", gold)
    assert "b.zip is better than a.jsonl (+0.500" in command.done(*words)[0]
    shown, _ = command.done(*words, "--json")
    (found,) = json.loads(shown)["comparisons"]
    assert found["overall"]["won"] == 40
    assert found["relations"].keys() == set(RELATIONS)


def test_without_a_library_that_draws_the_page_says_which_extra_brings_it(
    command: Command, tmp_path: Path, gold: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    runs = [write(tmp_path / name, everything(10)) for name in "ab"]
    command.done("compare", *runs, "--edition", "mini", "--gold", gold, "--html", "page.html")
    page = Path("page.html").read_text()
    assert "install lmkbc[pictures]" in page
    assert "<figure" not in page


@pytest.mark.parametrize("freedom", [1.0, 1.5, 2.0, 7.3, 40.0, 1e4])
def test_the_quantile_of_student_s_law(freedom: float) -> None:
    assert student(freedom) == pytest.approx(stdtrit(freedom, 0.975), rel=1e-9)


def test_runs_of_two_editions_are_refused(command: Command, tmp_path: Path) -> None:
    for name in ("2022", "2023"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "predictions.jsonl").write_text("")
        (tmp_path / name / "manifest.json").write_text(json.dumps({"edition": name, "split": "val"}))
    assert "one edition" in command.fails("compare", "2022", "2023")


def test_an_unfinished_run_is_named_as_such(tmp_path: Path) -> None:
    (tmp_path / "missing.jsonl").write_text("")
    with pytest.raises(InputError, match="queries failed"):
        lmkbc.compare(tmp_path, tmp_path)


def test_rows_won_and_lost_are_listed_with_names(command: Command, tmp_path: Path, gold: Path) -> None:
    lines = [json.loads(line) for line in gold.read_text().splitlines()]
    named = [{**row, "ObjectEntities": [f"name of {row['SubjectEntity']}"]} for row in lines]
    gold.write_text("".join(json.dumps(row) + "\n" for row in named))
    runs = [
        write(tmp_path / name, {RELATIONS[0]: own, RELATIONS[1]: range(5)})
        for name, own in (("a", range(3)), ("b", range(1, 40)))
    ]
    words = ("compare", *runs, "--edition", "mini", "--gold", gold)
    assert "name of s10" not in command.done(*words)[0]
    shown, _ = command.done(*words, "--rows")
    assert "37 rows won by b" in shown
    assert "17 more" in shown
    assert "1 row lost by b" in shown
    assert "name of s10 (Q11)" in shown
    (found,) = json.loads(command.done(*words, "--rows", "--json")[0])["comparisons"]
    lost = next(row for row in found["rows"] if not row["won"])
    assert (lost["subject"], lost["first"], lost["second"]) == ("s0", 1, 0)
    assert (lost["first_answer"], lost["second_answer"]) == (["name of s0 (Q1)"], ["Q99999"])
    assert len(found["rows"]) == found["overall"]["won"] + found["overall"]["lost"]


def test_the_page_lists_changed_rows_and_all_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, gold: Path) -> None:
    monkeypatch.setattr("lmkbc.api.comparing.MOST_ROWS", 7)
    runs = [write(tmp_path / name, everything(count)) for name, count in (("a", 10), ("<b>", 17), ("c", 8))]
    made = lmkbc.compare(*runs, edition="mini", gold=gold)
    page = made.html
    assert page.count('data-side="won"') == 7
    assert page.count('data-side="lost"') == 4
    assert "7 more were won" in page
    assert "<b>" not in page
    heads = re.findall('<th scope="col"[^>]*>([^<]*)</th>', page[page.index('<h2 id="all">') :])
    assert heads[:5] == ["relation", "rows", "a", "&lt;b&gt;", "c"]
    (script,) = re.findall("<script>(.*?)</script>", page, re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}'" in page
    assert made.changed["won"].to_list().count(True) == 14
