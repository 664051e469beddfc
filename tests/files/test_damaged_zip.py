"""A zip that a person may have damaged on its way is read, or named in one sentence."""

from __future__ import annotations

import io
import random
import zipfile
from pathlib import Path

import pytest

from lmkbc.errors import InputError
from lmkbc.files.jsonl import read_bytes

ROWS = b"".join(b'{"n": %d, "text": "%d"}\n' % (n, n * 7919 % 10007) for n in range(200))


def zipped(name: str = "predictions.jsonl") -> bytes:
    """A zip of one file."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(name, ROWS)
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
            read_bytes(path)  # names, dates and the like may differ
        except InputError as error:
            told.append(str(error))
    assert len(told) > 100
    assert not any("\n" in sentence for sentence in told)


def test_a_members_name_that_is_no_text_is_a_sentence(tmp_path: Path) -> None:
    path = tmp_path / "a.zip"
    path.write_bytes(zipped("é.jsonl").replace("é".encode(), b"\xff\xfe"))
    with pytest.raises(InputError, match=r"a\.zip cannot be read: .* it is damaged: make or fetch it again"):
        read_bytes(path)
