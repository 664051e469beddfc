"""Seals of trained directories: damage is named, other directories are left in peace."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest

from lmkbc.errors import InputError
from lmkbc.models.seal import FILE, check


def write(folder: Path) -> None:
    files = {"a.json": b"{}", "w.safetensors": b"12345"}
    for name, content in files.items():
        (folder / name).write_bytes(content)
    digests = {name: hashlib.sha256(content).hexdigest() for name, content in files.items()}
    (folder / FILE).write_text(json.dumps({"seed": 0, "outputs": digests}))


def test_what_was_written_passes_with_files_of_others_beside_it(tmp_path: Path) -> None:
    write(tmp_path)
    (tmp_path / "notes.txt").write_text("mine")
    check(tmp_path)


@pytest.mark.parametrize("change", [b"", b"12346", b"{}", None])
def test_a_file_that_differs_or_is_gone_is_named(tmp_path: Path, change: bytes | None) -> None:
    write(tmp_path)
    path = tmp_path / "w.safetensors"
    if change is None:
        path.unlink()
    else:
        path.write_bytes(change)
    with pytest.raises(InputError, match=r"w\.safetensors is not what the training wrote"):
        check(tmp_path)


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"outputs": [1]}', b'{"outputs": {"a": 1}}', b"\xff"])
def test_a_broken_seal_is_named(tmp_path: Path, content: bytes) -> None:
    write(tmp_path)
    (tmp_path / FILE).write_bytes(content)
    with pytest.raises(InputError, match=r"training\.json cannot be read"):
        check(tmp_path)


def test_a_directory_without_a_seal_is_none_of_ours(tmp_path: Path) -> None:
    check(tmp_path)
    check(tmp_path / "absent")
    (tmp_path / FILE).write_text('{"training": "other"}')
    check(tmp_path)
