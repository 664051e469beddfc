"""A folder for caches that cannot be written: what is computed or fetched is used all the same, as one line says."""

import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from lmkbc.files.arrays import ArrayStore
from lmkbc.link.search import Cache

TEXT = msgspec.json.Decoder(str)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder that nobody can make, not even root: a file is in its place."""
    (tmp_path / "file").write_text("")
    return tmp_path / "file" / "cache"


def test_arrays_are_computed_each_time(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    store, computed = ArrayStore(folder), list[str]()

    def compute(name: str) -> Any:
        computed.append(name)
        return {"a": np.ones(3)}

    for name in "xyx":
        found: Mapping[str, object] = store.get("vectors", name, lambda name=name: compute(name))
        assert np.array_equal(found["a"], np.ones(3))
    assert computed == ["x", "y", "x"]
    (line,) = caplog.messages
    assert line.startswith(f"{folder} cannot be written (Not a directory)")
    assert "XDG_CACHE_HOME" in line


def test_an_entry_that_cannot_be_read_is_made_again(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "vectors-x.npz").mkdir()  # reading a directory fails for root, too
    with caplog.at_level(logging.WARNING):
        assert np.array_equal(ArrayStore(tmp_path).get("vectors", "x", lambda: {"a": np.ones(3)})["a"], np.ones(3))
    assert "vectors-x.npz cannot be read (Is a directory) and is made again" in caplog.messages[0]


def test_answers_of_wikidata_are_kept_for_this_run(folder: Path) -> None:
    cache = Cache(folder / "wikidata.sqlite", "source")
    assert isinstance(cache.unwritable, NotADirectoryError)
    cache.put("search", {"nile": "Q3392"})
    assert cache.get("search", ["nile"], TEXT) == {"nile": "Q3392"}
    cache.close()


def test_a_database_that_may_not_be_opened_is_done_without(tmp_path: Path) -> None:
    (tmp_path / "wikidata.sqlite").mkdir()
    cache = Cache(tmp_path / "wikidata.sqlite", "source")
    assert "unable to open database file" in str(cache.unwritable)
    cache.close()
