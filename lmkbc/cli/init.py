"""`lmkbc init`: a workspace for relations of one's own, and what to do next."""

from __future__ import annotations

from typing import Any

from lmkbc.api.own_domain import init as make
from lmkbc.commands.terminal import note
from lmkbc.commands.typed import made_from

EXAMPLE = "Example: lmkbc init languages --relation designer:entity --relation first-appeared:date"


@made_from(make)
def init(**given: Any) -> None:
    """Make a workspace for relations of your own: settings, a recipe, a file for subjects, and relation modules."""
    place = make(**given)
    how = "mend the modules in relations/" if given["relation"] else "make relations with 'lmkbc relations new'"
    note(f"made {place}: go there, {how}, and fill subjects.csv; README.md has the commands that follow")
