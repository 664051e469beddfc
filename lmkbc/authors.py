"""Words of published systems' authors: downloaded from the authors, never a part of this project."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import tomli_w

from lmkbc.ask.examples import read_bank
from lmkbc.ask.frames import PARTS
from lmkbc.ask.words import converted
from lmkbc.errors import InputError
from lmkbc.files.atomic import write_bytes
from lmkbc.files.checksum import file_sha256
from lmkbc.files.fetch import download
from lmkbc.files.places import fetched_frames, fetched_record
from lmkbc.files.reader import whole
from lmkbc.progress import Report
from lmkbc.recipe import make_recipe, read_file
from lmkbc.workspace import Workspace

BANK = "examples.jsonl"
"""Name of the file with the authors' worked examples."""


def fetch(workspace: Workspace, name: str, accepted: Sequence[str] = (), progress: Report | None = None) -> Path:
    """Download the words of a system's authors, convert them, and return the file of frames.

    The licence and the credit are stored beside it. Old files stay until all new ones are there.

    accepted: SHA-256 of files for which the recipe gives none.

    Raise InputError if the recipe names no source, or if files cannot be converted.
    """
    path = workspace.recipe_path(name)
    file = read_file(path)
    if file.source is None:
        raise InputError(f"{path}: no [source] says where the authors' words are published: there is nothing to fetch")
    frames = fetched_frames(path.stem)
    frames.parent.mkdir(parents=True, exist_ok=True)
    record = fetched_record(path.stem)
    texts: list[bytes] = []
    fetched: dict[str, str] = {}
    for number, one in enumerate(file.source.files, start=1):
        url, kept = file.source.address(one), frames.with_name(f"source-{number}")
        digests = [one.sha256] if one.sha256 else accepted
        if file_sha256(kept) not in digests:
            download(url, digests, kept, name, progress)
        texts.append(whole(kept))
        fetched[url] = file_sha256(kept)
    words = converted(file.source, texts)
    new, new_bank, bank = (frames.with_name(name) for name in ("frames.new.toml", "examples.new.jsonl", BANK))
    if words.examples:
        write_bytes(new_bank, b"".join(msgspec.json.encode(row) + b"\n" for row in words.examples))
        read_bank(str(new_bank), workspace.relations, {})
    setting = {"shots": {"file": str(bank)}} if words.examples else {}
    write_bytes(new, tomli_w.dumps(_each(words.frames, setting)).encode())
    for spec in make_recipe(path.stem, file, workspace.relations, str(new)).generate:
        spec.check(workspace.relations)
    credit = f"{file.source.credit}\n{file.source.licence}\n" + "".join(f"{url}\n" for url in fetched)
    write_bytes(frames.with_name("credit.txt"), credit.encode())
    made = {frames.name: file_sha256(new)} | ({BANK: file_sha256(new_bank)} if words.examples else {})
    write_bytes(record, "".join(f"{digest}  {name}\n" for name, digest in {**fetched, **made}.items()).encode())
    if words.examples:
        os.replace(new_bank, bank)
    os.replace(new, frames)
    return frames


def _each(frames: Mapping[str, Any], settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return frames, those of parts included, with further settings in each."""
    parts = {name: _each(part, settings) for name, part in frames.get(PARTS, {}).items()}
    whole = {name: {**frame, **settings} for name, frame in frames.items() if name != PARTS}
    return whole | ({PARTS: parts} if parts else {})
