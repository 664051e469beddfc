from pathlib import Path

import pytest

from lmkbc.errors import InputError, LmkbcError
from lmkbc.link.builder import IndexBuilder, IndexEntity
from lmkbc.link.index import AliasIndex
from lmkbc.link.sources import SearchTable, labels, open_search


class Known:
    def __init__(self, **known: str) -> None:
        self.known, self.asked = known, []

    def labels(self, ids) -> dict[str, str]:
        self.asked += ids
        return {qid: self.known[qid] for qid in ids if qid in self.known}


def test_labels_come_from_the_first_source_that_knows(tmp_path: Path) -> None:
    builder = IndexBuilder(tmp_path / "i")
    builder.add([IndexEntity("Q1", "Inn")], "test")
    builder.finish()
    network = Known(Q1="wrong", Q2="Isar")
    assert labels(["Q1", "Q2", "Q3", "Q2"], AliasIndex(tmp_path / "i"), network) == {"Q1": "Inn", "Q2": "Isar"}
    assert network.asked == ["Q2", "Q3"]


def test_a_table_needs_no_contact_offline_needs_none_and_the_network_does(tmp_path: Path) -> None:
    (tmp_path / "t.json").write_text('{"Inn": "Q1"}')
    assert isinstance(open_search(tmp_path / "t.json"), SearchTable)
    offline = open_search(offline=True, cache=tmp_path / "c")
    with pytest.raises(LmkbcError, match="offline"):
        offline.search(["Inn"])
    with pytest.raises(InputError, match="LMKBC_CONTACT"):
        open_search(cache=tmp_path / "c")
