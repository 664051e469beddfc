"""Trust in the code of a workspace, as the user states it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from msgspec import Meta

from lmkbc.api.keywords import keywords
from lmkbc.files.trusted import FILE, number, remember, risk
from lmkbc.workspace import Workspace


@keywords
def trust(
    folder: Annotated[
        Path | str, Meta(description="Directory of a workspace.", extra={"argument": True, "metavar": "DIR"})
    ],
    *,
    own: Annotated[
        bool,
        Meta(description="It is yours: its modules are run after changes too, as long as no other user can make them."),
    ] = False,
) -> dict[Path, str]:
    """Trust the modules of a workspace as they are now. Return them, and who else can change each, in words.

    A workspace that `lmkbc.init` made is trusted as one's own. InputError for a folder that is none, and for a file
    that every user of the machine can change.
    """
    root, space = Path(folder), Workspace(folder, trust=True)
    modules = [path for files in space.code.values() for path in files]
    remember({root / FILE: (root / FILE).read_bytes()} if (root / FILE).is_file() else {})
    remember({root: number(root)} if own else {})
    return {path: risk(path) for path in modules}
