"""KMIR's token F1, exact on the recorded cases, and the grouping of questions by fact."""

import gzip
import json
import math
import random
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from command import Command
from rows import jsonl

KNOWLEDGE = "physics biology chemistry medicine history law military music film commonsense".split()


Row = dict[str, Any]


def question(name: str, kind: str, answer: Sequence[str], relation: str = "r", fact: int = 0, **more: Any) -> Row:
    about = {"id": name, "type": kind, "question": "x", "answer": [*answer], "relation": relation, "fact": fact}
    return about | more


@pytest.fixture
def score(command: Command, tmp_path: Path) -> Any:
    """Return what the command says in JSON, or prints, of answers to questions: by id."""

    def scored(asked: Sequence[dict[str, Any]], said: Mapping[str, str | list[str]], *options: object) -> Any:
        questions = jsonl(tmp_path / "asked.jsonl", asked)
        answers = jsonl(
            tmp_path / "said.jsonl",
            [{"id": name, "ret": text} for name, text in (said or {asked[0]["id"]: ""}).items()],
        )
        printed = command.done("probe", "kmir", "score", questions, answers, *options)[0]
        return json.loads(printed) if "--json" in options else printed

    return scored


def each_f1(score: Any, cases: Sequence[tuple[list[str], list[str]]]) -> list[float]:
    """Return the F1 of each case: guesses, accepted answers. Each is a topic of its own."""
    asked = [question(str(n), "completion", accepted, topic=f"{n:05}") for n, (_, accepted) in enumerate(cases)]
    found = score(asked, {str(n): said for n, (said, _) in enumerate(cases)}, "--json")
    assert found["f1"] == pytest.approx(math.fsum(found["topics"].values()) / len(cases))
    return [found["topics"][f"{n:05}"] for n in range(len(cases))]


@pytest.mark.parametrize("name", ["kmir-1", "kmir-2"])
def test_published_f1(data_dir: Path, score: Any, name: str) -> None:
    case = json.loads(gzip.decompress((data_dir / "vectors" / f"{name}.json.gz").read_bytes()))
    found = each_f1(score, [(row["ret"], row["answer"]) for row in case["cases"]])
    assert found == [row["f1"] for row in case["cases"]]
    assert round(math.fsum(found) / len(found), 5) == pytest.approx(case["f1"], abs=1e-9)


def test_articles_and_punctuation_do_not_count(score: Any) -> None:
    cases = [(["The U.S.A."], ["usa"]), (["the"], [""]), (["the"], ["x"]), ([], ["x"])]
    assert each_f1(score, cases) == [1.0, 1.0, 0.0, 0.0]


def test_a_fact_is_steady_only_when_all_its_questions_are_right(score: Any) -> None:
    said = [(0, "x"), (0, "x"), (1, "x"), (1, "y"), (2, "y")]
    file = [question(str(at), "checking", ["x"], fact=fact) for at, (fact, _) in enumerate(said)]
    found = score(file, {str(at): text for at, (_, text) in enumerate(said)}, "--json")["robustness"]
    assert found == {"every": 1 / 3, "some": 1 / 3, "none": 1 / 3, "facts": 3}
    asked = [question(kind, kind, ["x y"], topic="places") for kind in ("checking", "completion")]
    grouped = score(asked, {"checking": "x y", "completion": ["x", "z z z"]}, "--json")
    assert grouped["types"] == pytest.approx({"checking": 1.0, "completion": 2 / 3})
    assert (grouped["topics"]["places"], grouped["f1"]) == pytest.approx((5 / 6, 5 / 6))
    assert grouped["robustness"]["some"] == 1.0


def test_each_type_of_knowledge_has_a_row_and_each_type_of_question_its_column(score: Any) -> None:
    asked = [
        question("1", "checking", ["true"], topic="law"),
        question("2", "checking", ["true"], fact=1, topic="law"),
        question("3", "reasoning", ["x"], fact=2, topic="places"),
    ]
    said = {"1": "true", "2": "false", "3": "x"}
    assert score(asked, said, "--json")["cells"] == {
        "law": {"checking": {"f1": 0.5, "questions": 2}},
        "places": {"reasoning": {"f1": 1.0, "questions": 1}},
    }
    shown = score(asked, said, "--table", "type-by-topic")
    rows = dict(re.split(r"  +", line, maxsplit=1) for line in shown.splitlines()[2:])
    assert list(rows) == [*KNOWLEDGE, "not in the paper: places"]
    assert rows["law"].split() == ["-", "0", "50.000", "2", "-", "0", "-", "0", "50.000", "2"]
    assert rows["physics"].split() == ["-", "0"] * 5
    assert rows["not in the paper: places"].split()[6:] == ["100.000", "1"] * 2


def test_a_random_names_f1_is_the_mean_over_all_names(score: Any) -> None:
    draw = random.Random(0)
    for _ in range(3):
        names = [draw.choice(["a A", "the b.", "aa b", "A.", "the", "b b a", "aa aa"]) for _ in range(5)]
        every, own = ([*dict.fromkeys(some)] for some in (names, names[:3]))
        means = [math.fsum(each_f1(score, [([name], names[:2]) for name in pool])) / len(pool) for pool in (every, own)]
        file = [question("x", "reasoning", names[:2], "r"), question("y", "completion", names[2:3], "r", 1)]
        file.append(question("z", "completion", names[3:], "q", 2))
        found = score(file, {}, "--table", "chance", "--json")["chance"]
        assert [found[pool]["reasoning"] for pool in ("name", "relation")] == pytest.approx(means)


