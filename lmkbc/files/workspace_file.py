"""The file lmkbc.toml, which makes a folder a workspace: where the nearest one is, and its settings."""

from __future__ import annotations

import logging
import os
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal

from lmkbc.files.reader import read_toml
from lmkbc.settings import checked

log = logging.getLogger(__name__)
FILE = "lmkbc.toml"
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


def settings_of(folder: Path) -> WorkspaceFile:
    """Return the settings of a workspace; the usual ones if it has no file of them. InputError for a wrong setting."""
    path = folder / FILE
    return checked(WorkspaceFile, read_toml(path), str(path)) if path.is_file() else WorkspaceFile()


def nearest(start: Path) -> Path | None:
    """Return the nearest workspace at or above a folder, which is logged, since its modules are run; None for none.

    The workspace of another user is not used.
    """
    found = next((folder for folder in (start, *start.parents) if (folder / FILE).is_file()), None)
    return found if found and _is_used(found) else None


@cache
def _is_used(folder: Path) -> bool:
    """Return whether a workspace is used without being named, and log it once."""
    if (folder / FILE).stat().st_uid != os.getuid():
        log.warning("%s is not used, since it is another user's: name it with --workspace", folder)
        return False
    log.info("Workspace %s", folder)
    return True
