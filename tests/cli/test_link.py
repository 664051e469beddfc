"""`lmkbc link` on wrong input: exit 2 and one sentence, with nothing overwritten."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from command import Command

ROW = '{"SubjectEntity": "Nile", "Relation": "RiverBasinsCountry", "ObjectEntities": ["Egypt"]}\n'


@pytest.fixture
def run(command: Command) -> Command:
    Path("p.jsonl").write_text(ROW)
    Path("t.csv").write_text("text,id\nInn,Q1\n")
    Path("s.json").write_text('{"Egypt": "Q79"}')
    return command.under("link")


@pytest.mark.parametrize("out", ["p.jsonl", "./p.jsonl", "s.json"])
def test_a_file_that_is_read_is_not_overwritten(run: Command, out: str) -> None:
    before = Path(out).read_bytes()
    told = run.fails("p.jsonl", "--out", out, "--edition", "mini", "--search-table", "s.json")
    assert Path(out).read_bytes() == before
    assert "is what is read: name another file to write" in told


def test_an_index_replaces_nothing_that_is_none(run: Command) -> None:
    before = Path("t.csv").read_bytes()
    told = run.fails("build", "t.csv", "--table", "t.csv")
    assert Path("t.csv").read_bytes() == before
    assert "t.csv is what is read" in told
    told = run.fails("build", "t.csv", "--edition", "mini")
    assert Path("t.csv").read_bytes() == before
    assert "t.csv exists and is no index" in told


def test_an_index_of_another_version_is_told_and_can_be_built_again(run: Command) -> None:
    assert run("build", "i", "--table", "t.csv")[0] == 0
    with closing(sqlite3.connect("i")) as db, db:
        db.execute("UPDATE meta SET value = '0' WHERE name = 'version'")
    told = run.fails("p.jsonl", "--edition", "mini", "--search-table", "s.json", "--index", "i")
    assert (
        "i is an index of version 0, this program reads version 1: rebuild it with 'lmkbc link build i --table" in told
    )
    assert run("build", "i", "--table", "t.csv")[0] == 0
    assert run("p.jsonl", "--edition", "mini", "--search-table", "s.json", "--index", "i")[0] == 0


@pytest.mark.parametrize("text", ["foo", "Q1|Q2", "../../x", "Q0", "5", "P31", "Q99999999999999999999"])
def test_labels_of_what_is_no_id(run: Command, text: str) -> None:
    assert run("build", "i", "--table", "t.csv")[0] == 0
    assert "is no QID" in run.fails("labels", text, "--index", "i")


def test_an_odd_row_is_told_with_its_line(run: Command) -> None:
    Path("p.jsonl").write_text(ROW + "\n" + ROW.replace("ObjectEntities", "Objects"))
    assert "error: p.jsonl, line 3, field ObjectEntities: absent" in run.fails(
        "p.jsonl", "--edition", "mini", "--search-table", "s.json"
    )
