"""Input files as streams: plain, packed, damaged, or a pipe, which is read as often as a file."""

import bz2
import gzip
import io
import lzma
import os
import random
import threading
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from space import SPACE

from lmkbc import InputError
from lmkbc.evaluation.official import evaluate
from lmkbc.files import reader
from lmkbc.files.columns import read_column
from lmkbc.files.jsonl import read_jsonl
from lmkbc.files.splits import read_queries

EDITION = SPACE.edition("2023")
ROW = b'{"SubjectEntity": "a", "Relation": "BandHasMember", "ObjectEntitiesID": ["Q%d"]}\n'
PACKERS: dict[str, Callable[[bytes], bytes]] = {
    "plain": bytes,
    "gz": gzip.compress,
    "bz2": bz2.compress,
    "xz": lzma.compress,
    "two members": lambda raw: gzip.compress(raw[:9]) + gzip.compress(raw[9:]),
}
ROWS = b"".join(b'{"n": %d, "text": "%d"}\n' % (n, n * 7919 % 10007) for n in range(2000))


def pipe(path: Path, content: bytes) -> Path:
    """A named pipe that a thread writes to."""
    os.mkfifo(path)
    threading.Thread(target=path.write_bytes, args=(content,), daemon=True).start()
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
        read_queries(again, EDITION)


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("/dev/zero", "/dev/zero is a device: give a file or a pipe"),
        (".", "is a directory: give a file"),
        ("no/file", "no/file does not exist: check the path"),
        ("a\0b", "'a.x00b' cannot be read: embedded null byte; check the path"),
    ],
)
def test_what_cannot_be_read_is_named(name: str, told: str) -> None:
    with pytest.raises(InputError, match=told):
        reader.whole(Path(name))


def test_two_rows_on_one_line_are_told_by_their_line(tmp_path: Path) -> None:
    """Where the decoder takes them as two rows, and where one row of a file of lines goes over two of them."""
    path, gold = tmp_path / "p", tmp_path / "gold"
    gold.write_bytes(ROW % 1)
    for content in ((ROW % 1).strip() + ROW % 1, (ROW % 1).replace(b", ", b",\n", 1)):
        path.write_bytes(ROW % 1 + content)
        for read in (lambda: read_column(path, EDITION), lambda: evaluate(path, gold, EDITION)):
            with pytest.raises(InputError, match="line 2: not valid JSON"):
                read()


@pytest.mark.parametrize("pack", PACKERS.values(), ids=PACKERS)
def test_what_was_packed_is_read(pack: Callable[[bytes], bytes], tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(pack(b"\xef\xbb\xbf" + ROWS))
    assert reader.whole(path) == ROWS
    with reader.stream(path) as file:
        assert b"".join(file) == ROWS


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.sampled_from(["gz", "bz2", "xz"]), st.data())
def test_a_damaged_file_is_one_sentence(tmp_path: Path, name: str, data: st.DataObject) -> None:
    raw = bytearray(PACKERS[name](ROWS))
    place = data.draw(st.integers(8, len(raw) - 1))  # what begins otherwise is no packed file
    if data.draw(st.booleans()):
        raw[place] ^= 1 << data.draw(st.integers(0, 7))
    else:
        del raw[place:]
    path = tmp_path / "a"
    path.write_bytes(raw)
    told = ""
    try:
        read = reader.whole(path)
    except InputError as error:
        told = str(error)
    assert ("cannot be read" in told and "\n" not in told) if told else read == ROWS


def zipped(name: str = "predictions.jsonl") -> bytes:
    """A zip of one file."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(name, ROWS[:6000])
    return buffer.getvalue()


@pytest.mark.filterwarnings("ignore:unclosed")
def test_whatever_is_lost_of_a_zip_it_is_a_sentence(tmp_path: Path) -> None:
    """Three bytes anywhere, or one changed."""
    whole, path, draw = zipped(), tmp_path / "a.zip", random.Random(0)
    told = []
    for place in [
        *range(0, len(whole) - 150, 9),
        *range(len(whole) - 150, len(whole) - 3),
    ]:  # its directory: at the end
        damaged = bytearray(whole)
        if place % 2:
            del damaged[place : place + 3]
        else:
            damaged[place] ^= 1 << draw.randrange(8)
        path.write_bytes(damaged)
        try:
            reader.whole(path)  # names, dates and the like may differ
        except InputError as error:
            told.append(str(error))
    assert len(told) > 100
    assert not any("\n" in sentence for sentence in told)


def test_a_members_name_that_is_no_text_is_a_sentence(tmp_path: Path) -> None:
    path = tmp_path / "a.zip"
    path.write_bytes(zipped("é.jsonl").replace("é".encode(), b"\xff\xfe"))
    with pytest.raises(InputError, match=r"a\.zip cannot be read: .* it is damaged: make or fetch it again"):
        reader.whole(path)


@pytest.mark.parametrize("pack", [gzip.compress, bz2.compress, lzma.compress], ids=["gz", "bz2", "xz"])
@pytest.mark.parametrize(
    ("content", "reason"),
    [(b"a" * 5000, "line of more than"), (b"[\n" + b"\n" * 9000, "unpacks to more"), (b"[" * 5000, "line of more")],
)
def test_a_small_file_that_unpacks_to_a_large_one_is_refused(
    pack: Callable[[bytes], bytes], content: bytes, reason: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reader, "LONGEST", 4000)
    monkeypatch.setattr(reader, "LARGEST", 8000)
    path = tmp_path / "rows.jsonl"
    path.write_bytes(pack(content))
    with pytest.raises(InputError, match=reason):
        read_jsonl(path, dict)
    path.write_bytes(pack(b'{"a": "' + b"x" * 3000 + b'"}\n' + b'{"a": 1}\n' * 9000))
    assert len(read_jsonl(path, dict)) == 9001
