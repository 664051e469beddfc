"""What a person names as a file: plain files and pipes are read within bounds; a device or silent pipe is refused."""

from __future__ import annotations

import gzip
import os
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from space import SPACE

from lmkbc.errors import InputError
from lmkbc.evaluate import evaluate
from lmkbc.files import jsonl, packed, source
from lmkbc.files.columns import read_column
from lmkbc.files.toml import read_toml
from lmkbc.generate.recorded_rows import read_rows
from lmkbc.link.search_table import SearchTable

EDITION = SPACE.edition("2023")
ROW = b'{"SubjectEntity": "a", "Relation": "BandHasMember", "ObjectEntitiesID": ["Q%d"]}\n'


def pipe(path: Path, *parts: bytes) -> Path:
    """A named pipe that a thread writes to."""
    os.mkfifo(path)

    def write() -> None:
        with path.open("wb") as file:
            for part in parts:
                file.write(part)

    threading.Thread(target=write, daemon=True).start()
    return path


@pytest.mark.parametrize("pack", [bytes, gzip.compress], ids=["plain", "gzip"])
def test_a_pipe_is_read_as_often_as_a_file(tmp_path: Path, pack: Callable[[bytes], bytes]) -> None:
    """Repeated rows are looked at again, and so is a row that makes no sense."""
    (tmp_path / "gold").write_bytes(ROW % 1)
    predicted = pipe(tmp_path / "p", pack(ROW % 1 + ROW % 2))
    with pytest.raises(InputError, match=r"line 2, .* is answered otherwise than in line 1"):
        evaluate(predicted, tmp_path / "gold", EDITION)
    again = pipe(tmp_path / "again", pack(ROW % 1 + b'{"SubjectEntity": "", "Relation": "BandHasMember"}'))
    with pytest.raises(InputError, match="line 2, field SubjectEntity: empty"):
        jsonl.read_queries(again, EDITION)


def test_a_pipe_that_is_opened_anew_brings_what_is_new(tmp_path: Path) -> None:
    first = pipe(tmp_path / "p", b"one")
    assert jsonl.read_bytes(first) == jsonl.read_bytes(first) == b"one"
    with first.open("r+b", buffering=0) as file:
        file.write(b"two")
        thread = threading.Timer(0.05, file.close)
        thread.start()
        assert jsonl.read_bytes(first) == b"two"
        thread.join()


def test_a_pipe_that_stays_silent_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source, "SILENT", 0.1)
    os.mkfifo(tmp_path / "p")
    with pytest.raises(InputError, match=r"p is a pipe to which nothing was written for 0\.1 s"):
        jsonl.read_bytes(tmp_path / "p")


def test_an_endless_pipe_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source, "PIPED", 1 << 20)
    with pytest.raises(InputError, match="brings more than 1 MiB"):
        jsonl.read_bytes(pipe(tmp_path / "p", *[bytes(1 << 16)] * 17))


@pytest.mark.parametrize(
    "read",
    [
        jsonl.read_bytes,
        read_toml,
        SearchTable.read,
        lambda path: read_rows(path, EDITION),
        lambda path: evaluate(path, path, EDITION),
    ],
    ids=["bytes", "settings", "search table", "recorded", "evaluate"],
)
def test_a_device_is_no_file(read: Callable[[Path], object]) -> None:
    with pytest.raises(InputError, match="/dev/zero is a device, which never ends: give a file or a pipe"):
        read(Path("/dev/zero"))


def test_what_is_held_as_a_whole_has_a_bound(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of bytes, whatever they are, and of values, which memory keeps as many times their length."""
    path = tmp_path / "a"
    path.write_bytes(b"# " + bytes(1 << 20))
    with pytest.raises(InputError, match="a holds more than 1 MiB"):
        read_toml(path)
    for content in (b"a" + b".a" * 30_000 + b" = 1", b'["a"' + b' . "a"' * 30_000 + b"]"):
        path.write_bytes(content)
        with pytest.raises(InputError, match="a: nested too deep, a key has more than 20 parts; write flat tables"):
            read_toml(path)
    path.write_bytes(b"a = '" + b"a" * (1 << 19) + b"'\nb = '" + b". . ." * 9999 + b"'")
    assert sorted(read_toml(path)) == ["a", "b"]
    monkeypatch.setattr(jsonl, "MOST_VALUES", 1000)
    path.write_bytes(ROW % 1 * 100)
    assert len(read_column(path, "ObjectEntitiesID").values) == 1
    path.write_bytes(b'{"SubjectEntity": "a", "Relation": "r", "ObjectEntitiesID": [%s""]}' % (b'"",' * 999))
    with pytest.raises(InputError, match="a holds more than 1,000 values: give it in parts"):
        read_column(path, "ObjectEntitiesID")
    monkeypatch.setattr(packed, "WHOLE", 50_000)
    path.write_bytes(b"\n" * 50_001)
    with pytest.raises(InputError, match="a holds more than"):
        read_column(path, "ObjectEntitiesID")


def test_two_rows_on_one_line_are_told_by_their_line(tmp_path: Path) -> None:
    """Where the decoder takes them as two rows, and where one row of a file of lines goes over two of them."""
    path, gold = tmp_path / "p", tmp_path / "gold"
    gold.write_bytes(ROW % 1)
    for content in ((ROW % 1).strip() + ROW % 1, (ROW % 1).replace(b", ", b",\n", 1)):
        path.write_bytes(ROW % 1 + content)
        for read in (lambda: read_column(path, "ObjectEntitiesID"), lambda: evaluate(path, gold, EDITION)):
            with pytest.raises(InputError, match="line 2: not valid JSON"):
                read()


def test_rows_that_wait_for_the_other_file_have_a_bound(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lmkbc.evaluate.WAITING", 10_000)
    (tmp_path / "gold").write_bytes(ROW % 1)
    rows = [b'{"SubjectEntity": "%d", "Relation": "r", "ObjectEntitiesID": []}\n' % number for number in range(100)]
    (tmp_path / "p").write_bytes(b"".join(rows))
    with pytest.raises(InputError, match="p has too many rows that the other file lacks"):
        evaluate(tmp_path / "p", tmp_path / "gold", EDITION)


def test_a_text_of_many_sentences_is_no_long_key(tmp_path: Path) -> None:
    path = tmp_path / "r.toml"
    path.write_text(f'task = "{"Answer. " * 50}"\n[prompt]\nblock = """\nA. {"b." * 50}"""\n')
    assert read_toml(path)["task"] == "Answer. " * 50
