"""Submissions: same inputs, same bytes; every query once; a kill leaves the old run or the new one."""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import sys
import textwrap
import time
import zipfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmkbc import atomic
from lmkbc.errors import InputError, LmkbcError
from lmkbc.submit import answers, archive, candidate_lines, check, package, prediction_lines
from lmkbc.types import Candidate, CandidateSet, Prediction, Query
from lmkbc.workspace import Workspace

SPACE = Workspace()
IDS, STRINGS = SPACE.edition("2023"), SPACE.edition("2026")
QUERY = Query("Rhine", "RiverBasinsCountry", "Q584")


@given(st.lists(st.builds(Candidate, st.text(max_size=8), id=st.none() | st.text(max_size=4)), max_size=8))
def test_whatever_is_kept_the_submission_is_sound(kept: list[Candidate]) -> None:
    for edition in (IDS, STRINGS):
        lines = prediction_lines(edition, [Prediction(QUERY, tuple(kept))])
        check(edition, [QUERY], archive(lines))
        values = json.loads(lines)[edition.column]
        assert len({edition.metric.scorer.key(value) for value in values}) == len(values)


def test_answers_are_ids_or_texts_each_once_and_never_blank() -> None:
    kept = (
        Candidate(" A", id="Q1"),
        Candidate("a.", id="Q1"),
        Candidate("b", id=None),
        Candidate("..."),
        Candidate(""),
    )
    assert answers(IDS, Prediction(QUERY, kept)) == ["Q1"]
    assert answers(STRINGS, Prediction(QUERY, kept)) == ["A", "b"]


def test_same_inputs_same_bytes_and_one_root_file() -> None:
    lines = prediction_lines(IDS, [Prediction(QUERY, (Candidate("Germany", id="Q183"),))])
    assert archive(lines) == archive(lines)
    with zipfile.ZipFile(io.BytesIO(archive(lines))) as opened:
        assert opened.namelist() == ["predictions.jsonl"]
        assert json.loads(opened.read("predictions.jsonl")) == {
            "SubjectEntity": "Rhine", "Relation": "RiverBasinsCountry", "SubjectEntityID": "Q584",
            "ObjectEntitiesID": ["Q183"],
        }  # fmt: skip
    found = CandidateSet(QUERY, (Candidate("Germany", 0.5, ("m#0",), "Q183"), Candidate("", 0.1)))
    assert candidate_lines([found]) == candidate_lines([found])


def test_a_submission_that_lacks_or_doubles_a_row_is_caught() -> None:
    lines = prediction_lines(IDS, [Prediction(QUERY)])
    with pytest.raises(LmkbcError, match="2 rows for 1 queries"):
        check(IDS, [QUERY], archive(lines + lines))
    with pytest.raises(LmkbcError, match="row 1"):
        check(IDS, [Query("Elbe", "RiverBasinsCountry")], archive(lines))


def test_packaging_reorders_drops_strangers_and_refuses_gaps(tmp_path: Path) -> None:
    other = Query("Elbe", "RiverBasinsCountry")
    path = tmp_path / "p.jsonl"
    rows = [
        {"SubjectEntity": name, "Relation": "RiverBasinsCountry", "ObjectEntitiesID": values}
        for name, values in (("Elbe", ["Q1", " Q1", ""]), ("Unknown", []), ("Rhine", ["Q2"]))
    ]
    path.write_text("\n".join(map(json.dumps, rows)))
    zipped, unknown = package(path, IDS, [QUERY, other])
    with zipfile.ZipFile(io.BytesIO(zipped)) as opened:
        kept = [json.loads(line) for line in opened.read("predictions.jsonl").splitlines()]
    assert [(row["SubjectEntity"], row["ObjectEntitiesID"]) for row in kept] == [("Rhine", ["Q2"]), ("Elbe", ["Q1"])]
    assert unknown == 1
    with pytest.raises(InputError, match=r"lacks 1 of 3 queries, first \('Ems'"):
        package(path, IDS, [QUERY, other, Query("Ems", "RiverBasinsCountry")])
    path.write_text(json.dumps(rows[0] | {"ObjectEntitiesID": [1]}))
    with pytest.raises(InputError, match="not a list of strings"):
        package(path, IDS, [other])


def test_a_full_disk_is_one_sentence_and_leaves_what_was_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run, single = tmp_path / "run", tmp_path / "file"
    atomic.write_directory(run, {"a": b"old"})
    atomic.write_bytes(single, b"old")

    def no_space(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", no_space)
    with pytest.raises(LmkbcError, match="No space left on device") as error:
        atomic.write_directory(run, {"a": b"new"})
    assert error.value.exit_code == 1
    with pytest.raises(LmkbcError, match="No space left on device"):
        atomic.write_bytes(single, b"new")
    assert (run / "a").read_bytes() == single.read_bytes() == b"old"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "run"]


def test_a_run_does_not_replace_a_file(tmp_path: Path) -> None:
    (tmp_path / "run").write_text("mine")
    with pytest.raises(InputError, match="is a file: name a directory"):
        atomic.write_directory(tmp_path / "run", {"a": b"x"})


def test_a_kill_leaves_the_old_run_or_the_new_one(tmp_path: Path) -> None:
    run = tmp_path / "run"
    writer = textwrap.dedent("""
        import sys
        from pathlib import Path
        from lmkbc.atomic import write_directory
        print("ready", flush=True)
        for number in range(10**6):
            write_directory(Path(sys.argv[1]), {name: str(number).encode() * 1000 for name in "abc"})
    """)
    for attempt in range(5):
        process = subprocess.Popen([sys.executable, "-c", writer, str(run)], stdout=subprocess.PIPE)
        assert process.stdout is not None
        process.stdout.readline()
        time.sleep(0.05 + 0.013 * attempt)
        process.send_signal(signal.SIGKILL)
        process.wait()
        process.stdout.close()
        atomic.restore(run)
        contents = {path.read_bytes() for path in run.iterdir()}
        assert len(contents) == 1
        assert len(list(run.iterdir())) == 3
