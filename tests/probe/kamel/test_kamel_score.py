"""KAMEL's published numbers, to the digit, and the stripped reading beside them."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from rows import jsonl

from lmkbc import InputError
from lmkbc.probe.kamel.kamel import by_facts, hard, lama_questions, lama_tables, learned
from lmkbc.probe.kamel.kamel_data import Kamel, KamelAnswer, KamelFact
from lmkbc.probe.kamel.kamel_scores import (
    by_year,
    query_score,
    score,
    year_table,
)

KAMELS = "KAMEL's facts"


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
    two = KamelFact("P47", "x", (KamelAnswer("a"), KamelAnswer("b")))
    assert query_score(two, " A ;; b%c", strip=True) == (1.0, 1.0)


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


def facts(name: str, *objects: str) -> tuple[KamelFact, ...]:
    return tuple(KamelFact(name, f"train {n}", (KamelAnswer(one, chosen=one),)) for n, one in enumerate(objects))


def asked(name: str, subject: str, *years: str) -> KamelFact:
    return KamelFact(name, subject, tuple(KamelAnswer(None, (f"1 May {year}", year), year) for year in years))


DATA = Kamel(
    {
        ("P569", "train"): (
            *facts("P569", "1900", "1910", "950", "1990", "25"),
            KamelFact("P569", "Bach", (KamelAnswer("1685"),)),
        ),
        ("P2044", "train"): facts("P2044", "120", "15", "30000"),
        ("P36", "train"): facts("P36", "Paris", "1984"),
        ("P31", "train"): (),
    }
)


def test_properties_of_years_are_read_from_train() -> None:
    replies = [(asked(name, "x", "1685"), "1685") for name in ("P569", "P2044", "P36", "P31")]
    assert [*year_table(DATA, replies)["answers"]] == ["P569", "*** All ***"]


@pytest.mark.parametrize(
    ("text", "year"),
    [
        ("1949%", 1949),
        ("16 December 949; 1950", 949),
        ("in the 1950s", 1950),
        ("12,500 or 3.141 or 12345", None),
        ("no idea%\n1949", None),
    ],
)
def test_a_year_is_read_from_an_answer(text: str, year: int | None) -> None:
    found = year_table(DATA, [(asked("P569", "Bach", str(year or 1949)), text)])["answers"]["P569"]
    assert (found["mean"], found["no_year"]) == ((None, 1.0) if year is None else (0, 0.0))


def test_deviations_of_answers_and_of_the_median_year() -> None:
    replies = [
        (asked("P569", "Bach", "1685"), "1685%"),
        (asked("P569", "Haydn", "1732", "1742"), "about 1739"),
        (asked("P569", "Mozart", "1756"), "Salzburg"),
        (asked("P569", "Nero", "37"), "1900"),  # no year of three digits: not asked about
        (asked("P2044", "hill", "120"), "1900"),
    ]
    table = year_table(DATA, replies)
    own = table["answers"]["P569"]
    assert [own[name] for name in ("questions", "mean", "median", "no_year")] == [3, 1.5, 1.5, pytest.approx(1 / 3)]
    assert own["within"] == pytest.approx({0: 1 / 3, 1: 1 / 3, 5: 2 / 3, 10: 2 / 3, 50: 2 / 3})
    control = table["control"]["P569"]  # 1900, the lower median without Bach himself
    assert (control["mean"], control["median"]) == (pytest.approx((215 + 158 + 144) / 3), 158)
    assert table["answers"]["*** All ***"] == own
    (row, _) = by_year(table).rows
    assert row[:4] == ["P569", 3, 1.5, 1.5]


def test_without_years_there_is_nothing_to_show() -> None:
    assert not year_table(DATA, [(asked("P2044", "hill", "120"), "120")])["answers"]
    silent = year_table(DATA, [(asked("P569", "Bach", "1685"), "")])["answers"]["P569"]
    assert (silent["mean"], silent["median"], silent["no_year"]) == (None, None, 1.0)


CAPITALS = (KamelFact("P36", "Peru", (KamelAnswer("Lima"), KamelAnswer("Cusco"))),)
SHARED = Kamel({("P36", "train"): CAPITALS, ("P36", "test"): CAPITALS, ("P50", "train"): (), ("P50", "test"): ()})


def lama(root: Path) -> Path:
    """Write LAMA's layout: one relation of both benchmarks, one that KAMEL lacks, one of KAMEL that LAMA lacks."""
    names = ("P36", "P530", "P50")
    jsonl(root / "relations.jsonl", [{"relation": name, "template": "[X] is [Y] .", "type": "N-1"} for name in names])
    facts = [{"sub_label": subject, "obj_label": object_} for subject, object_ in (("France", "Paris"), ("X", "Y"))]
    for name in names:
        jsonl(root / "TREx" / f"{name}.jsonl", facts)
    return root


def test_facts_of_the_shared_relations_with_examples_of_kamel_or_of_autoprompt(tmp_path: Path) -> None:
    found = lama_questions(lama(tmp_path), SHARED)
    assert found.properties == ["P36"]
    assert found.of("P36", "test")[0] == KamelFact("P36", "France", (KamelAnswer("Paris"),))
    assert found.of("P36", "train") == CAPITALS
    jsonl(tmp_path / "P36" / "train.jsonl", [{"sub_label": "Chile", "obj_label": "Santiago"}])
    (example,) = lama_questions(tmp_path, SHARED, tmp_path).of("P36", "train")
    assert (example.subject, example.objects) == ("Chile", (KamelAnswer("Santiago"),))
    with pytest.raises(InputError):
        lama_questions(tmp_path / "TREx", SHARED)


def test_both_halves_are_scored_alike() -> None:
    kamels = [(CAPITALS[0], "Lima%")]
    lamas = [(KamelFact("P36", "France", (KamelAnswer("Paris"),)), text) for text in (" Paris%", "Rome")]
    sheet = by_facts(lama_tables(kamels, lamas))
    own, other, *paper = [list(row) for row in sheet.rows]
    assert own[:4] == [KAMELS, 100.0, 50.0, pytest.approx(100 * 2 / 3)]
    known = (other[0], other[3], other[5], other[6:])
    assert known == ("LAMA's facts", 0.0, 50.0, [2, 1])  # the published split keeps spaces
    assert [row[3] for row in paper] == [23.99, 52.9]
    assert list(lama_tables(kamels, [])) == [KAMELS]
