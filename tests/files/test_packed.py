"""Packed files: what is damaged is said, and a small file that unpacks to a huge one fills no memory."""

from __future__ import annotations

import bz2
import gzip
import io
import json
import lzma
import tarfile
import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from space import SPACE

from lmkbc.errors import InputError
from lmkbc.files import packed
from lmkbc.files.jsonl import read_bytes
from lmkbc.generate.recorded_rows import read_rows
from lmkbc.link.dump import open_dump
from lmkbc.link.tables import read_table
from lmkbc.models.masked.vocabulary import read_vectors
from lmkbc.probe.kamel import dataset as kamel

PACKERS: dict[str, Callable[[bytes], bytes]] = {"gz": gzip.compress, "bz2": bz2.compress, "xz": lzma.compress}
ROWS = b"".join(b'{"n": %d, "text": "%d"}\n' % (n, n * 7919 % 10007) for n in range(2000))
MIB = 1 << 20


@pytest.fixture
def small_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    """A bomb needs to be no larger than these to show what it does."""
    monkeypatch.setattr(packed, "FREE", 2 * MIB)
    monkeypatch.setattr(packed, "RATIO", 20)


def archive(content: bytes) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:xz") as tar:
        member = tarfile.TarInfo("KAMEL/P36/train.jsonl")
        member.size = len(content)
        tar.addfile(member, io.BytesIO(content))
    return buffer.getvalue()


def every_line(path: Path) -> Iterator[bytes]:
    with open_dump(path) as file:
        yield from packed.lines(file)


READERS: dict[str, tuple[str, Callable[[bytes], bytes], Callable[[Path], object]]] = {
    "recorded answers": ("a.jsonl.gz", gzip.compress, lambda path: read_rows(path, SPACE.edition("2023"))),
    "bz2": ("a.jsonl.bz2", bz2.compress, read_bytes),
    "xz": ("a.jsonl.xz", lzma.compress, read_bytes),
    "two members": ("a.gz", lambda raw: gzip.compress(b"{}") + gzip.compress(raw), read_bytes),
    "alias table": ("a.csv", gzip.compress, lambda path: list(read_table(path))),
    "entity vectors": ("a.gz", gzip.compress, lambda path: read_vectors(path, {"x"})),
    "dump": ("a.json.gz", gzip.compress, lambda path: sum(map(len, every_line(path)))),
    "KAMEL": ("KAMEL.tar.xz", archive, kamel.read),
}


@pytest.mark.parametrize("name", READERS)
@pytest.mark.usefixtures("small_bounds")
def test_a_bomb_is_refused_before_it_fills_memory(name: str, tmp_path: Path) -> None:
    file, pack, read = READERS[name]
    path = tmp_path / file
    path.write_bytes(pack(b"4530030 500\n" + bytes(32 * MIB)))
    assert path.stat().st_size < MIB // 2
    tracemalloc.start()
    try:
        with pytest.raises(InputError, match=rf"{file} unpacks to more than \d+ MiB.*, unpack it first"):
            read(path)
        assert tracemalloc.get_traced_memory()[1] < 20 * MIB
    finally:
        tracemalloc.stop()


def test_the_bounds_leave_room_for_what_is_true(tmp_path: Path) -> None:
    """Every row with the same prompt of 4 KB, as recorded answers may have, and more than what is free."""
    rows = b"".join(
        json.dumps(
            {"SubjectEntity": f"s{n}", "prompt": "Which? " * 600, "completions": [str(n * 7919 % 10007)]}
        ).encode()
        + b"\n"
        for n in range(17_000)
    )
    path = tmp_path / "a.jsonl.gz"
    path.write_bytes(gzip.compress(rows, 1))
    assert len(rows) > packed.FREE
    assert read_bytes(path) == rows


@pytest.mark.parametrize("pack", PACKERS.values(), ids=PACKERS)
def test_what_was_packed_is_read(pack: Callable[[bytes], bytes], tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(pack(b"\xef\xbb\xbf" + ROWS))
    assert read_bytes(path) == ROWS
    with packed.stream(path) as file:
        assert b"".join(packed.lines(file)) == ROWS


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.sampled_from(sorted(PACKERS)), st.data())
def test_a_damaged_file_is_one_sentence(tmp_path: Path, name: str, data: st.DataObject) -> None:
    raw = bytearray(PACKERS[name](ROWS))
    place = data.draw(st.integers(0, len(raw) - 1))
    if data.draw(st.booleans()):
        raw[place] ^= 1 << data.draw(st.integers(0, 7))
    else:
        del raw[place:]
    path = tmp_path / "a"
    path.write_bytes(raw)
    if packed.is_packed(bytes(raw)):
        told = ""
        try:
            read = read_bytes(path)
        except InputError as error:
            told = str(error)
        assert ("cannot be read" in told and "\n" not in told) if told else read == ROWS


def test_a_table_that_is_packed_twice_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes(gzip.compress(b"text,id\nBerlin,Q64\n"))
    assert [entity.id for entity in read_table(path)] == ["Q64"]
    path.write_bytes(gzip.compress(gzip.compress(b"text,id\nBerlin,Q64\n")))
    with pytest.raises(InputError, match="packed twice"):
        list(read_table(path))
