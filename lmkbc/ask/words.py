"""Authors' words: prompts as the authors of a system published them, converted into a file of frames."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal
from urllib.parse import quote

from lmkbc.errors import InputError, refuse

SUBJECT = "{subject_entity}"
"""Slot of the subject in the challenge's own templates."""

RAW = "https://raw.githubusercontent.com"
"""Files of GitHub repositories lie below it by commit, so that what an address names never changes."""

Settings = dict[str, Any]
"""Settings of a relation's frame."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WordFile:
    """File of published words. sha256: digest of its bytes. relation: its relation, if it is about a single relation.

    path: in the source's repository; commit: where it is not the source's; or url, its whole address. format:
    "templates" (a question of each relation, as a JSON object or as CSV of relation and template), or "prompt" (a whole
    prompt, examples and all, with the subject's place in its last paragraph). mended: slips that the authors mended
    after the state at which the file is pinned, each with what stands in its place.
    """

    format: Literal["templates", "prompt"]
    path: str = ""
    commit: str = ""
    url: str = ""
    sha256: str = ""
    relation: str = ""
    mended: tuple[tuple[str, str], ...] = ()

    def __post_init__(self) -> None:
        """Raise ValueError for an address that cannot be trusted, and for a prompt of no relation."""
        refuse(
            (bool(self.path) == bool(self.url), "give either path, in the source's repository, or url"),
            (
                self.url and not self.url.startswith(("https://", "http://127.0.0.1:")),
                f"url is {self.url!r}: give an address that begins with https://",
            ),
            (
                (self.format == "prompt") != bool(self.relation),
                "relation says what a whole prompt is about: give it with format 'prompt', and only there",
            ),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class WordingSource:
    """Published files of a system's words. licence, credit: kept beside the words.

    repository, commit: of all files that give a path, a GitHub repository as owner/name and 40 hex digits. frame:
    settings that every frame has besides, where {template} is what the file says.
    """

    licence: str
    credit: str
    files: tuple[WordFile, ...]
    repository: str = ""
    commit: str = ""
    frame: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Raise ValueError for a path whose repository or commit is not given, or is none."""
        for file in self.files:
            commit = file.commit or self.commit
            refuse(
                (
                    file.path and not re.fullmatch(r"[\w.-]+/[\w.-]+", self.repository),
                    f"repository is {self.repository!r}: give owner/name, in which {file.path!r} lies",
                ),
                (
                    file.path and not re.fullmatch("[0-9a-f]{40}", commit),
                    f"commit of {file.path!r} is {commit!r}: give its 40 hexadecimal digits",
                ),
            )

    def address(self, file: WordFile) -> str:
        """Return the address of a file."""
        return file.url or f"{RAW}/{self.repository}/{file.commit or self.commit}/{quote(file.path)}"


def converted(source: WordingSource, files: Mapping[WordFile, bytes]) -> dict[str, Settings]:
    """Relation, as the authors call it -> frame. InputError names the file and what is wrong in it."""
    made: dict[str, Settings] = {}
    for file, raw in files.items():
        try:
            text = _mended(raw.decode("utf-8-sig").replace("\r\n", "\n"), file.mended)
            read = _templates(text) if file.format == "templates" else {file.relation: _prompt(text)}
        except (ValueError, RecursionError) as error:
            raise InputError(f"{source.address(file)} is not as its format {file.format!r} has it: {error}") from None
        for relation, frame in read.items():
            block = str(source.frame.get("block", "{template}")).replace("{template}", frame["block"])
            made[relation] = {**source.frame, **frame, "block": block}
    return made


def _mended(text: str, slips: tuple[tuple[str, str], ...]) -> str:
    """Return a text without its slips. ValueError for one that it does not have."""
    for slip, instead in slips:
        if slip not in text:
            raise ValueError(f"it has no {slip!r} to mend")
        text = text.replace(slip, instead)
    return text


def _templates(text: str) -> dict[str, Settings]:
    """Return the question of each relation."""
    if text.lstrip().startswith("{"):
        rows = json.loads(text).items()
    else:
        rows = [row for row in csv.reader(io.StringIO(text)) if row][1:]
    wrong = next((row for row in rows if len(row) != 2 or not all(isinstance(cell, str) for cell in row)), None)
    if wrong is not None or not rows:
        raise ValueError(f"{wrong!r} is not a relation and its template" if wrong else "it holds none")
    return {relation.strip(): {"block": _about(template.strip())} for relation, template in rows}


def _prompt(text: str) -> Settings:
    """Return a whole prompt: its examples are the header, so that no others are shown."""
    end = text[len(text.rstrip()) :]
    examples, _, query = text.rstrip().rpartition("\n\n")
    return {"task": examples, "block": _about(query + end), "shots": {"k": 0}}


def _about(template: str) -> str:
    if SUBJECT not in template:
        raise ValueError(f"{template[:80]!r} has no {SUBJECT}")
    return template.replace(SUBJECT, "{subject}")
