"""`lmkbc trust`: trust in the modules of a workspace, and the question about them."""

from __future__ import annotations

import sys
from typing import Any

from lmkbc.api.trusting import trust as make
from lmkbc.cli.terminal import note
from lmkbc.cli.typed import made_from
from lmkbc.errors import counted
from lmkbc.files.trusted import UntrustedError, remember, shown

EXAMPLE = "Example: lmkbc trust downloaded-workspace"


@made_from(make)
def trust(**given: Any) -> None:
    """Trust the modules of a workspace as they are now, so that commands may run them. Read them first.

    When one is changed or added, commands ask again. SECURITY.md of the project says what is run.
    """
    files = make(**given)
    for path, who in files.items():
        note(f"{shown(path)}{f' ({who})' if who else ''}")
    kept = "also after changes of yours" if given["own"] else "as they are now"
    note(f"{counted(len(files), 'module')} of {shown(given['folder'])} trusted {kept}")


def ask(error: UntrustedError) -> None:
    """Ask on a terminal whether to trust code, and remember a yes. Elsewhere, and without a yes, raise the error."""
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise error
    note(f"{shown(error.root)} holds code that this would run, and that you have not trusted as it is now:")
    for name in error.named:
        note(f"  {name}")
    sys.stderr.write("Read it first. Trust it from now on, as it is? [y/N] ")
    sys.stderr.flush()
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise error
    remember(error.files)
