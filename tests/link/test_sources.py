from pathlib import Path

import pytest

from lmkbc.errors import InputError, LmkbcError
from lmkbc.link.sources import SearchTable, open_search


def test_a_table_needs_no_contact_offline_needs_none_and_the_network_does(tmp_path: Path) -> None:
    (tmp_path / "t.json").write_text('{"Inn": "Q1"}')
    assert isinstance(open_search(tmp_path / "t.json"), SearchTable)
    offline = open_search(offline=True, cache=tmp_path / "c")
    with pytest.raises(LmkbcError, match="offline"):
        offline.search(["Inn"])
    with pytest.raises(InputError, match="LMKBC_CONTACT"):
        open_search(cache=tmp_path / "c")
