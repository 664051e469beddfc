"""KMIR's token F1, exact on the recorded cases, and the grouping of questions by fact."""

from __future__ import annotations

import gzip
import json
import math
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmkbc.probe.kmir.chance import _NamePool, chance
from lmkbc.probe.kmir.files import Question
from lmkbc.probe.kmir.score import KNOWLEDGE, _Cell, question_f1, robustness, score, token_f1, type_by_topic


@pytest.mark.parametrize("name", ["kmir-1", "kmir-2"])
def test_published_f1(data_dir: Path, name: str) -> None:
    case = json.loads(gzip.decompress((data_dir / "vectors" / f"{name}.json.gz").read_bytes()))
    found = [question_f1(row["ret"], row["answer"]) for row in case["cases"]]
    assert found == [row["f1"] for row in case["cases"]]
    assert round(math.fsum(found) / len(found), 5) == pytest.approx(case["f1"], abs=1e-9)


def test_articles_and_punctuation_do_not_count() -> None:
    assert token_f1("The U.S.A.", "usa") == 1.0
    assert token_f1("the", "") == 1.0
    assert token_f1("the", "x") == 0.0
    assert question_f1([], ["x"]) == 0.0


def test_a_fact_is_steady_only_when_all_its_questions_are_right() -> None:
    found = robustness([(0, True), (0, True), (1, True), (1, False), (2, False)])
    assert (found.every, found.some, found.none, found.facts) == (1 / 3, 1 / 3, 1 / 3, 3)
    asked = [Question(kind, kind, "", ["x y"], "r", 0, "places") for kind in ("checking", "completion")]
    grouped = score(asked, {"checking": ["x y"], "completion": ["x", "z z z"]})
    assert grouped.types == pytest.approx({"checking": 1.0, "completion": 2 / 3})
    assert (grouped.topics["places"], grouped.f1, grouped.robustness.some) == pytest.approx((5 / 6, 5 / 6, 1.0))


def test_each_type_of_knowledge_has_a_row_and_each_type_of_question_its_column() -> None:
    asked = [
        Question("1", "checking", "", ["true"], "r", 0, "law"),
        Question("2", "checking", "", ["true"], "r", 1, "law"),
        Question("3", "reasoning", "", ["x"], "r", 2, "places"),
    ]
    table = score(asked, {"1": ["true"], "2": ["false"], "3": ["x"]})
    assert table.cells == {"law": {"checking": _Cell(0.5, 2)}, "places": {"reasoning": _Cell(1.0, 1)}}
    rows = {row[0]: row[1:] for row in type_by_topic(table, asked).rows}
    assert list(rows) == [*KNOWLEDGE, "not in the paper: places"]
    assert rows["law"] == [None, 0, 50.0, 2, None, 0, None, 0, 50.0, 2]
    assert rows["physics"] == [None, 0] * 5
    assert rows["not in the paper: places"][6:] == [100.0, 1] * 2


NAMES = st.lists(st.text("aA the b.", max_size=8), min_size=1, max_size=5)


@given(NAMES, NAMES)
def test_a_random_names_f1_is_the_mean_over_all_names(names: list[str], accepted: list[str]) -> None:
    pool = dict.fromkeys(names)
    mean = math.fsum(question_f1([name], accepted) for name in pool) / len(pool)
    assert _NamePool(names).expected_f1(tuple(accepted)) == pytest.approx(mean)


def test_chance_is_that_of_options_where_there_are_some() -> None:
    file = [
        Question("1", "checking", "", ["true"], "r", 0),
        Question("2", "distinction", "", ["New York"], "r", 0, options=["New York", "York", "Rome", "Lima"]),
        Question("3", "completion", "", ["Rome"], "r", 0),
        Question("4", "completion", "", ["Oslo", "Bern"], "q", 1),
        Question("5", "reasoning", "", ["Rome"], "r", 1, options=["Rome", "Oslo"]),
        Question("6", "reasoning", "", ["Rome"], "r", 1),
    ]
    found = chance(file, file)
    assert found.names == 3
    assert found.name == pytest.approx(
        {"checking": 1 / 2, "distinction": (1 + 2 / 3) / 4, "completion": (1 / 3 + 2 / 3) / 2, "reasoning": 5 / 12}
    )
    assert found.relation == pytest.approx({**found.name, "completion": 1, "reasoning": 3 / 4})
    assert found.commonest == dict.fromkeys(found.name, 1.0)
    assert found.choices == {"checking": 1, "distinction": 1, "completion": 0, "reasoning": 1 / 2}
