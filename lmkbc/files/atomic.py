"""Files that survive a kill. Files of other origin are never replaced.

A single file is written under a temporary name beside its target, flushed to disk, then renamed. So a kill leaves
either the old file or the new one. The next write of the same file removes a half-written one.

A directory of a command (a run, a trained model) holds a record: a JSON file that lists the other files with their
SHA-256. A command writes only to a directory that is new or empty, or has such a record. It replaces the listed files,
and everything else stays.

New files are written and flushed in a hidden directory within the target, and one rename marks them as complete. Then
the old files are removed, the new record replaces the old one, and the other files are moved. So at every moment each
file belongs to the run of the record beside it. If a kill interrupts this, the next command that checks or writes the
directory completes it (`settle`).

The trade-off: for the fraction of a millisecond that the renames take, a reader may miss a file. The alternative is to
swap whole directories. That takes two renames too, and would move the user's own files through a hidden name.
"""

from __future__ import annotations

import errno
import glob
import hashlib
import json
import os
import platform
import re
import shutil
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from secrets import token_hex
from tempfile import SpooledTemporaryFile
from typing import IO, Any
from zlib import crc32

from lmkbc.errors import InputError, LmkbcError
from lmkbc.files.checksum import read_record
from lmkbc.files.writable import check_directory, check_places, refusals

PIECE = 1 << 20
"""Bytes that a buffer keeps in memory, and bytes that are read at once."""


class Buffer:
    """A temporary file, deleted when it is closed. packed: whether to gzip its content, without a time stamp.

    LmkbcError if the disk is full.
    """

    def __init__(self, *, packed: bool = False) -> None:
        self._file = SpooledTemporaryFile(max_size=PIECE)  # noqa: SIM115 -- closed with the buffer
        self._digest, self._ended = hashlib.sha256(), False
        self._packer = zlib.compressobj(9, zlib.DEFLATED, 16 + zlib.MAX_WBITS) if packed else None
        self.pieces = 0

    def write(self, piece: bytes) -> None:
        """Add a piece."""
        self.pieces += 1
        self._put(self._packer.compress(piece) if self._packer else piece)

    @property
    def sha256(self) -> str:
        """Return the hex digest of the whole. Nothing may be written afterwards."""
        self._end()
        return self._digest.hexdigest()

    def chunks(self) -> Iterator[bytes]:
        """Yield the whole from its beginning. Nothing may be written afterwards."""
        self._end()
        self._file.seek(0)
        yield from iter(lambda: self._file.read(PIECE), b"")

    def close(self) -> None:
        """Delete the content."""
        self._file.close()

    def _end(self) -> None:
        if not self._ended:
            self._ended = True
            if self._packer:
                self._put(self._packer.flush())

    def _put(self, content: bytes) -> None:
        self._digest.update(content)
        try:
            self._file.write(content)
        except OSError as error:
            raise LmkbcError(
                f"what is to be written cannot be kept in a temporary file: {error.strerror or error}; nothing was "
                "changed; make room, or name another place in TMPDIR"
            ) from error


Content = bytes | Buffer
"""Content of a file to write."""


def pieces(content: Content) -> Iterator[bytes]:
    """Yield the bytes of a content in pieces."""
    return content.chunks() if isinstance(content, Buffer) else iter((content,))


def digest(content: Content) -> str:
    """Return the hex SHA-256 of a content."""
    return content.sha256 if isinstance(content, Buffer) else hashlib.sha256(content).hexdigest()


_READY = ".lmkbc-ready"
"""Name of the hidden directory when it is complete. From then on the new files are only moved."""
_UNREADY = f"{_READY}."
"""Prefix of its name before. After a kill, such a directory is removed."""
PLAIN = re.compile(r"[^/\\\x00]*[^/\\\x00.][^/\\\x00]*")
"""Pattern of a file's name without a folder."""
_SHA256 = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True, slots=True)
class DirectoryKind:
    """Description of a directory that a command writes.

    what: its name in messages, as in "a run".
    record: its JSON file, which holds `outputs` (file -> SHA-256) and `versions`.
    names: files that the record may list; None for all that match `form`.
    beside: files of the command that the record does not list.
    """

    what: str
    record: str
    names: frozenset[str] | None = None
    beside: frozenset[str] = frozenset()
    form: re.Pattern[str] = PLAIN

    def own(self, directory: Path) -> frozenset[str] | None:
        """Return the names of the command's files, existing or not; None if the directory has no valid record."""
        try:
            record = read_record(directory / self.record)
        except InputError:
            return None
        listed = frozenset(record.outputs)
        sound = "lmkbc" in record.versions and all(map(_SHA256.fullmatch, record.outputs.values()))
        if not sound or not all(map(self.form.fullmatch, listed)) or not listed <= (self.names or listed):
            return None
        return listed | {self.record} | self.beside


