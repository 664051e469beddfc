from pathlib import Path

import pytest

from lmkbc import InputError, LmkbcError
from lmkbc.link.search import SearchTable, open_search


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


def test_a_table_needs_no_contact_offline_needs_none_and_the_network_does(tmp_path: Path) -> None:
    (tmp_path / "t.json").write_text('{"Inn": "Q1"}')
    assert isinstance(open_search(tmp_path / "t.json"), SearchTable)
    offline = open_search(offline=True, cache=tmp_path / "c")
    with pytest.raises(LmkbcError, match="offline"):
        offline.search(["Inn"])
    with pytest.raises(InputError, match="LMKBC_CONTACT"):
        open_search(cache=tmp_path / "c")