def test_chance_is_that_of_options_where_there_are_some(score: Any) -> None:
    file = [
        question("1", "checking", ["true"]),
        question("2", "distinction", ["New York"], options=["New York", "York", "Rome", "Lima"]),
        question("3", "completion", ["Rome"]),
        question("4", "completion", ["Oslo", "Bern"], "q", 1),
        question("5", "reasoning", ["Rome"], fact=1, options=["Rome", "Oslo"]),
        question("6", "reasoning", ["Rome"], fact=1),
    ]
    found = score(file, {}, "--table", "chance", "--json")["chance"]
    assert found["names"] == 3
    assert found["name"] == pytest.approx(
        {"checking": 1 / 2, "distinction": (1 + 2 / 3) / 4, "completion": (1 / 3 + 2 / 3) / 2, "reasoning": 5 / 12}
    )
    assert found["relation"] == pytest.approx({**found["name"], "completion": 1, "reasoning": 3 / 4})
    assert found["commonest"] == dict.fromkeys(found["name"], 1.0)
    assert found["choices"] == {"checking": 1, "distinction": 1, "completion": 0, "reasoning": 1 / 2}


Pairs = Sequence[tuple[str, str]]


def counted(score: Any, folder: Path, pairs: Pairs, lines: Sequence[str], right: Sequence[bool]) -> Any:
    """Return the curve of completions about pairs of names, each right or wrong, by lines that hold both names."""
    triples, corpus = folder / "facts.jsonl", folder / "corpus.txt"
    jsonl(triples, [{"subject": one, "relation": "P1376", "object": other} for one, other in pairs])
    corpus.write_text("\n".join(lines))
    asked = [question(f"completion-{n}-0", "completion", [other], "P1376", n) for n, (_, other) in enumerate(pairs)]
    said = {row["id"]: row["answer"] if fine else "zzz" for row, fine in zip(asked, right, strict=True)}
    words = ("--table", "co-occurrence", "--corpus", corpus, "--triples", triples, "--json")
    return score(asked, said, *words)["co-occurrence"]["completion"]


def holds(line: str, name: str) -> bool:
    said, wanted = (f" {' '.join(re.findall(r'[a-z]+', text.casefold()))} " for text in (line, name))
    return wanted in said


def test_lines_that_hold_both_names_are_counted(score: Any, tmp_path: Path) -> None:
    draw = random.Random(0)

    def text() -> str:
        words = ["New", "york", "York", "City", "Rome", "of", "a,b"]
        return " ".join(draw.choice(words) for _ in range(draw.choice([1, 1, 2])))

    for _ in range(6):
        pairs = [*dict.fromkeys((text(), text()) for _ in range(5))]
        pairs = [(one, other) for one, other in pairs if one != other]
        lines = [f"{text()} ! {text()}" for _ in range(20)]
        counts = [sum(holds(line, one) and holds(line, other) for line in lines) for one, other in pairs]
        found = counted(score, tmp_path, pairs, lines, [True] * len(pairs))["bins"]
        for part in found:
            assert part["questions"] == sum(part["low"] <= count <= part["high"] for count in counts)
        assert sum(part["questions"] for part in found) == len(pairs)


def test_bins_are_four_times_as_wide_as_the_one_before(score: Any, tmp_path: Path) -> None:
    counts = (0, 1, 3, 4, 15, 16, 63, 64)
    pairs = [(f"one{count}", f"other{count}") for count in counts]
    lines = [f"{one} saw {other}" for (one, other), count in zip(pairs, counts, strict=True) for _ in range(count)]
    found = counted(score, tmp_path, pairs, lines, [count > 3 for count in counts])
    assert [tuple(part[name] for name in ("low", "high", "f1", "questions")) for part in found["bins"]] == [
        (0, 0, 0.0, 1),
        (1, 3, 0.0, 2),
        (4, 15, 1.0, 2),
        (16, 63, 1.0, 2),
        (64, 255, 1.0, 1),
    ]
    assert found["bins"][0]["half_width"] is None
    assert found["correlation"] == pytest.approx(math.sqrt(5 / 7))  # as scores have two values only
    assert counted(score, tmp_path, pairs[:3], lines, [False] * 3)["correlation"] is None
    assert counted(score, tmp_path, pairs[:1], lines, [True])["correlation"] is None


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
    run = command.under("probe", "kmir")
    assert "that two splits would share are left out" in run.done("build", triples, "--out", built)[1]
    written = [(built / f"{name}.jsonl").read_text() for name in ("train", "dev", "test")]
    asked = [json.loads(line) for text in written for line in text.splitlines()]
    jsonl(tmp_path / "asked.jsonl", asked)
    said = [{"id": row["id"], "ret": row["answer"][0] if row["fact"] == 0 else "x"} for row in asked]
    jsonl(tmp_path / "said.jsonl", said)
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


def test_a_conclusion_is_counted_by_its_own_names(score: Any, command: Command, tmp_path: Path) -> None:
    path, corpus = tmp_path / "facts.tsv", tmp_path / "corpus.txt"
    path.write_text("Lyon\tP131\tRhone\nRhone\tP131\tFrance\n")
    corpus.write_text("Lyon, Rhone\nLyon in France\n" + "Rhone in France\n" * 5)
    words = ("--table", "co-occurrence", "--corpus", corpus, "--triples", path)
    asked = [question("reasoning-0", "reasoning", ["France"], "P131")]
    (part,) = score(asked, {}, *words, "--json")["co-occurrence"]["reasoning"]["bins"]
    assert (part["low"], part["high"]) == (1, 3)
    for wrong in ("reasoning-9", "x"):
        jsonl(tmp_path / "asked.jsonl", [question(wrong, "reasoning", ["France"], "P131")])
        jsonl(tmp_path / "said.jsonl", [{"id": wrong, "ret": ""}])
        given = ("probe", "kmir", "score", tmp_path / "asked.jsonl", tmp_path / "said.jsonl")
        assert "was not built from these triples" in command.fails(*given, *words)