def versions(*packages: str) -> dict[str, str]:
    """Return the versions of packages for a record. A package that is not installed is left out."""
    found = {}
    for name in packages:
        with suppress(PackageNotFoundError):
            found[name] = version(name)
    return found


def with_record(kind: DirectoryKind, files: Mapping[str, Content], about: Mapping[str, Any]) -> dict[str, Content]:
    """Return the files of a directory, and the record that lists them. about: further fields of the record."""
    listed = {name: digest(content) for name, content in files.items() if name not in kind.beside}
    record = {**about, "outputs": listed, "versions": versions("lmkbc")}
    return {**files, kind.record: (json.dumps(record, ensure_ascii=False, indent=2) + "\n").encode()}


@contextmanager
def _disk_errors(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        reason = error.strerror or str(error)
        raise LmkbcError(f"{path} cannot be written: {reason}; what was there before is untouched") from error


def write_flushed(path: Path, content: Content) -> None:
    """Write a file of a staged directory, and flush it to disk."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as file:
        for piece in pieces(content):
            file.write(piece)
        file.flush()
        os.fsync(file.fileno())


def _prefix(path: Path) -> str:
    """Return the prefix of temporary names for a target, and remove temporary files of killed processes."""
    machine = f".{path.name.removeprefix('.')}.{crc32(platform.node().encode()):08x}-"
    for left in path.parent.glob(f"{glob.escape(machine)}*"):
        process = left.name.removeprefix(machine).partition(".")[0]
        if process.isdecimal() and not _runs(int(process)):
            if left.is_dir():
                shutil.rmtree(left, ignore_errors=True)
            else:
                left.unlink(missing_ok=True)
    return f"{machine}{os.getpid()}."


def _runs(process: int) -> bool:
    """Return whether a process of this machine may still run. On systems without a safe check, return True."""
    if os.name != "posix":
        return True
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except (PermissionError, OverflowError):
        return True
    return True


@contextmanager
def writing(path: Path, *, new: bool = False) -> Iterator[IO[bytes]]:
    """Yield a file to write. It replaces the target (or the target of a link) when the block ends without an error.

    new: whether to replace nothing, so that a file that appeared since a check stays as it is. LmkbcError for such a
    file, and if the disk refuses to write; nothing half-written remains.
    """
    with _disk_errors(path):
        target = path.resolve() if path.is_symlink() else path
        target.parent.mkdir(parents=True, exist_ok=True)
        made = target.with_name(f"{_prefix(target)}{token_hex(4)}")
        try:
            with made.open("xb") as file:
                yield file
                file.flush()
                os.fsync(file.fileno())
            (_add if new else os.replace)(made, target)
        except BaseException:
            made.unlink(missing_ok=True)
            raise


def _add(made: Path, target: Path) -> None:
    """Give a written file its name. FileExistsError if something has this name."""
    try:
        os.link(made, target)
    except OSError:
        if os.path.lexists(target):
            raise FileExistsError(errno.EEXIST, "a file of this name appeared meanwhile") from None
        os.replace(made, target)  # some file systems give no file two names
    else:
        made.unlink()


def write_bytes(path: Path, content: bytes, *, new: bool = False) -> None:
    """Replace one file, or the target of a link. new, errors: as in `writing`."""
    with writing(path, new=new) as file:
        file.write(content)


@contextmanager
def staged(target: Path, named: Path | None = None) -> Iterator[Path]:
    """Yield a directory to fill. It gets the target's name when the block ends, and replaces nothing.

    So a target that appeared meanwhile is an LmkbcError, unless it is empty, and stays as it is. No record is needed,
    and nothing is flushed. LmkbcError if the disk refuses. named: path for the message, by default the target.
    """
    with _disk_errors(named or target):
        target.parent.mkdir(parents=True, exist_ok=True)
        stage = target.parent / f"{_prefix(target)}{token_hex(8)}"
        stage.mkdir()  # readable as the user's own folders are, unlike one of tempfile
        try:
            yield stage
            with suppress(OSError):  # not empty, or absent
                target.rmdir()
            stage.rename(target)
        except BaseException:
            shutil.rmtree(stage, ignore_errors=True)
            raise


def check_replaceable(directory: Path, kind: DirectoryKind) -> None:
    """Raise InputError if a directory cannot be written later, or if that would replace files of other origin."""
    if directory.name in ("", ".."):
        raise InputError(f"'{directory}' is no name of a directory for {kind.what}: name a new one")
    with refusals(directory):
        if directory.is_symlink():
            raise InputError(f"{directory} is a link: name a directory itself")
        check_directory(directory)
        if directory.is_dir():
            check_places(directory, [directory])
            settle(directory, kind)
            _refuse_strangers(directory, kind)


def _refuse_strangers(directory: Path, kind: DirectoryKind, names: frozenset[str] = frozenset()) -> None:
    """Raise InputError for a non-empty directory without a record, or for an unlisted file that would be replaced."""
    own = kind.own(directory)
    here = {path.name: path for path in sorted(directory.iterdir()) if not path.name.startswith(_UNREADY)}
    if own is None and here:
        raise InputError(
            f"{directory} holds files that are not of {kind.what}, first {next(iter(here))!r}: name a directory that "
            "is new or empty"
        )
    wanted = (own or frozenset()) | names | (kind.names or frozenset())
    for name in sorted(wanted):
        path = directory / name
        if os.path.lexists(path) and (name not in (own or ()) or (path.is_dir() and not path.is_symlink())):
            raise InputError(f"{path} is not of {kind.what} but in its way: move it, or name another directory")


def blank(directory: Path) -> bool:
    """Return whether a directory holds nothing except the remains of a killed write."""
    return directory.is_dir() and all(path.name.startswith(_UNREADY) for path in directory.iterdir())


def write_directory(directory: Path, files: Mapping[str, Content], kind: DirectoryKind) -> None:
    """Replace the files of a directory's kind by new ones, and leave all other files alone.

    InputError as in `check_replaceable`; LmkbcError if the disk refuses, with the old files unchanged.
    """
    with filling(directory, kind) as stage:
        for name, content in files.items():
            write_flushed(stage / name, content)


@contextmanager
def filling(directory: Path, kind: DirectoryKind) -> Iterator[Path]:
    """Yield a directory to fill, record included. The rest is as in `write_directory`, for files made one by one."""
    check_replaceable(directory, kind)
    with _disk_errors(directory):
        fresh = not directory.exists()
        directory.mkdir(parents=True, exist_ok=True)
        try:
            with replacing(directory, kind) as stage:
                yield stage
                written = (path.relative_to(stage).as_posix() for path in stage.rglob("*") if path.is_file())
                _refuse_strangers(directory, kind, frozenset(written))
        except BaseException:
            if fresh:
                with suppress(OSError):  # the directory holds a complete write that only has to be settled
                    directory.rmdir()
            raise


@contextmanager
def replacing(directory: Path, kind: DirectoryKind) -> Iterator[Path]:
    """Yield a directory to fill. When the block ends, its files replace those that the record lists."""
    for left in directory.iterdir():
        if left.name.startswith(_UNREADY):
            shutil.rmtree(left)
    with staged(directory / _READY, directory) as stage:
        yield stage
    settle(directory, kind)


def settle(directory: Path, kind: DirectoryKind) -> None:
    """Move files that are marked as complete to their places. This ends a write, also one that was killed."""
    ready = directory / _READY
    if not ready.is_dir():
        return
    if (ready / kind.record).exists():
        for name in (kind.own(directory) or frozenset()) - {kind.record}:
            (directory / name).unlink(missing_ok=True)
        os.replace(ready / kind.record, directory / kind.record)
    for path in sorted(path for path in ready.rglob("*") if path.is_file()):
        target = directory / path.relative_to(ready)
        target.parent.mkdir(parents=True, exist_ok=True)
        os.replace(path, target)
    shutil.rmtree(ready)
