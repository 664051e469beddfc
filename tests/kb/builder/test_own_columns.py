"""Columns and ids of one's own in a file of subjects: kept in the base, on its page, and through an addition."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from command import Command

from lmkbc.kb.base.knowledge import Knowledge

BUILD = ("build", "--edition", "mini", "--system", "prior", "--least", "0.1", "--out", "kb")
COLUMNS = ["subject_row", "name", "id", "class", "own_id", "Werk", "row"]
ROWS = [
    (0, "Chad", None, "country", "L-1", "Ulm; Hagen", "7"),
    (1, "Chad", None, "country", "L-2", "=1+1", ""),
    (2, "Mali", "Q912", "country", None, "", "8"),
]


def filed(form: str) -> str:
    if form == "jsonl":
        rows = [dict(zip(COLUMNS[1:], row[1:], strict=True)) for row in ROWS]
        return "".join(json.dumps({**row, "id": row["id"] or row.pop("own_id")}) + "\n" for row in rows)
    sign, head = {"comma": (",", "name"), "semicolon": (";", "Label"), "tab": ("\t", "NAME")}[form]
    lines = [[head, "id", "class", "Werk", "row", ""]]
    lines += [[name, qid or own or "", of, f'"{plant}"', row, ""] for _, name, qid, of, own, plant, row in ROWS]
    return "".join(sign.join(line) + "\n" for line in lines)


@pytest.mark.whole(but=["semicolon", "jsonl"])
@pytest.mark.parametrize("form", ["comma", "semicolon", "tab", "jsonl"])
def test_columns_of_one_s_own_are_kept_in_the_base(command: Command, form: str) -> None:
    Path("subjects").write_text(filed(form), encoding="utf-8")
    told = command.done(*BUILD, "--subjects", "subjects")[1]
    assert "2 ids are no QIDs, first 'L-1' at subjects, line" in told
    kept = pl.read_parquet("kb/subjects")
    assert (kept.columns, kept.rows()) == (COLUMNS, ROWS)
    assert {*pl.read_parquet("kb/facts")["subject_row"]} == {0, 1, 2}


def test_an_addition_keeps_them_and_adds_its_own(command: Command) -> None:
    Path("subjects.csv").write_text(filed("comma"), encoding="utf-8")
    command.done(*BUILD, "--subjects", "subjects.csv")
    Path("more.csv").write_text(
        "name,qid,id,class,Werk,Land\nTogo,Q945,T-1,country,Lom\u00e9,TG\nMali,Q912,,country,x,y\n"
    )
    assert "1 new subject" in command.done(*BUILD, "--subjects", "more.csv", "--add")[1]
    kept = pl.read_parquet("kb/subjects")
    assert kept.columns == [*COLUMNS, "Land"]
    assert kept.rows() == [
        *((*row, None) for row in ROWS),
        (3, "Togo", "Q945", "country", "T-1", "Lom\u00e9", None, "TG"),
    ]


def test_parquet_of_any_types_is_kept_as_text(command: Command) -> None:
    columns: dict[str, list[Any]] = {"name": ["Chad"], "class": ["country"], "year": [1960], "seats": [["a", "b"]]}
    pl.DataFrame(columns).write_parquet("s.parquet")
    command.done(*BUILD, "--subjects", "s.parquet")
    assert pl.read_parquet("kb/subjects").select("year", "seats").row(0) == ("1960", '["a","b"]')


def test_a_base_yields_them_for_its_pages(command: Command) -> None:
    Path("subjects.csv").write_text(filed("comma"), encoding="utf-8")
    command.done(*BUILD, "--subjects", "subjects.csv")
    (own,) = Knowledge(Path("kb")).own_columns()
    assert own.select("subject_row", "column", "value").sort("subject_row", "column").rows() == [
        *[(0, "Werk", "Ulm; Hagen"), (0, "own_id", "L-1"), (0, "row", "7")],
        *[(1, "Werk", "=1+1"), (1, "own_id", "L-2"), (2, "row", "8")],
    ]
    command.done("export", "kb", "--format", "csv", "--least", "0", "--out", "kb.csv")
    command.done("export", "kb", "--format", "parquet", "--least", "0", "--out", "kb.parquet")
    command.done("export", "kb", "--format", "sqlite", "--least", "0", "--out", "kb.db")
    names = ["subject.own_id", "subject.Werk", "subject.row"]
    expected = [("Chad", "L-1", "Ulm; Hagen", "7"), ("Chad", "L-2", "=1+1", None), ("Mali", None, None, "8")]
    facts = pl.read_parquet("kb.parquet").select("subject", *names).unique(maintain_order=True)
    assert facts.rows() == expected
    cells = pl.read_csv("kb.csv", infer_schema=False).select("subject", *names).unique(maintain_order=True)
    assert cells.rows() == [*expected[:1], ("Chad", "L-2", "'=1+1", None), expected[2]], "no cell is a formula"
    with closing(sqlite3.connect("kb.db")) as db:
        rows = db.execute(
            "SELECT DISTINCT name, own_columns.value FROM own_columns JOIN facts USING (subject_row) ORDER BY 1, 2"
        )
        assert rows.fetchall()[:2] == [("Werk", "=1+1"), ("Werk", "Ulm; Hagen")]
    command.done("report", "kb")
    assert '"columns": ["own_id", "Werk", "row"]' in Path("kb/report/index.html").read_text().replace("&#34;", '"')


def test_a_qid_or_an_address_as_a_name_is_taken_as_the_id_and_said(command: Command) -> None:
    rows = ("http://www.wikidata.org/entity/Q657,", "Niger,Q1032", "q912,", "wd:Q1000,", "Audi Q7,", "B-Q12,x-1")
    Path("s.csv").write_text("\n".join(("name,id", *rows, "")))
    told = command.done(*BUILD, "--subjects", "s.csv", "--relation", "country-borders")[1]
    assert pl.read_parquet("kb/subjects")["id"].to_list() == ["Q657", "Q1032", "Q912", "Q1000", None, None]
    assert "s.csv: 3 names are QIDs or an address, first 'http://www.wikidata.org/entity/Q657' at s.csv, line 2" in told
    assert "whose id is Q657: a model knows names" in told
