"""KAMEL's published numbers, to the digit, and the stripped reading beside them."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from asked_kamel import asked, written, year
from command import Command
from rows import jsonl

from lmkbc.probe.kamel.kamel_data import KamelAnswer, KamelFact
from lmkbc.probe.kamel.kamel_scores import score

KAMELS = "KAMEL's facts"


@pytest.mark.parametrize("name", ["kamel-1", "kamel-2"])
def test_published_procedure(data_dir: Path, name: str) -> None:
    case = json.loads(gzip.decompress((data_dir / "vectors" / f"{name}.json.gz").read_bytes()))
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


def scores(table: Any, name: str) -> tuple[float, float]:
    """Return precision and recall of a property."""
    return table["properties"][name]["p"], table["properties"][name]["r"]


def test_published_split_keeps_spaces_and_the_stripped_one_does_not(command: Command, tmp_path: Path) -> None:
    neighbours = {"test": {"France": ["Spain", ("Italy", ["Italia"])]}}
    pairs = {"test": {"x": ["a", "b"]}}
    replies = {"France": "Spain; Italia%", "x": "A ;; b%c"}
    data = written(tmp_path / "KAMEL", P47=neighbours, P463=pairs)
    found, _, _ = asked(command, data, replies.__getitem__, "--shots", 0, "--json")
    assert scores(found["published"], "P47") == (0.5, 0.5)
    assert scores(found["stripped"], "P47") == (1.0, 1.0)
    assert scores(found["stripped, labels only"], "P47") == (0.5, 0.5)
    assert scores(found["stripped"], "P463") == (1.0, 1.0)
    assert scores(found["published"], "P463") == (0.0, 0.0)
    replies |= {"France": "Spain; Italia%\nAnd?", "x": "%"}
    (tmp_path / "s.sqlite").unlink()
    found, _, _ = asked(command, data, replies.__getitem__, "--shots", 0, "--json")
    assert scores(found["stripped"], "P47") == (1.0, 1.0)
    assert scores(found["stripped"], "P463") == scores(found["published"], "P463") == (0.0, 0.0)


def test_groups_average_properties_and_cardinalities_average_queries(command: Command, tmp_path: Path) -> None:
    capitals = {"test": {"France": ["Paris"], "Bolivia": ["La Paz", "Sucre"]}}
    data = written(tmp_path / "KAMEL", P569={"test": {"Bach": year("1685")}}, P36=capitals)
    replies = {"Bach": "1685", "France": "Rome", "Bolivia": "sucre;la paz"}
    found = asked(command, data, replies.__getitem__, "--shots", 0, "--json")[0]["published"]
    assert [found[name]["f1"] for name in ("literals", "entities", "overall")] == [1.0, 0.5, 0.75]
    assert found["lama"] == {"p": 0.5, "r": 0.5, "f1": 0.5, "count": 1}
    assert {count: scored["count"] for count, scored in found["by_answers"].items()} == {"1": 2, "2": 1}


def test_controls_learn_from_train_alone_and_never_from_the_subject_asked(command: Command, tmp_path: Path) -> None:
    names = {"Ada Rossi": "Rome", "Leo Rossi": "Rome", "Jean Roux": "Paris", "Ann Roux": "Paris"}
    names |= {"Eve Bly": "York", "Bea Bly": "York", "Cid Bly": "York"}
    train = {name: [town] for name, town in names.items()}
    test = {
        "Max Rossi": ["Rome"],
        "Eve Bly": ["York"],
        "Tom Roux": ["Paris"],
        "Tim Roux": ["Paris"],
        "Zed Oz": ["Lima"],
    }
    data = written(tmp_path / "KAMEL", P19={"train": train, "test": test})
    found, _, _ = asked(command, data, {"Zed Oz": "Lima"}.get, "--shots", 0, "--json")  # type: ignore[arg-type]
    assert scores(found["majority of train"], "P19") == (0.4, 0.4)  # Paris: York lost the fact on Eve Bly
    assert scores(found["naive Bayes of train"], "P19") == (0.8, 0.8)
    left = found["published, what no control answers"]
    assert (left["overall"]["f1"], left["by_answers"]["1"]["count"]) == (1.0, 1)


TRAIN = {"x1": ["1900"], "x2": ["1910"], "x3": ["950"], "x4": ["1990"], "x5": ["25"], "Bach": ["1685"]}
NUMBERS = {"train": {"t1": ["120"], "t2": ["15"], "t3": ["30000"]}, "test": {"hill": year("120")}}
TOWNS = {"train": {"t1": ["Paris"], "t2": ["1984"]}, "test": {"y": year("1685")}}


def test_a_year_is_read_from_an_answer(command: Command, tmp_path: Path) -> None:
    cases = {
        "P569": ("1949%", 1949),
        "P570": ("16 December 949; 1950", 949),
        "P571": ("in the 1950s", 1950),
        "P577": ("12,500 or 3.141 or 12345", None),
        "P580": ("no idea%\n1949", None),
        "P582": ("never", None),
    }
    facts = {name: {"train": TRAIN, "test": {name: year(str(known or 1949))}} for name, (_, known) in cases.items()}
    data = written(tmp_path / "KAMEL", P2044=NUMBERS, P36=TOWNS, P31={"test": {"z": year("1685")}}, **facts)
    replies = {name: text for name, (text, _) in cases.items()}
    table = asked(command, data, lambda name: replies.get(name, "1685"), "--shots", 0, "--json")[0]["years"]["answers"]
    assert [*table] == [*cases, "*** All ***"]
    for name, (_, known) in cases.items():
        off = [table[name][field] for field in ("mean", "median", "no_year")]
        assert off == ([None, None, 1.0] if known is None else [0, 0, 0.0])


def test_deviations_of_answers_and_of_the_median_year(command: Command, tmp_path: Path) -> None:
    test = {"Bach": year("1685"), "Haydn": year("1732", "1742"), "Mozart": year("1756"), "Nero": year("37")}
    data = written(tmp_path / "KAMEL", P569={"train": TRAIN, "test": test}, P2044=NUMBERS)
    replies = {"Bach": "1685%", "Haydn": "about 1739", "Mozart": "Salzburg", "Nero": "1900", "hill": "1900"}
    table = asked(command, data, replies.__getitem__, "--shots", 0, "--json")[0]["years"]
    own = table["answers"]["P569"]  # Nero has no year of three digits: not asked about
    assert [own[name] for name in ("questions", "mean", "median", "no_year")] == [3, 1.5, 1.5, pytest.approx(1 / 3)]
    assert own["within"] == pytest.approx({"0": 1 / 3, "1": 1 / 3, "5": 2 / 3, "10": 2 / 3, "50": 2 / 3})
    control = table["control"]["P569"]  # 1900, the lower median without Bach himself
    assert (control["mean"], control["median"]) == (pytest.approx((215 + 158 + 144) / 3), 158)
    assert table["answers"]["*** All ***"] == own
    printed = asked(command, data, replies.__getitem__, "--shots", 0, "--table", "years")[0]
    assert printed.splitlines()[2].split()[:4] == ["P569", "3", "1.500", "1.500"]


def lama(root: Path) -> Path:
    """Write LAMA's layout: one relation of both benchmarks, one that KAMEL lacks, one of KAMEL that LAMA lacks."""
    names = ("P36", "P530", "P50")
    jsonl(root / "relations.jsonl", [{"relation": name, "template": "[X] is [Y] .", "type": "N-1"} for name in names])
    facts = [{"sub_label": subject, "obj_label": object_} for subject, object_ in (("France", "Paris"), ("X", "Y"))]
    for name in names:
        jsonl(root / "TREx" / f"{name}.jsonl", facts)
    return root


