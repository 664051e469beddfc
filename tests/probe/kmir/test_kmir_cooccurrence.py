"""F1 by co-occurrence: lines that hold both names, the questions' pairs, bins and rank correlation."""

from __future__ import annotations

import gzip
import json
import re
from pathlib import Path

import pytest
from command import Command
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import spearmanr

from lmkbc.errors import InputError
from lmkbc.files.jsonl import text_rows
from lmkbc.probe.kmir.cooccurrence import PairCounter, asked_pairs, curves, rank_correlation
from lmkbc.probe.kmir.files import Question, read_triples
from lmkbc.probe.kmir.schema import read_schema

TEXT = st.lists(st.sampled_from(["New", "york", "York", "City", "Rome", "of", "!", "a,b"]), min_size=1, max_size=6).map(
    " ".join
)


@given(st.lists(st.tuples(TEXT, TEXT), min_size=1, max_size=5), st.lists(TEXT, max_size=6))
def test_lines_that_hold_both_names_are_counted(pairs: list[tuple[str, str]], lines: list[str]) -> None:
    counter = PairCounter(pairs)
    counter.read(lines)
    for pair in pairs:
        assert counter.count(pair) == sum(all(holds(line, name) for name in pair) for line in lines)


def holds(line: str, name: str) -> bool:
    said, wanted = (f" {' '.join(re.findall(r'[a-z]+', text.casefold()))} " for text in (line, name))
    return bool(wanted.strip()) and wanted in said


@given(st.lists(st.tuples(st.integers(0, 4), st.sampled_from([0.0, 0.5, 1.0])), min_size=3, max_size=12))
def test_rank_correlation_is_spearmans(rows: list[tuple[int, float]]) -> None:
    first, second = [[row[place] for row in rows] for place in (0, 1)]
    if min(len(set(first)), len(set(second))) > 1:
        assert rank_correlation(first, second) == pytest.approx(spearmanr(first, second).statistic)
    else:
        assert rank_correlation(first, second) is None


def test_bins_are_four_times_as_wide_as_the_one_before() -> None:
    counts = {str(count): count for count in (0, 1, 3, 4, 15, 16, 63, 64)}
    asked = [(Question(name, "completion", "", ["x"], "r", count), float(count > 3)) for name, count in counts.items()]
    found = curves(asked, counts)["completion"]
    assert [(one.low, one.high, one.f1, one.questions) for one in found.bins] == [
        (0, 0, 0.0, 1),
        (1, 3, 0.0, 2),
        (4, 15, 1.0, 2),
        (16, 63, 1.0, 2),
        (64, 255, 1.0, 1),
    ]
    assert found.bins[0].half_width is None


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
    run.done("build", triples, "--out", built)
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


def test_a_conclusion_is_counted_by_its_own_names(tmp_path: Path) -> None:
    path, schema = tmp_path / "facts.tsv", read_schema()
    path.write_text("Lyon\tP131\tRhone\nRhone\tP131\tFrance\n")
    facts = read_triples(path, schema)
    asked = [Question("reasoning-0", "reasoning", "", ["France"], "P131", 0)]
    assert asked_pairs(asked, facts, schema) == {"reasoning-0": ("Lyon", "France")}
    for wrong in ("reasoning-9", "x"):
        with pytest.raises(InputError, match="was not built from these triples"):
            asked_pairs([Question(wrong, "reasoning", "", ["France"], "P131", 0)], facts, schema)
