"""Trained directories: damage is named, other directories are left in peace."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest

from lmkbc.errors import InputError
from lmkbc.models.directory import TRAINING, check_damage


@pytest.fixture
def trained(tmp_path: Path) -> Path:
    """A directory as a training leaves it, with a file of somebody else beside it."""
    files = {"a.json": b"{}", "w.safetensors": b"12345", "notes.txt": b"mine"}
    for name, content in files.items():
        (tmp_path / name).write_bytes(content)
    digests = {name: hashlib.sha256(files[name]).hexdigest() for name in ("a.json", "w.safetensors")}
    (tmp_path / TRAINING).write_text(json.dumps({"seed": 0, "outputs": digests}))
    return tmp_path


def test_what_was_written_passes_and_so_does_a_directory_without_a_record(trained: Path, tmp_path: Path) -> None:
    check_damage(trained)
    check_damage(tmp_path / "absent")
    (trained / TRAINING).write_text('{"training": "other"}')
    check_damage(trained)


@pytest.mark.parametrize("change", [b"", b"12346", b"{}", None])
def test_a_file_that_differs_or_is_gone_is_named(trained: Path, change: bytes | None) -> None:
    (trained / "w.safetensors").unlink()
    if change is not None:
        (trained / "w.safetensors").write_bytes(change)
    with pytest.raises(InputError, match=r"w\.safetensors is not what the training wrote"):
        check_damage(trained)


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"outputs": [1]}', b'{"outputs": {"a": 1}}', b"\xff"])
def test_a_broken_record_is_named(trained: Path, content: bytes) -> None:
    (trained / TRAINING).write_bytes(content)
    with pytest.raises(InputError, match=r"training\.json cannot be read"):
        check_damage(trained)
