"""`lmkbc predict --out`: what is there stays, a part is no whole, and a run that lacks answers says how to go on."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from command import Command
from opened import recipe_file
from space import SPACE

QUERIES = SPACE.queries(SPACE.edition("mini"), "val")
PREDICT = ("predict", "--split", "val", "--edition", "mini", "--system", "bl22-empty")
RECORDED = ("predict", "--split", "val", "--edition", "mini")
WHOLE = ["candidates.jsonl.gz", "manifest.json", "predictions.jsonl", "predictions.zip", "timing.json"]
LACKING = ["candidates.jsonl.gz", "manifest.json", "missing.jsonl", "timing.json"]


def names(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir())


def manifest(directory: Path) -> dict[str, Any]:
    read: dict[str, Any] = json.loads((directory / "manifest.json").read_bytes())
    return read


def answers(path: Path, numbers: range) -> Path:
    rows = [
        {"SubjectEntity": QUERIES[n].subject, "Relation": QUERIES[n].relation, "model": "m", "completions": ["None"]}
        for n in numbers
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def test_a_run_replaces_a_run_and_keeps_a_persons_own_files(command: Command, tmp_path: Path) -> None:
    assert command.done(*PREDICT, "--out", "run")[0] == ""
    (tmp_path / "run" / "notes.txt").write_text("mine")
    (tmp_path / "run" / "predictions.zip").write_text("damaged")
    assert command.done(*PREDICT, "--out", "run")[0] == ""
    assert names(tmp_path / "run") == sorted([*WHOLE, "notes.txt"])
    assert (tmp_path / "run" / "notes.txt").read_text() == "mine"
    assert (tmp_path / "run" / "predictions.zip").read_bytes()[:2] == b"PK"


def test_a_limited_run_has_a_name_of_its_own_and_no_zip(command: Command, tmp_path: Path) -> None:
    assert command.done(*PREDICT)[0] == ""
    whole = tmp_path / "submissions" / "mini-val-bl22-empty"
    before = {path.name: path.read_bytes() for path in whole.iterdir()}
    _, told = command.done(*PREDICT, "--limit", 5)
    part = tmp_path / "submissions" / "mini-val-bl22-empty-first5"
    assert (f"the first 5 of {len(QUERIES)} queries" in told, ".zip" in told) == (True, False), told
    assert names(part) == [name for name in WHOLE if not name.endswith(".zip")]
    assert (manifest(part)["limit"], manifest(part)["counts"]["queries"]) == (5, 5)
    assert "limit" not in manifest(whole)
    assert "holds a run of all queries, which one of the first 5 must not replace" in command.fails(
        *PREDICT, "--limit", 5, "--out", whole
    )
    assert {path.name: path.read_bytes() for path in whole.iterdir()} == before
    assert command.done(*PREDICT, "--limit", 6, "--out", part)[0] == ""
    assert command.done(*PREDICT, "--out", part)[0] == ""
    assert names(part) == WHOLE
    assert command.done(*PREDICT, "--limit", 10**6)[0] == ""  # cuts nothing off
    assert names(tmp_path / "submissions") == ["mini-val-bl22-empty", "mini-val-bl22-empty-first5"]


def test_a_run_with_failed_queries_keeps_the_rest_and_says_how_to_go_on(command: Command, tmp_path: Path) -> None:
    given = answers(tmp_path / "some.jsonl", range(3, len(QUERIES)))
    told = command.fails(*RECORDED, "--from", given, "--out", "run", status=1)
    first = QUERIES[0]
    said = told.splitlines()[-1]
    assert said.startswith(
        f"error: 3 of {len(QUERIES)} queries failed, first ({first.subject!r}, {first.relation!r}); "
    )
    assert all(word in said for word in ("run/missing.jsonl", "run/candidates.jsonl.gz", "--from", "--failed-as-empty"))
    assert names(tmp_path / "run") == LACKING
    missing = [json.loads(line) for line in (tmp_path / "run" / "missing.jsonl").read_text().splitlines()]
    assert [(row["SubjectEntity"], row["Relation"], row["reason"]) for row in missing] == [
        (query.subject, query.relation, "missing") for query in QUERIES[:3]
    ]
    assert manifest(tmp_path / "run")["counts"]["failed"] == 3
    rest = tmp_path / "rest.jsonl"
    rest.write_text("".join(json.dumps(row | {"completions": ["None"]}) + "\n" for row in missing))
    kept = tmp_path / "run" / "candidates.jsonl.gz"
    assert command.done(*RECORDED, "--from", given, "--from", rest, "--out", "both")[0] == ""
    assert command.done(*RECORDED, "--from", kept, "--from", rest, "--out", "run")[0] == ""
    assert names(tmp_path / "run") == WHOLE
    both, one = ((tmp_path / name / "predictions.jsonl").read_bytes() for name in ("both", "run"))
    assert both == one


def test_a_run_with_failed_queries_goes_beside_a_finished_one(command: Command, tmp_path: Path) -> None:
    every, some = answers(tmp_path / "all.jsonl", range(len(QUERIES))), answers(tmp_path / "some.jsonl", range(9))
    assert command.done(*RECORDED, "--from", every, "--out", "run")[0] == ""
    for _ in range(2):
        assert "run-unfinished/missing.jsonl" in command.fails(*RECORDED, "--from", some, "--out", "run", status=1)
    assert names(tmp_path / "run") == WHOLE
    assert names(tmp_path / "run-unfinished") == LACKING
    assert command.done(*RECORDED, "--from", every, "--out", "run-unfinished")[0] == ""
    assert "name another directory with --out" in command.fails(*RECORDED, "--from", some, "--out", "run", status=1)
    shown, told = command.done(*RECORDED, "--from", some, "--out", "run", "--failed-as-empty")
    lacking, first = len(QUERIES) - 9, QUERIES[9]
    assert shown == ""
    assert (
        f"{lacking} of {len(QUERIES)} queries failed, first ({first.subject!r}, {first.relation!r}); they are "
        "submitted as empty answers; run/missing.jsonl lists them\n"
    ) in told
    assert len((tmp_path / "run" / "missing.jsonl").read_text().splitlines()) == lacking
    assert names(tmp_path / "run") == sorted([*WHOLE, "missing.jsonl"])
    assert names(tmp_path / "run-unfinished") == WHOLE
    assert command.done(*RECORDED, "--from", every, "--out", "run")[0] == ""
    assert names(tmp_path / "run") == WHOLE


def test_a_run_without_any_answer_has_no_candidates(command: Command, tmp_path: Path) -> None:
    given = tmp_path / "none.jsonl"
    row = {"SubjectEntity": QUERIES[0].subject, "Relation": QUERIES[0].relation, "completions": [None]}
    given.write_text(json.dumps(row))
    assert "candidates.jsonl.gz" not in command.fails(*RECORDED, "--from", given, "--out", "run", status=1)
    assert names(tmp_path / "run") == [name for name in LACKING if not name.startswith("candidates")]


def test_every_score_of_a_run_comes_back(command: Command, tmp_path: Path) -> None:
    for system in ("prior", "naive-bayes"):
        recipe = recipe_file(tmp_path / f"{system}.toml", {"component": system}, select={"rule": "expected-f1"})
        assert command.done(*PREDICT[:-2], "--system", recipe, "--out", system)[0] == ""
        kept = tmp_path / system / "candidates.jsonl.gz"
        assert command.done(*RECORDED, "--from", kept, "--out", f"{system}-again")[0] == ""
        lines = gzip.decompress(kept.read_bytes())
        assert gzip.decompress((tmp_path / f"{system}-again" / kept.name).read_bytes()) == lines
        assert b'"score"' in lines


def test_a_zip_lies_beside_its_predictions_and_replaces_zips_alone(
    command: Command, tmp_path: Path
) -> None:
    (tmp_path / "mine").mkdir()
    rows = SPACE.split_path(SPACE.edition("mini"), "val").read_text()
    (tmp_path / "mine" / "p.jsonl").write_text(rows)
    submit = ("submit", "mine/p.jsonl", "--edition", "mini", "--split", "val")
    for _ in range(2):  # the same again is no change
        assert "mine/p.zip: 160 queries of mini val" in command.done(*submit)[1]
    first, *others = rows.splitlines(keepends=True)
    (tmp_path / "mine" / "p.jsonl").write_text(
        "".join([json.dumps(json.loads(first) | {"ObjectEntitiesID": []}) + "\n", *others])
    )
    written = (tmp_path / "mine" / "p.zip").read_bytes()
    assert (
        command.fails(*submit)
        == "error: mine/p.zip is there already and holds something else: name the zip with --out\n"
    )
    assert (tmp_path / "mine" / "p.zip").read_bytes() == written
    assert command.done(*submit, "--out", "mine/p.zip")[0] == ""
    assert (tmp_path / "mine" / "p.zip").read_bytes() != written
    assert sorted(path.name for path in tmp_path.iterdir()) == ["mine"]
    (tmp_path / "notes.zip").write_text("no zip of this program")
    assert "notes.zip is there already and is no zip that this command wrote" in command.fails(
        *submit, "--out", "notes.zip"
    )


@pytest.mark.parametrize("words", [("data", "list"), PREDICT], ids=" ".join)
def test_data_that_the_environment_names_and_that_is_absent_is_told(
    words: tuple[str, ...], command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LMKBC_DATA", "/nonexistent")
    assert (
        command(*words)[2].count("LMKBC_DATA is '/nonexistent', which is no directory: no official split is found") == 1
    )
