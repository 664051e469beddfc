"""Trust in the code of folders: the user is asked once, and the answer is remembered by path and content.

As in direnv, a file in the user's state directory marks a trusted file: its name is the SHA-256 of path and content,
and it holds the path. A folder can be marked as the user's own. Its files, and those of folders below, are run after
edits too, as long as no other user can change them.
"""

from __future__ import annotations

import hashlib
import logging
import os
import shlex
import stat
from collections.abc import Mapping
from pathlib import Path

import platformdirs

from lmkbc.errors import InputError, LmkbcError

log = logging.getLogger(__name__)
FILE = "lmkbc.toml"
"""File that makes a folder a workspace."""
OTHERS = "another user's"
"""Who can change what neither the user nor root owns."""


class UntrustedError(LmkbcError):
    """Code would be run that the user has not trusted (exit status 2).

    It is no InputError, so that code which skips wrong input does not pass over it.

    files: path -> content.
    """

    exit_code = InputError.exit_code

    def __init__(self, root: Path, files: Mapping[Path, bytes], risks: Mapping[Path, str]) -> None:
        self.files, folder = files, shell_quoted(root.absolute())
        whose = {**dict.fromkeys(files, ""), **{path: f" ({who})" for path, who in risks.items() if who}}
        named = ", ".join(shell_quoted(Path(os.path.relpath(path, root))) + who for path, who in whose.items())
        super().__init__(
            f"{folder} holds code that this would run, and that you have not trusted as it is now: "
            f"{named}; read it, then give --trust (in Python, trust=True), or run "
            f"'lmkbc trust {folder}'"
            + f", or 'lmkbc trust --own {folder}' if you wrote it, as after a move"
            * (not any(risks.values()))
        )


def check_code(root: Path, files: Mapping[Path, bytes], *, trust: bool = False) -> None:
    """Raise UntrustedError if the user has not trusted code: files of a folder, path -> content.

    trust: whether to trust it now. InputError for what every user of the machine can change.
    """
    if not files:
        return
    places = dict.fromkeys((root, root / FILE, *(path.parent for path in files), *files))
    risks = {place: risk(place) for place in places if place.exists()}
    place = root.resolve()
    is_own = not any(risks.values()) and any(is_trusted(above, number(above)) for above in (place, *place.parents))
    new = {} if is_own else {path: text for path, text in files.items() if not is_trusted(path, text)}
    if new and not trust:
        raise UntrustedError(root, new, risks)
    remember(new)


def risk(path: Path) -> str:
    """Return who else can change a file or a folder, in words; "" for no other user. A link itself is looked at, too.

    InputError for one of the user's own that every user of the machine can change.
    """
    state = path.stat()
    if {state.st_uid, path.lstat().st_uid} - {0, os.getuid()}:
        return OTHERS
    if state.st_mode & stat.S_IWOTH and not (stat.S_ISDIR(state.st_mode) and state.st_mode & stat.S_ISVTX):
        raise InputError(
            f"every user of this machine can change {shell_quoted(path)}, so no code is run from there: run 'chmod o-w "
            f"{shell_quoted(path)}', or copy the workspace to a folder of your own"
        )
    return "a group can change it" if state.st_mode & stat.S_IWGRP and state.st_gid != os.getgid() else ""


def number(folder: Path) -> bytes:
    """Return a folder's number in the file system. Remembered with its path, it marks the folder as the user's own."""
    return str(folder.stat().st_ino).encode()


def is_trusted(path: Path, content: bytes) -> bool:
    """Return whether the user has trusted a file with this content, or a folder of this number as their own."""
    return os.path.isfile(_folder() / _mark(path, content))  # False too where the folder may not be read


def remember(contents: Mapping[Path, bytes]) -> None:
    """Trust files from now on: path -> content. A state directory that is not writable is logged."""
    for path, content in contents.items():
        try:
            _folder().mkdir(parents=True, exist_ok=True)
            (_folder() / _mark(path, content)).write_bytes(os.fsencode(path.resolve()) + b"\n")
        except OSError as error:
            log.warning("%s cannot be written (%s): trust is not remembered", _folder(), error.strerror or error)


def shell_quoted(path: Path) -> str:
    """Return a path as a shell takes it, with what a terminal would obey written as escapes."""
    text = shlex.quote(str(path))
    return text if text.isprintable() else ascii(str(path))


def _mark(path: Path, content: bytes) -> str:
    return hashlib.sha256(os.fsencode(path.resolve()) + b"\0" + content).hexdigest()


def _folder() -> Path:
    return Path(platformdirs.user_state_dir("lmkbc")) / "trusted"
