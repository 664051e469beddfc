"""Files that survive a kill, and nothing replaced that is not ours.

A single file is written under a temporary name beside its target, flushed to disk, then renamed: a kill leaves the old
one or the new one, and what it left half-written goes when the same is written again.

A directory that a command writes (a run, a trained model) holds a record: a JSON file that lists the others with their
SHA-256. A command writes to a directory that is new or empty, or whose record is ours, and of that it replaces what
the record lists; everything else there stays. The new files are written and flushed in a hidden directory within, and
one rename declares them whole. Then the old ones are removed, the new record takes the place of the old, and the rest
follows. So at every moment each file belongs to the run that the record beside it tells of, and no zip stands beside
another run's manifest; what a kill left undone, the next command that checks or writes the directory does (`settle`).

The trade-off: for the fraction of a millisecond that the renames take, a reader may miss a file. To swap in a whole
directory takes two renames with nothing in between, and would carry a person's own files through a hidden name.
"""

from __future__ import annotations

import glob
import json
import os
import platform
import re
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from secrets import token_hex
from typing import IO, Any
from zlib import crc32

from lmkbc.errors import InputError, LmkbcError
from lmkbc.files.buffer import Content, digest, pieces
from lmkbc.files.checksum import read_record
from lmkbc.files.writable import check_directory, check_places, refusals

_READY = ".lmkbc-ready"
"""Name of the hidden directory within when it is complete. From then on the new files count and are only moved."""
_UNREADY = (f"{_READY}.", ".lmkbc-next-")
"""Prefixes of its name until then, in this and earlier versions; after a kill, such a directory is rubbish."""
PLAIN = re.compile(r"[^/\\\x00]*[^/\\\x00.][^/\\\x00]*")
"""A file's name, of no other directory."""
_SHA256 = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True, slots=True)
class Kind:
    """Description of a directory that a command writes.

    what: for people, as in "a run". record: its JSON file, which holds `outputs` (file -> SHA-256) and `versions`.
    names: what its record may list; all of this form where that is None. beside: files of it that the record does not
    list.
    """

    what: str
    record: str
    names: frozenset[str] | None = None
    beside: frozenset[str] = frozenset()
    form: re.Pattern[str] = PLAIN

    def own(self, directory: Path) -> frozenset[str] | None:
        """Return the names in a directory that are ours, there or not; None without a record of ours."""
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
    """Return the versions of packages, for a record; a package that is not installed is left out."""
    found = {}
    for name in packages:
        with suppress(PackageNotFoundError):
            found[name] = version(name)
    return found


def with_record(kind: Kind, files: Mapping[str, Content], about: Mapping[str, Any]) -> dict[str, Content]:
    """Return the files of a directory and the record that lists them, with what else it tells."""
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
    """Write a file of a staged directory, to the disk itself."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as file:
        for piece in pieces(content):
            file.write(piece)
        file.flush()
        os.fsync(file.fileno())


def _prefix(path: Path) -> str:
    """Return how temporary names of a target begin, and remove what killed processes left of it."""
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
    """Return whether a process of this machine still runs; where that cannot be asked without harm, it may."""
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
def writing(path: Path) -> Iterator[IO[bytes]]:
    """Yield a file to write, which replaces one, or what a link points to, when the block ends, and not if it fails.

    LmkbcError when the disk refuses, with nothing half-written.
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
            os.replace(made, target)
        except BaseException:
            made.unlink(missing_ok=True)
            raise


def write_bytes(path: Path, content: bytes) -> None:
    """Replace one file, or what a link points to. LmkbcError when the disk refuses, with nothing half-written."""
    with writing(path) as file:
        file.write(content)


@contextmanager
def staged(target: Path, named: Path | None = None) -> Iterator[Path]:
    """Yield a directory to fill, which takes the target's place when the block ends; until then that is as it was.

    No record is looked for, and nothing is flushed. LmkbcError when the disk refuses; named: what it names then, if not
    the target.
    """
    with _disk_errors(named or target):
        target.parent.mkdir(parents=True, exist_ok=True)
        stage = Path(tempfile.mkdtemp(prefix=_prefix(target), dir=target.parent))
        try:
            yield stage
            if target.exists():
                shutil.rmtree(target)
            stage.rename(target)
        except BaseException:
            shutil.rmtree(stage, ignore_errors=True)
            raise


def check_replaceable(directory: Path, kind: Kind) -> None:
    """InputError where a directory of a kind could not be written later, or where that would touch what is not ours."""
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


def _refuse_strangers(directory: Path, kind: Kind, names: frozenset[str] = frozenset()) -> None:
    """InputError where a directory holds something, and no record; or what would be replaced and is not of it."""
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
    """Return whether a directory holds nothing but what a killed write left."""
    return directory.is_dir() and all(path.name.startswith(_UNREADY) for path in directory.iterdir())


def write_directory(directory: Path, files: Mapping[str, Content], kind: Kind) -> None:
    """Put the files of a new run, or of another kind, in the place of the old one's, and leave all else there alone.

    InputError as of `check_replaceable`; LmkbcError when the disk refuses, with what was there untouched.
    """
    with filling(directory, kind) as stage:
        for name, content in files.items():
            write_flushed(stage / name, content)


@contextmanager
def filling(directory: Path, kind: Kind) -> Iterator[Path]:
    """Yield a directory to fill, record included, as `write_directory` does with files that are made one by one."""
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
                with suppress(OSError):  # of a write that only has to be settled
                    directory.rmdir()
            raise


@contextmanager
def replacing(directory: Path, kind: Kind) -> Iterator[Path]:
    """Yield a directory to fill: when the block ends, its files take the place of those that the record lists."""
    for left in directory.iterdir():
        if left.name.startswith(_UNREADY):
            shutil.rmtree(left)
    with staged(directory / _READY, directory) as stage:
        yield stage
    settle(directory, kind)


def settle(directory: Path, kind: Kind) -> None:
    """Bring files that were declared whole to their places: the end of a write, also of one that a kill cut short."""
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
