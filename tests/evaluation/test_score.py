"""The official scores: the organisers' own vectors, and a literal second reading on random cases."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from literal_scorers import ROWS, harmonic
from scoring_cases import Case, cases, disagreements, evaluated
from space import SPACE

from lmkbc import Edition

EDITIONS = {name: SPACE.edition(name) for name in ROWS}
PRINTED = {
    "p": "p",
    "r": "r",
    "f1": "f1",
    "macro-p": "p",
    "macro-r": "r",
    "macro-f1": "f1",
    "micro-p": "micro_p",
    "micro-r": "micro_r",
    "micro-f1": "micro_f1",
    "avg. #preds": "average_predictions",
    "#empty preds": "empty_predictions",
}


def indexed(rows: list[dict[str, Any]], edition: Edition) -> dict[tuple[str, str], Any]:
    return {(row["SubjectEntity"], row["Relation"]): row[edition.column] for row in rows}


@pytest.mark.parametrize("number", [1, 2, 3])
@pytest.mark.parametrize("name", sorted(EDITIONS))
def test_official_vectors(data_dir: Path, name: str, number: int) -> None:
    case = json.loads(gzip.decompress((data_dir / "vectors" / f"lmkbc{name}-{number}.json.gz").read_bytes()))
    edition = EDITIONS[name]
    table = edition.metric.evaluate(indexed(case["pred"], edition), indexed(case["gold"], edition), rows=True)
    assert len(table.rows) == len(case["rows"])
    for (pair, score), wanted in zip(table.rows, case["rows"], strict=True):
        assert pair == (wanted["SubjectEntity"], wanted["Relation"])
        assert score[:3] == pytest.approx((wanted["p"], wanted["r"], wanted["f1"]), abs=1e-9)
        if "tp" in wanted:
            assert score[3:] == (wanted["tp"], wanted["total_pred"], wanted["total_gt"])
    summaries = dict(table.relations)
    for relation, wanted in case["aggregate"].items():
        found = table.overall if relation.startswith("***") else summaries.pop(relation)
        for column, value in wanted.items():
            assert getattr(found, PRINTED[column]) == pytest.approx(value, abs=1e-9), (relation, column)
    assert not summaries


WORDS = st.sampled_from(
    (
        "|a|A|a.|á|None|null|O'Neil|O\u2019Neil|ß|SS|a b| a  b |c+|c|Q1|Q2|12|12.5|1,250|1250|0|-3|nan|1e3|\u2122|TM"
        "|\u012f"
    ).split("|")
)
ALIASES = st.lists(WORDS, min_size=1, max_size=4)
RELATION = st.sampled_from(["hasArea", "awardWonBy"])


def gold_strategy(name: str) -> st.SearchStrategy[list[Any]]:
    if name in ("2022", "2026"):
        return st.lists(ALIASES, max_size=5)
    flat = st.lists(WORDS.filter(lambda word: word not in ("", "0")), max_size=5)
    return st.one_of(flat, st.just([""])) if name == "2023" else flat


def predicted_strategy(name: str) -> st.SearchStrategy[list[Any]]:
    return st.lists(st.one_of(WORDS, st.lists(WORDS, max_size=2)) if name == "2026" else WORDS, max_size=6)


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(EDITIONS))
@settings(suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_random_cases_agree_with_the_literal_reading(name: str, data: st.DataObject) -> None:
    """Of each edition, 10 rows per example: 5,000 cases where `make attack` tries them."""
    row = st.tuples(predicted_strategy(name), gold_strategy(name), RELATION)
    rows = data.draw(st.lists(row, min_size=10, max_size=10))
    predicted = {(f"{number:02}", relation): row for number, (row, _, relation) in enumerate(rows)}
    gold = {(f"{number:02}", relation): row for number, (_, row, relation) in enumerate(rows)}
    table = EDITIONS[name].metric.evaluate(predicted, gold, rows=True)
    for pair, score in table.rows:
        p, r = ROWS[name](predicted[pair], gold[pair], pair[1])
        assert score[:3] == pytest.approx((p, r, harmonic(p, r)), abs=1e-9), (predicted[pair], gold[pair])


@pytest.mark.parametrize("name", sorted(EDITIONS))
@given(data=st.data())
def test_matches_and_count_agree_with_the_row_score(name: str, data: st.DataObject) -> None:
    """Selection counts hits candidate by candidate; on distinct answers it must see what the scorer sees."""
    scorer, relation = EDITIONS[name].metric.scorer, "awardWonBy"
    gold = [item for item in data.draw(gold_strategy(name)) if item != ""]
    gold = gold if name in ("2022", "2026") else list(dict.fromkeys(gold))
    words = data.draw(st.lists(WORDS.filter(lambda w: w.strip() and w.lower() not in ("none", "null")), max_size=6))
    answers = list({scorer.key(word): word for word in words if scorer.key(word)}.values())
    hits, predicted, _ = scorer.score(answers, gold, relation)
    assert predicted == len(answers)
    assert hits == scorer.count([scorer.matches(answer, gold, relation) for answer in answers])


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(EDITIONS))
def test_the_command_scores_odd_rows_as_the_literal_reading(tmp_path: Path, name: str) -> None:
    """A thousand rows of each edition; `python -m eval.bench scoring --fuzz 15000` tries as many as one likes."""
    assert not list(disagreements(tmp_path, name, cases(name, 1001), stops=2))


@pytest.mark.parametrize(
    ("edition", "predicted", "gold", "expected"),
    [
        ("2022", [None], [["Paris"]], (1, 0, 0)),
        ("2022", ["Paris", None], [["Paris"]], (0.5, 1, 2 / 3)),
        ("2022", ["", "..."], [["Paris"]], (0, 0, 0)),
        ("2022", ["..."], [["Paris"]], (1, 0, 0)),
        ("2022", [None], [], (1, 1, 1)),
        ("2022", [[]], [["Paris"]], (1, 0, 0)),
        ("2023", None, [], (0, 1, 0)),
        ("2023", None, [""], (0, 1, 0)),
        ("2023", None, ["Q1"], (0, 0, 0)),
        ("2023", ["Q1", None], ["Q1"], (0.5, 1, 2 / 3)),
        ("2024", ["Q1", None], ["Q1"], (0.5, 1, 2 / 3)),
        ("2026", ["Paris", None, 5], [["Paris"]], (1, 1, 1)),
    ],
)
def test_odd_values_score_as_published(
    tmp_path: Path, edition: str, predicted: Any, gold: list[Any], expected: tuple[float, float, float]
) -> None:
    row = Case("s", "awardWonBy", predicted, gold, expected[:2])
    assert not list(disagreements(tmp_path, edition, [row]))
    code, output, _ = evaluated(tmp_path, edition, [row], "--json", "--rows")
    assert code == 0
    assert [json.loads(output)["rows"][0][name] for name in ("p", "r", "f1")] == pytest.approx(expected)


def test_repeated_ids_of_2023_pass_one_and_2024_counts_them_once() -> None:
    pair = ("s", "r")
    old = EDITIONS["2023"].metric.evaluate({pair: ["Q1", "Q1"]}, {pair: ["Q1"]}, rows=True)
    new = EDITIONS["2024"].metric.evaluate({pair: ["Q1", "Q1"]}, {pair: ["Q1"]}, rows=True)
    assert old.rows[0][1].r == 2.0
    assert new.rows[0][1] == (1.0, 1.0, 1.0, 1, 1, 1)


def test_empty_gold_wants_an_empty_answer_everywhere() -> None:
    for name, edition in EDITIONS.items():
        empty = [""] if name == "2023" else []
        pair = ("s", "awardWonBy")
        assert edition.metric.evaluate({pair: []}, {pair: empty}).overall.f1 == 1.0
        assert edition.metric.evaluate({pair: ["Q1"]}, {pair: empty}).overall.f1 == 0.0


def test_a_missing_query_is_empty_or_refused_as_officially() -> None:
    pair = ("s", "awardWonBy")
    assert EDITIONS["2026"].metric.evaluate({}, {pair: []}).overall.f1 == 1.0
    with pytest.raises(KeyError, match="awardWonBy"):
        EDITIONS["2023"].metric.evaluate({}, {pair: ["Q1"]})
