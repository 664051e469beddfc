from pathlib import Path

import pytest

from lmkbc import InputError
from lmkbc.link.search import SearchTable


def test_exact_strings_only_case_aside() -> None:
    table = SearchTable({"Inn": "Q1", "inn": "Q2", "Nothing": "Q3", "nothing": ""})
    found = table.search(["Inn", "inn", "INN", "Inn ", "nothing", "absent"])
    assert [[hit.id for hit in found[text]] for text in found] == [["Q1"], ["Q2"], ["Q1"], [], [], []]
    assert table.searched == {"inn", "inn ", "nothing", "absent"}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "no search table"),
        (b"null", "no search table"),
        (b'["Inn"]', "no search table"),
        (b'{"Inn": "river"}', "entry 'Inn': 'river' is no QID"),
        (b'{"Inn": 5}', "no search table"),
        (b'{"Inn": "\xff"}', "no search table"),
        (b'{"\\ud83d": "Q1"}', "no search table"),
        (b'{"Inn": "Q1"', "no search table"),
        (b'{"Inn":' * 100_000, "no search table"),
        (b'{"Inn": "Q1", "Inn": "Q2"}', "entry 'Inn': both 'Q1' and 'Q2'; remove one"),
        (b'{"Inn": "Q1|Q2"}', "entry 'Inn': 'Q1|Q2' is no QID"),
    ],
)
def test_a_table_of_another_shape_is_named(tmp_path: Path, content: bytes, message: str) -> None:
    (tmp_path / "table.json").write_bytes(content)
    with pytest.raises(InputError) as error:
        SearchTable.read(tmp_path / "table.json")
    assert message in str(error.value)
