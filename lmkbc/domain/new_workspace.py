"""A new workspace: the files of `starter/`, with a name, and modules of relations of one's own."""

from __future__ import annotations

import re
import shutil
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import get_args

from lmkbc.components import SYSTEMS
from lmkbc.domain.modules import own_relations
from lmkbc.errors import InputError, check_known
from lmkbc.files.atomic import staged
from lmkbc.files.trusted import number, remember
from lmkbc.files.workspace_file import NAME, Answers, nearest
from lmkbc.files.writable import check_directory
from lmkbc.workspace import Workspace

PLACES = {"gitignore": ".gitignore"}
"""File of `starter/` -> its place in the workspace, if it is another one."""
RECIPE = "few-shot-samples"
"""The bundled recipe with which a workspace begins, as `systems/chat.toml`."""


def new_workspace(folder: Path, kinds: Mapping[str, str], answers: str) -> None:
    """Write a workspace. kinds: name of a relation -> kind of its objects. answers: "strings" or "ids".

    InputError for a folder that is there or lies in a workspace, and for a name that is taken; then nothing is written.
    """
    check_directory(folder)
    place = folder.absolute()
    if place.exists():
        raise InputError(f"{folder} is there already, and this command replaces nothing: name a new folder")
    if (above := nearest(place.parent)) is not None:
        raise InputError(f"{folder} lies in the workspace {above}, and a workspace holds no other: name another place")
    if not re.fullmatch(NAME, place.name) or place.name in Workspace().editions:
        raise InputError(f"{place.name!r} is no name for a workspace: give letters, and no name of an edition")
    check_known(answers, get_args(Answers), f"answers is {answers!r}")
    with staged(place, folder) as stage:
        for source in files("lmkbc.domain").joinpath("starter").iterdir():
            text = Template(source.read_text(encoding="utf-8")).substitute(name=place.name, answers=answers)
            stage.joinpath(PLACES.get(source.name, source.name)).write_text(text, encoding="utf-8")
        for name in ("relations", "systems"):
            (stage / name).mkdir()
        shutil.copyfile(SYSTEMS / RECIPE / "recipe.toml", stage / "systems" / "chat.toml")
        own_relations(kinds, stage / "relations")
    remember({place: number(place)})
