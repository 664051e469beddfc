"""`lmkbc trust`: trust in the modules of a workspace."""

from __future__ import annotations

from typing import Any

from lmkbc.api.own_domain import trust as make
from lmkbc.commands.terminal import note
from lmkbc.commands.typed import made_from
from lmkbc.errors import counted
from lmkbc.files.trusted import shell_quoted

EXAMPLE = "Example: lmkbc trust downloaded-workspace"


@made_from(make)
def trust(**given: Any) -> None:
    """Trust the modules of a workspace as they are now, so that commands may run them. Read them first.

    When one is changed or added, commands ask again. SECURITY.md of the project says what is run.
    """
    files = make(**given)
    for path, who in files.items():
        note(f"{shell_quoted(path)}{f' ({who})' if who else ''}")
    kept = "also after changes of yours" if given["own"] else "as they are now"
    note(f"{counted(len(files), 'file')} of {shell_quoted(given['folder'])} trusted {kept}")
