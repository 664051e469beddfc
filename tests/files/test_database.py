"""A damaged database is told in a sentence, also where SQLite's own sentence quotes bytes that are no text."""

import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from lmkbc import InputError
from lmkbc.link.index import AliasIndex
from lmkbc.link.index_sources import build_index
from lmkbc.link.search import Cache
from lmkbc.models.answers import Store


def an_index(path: Path) -> None:
    table = path.with_suffix(".jsonl")
    table.write_text('{"text": "Nile", "id": "Q1"}\n')
    build_index(path, tables=[table])


OPENED: dict[str, tuple[Callable[[Path], object], Callable[[Path], object]]] = {
    "store": (lambda path: Store(path).close(), Store),
    "linker's cache": (lambda path: Cache(path, "x").close(), lambda path: Cache(path, "x")),
    "index": (an_index, AliasIndex),
}


@pytest.mark.parametrize(("make", "reopen"), OPENED.values(), ids=OPENED)
def test_a_schema_that_is_no_text_is_told_as_damage(
    tmp_path: Path, make: Callable[[Path], object], reopen: Callable[[Path], object]
) -> None:
    path = tmp_path / "whole.sqlite"
    make(path)
    raw = path.read_bytes()
    words = [match.start() for match in re.finditer(b"CREATE TABLE", raw)]
    assert words
    for at in (word + letter for word in words for letter in range(len("CREATE"))):
        damaged = tmp_path / f"{at}.sqlite"
        shutil.copy(path, damaged)
        with damaged.open("r+b") as file:
            file.seek(at)
            file.write(bytes([raw[at] | 0x80]))
        with pytest.raises(InputError, match=re.escape(str(damaged))):
            reopen(damaged)
