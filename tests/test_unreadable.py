"""A run with a few replies that nobody can read is written and scored: they count as wrong, and only submit refuses."""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from command import Command
from page_rows import held
from space import MINI, SPACE

import lmkbc

GOLD = SPACE.examples(MINI, "val")
NOBEL = [example for example in GOLD if example.query.relation == "PersonHasNoblePrize"]
EMPTY = next(example.query for example in NOBEL if not example.size)
FULL = next(example.query for example in NOBEL if example.size)
PREDICT = ("predict", "--edition", "mini", "--split", "val", "--no-report")


@pytest.fixture
def answers(tmp_path: Path) -> Any:
    """Write the replies to all queries of the split: right ones, but for those that are given."""

    def written(replies: Mapping[Any, str | None]) -> Path:
        path = tmp_path / "replies.jsonl"
        rows = [
            {
                "SubjectEntity": example.query.subject,
                "Relation": example.query.relation,
                "completions": [replies.get(example.query, json.dumps(list(example.names)))],
            }
            for example in GOLD
        ]
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
        return path

    return written


def test_unreadable_replies_count_as_wrong_and_only_submit_refuses(
    command: Command, answers: Any, tmp_path: Path
) -> None:
    said = answers({EMPTY: "-", FULL: "I am a teapot that thinks about much else and comes to no name at all, sorry."})
    out = tmp_path / "run"
    _, told = command.done(*PREDICT, "--from", said, "--out", out)
    assert "2 of 160 queries failed, first " in told
    assert "they count as wrong, so the run gets no zip" in told
    assert f"{out / 'predictions.jsonl'}: 158 of 160 queries" in told
    rows = [json.loads(line) for line in (out / "predictions.jsonl").read_bytes().splitlines()]
    asked = {(row["SubjectEntity"], row["Relation"]) for row in rows}
    lost = {(query.subject, query.relation) for query in (EMPTY, FULL)}
    assert len(rows) == 158
    assert not lost & asked
    listed = [json.loads(line) for line in (out / "missing.jsonl").read_bytes().splitlines()]
    assert {(row["SubjectEntity"], row["Relation"]) for row in listed} == lost
    assert not (out / "predictions.zip").exists()

    shown, told = command.done("evaluate", out, "--json", "--rows")
    assert "2 queries have no readable answer, counted as wrong" in told
    scored = {(row["SubjectEntity"], row["Relation"]): row["f1"] for row in json.loads(shown)["rows"]}
    assert len(scored) == 160
    kept = sum(len(row[MINI.column]) for row in rows)
    assert json.loads(shown)["average_predictions"] * 160 == pytest.approx(kept)
    assert sum(row["predicted"] for row in json.loads(shown)["rows"]) == kept
    assert [scored[pair] for pair in sorted(lost)] == [0.0, 0.0]  # also where there is nothing to find
    run = lmkbc.read_run(out)
    assert run.evaluate().f1 == json.loads(shown)["macro_f1"] < 1
    truth = {(one.query.subject, one.query.relation): MINI.gold_column(one) for one in GOLD}
    assert lmkbc.score(run, truth, "mini").f1 == run.evaluate().f1
    assert run.predictions.height == 158

    for words in (("report", out), ("compare", out, out), ("evaluate", out / "predictions.jsonl")):
        command.done(*words)
    assert "(no readable answer)" not in (out / "predictions.jsonl").read_text()
    page = (out / "report.html").read_text()
    assert "without 2 that have no readable answer" in page
    content = held(page)
    wrong = {row[0]: row for row in content["rows"] if (row[0], content["relations"][row[2]]) in lost}
    assert [(row[4][1], row[7]) for row in wrong.values()] == [(0, [])] * 2  # neither counted nor shown as kept
    kinds = [[kind for place, kind in enumerate(content["errors"]) if row[5] >> place & 1] for row in wrong.values()]
    assert sorted(kinds) == [["missed: never proposed", "not parsed, or failed"], ["not parsed, or failed"]]
    assert "lacks 2 of 160 queries" in command.fails(
        "submit", out / "predictions.jsonl", "--edition", "mini", "--split", "val"
    )
    assert "2 missing" in command.fails("evaluate", out, "--strict")

    assert "they are submitted as empty" in command.done(*PREDICT, "--from", said, "--out", out, "--failed-as-empty")[1]
    for words in (("evaluate", out), ("compare", out, out)):
        assert "queries failed, and count as empty answers (--failed-as-empty)" in "".join(command(*words)[1:])
    assert (out / "predictions.zip").exists()
    assert command("evaluate", out, "--json")[1] != shown

    command.done(*PREDICT, "--from", said, "--out", tmp_path / "wrong")
    both = " ".join(command.done("compare", tmp_path / "wrong", out)[0].split())
    assert re.search(
        r"wrong: 2 queries have no readable answer, counted as wrong; \w+: 2 queries failed, and count as empty "
        r"answers \(--failed-as-empty\): a difference may be of that alone; predict both in one way\.",
        both,
    )


@pytest.mark.parametrize(
    "replies",
    [{EMPTY: "-", FULL: None}, {example.query: "-" for example in GOLD}],
    ids=["a call that failed", "none can be read"],
)
def test_a_run_that_lacks_answers_is_still_none(
    replies: Mapping[Any, str | None], command: Command, answers: Any, tmp_path: Path
) -> None:
    out = tmp_path / "run"
    assert "there is no submission yet" in command.fails(*PREDICT, "--from", answers(replies), "--out", out, status=1)
    assert not (out / "predictions.jsonl").exists()
