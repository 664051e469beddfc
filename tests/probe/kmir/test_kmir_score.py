"""KMIR's token F1, exact on the recorded cases, and the grouping of questions by fact."""

import gzip
import json
import math
import re
from pathlib import Path

import pytest
from command import Command
from hypothesis import given
from hypothesis import strategies as st

from lmkbc import InputError
from lmkbc.probe.kmir.kmir_scores import (
    KNOWLEDGE,
    asked_pairs,
    chance,
    curves,
    pair_counts,
    score,
    type_by_topic,
)
from lmkbc.probe.kmir.questions import Question, read_triples
from lmkbc.probe.kmir.schema import read_schema
from lmkbc.train.text_lines import text_rows


@pytest.mark.parametrize("name", ["kmir-1", "kmir-2"])
def test_published_f1(data_dir: Path, name: str) -> None:
    case = json.loads(gzip.decompress((data_dir / "vectors" / f"{name}.json.gz").read_bytes()))
    found = [f1_of(row["ret"], row["answer"]) for row in case["cases"]]
    assert found == [row["f1"] for row in case["cases"]]
    assert round(math.fsum(found) / len(found), 5) == pytest.approx(case["f1"], abs=1e-9)


def f1_of(said: list[str], accepted: list[str]) -> float:
    """The score of one question."""
    return score([Question("1", "completion", "", accepted, "r", 0)], {"1": said}).f1


def test_articles_and_punctuation_do_not_count() -> None:
    assert f1_of(["The U.S.A."], ["usa"]) == 1.0
    assert f1_of(["the"], [""]) == 1.0
    assert f1_of(["the"], ["x"]) == 0.0
    assert f1_of([], ["x"]) == 0.0


def test_a_fact_is_steady_only_when_all_its_questions_are_right() -> None:
    said = [(0, "x"), (0, "x"), (1, "x"), (1, "y"), (2, "y")]
    file = [Question(str(at), "checking", "", ["x"], "r", fact) for at, (fact, _) in enumerate(said)]
    found = score(file, {str(at): [text] for at, (_, text) in enumerate(said)}).robustness
    assert found == {"every": 1 / 3, "some": 1 / 3, "none": 1 / 3, "facts": 3}
    asked = [Question(kind, kind, "", ["x y"], "r", 0, "places") for kind in ("checking", "completion")]
    grouped = score(asked, {"checking": ["x y"], "completion": ["x", "z z z"]})
    assert grouped.types == pytest.approx({"checking": 1.0, "completion": 2 / 3})
    assert (grouped.topics["places"], grouped.f1, grouped.robustness["some"]) == pytest.approx((5 / 6, 5 / 6, 1.0))


def test_each_type_of_knowledge_has_a_row_and_each_type_of_question_its_column() -> None:
    asked = [
        Question("1", "checking", "", ["true"], "r", 0, "law"),
        Question("2", "checking", "", ["true"], "r", 1, "law"),
        Question("3", "reasoning", "", ["x"], "r", 2, "places"),
    ]
    table = score(asked, {"1": ["true"], "2": ["false"], "3": ["x"]})
    assert table.cells == {
        "law": {"checking": {"f1": 0.5, "questions": 2}},
        "places": {"reasoning": {"f1": 1.0, "questions": 1}},
    }
    rows = {row[0]: row[1:] for row in type_by_topic(table, asked).rows}
    assert list(rows) == [*KNOWLEDGE, "not in the paper: places"]
    assert rows["law"] == [None, 0, 50.0, 2, None, 0, None, 0, 50.0, 2]
    assert rows["physics"] == [None, 0] * 5
    assert rows["not in the paper: places"][6:] == [100.0, 1] * 2


NAMES = st.lists(st.text("aA the b.", max_size=8), min_size=1, max_size=5)


@given(NAMES, NAMES)
def test_a_random_names_f1_is_the_mean_over_all_names(names: list[str], accepted: list[str]) -> None:
    pool = dict.fromkeys(names)
    mean = math.fsum(f1_of([name], accepted) for name in pool) / len(pool)
    file = [Question(str(at), "completion", "", [name], "r", at) for at, name in enumerate(names)]
    file.append(Question("y", "completion", "", names[:1], "q", 98))
    found = chance([Question("x", "completion", "", accepted, "q", 99)], file)
    assert found["name"]["completion"] == pytest.approx(mean)


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
    assert found["names"] == 3
    assert found["name"] == pytest.approx(
        {"checking": 1 / 2, "distinction": (1 + 2 / 3) / 4, "completion": (1 / 3 + 2 / 3) / 2, "reasoning": 5 / 12}
    )
    assert found["relation"] == pytest.approx({**found["name"], "completion": 1, "reasoning": 3 / 4})
    assert found["commonest"] == dict.fromkeys(found["name"], 1.0)
    assert found["choices"] == {"checking": 1, "distinction": 1, "completion": 0, "reasoning": 1 / 2}


TEXT = st.lists(st.sampled_from(["New", "york", "York", "City", "Rome", "of", "!", "a,b"]), min_size=1, max_size=6).map(
    " ".join
)


