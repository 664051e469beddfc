"""Checksums of files and directories, so that damage and swapped parts are found.

A directory has a record, a JSON file whose `outputs` lists its files with their SHA-256. A single file begins with a
SHA-256 of its name and the rest.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from pathlib import Path

import msgspec

from lmkbc.errors import UNDECODABLE, InputError
from lmkbc.files.reader import opened, stream, whole

DIGEST = 32
"""Bytes of the SHA-256 at the beginning of a single file."""


class DirectoryRecord(msgspec.Struct):
    """Fields that are read from a directory's record. outputs: file -> SHA-256. versions: package -> version."""

    outputs: dict[str, str] = {}
    versions: dict[str, str] = {}


def read_record(path: Path) -> DirectoryRecord:
    """Read a directory's record. InputError for a damaged one."""
    try:
        return msgspec.json.decode(whole(path), type=DirectoryRecord)
    except (OSError, *UNDECODABLE) as error:
        raise InputError(f"{path} cannot be read ({error}): make the directory again") from None


def sha256(content: bytes) -> str:
    """Return the hex SHA-256 of some bytes."""
    return hashlib.sha256(content).hexdigest()


def file_sha256(path: Path) -> str:
    """Return the hex SHA-256 of a file; "" if it does not exist."""
    if not path.exists() or path.is_dir():
        return ""
    with opened(path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()  # type: ignore[arg-type]


def content_sha256(path: Path) -> str:
    """Return the hex SHA-256 of a file's text, unpacked and as UTF-8. InputError for a damaged file."""
    with stream(path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()  # type: ignore[arg-type]


def damaged(directory: Path, outputs: Mapping[str, str]) -> Iterator[str]:
    """Yield the listed files that are missing or damaged."""
    return (name for name, digest in outputs.items() if file_sha256(directory / name) != digest)


def read_digests(path: Path) -> dict[str, str]:
    """Return name -> SHA-256 of a list as sha256sum prints it, a line each; {} if there is no list."""
    lines = whole(path).decode("utf-8", "replace").splitlines() if path.is_file() else []
    return {name: digest for digest, _, name in (line.partition("  ") for line in lines) if name}


def signed(name: str, content: bytes) -> bytes:
    """Return the bytes of a file with this name: its checksum, then the content."""
    return hashlib.sha256(name.encode() + content).digest() + content


def unsigned(name: str, content: bytes) -> bytes | None:
    """Return the content after the checksum of a file with this name; None if the file is damaged."""
    rest = content[DIGEST:]
    return rest if signed(name, rest) == content else None
