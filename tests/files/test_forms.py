"""Files as programs and people write them: encodings, line ends, JSON in other forms, zips of desktops."""

import gzip
import io
import json
import zipfile
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from space import SPACE

from lmkbc import InputError
from lmkbc.files import reader
from lmkbc.files.columns import Column
from lmkbc.files.jsonl import read_jsonl
from lmkbc.files.tables import InputTable


class QueryRow(msgspec.Struct):
    """A row of a file of queries."""

    SubjectEntity: str
    Relation: str
    ObjectEntities: list[str] = []


ROWS = [{"SubjectEntity": f'Sønder {{"{n}}}\\', "Relation": "r", "ObjectEntities": ["x\n"] * (n % 3)} for n in range(9)]
FORMS: dict[str, Callable[[list[dict[str, object]]], str]] = {
    "lines": lambda rows: "\n".join(map(json.dumps, rows)),
    "CRLF": lambda rows: "\r\n".join(json.dumps(row, ensure_ascii=False) for row in rows),
    "CR": lambda rows: "\r".join(map(json.dumps, rows)),
    "array": json.dumps,
    "indented array": lambda rows: json.dumps(rows, indent=2, ensure_ascii=False),
    "array of lines": lambda rows: "[\n" + ",\n".join(map(json.dumps, rows)) + "\n]\n",
    "indented objects": lambda rows: "\n".join(json.dumps(row, indent=1) for row in rows),
    "commas at the ends": lambda rows: "".join(json.dumps(row) + ",\n" for row in rows),
}
ENCODINGS = ("utf-8", "utf-8-sig", "utf-16")


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("encoding", ENCODINGS)
@pytest.mark.parametrize("step", [7, reader.STEP])
def test_rows_are_read_in_any_form(
    tmp_path: Path, form: str, encoding: str, step: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """step: bytes that are read at a time, so that every piece of a row is cut somewhere."""
    monkeypatch.setattr(reader, "STEP", step)
    path = tmp_path / "p.jsonl"
    for pack in (bytes, gzip.compress):
        path.write_bytes(pack(FORMS[form](ROWS).encode(encoding)))
        read = read_jsonl(path, QueryRow)
        assert [(row.SubjectEntity, row.ObjectEntities) for row in read] == [
            (row["SubjectEntity"], row["ObjectEntities"]) for row in ROWS
        ]
        numbers = [place for place, _ in Column(path, SPACE.edition("2025"), str).numbered()]
        spread = form in ("indented array", "indented objects")
        assert len(set(numbers)) == 9
        assert (numbers == [f"line {n}" for n in range(1, 10)]) is not (spread or form == "array of lines")


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('[\n{"SubjectEntity": "a", "Relation": "r"},\n {"SubjectEntity": 1,\n"Relation": "r"}]', "line 3, field Subj"),
        ('{\n"SubjectEntity": "a"}', "line 1: Object missing required field `Relation`"),
        ('[{"SubjectEntity": "a", "Relation": "r"},\n\nthe rest', "line 3: not valid JSON"),
        ('[{"SubjectEntity": "a", "Relation": "r"},\n{"Subj', "line 2: not valid JSON"),
        ('{"SubjectEntity": "a", "Relation": "r"}}\n', "not valid JSON"),
        ('["a", "b"]', "line 1: Expected `object`"),
        ("[]", "is empty: it needs one JSON object per line"),
        ('{"SubjectEntity": "Málaga"}'.encode("cp1252"), "line 1: not UTF-8 text .Windows-1252 reads 'Málaga' in it."),
        (b"\xff\xfea", "begins as UTF-16 text and does not go on so"),
    ],
)
def test_a_wrong_row_is_named_by_the_line_where_it_begins(tmp_path: Path, text: str | bytes, told: str) -> None:
    path = tmp_path / "p.json"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(InputError, match=told):
        read_jsonl(path, QueryRow)


def test_half_of_a_surrogate_pair_is_replaced(tmp_path: Path) -> None:
    """As Python writes an emoji that was cut; a whole pair stays, and so does a backslash before a u."""
    names = ["\ud83d", "a\udc00b", "\ud83d\ude00", "\\ud83d", "\ud83d\ud83d\ude00"]
    path = tmp_path / "p.jsonl"
    path.write_text("".join(json.dumps({"SubjectEntity": name, "Relation": "r"}) + "\n" for name in names))
    read = [row.SubjectEntity for row in read_jsonl(path, QueryRow)]
    assert read == ["\ufffd", "a\ufffdb", "\U0001f600", "\\ud83d", "\ufffd\U0001f600"]