@given(st.lists(st.tuples(TEXT, TEXT), min_size=1, max_size=5), st.lists(TEXT, max_size=6))
def test_lines_that_hold_both_names_are_counted(pairs: list[tuple[str, str]], lines: list[str]) -> None:
    wanted = {str(number): pair for number, pair in enumerate(pairs)}
    for name, count in pair_counts(wanted, lines).items():
        assert count == sum(all(holds(line, name) for name in wanted[name]) for line in lines)


def holds(line: str, name: str) -> bool:
    said, wanted = (f" {' '.join(re.findall(r'[a-z]+', text.casefold()))} " for text in (line, name))
    return bool(wanted.strip()) and wanted in said


def test_bins_are_four_times_as_wide_as_the_one_before() -> None:
    counts = {str(count): count for count in (0, 1, 3, 4, 15, 16, 63, 64)}
    asked = [(Question(name, "completion", "", ["x"], "r", count), float(count > 3)) for name, count in counts.items()]
    found = curves(asked, counts)["completion"]
    assert [tuple(part[name] for name in ("low", "high", "f1", "questions")) for part in found["bins"]] == [
        (0, 0, 0.0, 1),
        (1, 3, 0.0, 2),
        (4, 15, 1.0, 2),
        (16, 63, 1.0, 2),
        (64, 255, 1.0, 1),
    ]
    assert found["bins"][0]["half_width"] is None
    assert found["correlation"] == pytest.approx(math.sqrt(5 / 7))  # as scores have two values only
    same = [asked[0], (asked[0][0], 1.0)]  # as often, and not as good
    assert [curves(some, counts)["completion"]["correlation"] for some in (asked[:3], same)] == [None, None]


FACTS = [
    ("Paris", "P1376", "France"),
    ("Rome", "P1376", "Italy"),
    ("Lima", "P1376", "Peru"),
    ("Oslo", "P1376", "Norway"),
]
LINES = ["Paris is in France.", "In France, Paris!", "rome of Italy", "Lima and Oslo", "Parish of France"]


@pytest.mark.parametrize("packed", [False, True])
def test_from_triples_to_a_figure(command: Command, tmp_path: Path, packed: bool) -> None:
    triples, built, corpus = tmp_path / "facts.tsv", tmp_path / "built", tmp_path / "corpus.txt"
    triples.write_text("".join("\t".join(row) + "\n" for row in FACTS))
    corpus.write_text("\n".join(LINES))
    if packed:
        corpus = tmp_path / "corpus.jsonl.gz"
        corpus.write_bytes(gzip.compress("".join(json.dumps({"text": line}) + "\n" for line in LINES).encode()))
        assert [f"{row.title} {row.text}".strip() for row in text_rows(corpus)] == LINES
    run = command.under("probe", "kmir")
    assert "that two splits would share are left out" in run.done("build", triples, "--out", built)[1]
    written = [(built / f"{name}.jsonl").read_text() for name in ("train", "dev", "test")]
    asked = [json.loads(line) for text in written for line in text.splitlines()]
    (tmp_path / "asked.jsonl").write_text("".join(json.dumps(row) + "\n" for row in asked))
    (tmp_path / "said.jsonl").write_text(
        "".join(
            json.dumps({"id": row["id"], "ret": row["answer"][0] if row["fact"] == 0 else "x"}) + "\n" for row in asked
        )
    )
    words = ["score", tmp_path / "asked.jsonl", tmp_path / "said.jsonl", "--table", "co-occurrence"]
    more = ["--corpus", corpus, "--triples", triples]
    found = json.loads(run.done(*words, *more, "--pictures", tmp_path / "figures", "--json")[0])["co-occurrence"]
    assert [(one["low"], one["questions"]) for one in found["completion"]["bins"]] == [(0, 4), (1, 4)]
    assert [one["f1"] for one in found["completion"]["bins"]] == [0.0, 0.5]
    assert {*found} == {"completion", "checking", "reasoning"}
    assert b"1-3" in (tmp_path / "figures" / "co-occurrence.svg").read_bytes()
    assert "give --corpus, and --triples" in run.fails(*words)
    triples.write_text("\t".join(FACTS[2]) + "\n")
    assert "was not built from these triples" in run.fails(*words, *more)
    (tmp_path / "said.jsonl").write_text('{"id": "other", "ret": ""}')
    assert "is no question's id" in run.fails(*words[:3])


def test_a_conclusion_is_counted_by_its_own_names(tmp_path: Path) -> None:
    path, schema = tmp_path / "facts.tsv", read_schema()
    path.write_text("Lyon\tP131\tRhone\nRhone\tP131\tFrance\n")
    facts = read_triples(path, schema)
    asked = [Question("reasoning-0", "reasoning", "", ["France"], "P131", 0)]
    assert asked_pairs(asked, facts, schema) == {"reasoning-0": ("Lyon", "France")}
    for wrong in ("reasoning-9", "x"):
        with pytest.raises(InputError, match="was not built from these triples"):
            asked_pairs([Question(wrong, "reasoning", "", ["France"], "P131", 0)], facts, schema)
