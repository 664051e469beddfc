import json
from pathlib import Path

import pytest

from lmkbc.errors import InputError
from lmkbc.link.sources import SearchTable


def test_exact_strings_only_case_aside() -> None:
    table = SearchTable({"Inn": "Q1", "inn": "Q2", "Nothing": ""})
    found = table.search(["Inn", "inn", "INN", "Inn ", "nothing", "absent"])
    assert [[hit.id for hit in found[text]] for text in found] == [["Q1"], ["Q2"], ["Q1"], [], [], []]
    assert table.searched == {"inn", "inn ", "nothing", "absent"}


def test_a_recorded_no_hit_is_an_answer() -> None:
    table = SearchTable({"Jersey": "Q785", "jersey": ""})
    assert table.search(["jersey"])["jersey"] == ()


def test_files_that_are_no_table(tmp_path: Path) -> None:
    path = tmp_path / "table.json"
    path.write_text(json.dumps(["Inn"]))
    with pytest.raises(InputError, match=r"table\.json: no search table"):
        SearchTable.read(path)
    path.write_text(json.dumps({"Inn": "river"}))
    with pytest.raises(InputError, match=r"entry 'Inn': 'river' is no QID"):
        SearchTable.read(path)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "no search table"),
        (b"null", "no search table"),
        (b'{"Inn": 5}', "no search table"),
        (b'{"Inn": "\xff"}', "no search table"),
        (b'{"\\ud83d": "Q1"}', "no search table"),
        (b'{"Inn": "Q1"', "no search table"),
        (b'{"Inn":' * 100_000, "no search table"),
        (b'{"Inn": "Q1|Q2"}', "entry 'Inn': 'Q1|Q2' is no QID"),
        (b'{"Inn": "Q1", "Inn": "Q2"}', "entry 'Inn': both 'Q1' and 'Q2'; remove one"),
    ],
)
def test_a_table_of_another_shape_is_named(tmp_path: Path, content: bytes, message: str) -> None:
    (tmp_path / "table.json").write_bytes(content)
    with pytest.raises(InputError) as error:
        SearchTable.read(tmp_path / "table.json")
    assert message in str(error.value)
