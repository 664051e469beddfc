"""Authors' words: prompts as the authors of a system published them, converted into a file of frames."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from lmkbc.errors import InputError, refuse

SUBJECT = "{subject_entity}"
"""Slot of the subject in the challenge's own templates."""

Settings = dict[str, Any]
"""Settings of a relation's frame."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WordFile:
    """File of published words. sha256: digest of its bytes. relation: its relation, if it is about a single relation.

    format: "templates" (a question of each relation, as a JSON object or as CSV of relation and template), or "prompt"
    (a whole prompt, examples and all, with the subject's place in its last paragraph).
    """

    url: str
    format: Literal["templates", "prompt"]
    sha256: str = ""
    relation: str = ""

    def __post_init__(self) -> None:
        """Raise ValueError for an address that cannot be trusted, and for a prompt of no relation."""
        refuse(
            (
                not self.url.startswith(("https://", "http://127.0.0.1:")),
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

    frame: settings that every frame has besides, where {template} is what the file says.
    """

    licence: str
    credit: str
    files: tuple[WordFile, ...]
    frame: Mapping[str, Any] = field(default_factory=dict)


def converted(source: WordingSource, files: Mapping[WordFile, bytes]) -> dict[str, Settings]:
    """Relation, as the authors call it -> frame. InputError names the file and what is wrong in it."""
    made: dict[str, Settings] = {}
    for file, raw in files.items():
        try:
            text = raw.decode("utf-8-sig").replace("\r\n", "\n")
            read = _templates(text) if file.format == "templates" else {file.relation: _prompt(text)}
        except (ValueError, RecursionError) as error:
            raise InputError(f"{file.url} is not as its format {file.format!r} has it: {error}") from None
        for relation, frame in read.items():
            block = str(source.frame.get("block", "{template}")).replace("{template}", frame["block"])
            made[relation] = {**source.frame, **frame, "block": block}
    return made


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