def test_facts_of_the_shared_relations_with_examples_of_kamel_or_of_autoprompt(
    command: Command, tmp_path: Path
) -> None:
    capitals = {"Peru": ["Lima", "Cusco"], "Mali": ["Bamako"]}
    books = {"Emma": ["Austen"], "Ulysses": ["Joyce"]}
    data = written(tmp_path / "KAMEL", P36={"train": capitals, "test": capitals}, P50={"train": books, "test": books})
    replies = {"Peru": "Lima%", "France": " Paris%", "X": "Rome"}
    words = ("--shots", 1, "--lama", lama(tmp_path / "lama"), "--table", "lama-facts")
    printed, told, sent = asked(command, data, lambda name: replies.get(name, "no"), *words)
    assert "2 queries of 1 property, test, and 2 of LAMA" in told
    assert {body["messages"][-1]["content"] for body in sent} == {f"P36 of <{name}>?" for name in capitals} | {
        "P36 of <France>?",
        "P36 of <X>?",
    }
    assert {body["messages"][1]["content"] for body in sent} == {f"P36 of <{name}>?" for name in capitals}
    own, other, *paper = [line.split("  ") for line in printed.splitlines()[2:]]
    assert [one for one in map(str.strip, own) if one][:4] == [KAMELS, "50.000", "25.000", "33.333"]
    cells = [one.strip() for one in other if one.strip()]
    assert (cells[:4], cells[-3:]) == (["LAMA's facts", "50.000", "50.000", "50.000"], ["50.000", "2", "1"])
    assert [[one.strip() for one in line if one.strip()][3] for line in paper] == ["23.990", "52.900"]
    jsonl(tmp_path / "auto" / "P36" / "train.jsonl", [{"sub_label": "Chile", "obj_label": "Santiago"}])
    _, _, sent = asked(command, data, lambda _: "no", *words, "--lama-train", tmp_path / "auto")
    shown = {body["messages"][-1]["content"]: body["messages"][1]["content"] for body in sent}
    assert {shown[f"P36 of <{name}>?"] for name in ("France", "X")} == {"P36 of <Chile>?"}
    assert {shown[f"P36 of <{name}>?"] for name in capitals} == {f"P36 of <{name}>?" for name in capitals}
    wrong = ("probe", "kamel", data, "--model", "m", "--lama", tmp_path / "lama" / "TREx")
    assert "relations.jsonl" in command.fails(*wrong, "--templates", tmp_path / "templates.csv")
