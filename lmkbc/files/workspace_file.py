"""The file lmkbc.toml, which makes a folder a workspace: where the nearest one is, and its settings."""

from __future__ import annotations

import logging
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal

from lmkbc.files.reader import read_toml
from lmkbc.files.trusted import FILE, OTHERS, is_trusted, risk, shell_quoted
from lmkbc.settings import checked

log = logging.getLogger(__name__)
NAME = r"\w[\w.-]*"
"""Pattern of a workspace's name, which is part of file names."""
Answers = Literal["strings", "ids"]


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkspaceFile:
    """Settings of a workspace.

    name: name of its relations as an edition, by default that of the folder. answers: "strings", or "ids" for QIDs of
    Wikidata. system: the default recipe, None for the bundled one.
    """

    name: str = ""
    answers: Answers = "strings"
    system: str | None = None

    def __post_init__(self) -> None:
        """Raise ValueError for a name that could not be part of a file's name."""
        if not re.fullmatch(NAME, self.name or FILE):
            raise ValueError(f"name is {self.name!r}: give letters, digits, '-', '_' and '.', and begin with no '.'")


def settings_of(folder: Path) -> WorkspaceFile:
    """Return the settings of a workspace; the usual ones if it has no file of them. InputError for a wrong setting."""
    path = folder / FILE
    return checked(WorkspaceFile, read_toml(path), str(path)) if path.is_file() else WorkspaceFile()


def nearest(start: Path, *, trust: bool = False) -> Path | None:
    """Return the nearest workspace at or above a folder, which is logged, since its modules are run; None for none.

    A workspace whose file is another user's is not used, unless `trust` is set or the user has trusted its file.
    """
    found = next((folder for folder in (start, *start.parents) if (folder / FILE).is_file()), None)
    return found if found and _is_used(found, trust or is_trusted(found / FILE, (found / FILE).read_bytes())) else None


@cache
def _is_used(folder: Path, is_trusted: bool) -> bool:
    """Return whether a workspace is used without being named, and log it once."""
    if not is_trusted and risk(folder / FILE) == OTHERS:
        how = f"name it with --workspace, or run 'lmkbc trust {shell_quoted(folder)}'"
        log.warning("%s is not used, since its %s is another user's: %s", folder, FILE, how)
        return False
    log.info("Workspace %s", folder)
    return True
