"""KAMEL's published numbers, to the digit, and the stripped reading beside them."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from lmkbc.probe.kamel.benchmark import hard, learned
from lmkbc.probe.kamel.dataset import Kamel, KamelAnswer, KamelFact
from lmkbc.probe.kamel.score import parts, query_score, score


def vector(path: Path) -> tuple[dict[str, Any], list[tuple[KamelFact, str]]]:
    case = json.loads(gzip.decompress(path.read_bytes()))
    answers = [
        (
            KamelFact(
                name,
                row["sub_label"],
                tuple(KamelAnswer(o["rdf"], tuple(o["alternative"]), o["chosen"]) for o in row["obj_label"]),
            ),
            row["prediction"],
        )
        for name, rows in case["predictions"].items()
        for row in rows
    ]
    return case, answers


@pytest.mark.parametrize("name", ["kamel-1", "kamel-2"])
def test_published_procedure(data_dir: Path, name: str) -> None:
    case, answers = vector(data_dir / "vectors" / f"{name}.json.gz")
    plain, wide = score(answers, alternatives=False), score(answers)
    for relation, expected in case["relations"].items():
        found = plain.properties[relation]
        assert (found.p, found.r, found.f1) == pytest.approx(
            (expected["avg_prec"], expected["avg_rec"], expected["F1"]), abs=1e-12
        )
    printed = {"all_prec": "p", "all_rec": "r", "F1": "f1"}
    for key, field in printed.items():
        both = [100 * getattr(table.overall, field) for table in (wide, plain)]
        assert case["aggregate"][key] == f"{both[0]:.2f}% ({both[1]:.2f}%)"


def test_published_split_keeps_spaces_and_the_stripped_one_does_not() -> None:
    fact = KamelFact("P47", "France", (KamelAnswer("Spain"), KamelAnswer("Italy", ("Italia",))))
    assert query_score(fact, "Spain; Italia%") == (0.5, 0.5)
    assert query_score(fact, "Spain; Italia%\nAnd?", strip=True) == (1.0, 1.0)
    assert query_score(fact, "Spain; Italia%", strip=True, alternatives=False) == (0.5, 0.5)
    assert query_score(fact, "", strip=True) == query_score(fact, "") == (0.0, 0.0)
    assert parts(" A ;; b%c", strip=True) == {"a", "b"}


def test_groups_average_properties_and_cardinalities_average_queries() -> None:
    year = KamelFact("P569", "Bach", (KamelAnswer(None, ("31 March 1685", "1685"), "1685"),))
    city = KamelFact("P36", "France", (KamelAnswer("Paris"),))
    two = KamelFact("P36", "Bolivia", (KamelAnswer("La Paz"), KamelAnswer("Sucre")))
    table = score([(year, "1685"), (city, "Rome"), (two, "sucre;la paz")])
    assert (table.literals.f1, table.entities.f1, table.overall.f1) == (1.0, 0.5, 0.75)
    assert table.lama == table.properties["P36"].__class__(0.5, 0.5, 0.5, 1)
    assert {count: scored.count for count, scored in table.by_answers.items()} == {1: 2, 2: 1}
    assert score([]).overall.f1 == 0.0


def test_controls_learn_from_train_alone_and_never_from_the_subject_asked() -> None:
    def born(*rows: tuple[str, str]) -> tuple[KamelFact, ...]:
        return tuple(KamelFact("P19", name, (KamelAnswer(town),)) for name, town in rows)

    train = born(
        ("Ada Rossi", "Rome"),
        ("Leo Rossi", "Rome"),
        ("Jean Roux", "Paris"),
        ("Ann Roux", "Paris"),
        ("Eve Bly", "York"),
        ("Bea Bly", "York"),
        ("Cid Bly", "York"),
    )
    asked = born(("Max Rossi", "Rome"), ("Eve Bly", "Hull"), ("Tom Roux", "Lima"), ("Zed Oz", "York"))
    found = learned(Kamel({("P19", "train"): train, ("P19", "test"): asked}), asked)
    assert [text for _, text in found["majority of train"]] == ["Paris"] * 4  # York lost the fact on Eve Bly
    assert [text for _, text in found["naive Bayes of train"]][:3] == ["Rome", "York", "Paris"]
    said = [(fact, "York") for fact in asked]
    assert [fact.subject for fact, _ in hard(said, found)] == ["Eve Bly", "Tom Roux"]
    assert hard(said, {"all": said}) == said[:3]