def zipped(*names: str, rows: bytes = b"rows") -> bytes:
    """A zip of these files; those with rows hold `rows`."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in names:
            archive.writestr(
                name,
                b""
                if name.endswith("/")
                else rows
                if "good" in name or "predictions" in name
                else b"\x00\x05\x16\x07other",
            )
    return buffer.getvalue()


@pytest.mark.parametrize(
    "names",
    [
        ("good.jsonl", "__MACOSX/", "__MACOSX/._good.jsonl"),
        ("run/", "run/good.jsonl", "run/.DS_Store", "__MACOSX/run/._good.jsonl"),
        ("good.jsonl", "README.md"),
        ("README", "manifest.json", "out/good.JSONL"),
        ("good.jsonl", "Thumbs.db", "desktop.ini"),
        ("run\\", "run\\good.jsonl", "run\\.hidden"),
        ("a/", "a/b/", "a/b/good.txt"),
        ("Prédictions – good.jsonl", "._Prédictions – good.jsonl"),
        ("good.csv", "LISEZMOI.txt"),
        ("run/predictions.jsonl", "run/missing.jsonl", "run/manifest.json"),
    ],
)
def test_a_zip_as_people_make_it_is_read(tmp_path: Path, names: tuple[str, ...]) -> None:
    path = tmp_path / "p.zip"
    path.write_bytes(zipped(*names))
    assert reader.whole(path) == b"rows"
    path.write_bytes(zipped(*names, rows="Ärzte".encode("utf-16")))
    assert reader.whole(path).decode() == "Ärzte"


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (
            zipped("a.jsonl", "b.jsonl", "__MACOSX/._a.jsonl"),
            r"holds 2 files \(a.jsonl, b.jsonl\): give a zip with one",
        ),
        (zipped("a.docx", "b.pdf"), r"holds 2 files \(a.docx, b.pdf\)"),
        (zipped(*(f"{n}.jsonl" for n in range(9))), r"holds 9 files \(0.jsonl, .*, 4.jsonl, ...\)"),
        (zipped("a/", "__MACOSX/._a"), "holds no file: give"),
        (zipped(), "holds no file: give"),
        (zipped("good.jsonl")[:-9], "it is damaged: make or fetch it again"),
    ],
)
def test_a_zip_that_is_not_clear_is_listed(tmp_path: Path, content: bytes, told: str) -> None:
    path = tmp_path / "p.zip"
    path.write_bytes(content)
    with pytest.raises(InputError, match=rf"p.zip.* {told}"):
        reader.whole(path)


def test_an_encrypted_zip_is_not_called_damaged(tmp_path: Path) -> None:
    raw = bytearray(zipped("good.jsonl"))
    raw[6] |= 1
    raw[raw.index(b"PK\x01\x02") + 8] |= 1  # flags of the file and of the directory
    (tmp_path / "p.zip").write_bytes(raw)
    with pytest.raises(InputError, match=r"p.zip cannot be unpacked here \(.*encrypted.*\): unpack it first"):
        reader.whole(tmp_path / "p.zip")


TABLE = 'name,id,class\nPeru,Q419,\nKöln,Q365,city\n"Q, or\nnot",,\n'
SPREAD = [("Peru", "Q419", ""), ("Köln", "Q365", "city"), ("Q, or\nnot", "", "")]


@pytest.mark.parametrize("sign", [",", ";", "\t"])
@pytest.mark.parametrize("encoding", ENCODINGS)
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_a_spreadsheet_is_read(tmp_path: Path, sign: str, encoding: str, end: str) -> None:
    """With the blank rows that a spreadsheet writes, and a header in capitals."""
    rows = [("Name", " ID", "CLASS"), ("", "", ""), *SPREAD, ("", " ", ""), ("", "", "")]
    lines = [sign.join(f'"{cell}"' if "\n" in cell else cell for cell in row) for row in rows]
    path = tmp_path / "s.csv"
    path.write_bytes((end.join(lines) + end).encode(encoding))
    assert [row.values for row in InputTable(path, ("name", "id", "class"), 1).rows()] == SPREAD


def test_a_spreadsheet_in_another_encoding_names_it(tmp_path: Path) -> None:
    path = tmp_path / "s.csv"
    path.write_bytes(TABLE.encode("cp1252"))
    with pytest.raises(InputError, match=r"s\.csv, line 3: not UTF-8 text .Windows-1252 reads 'Köln' in it.; save"):
        list(InputTable(path, ("name", "id", "class"), 1).rows())


def test_a_table_may_be_a_json_array(tmp_path: Path) -> None:
    path = tmp_path / "s.json"
    path.write_text(json.dumps([{"name": name, "id": qid, "class": kind} for name, qid, kind in SPREAD], indent=4))
    assert [row.values for row in InputTable(path, ("name", "id", "class"), 1).rows()] == SPREAD


def test_what_holds_no_rows_is_named(tmp_path: Path) -> None:
    readme, workbook = tmp_path / "r.zip", tmp_path / "book.csv"
    with zipfile.ZipFile(readme, "w") as archive:
        archive.writestr("README.md", "notes")
    with zipfile.ZipFile(workbook, "w") as archive:
        archive.writestr("xl/workbook.xml", "<workbook/>")
    with pytest.raises(InputError, match=r"holds 1 file \(README\.md\): give a zip with one file of rows"):
        reader.whole(readme)
    with pytest.raises(InputError, match=r"is an Excel workbook: save its sheet as CSV"):
        reader.whole(workbook)


def test_a_table_of_excel_begins_with_its_separator(tmp_path: Path) -> None:
    path = tmp_path / "s.csv"
    path.write_text("sep=;\nname;id\nPeru;Q419\n")
    assert [row.values for row in InputTable(path, ("name", "id"), 1).rows()] == [("Peru", "Q419")]


def test_utf_16_needs_no_mark(tmp_path: Path) -> None:
    path = tmp_path / "p.jsonl"
    path.write_bytes('{"name": "Köln"}\n'.encode("utf-16-le"))
    assert reader.whole(path).decode() == '{"name": "Köln"}\n'
