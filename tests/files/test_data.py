"""Reading: official files as they are, and one clear sentence for every way in which a file can be wrong."""

import gzip
import json
from pathlib import Path

import pytest
from space import SPACE

from lmkbc import InputError
from lmkbc.files.columns import read_column
from lmkbc.files.splits import read_examples, read_queries
from lmkbc.recipe import read_file

EDITION = SPACE.edition("2023")
GOOD = {
    "SubjectEntity": "Rhine",
    "Relation": "RiverBasinsCountry",
    "ObjectEntitiesID": ["Q183"],
    "ObjectEntities": ["Germany"],
}


def write(path: Path, content: bytes | str) -> Path:
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def line(**changes: object) -> str:
    return json.dumps(GOOD | changes)


def test_an_empty_gold_has_no_objects(tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", line(ObjectEntitiesID=[""], ObjectEntities=[""]))
    assert read_examples(path, EDITION)[0].objects == ()


@pytest.mark.parametrize(
    "content",
    [line(), "\ufeff" + line() + "\n", line() + "\r\n", "\n" + line() + "\n\n", gzip.compress(line().encode())],
    ids=["no last newline", "byte-order mark", "CRLF", "blank lines", "gzip"],
)
def test_harmless_variants_read(tmp_path: Path, content: bytes | str) -> None:
    assert [query.subject for query in read_queries(write(tmp_path / "a.jsonl", content), EDITION)] == ["Rhine"]


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (line() + "\n{oops", "line 2: not valid JSON"),
        (line(SubjectEntity=7), "line 1, field SubjectEntity: Expected `str`, got `int`"),
        (line(ObjectEntities=[7]), "line 1, field ObjectEntities"),
        ('{"Relation": "RiverBasinsCountry"}', "line 1: Object missing required field `SubjectEntity`"),
        (
            line() + "\n\n" + line(SubjectEntity="X", Relation="RiverBasinCountry"),
            "line 3, field Relation: 'RiverBasinCountry'",
        ),
        (line(Relation="RiverBasinCountry"), "did you mean 'RiverBasinsCountry'?"),
        (line(SubjectEntity=" "), "line 1, field SubjectEntity: empty"),
        (line() + "\n" + line(), "line 2, field SubjectEntity: ('Rhine', 'RiverBasinsCountry') repeats line 1"),
        (b'{"SubjectEntity": "\xff"}', "line 1: not UTF-8"),
        ("", "is empty"),
        ("\n \n", "is empty"),
        (b"\x1f\x8b broken", "cannot be read"),
        (line()[:-1] + ', "deep": ' + "[" * 100_000, "line 1: n"),
    ],
)
def test_a_wrong_file_is_told_by_file_line_and_field(tmp_path: Path, content: bytes | str, told: str) -> None:
    path = write(tmp_path / "a.jsonl", content)
    with pytest.raises(InputError) as error:
        read_queries(path, EDITION)
    assert str(path) in str(error.value)
    assert told in str(error.value)
    assert "\n" not in str(error.value)


def test_a_labelled_row_without_objects_is_no_empty_answer(tmp_path: Path) -> None:
    unlabelled = json.dumps({"SubjectEntity": "Elbe", "Relation": GOOD["Relation"]})
    path = write(tmp_path / "a.jsonl", line() + "\n" + unlabelled)
    assert len(read_queries(path, EDITION)) == 2
    with pytest.raises(
        InputError, match=r"line 2: no field ObjectEntitiesID; give the objects as a list, \[\] if there"
    ):
        read_examples(path, EDITION)


def test_a_directory_or_nothing_in_place_of_a_file(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="is a directory"):
        read_queries(tmp_path, EDITION)
    with pytest.raises(InputError, match="does not exist"):
        read_queries(tmp_path / "absent.jsonl", EDITION)


def test_two_subjects_of_one_name_are_two_queries(tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", line(SubjectEntityID="Q1") + "\n" + line(SubjectEntityID="Q2"))
    assert len(read_queries(path, EDITION)) == 2


def test_a_column_keeps_the_last_of_repeated_rows_and_says_whether_it_is_sound(tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", line() + "\n" + line(ObjectEntitiesID=["Q5"]))
    pair = "Rhine", "RiverBasinsCountry"
    found = read_column(path, EDITION)
    assert found.values == {pair: ["Q5"]}
    with pytest.raises(InputError, match=r"line 2, field ObjectEntitiesID: .* answered otherwise than in line 1"):
        read_column(path, EDITION, agree=True)
    with pytest.raises(InputError, match="if they are about two subjects of that name, give each its SubjectEntityID"):
        read_column(path, EDITION, agree=True)
    path = write(tmp_path / "b.jsonl", line(ObjectEntitiesID=None))
    assert read_column(path, EDITION) == ({pair: None}, {})


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("a = " + "[" * 100_000, "not valid TOML"),
        ("a =", "not valid TOML"),
        (b"a = '\xff'", "not valid TOML"),
    ],
)
def test_toml_that_is_no_table_of_settings(tmp_path: Path, content: bytes | str, told: str) -> None:
    with pytest.raises(InputError) as error:
        read_file(write(tmp_path / "a.toml", content))
    assert told in str(error.value)
    assert "\n" not in str(error.value)
