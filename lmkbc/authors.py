"""The words of published systems' authors: fetched from where they publish them, never a part of this project."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import tomli_w

from lmkbc.ask.words import WordFile, converted
from lmkbc.errors import InputError
from lmkbc.files.atomic import write_bytes
from lmkbc.files.checksum import file_sha256
from lmkbc.files.fetch import download
from lmkbc.files.jsonl import read_bytes
from lmkbc.files.packed import DOCUMENT
from lmkbc.files.places import fetched_frames
from lmkbc.progress import Report
from lmkbc.recipe import make_recipe, read_file
from lmkbc.workspace import Workspace


def fetch(workspace: Workspace, name: str, accepted: Sequence[str] = (), progress: Report | None = None) -> Path:
    """Download the words of a system's authors, and convert them into the file of frames that is returned.

    Licence and credit are kept beside it, and what was there stays until all of it is new. accepted: SHA-256 of files
    for which the recipe declares none. InputError where it names no source, or they cannot be converted.
    """
    path = workspace.recipe_path(name)
    file = read_file(path)
    if file.source is None:
        raise InputError(f"{path}: no [source] says where the authors' words are published: there is nothing to fetch")
    frames = fetched_frames(path.stem)
    frames.parent.mkdir(parents=True, exist_ok=True)
    texts: dict[WordFile, bytes] = {}
    for number, source in enumerate(file.source.files, start=1):
        kept = frames.with_name(f"source-{number}")
        digests = [source.sha256] if source.sha256 else accepted
        if file_sha256(kept) not in digests:
            download(source.url, digests, kept, name, progress)
        texts[source] = read_bytes(kept, DOCUMENT)
    new = frames.with_name("frames.new.toml")
    write_bytes(new, tomli_w.dumps(converted(file.source, texts)).encode())
    for spec in make_recipe(path.stem, file, workspace.relations, str(new)).generate:
        spec.check(workspace.relations)
    credit = f"{file.source.credit}\n{file.source.licence}\n" + "".join(f"{one.url}\n" for one in texts)
    write_bytes(frames.with_name("credit.txt"), credit.encode())
    os.replace(new, frames)
    return frames
