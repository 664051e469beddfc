"""Frames: templates for a question about a fact and for its answer. The built-in styles are frames too.

A file of frames words each relation separately. It is a TOML table per relation, by any edition's name, with "*" for
all others. A table holds settings of a recipe's table `prompt`, and of its table `shots` under `shots`. [parts.NAME]
holds another such file, which a recipe names as "FILE#NAME".
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, NamedTuple

from lmkbc.errors import InputError, did_you_mean
from lmkbc.files.reader import read_toml
from lmkbc.relation import OTHERS, Relation
from lmkbc.workspace import bundled

Style = Literal["question", "triple", "tuple", "record", "json"]

Listing = Literal["json", "python", "comma", "semicolon", "line"]

SLOT = re.compile(r"\{(\w+)\}")
_BRACE = re.compile(r"\{\s*(\w+)\b(\s*\})?")


PARTS = "parts"
"""Key of the parts in a file of frames."""


class Frame(NamedTuple):
    """Templates of one example and of the query.

    block: the question, up to where the answer begins.
    answer: the answer, with {answer} for the objects.
    cue: the text for the slot {cue}.
    """

    block: str
    answer: str = "{answer}"
    cue: str = ""


TRIPLE = Frame("{subject}, {phrase}{cue}", cue=":")
RECORD = Frame("Subject: {subject}{identifier}\nRelation: {phrase}{knowledge}\n{cue}", cue="==>")
TEXTS: Mapping[Style, Frame] = {
    "question": Frame("Question: {question}\n{cue}", cue="Answer:"),
    "triple": TRIPLE,
    "tuple": Frame("({quoted_subject}, {quoted_phrase},", "{answer})"),
    "json": Frame('{"subject": {quoted_subject}, "relation": {quoted_phrase}, "objects":', "{answer}}"),
    "record": RECORD,
}
"""Frames of texts that a model completes."""
TURNS: Mapping[Style, Frame] = {
    "question": Frame("{question}"),
    "triple": TRIPLE,
    "tuple": Frame("({quoted_subject}, {quoted_phrase}, [])", "({quoted_subject}, {quoted_phrase}, {answer})"),
    "json": Frame('{"subject": {quoted_subject}, "relation": {quoted_phrase}}', '{"objects": {answer}}'),
    "record": RECORD,
}
"""Frames of chats, in which each example is a user turn and an assistant turn."""

RECALL = "{recalled}\nAnswer: "
"""Template before an answer, if the model first recalls what it knows."""

JOINTS: Mapping[Listing, str] = {"json": '", "', "python": "', '", "comma": ", ", "semicolon": "; ", "line": "\n"}
"""Separators between the objects of an answer."""


def check_slots(what: str, template: str, known: Sequence[str]) -> None:
    """Raise ValueError for an unknown slot, and for a known slot whose braces are open or hold blanks.

    Other braces are text, such as those of JSON. what: name of the template.
    """
    for found in _BRACE.finditer(template):
        slot = found[1]
        if SLOT.fullmatch(found[0]):
            if slot not in known:
                raise ValueError(f"{what} has a slot {{{slot}}}: {did_you_mean(slot, known)}")
        elif slot in known:
            raise ValueError(f"{what} has {found[0]!r}: write the slot as {{{slot}}}")


def captured(text: str, template: str) -> str:
    """Return the part of a text at the place of {answer} in a template; the whole text if the template does not match.

    Only literal text is searched, so that the time is linear for every template and text.
    """
    before, _, after = template.partition("{answer}")
    lead, tail = SLOT.split(before)[-1].strip(), SLOT.split(after)[0].strip()
    start = text.find(lead)
    if start < 0:
        return text
    rest = text[start + len(lead) :].rstrip()
    if not tail:
        return rest
    whole, ended, _ = rest.partition(f"{tail}\n")
    return whole if ended else rest.removesuffix(tail)


def wrong_stop(stops: Sequence[str], block: str, answer: str, separator: str, written: Mapping[str, str]) -> str:
    """Return what is wrong with the stops of a frame, as a sentence; "" if they end an answer, and no earlier.

    written: setting -> text that an answer may also hold.
    """
    before, _, after = answer.partition("{answer}")
    for stop in stops:
        if not stop:
            return "stop holds an empty text, which ends nothing: leave it out"
        for name, text in {"answer": "\0".join(SLOT.split(before)[::2]), **written}.items():
            if stop in text:
                return f"stop {stop!r} occurs in {name}, {text!r}, so an answer would end there: use another"
    follows = "".join((*SLOT.split(after)[::2], separator, SLOT.split(block)[0]))
    if not any(stop in follows for stop in stops):
        return f"stop {list(stops)} never occurs: what follows an answer is {follows!r}"
    return ""


@dataclass(frozen=True, slots=True)
class Frames:
    """A file of frames, or a part of it. tables: relation, by any name, or "*" -> settings of its prompt."""

    name: str = ""
    tables: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    @classmethod
    def read(cls, name: str) -> Frames:
        """Return the frames of a bundled file or a path, optionally followed by "#PART".

        Raise InputError for a mistake.
        """
        if not name:
            return cls()
        place, _, part = name.partition("#")
        path = bundled("frames", place, ".toml")
        tables = _tables(path, read_toml(path))
        parts = _tables(path, tables.pop(PARTS, {}))
        if part and part not in parts:
            raise InputError(f"{path} has no part {part!r}: {did_you_mean(part, parts)}")
        if part:
            tables = _tables(path, parts[part])
        return cls(f"{path}#{part}" if part else str(path), tables)

    def of(self, relation: Relation) -> tuple[str, Mapping[str, Any]]:
        """Return the file's name for a relation, and the settings of its prompt; ("", {}) if there are none."""
        names = (*relation.spellings(), OTHERS)
        return next(((name, self.tables[name]) for name in names if name in self.tables), ("", {}))

    def check(self, asked: Mapping[str, Relation], edition: str) -> None:
        """Raise InputError for a relation of an edition without a frame.

        asked: the edition's relations, by its names.
        """
        for name, relation in asked.items() if self.name else ():
            if not self.of(relation)[0]:
                raise InputError(
                    f'{self.name}: no frame for relation {name!r} of edition {edition}: add a table [{name}], or ["*"] '
                    "for all that are not named"
                )


def part(file: str, name: str) -> str:
    """Return a file of frames, or "FILE#NAME" if it has a part of that name; "" if it has only other parts."""
    tables = _tables(Path(file), read_toml(Path(file)))
    if name in tables.get(PARTS, {}):
        return f"{file}#{name}"
    return "" if tables.keys() == {PARTS} else file


def _tables(path: Path, table: Mapping[str, Any]) -> dict[str, Any]:
    """Return a table of tables. Raise InputError for any other value in it."""
    wrong = next((name for name, value in table.items() if not isinstance(value, Mapping)), None)
    if wrong is not None:
        raise InputError(f"{path}: {wrong!r} is no table: give one per relation, as in [{wrong}]")
    return dict(table)
