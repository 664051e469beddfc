"""Authors' words: prompts as the authors of a system published them, converted into a file of frames."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple
from urllib.parse import quote

from lmkbc.ask.bank import OWN_WORDS
from lmkbc.ask.frames import PARTS
from lmkbc.ask.prompts import fill
from lmkbc.ask.python_words import Slot, Value, read_python
from lmkbc.errors import InputError, refuse
from lmkbc.relation import OTHERS

SUBJECT, MASK = "{subject_entity}", "{mask_token}"
"""Slots of the subject, and of what a masked model fills, in the challenge's own templates."""

FILLS = "fill "
"""Before the name of a slot in a frame that is being made, what stands for it."""

RAW = "https://raw.githubusercontent.com"
"""Files of GitHub repositories lie below it by commit, so that what an address names never changes."""

Settings = dict[str, Any]
"""Settings of a relation's frame."""

Slots = Mapping[str, str | tuple[str, ...]]
"""What stands for an expression of the code, or for a part of a text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedWords:
    """Words that a file has under a name: a variable of Python source, or a key of YAML.

    name: the key, or the variable's scopes and itself, as `read_python` takes it. step: the step of a chain whose
    "task" or "ask" it is, by the recipe's name for it.

    setting: what it is of a relation's frame: its "block", "task", "ask", or "follow_up", where {ask} is the ask; the
    "clozes" of a masked model, the cloze of its "precondition", or the "forms" of a subject by its answers; "lines", a
    whole text: a list of header, example and query; or "text", the same in one, where {examples} stands for examples.
    slot: it is no setting, and stands for this slot in the other words of its relation, as {phrase} in a block.
    when: the condition of the code under which it is said, where that says several things (see `read_python`).
    relation: the relation that it is about, "*" for all others; none where the code names relations itself, as keys of
    a table or in conditions. part: the recipe's table that it is about, by its name.
    relations: what the code calls a relation there -> its name. frame: settings besides. slots: besides the file's.
    """

    name: str
    setting: Literal["block", "task", "ask", "follow_up", "clozes", "precondition", "forms", "lines", "text"] = "block"
    slot: str = ""
    when: str = ""
    relation: str = ""
    step: str = ""
    part: str = ""
    relations: Mapping[str, str] = field(default_factory=dict)
    frame: Mapping[str, Any] = field(default_factory=dict)
    slots: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class WordFile:
    """File of published words. sha256: digest of its bytes. relation: its relation, if it is about a single relation.

    path: in the source's repository; commit: where it is not the source's; or url, its whole address. format:
    "templates" (each relation's question or cloze, as a JSON object or as CSV of relation and template), "prompt" (a
    whole prompt, examples and all, with the subject's place in its last paragraph), "python" (source that is not run),
    "yaml" (a table of texts), or "examples" (JSONL in an edition's format: the examples of all prompts). words:
    variables of the source, or keys. slots: what its code puts into texts, such as "row['subject']", or what stands in
    texts of YAML, such as "{year}" -> what stands there; for "%s", a list, of which each fills the next. fields: of an
    example's "question", "reasoning" or "answer" -> the file's name of it, where it has words of its own.
    parts: the recipe's tables that it is about, by their names; none: all. mended: slips that the authors mended after
    the state at which the file is pinned, each with its correction.
    """

    format: Literal["templates", "prompt", "python", "yaml", "examples"]
    path: str = ""
    commit: str = ""
    url: str = ""
    sha256: str = ""
    relation: str = ""
    words: tuple[NamedWords, ...] = ()
    slots: Slots = field(default_factory=dict)
    fields: Mapping[str, str] = field(default_factory=dict)
    parts: tuple[str, ...] = ()
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
            (
                (self.format in ("python", "yaml")) != bool(self.words),
                "words says which variables or keys are read: give it with format 'python' or 'yaml', and only there",
            ),
            (
                bool(self.fields) and self.format != "examples",
                "fields names what examples hold: give it with format 'examples', and only there",
            ),
            (
                unknown := sorted(self.fields.keys() - OWN_WORDS),
                f"fields names {unknown}: give those of {', '.join(OWN_WORDS)}",
            ),
            (
                self.format == "yaml" and not all(words.relation for words in self.words),
                "a key of YAML is about a relation: name it",
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


class Words(NamedTuple):
    """Words of a system's authors.

    frames: relation, as they call it -> frame; or these by part, where files are about parts of the recipe. examples:
    rows of `lmkbc.ask.bank`'s simpler format.
    """

    frames: dict[str, Settings]
    examples: list[dict[str, Any]]


def converted(source: WordingSource, files: Sequence[bytes]) -> Words:
    """Return what published files say. files: as the source names them. InputError names the wrong one."""
    made: dict[str, dict[str, Settings]] = {}
    examples: list[dict[str, Any]] = []
    for file, raw in zip(source.files, files, strict=True):
        try:
            text = _mended(raw.decode("utf-8-sig").replace("\r\n", "\n"), file.mended)
            if file.format == "examples":
                examples += _examples(file, text)
                continue
            for part, relation, frame in _read(file, text):
                frames = made.setdefault(part, {})
                frames[relation] = frames.get(relation, {}) | frame
        except (ValueError, RecursionError) as error:
            raise InputError(f"{source.address(file)} is not as its format {file.format!r} has it: {error}") from None
    whole = {part: _frames(source, frames) for part, frames in made.items()}
    return Words(whole.pop("", {}) | ({PARTS: whole} if whole else {}), examples)


def _frames(source: WordingSource, made: dict[str, Settings]) -> dict[str, Settings]:
    """Return the frames of a part, each with what is said for all others."""
    others = made.get(OTHERS, {})
    if len(made) > 1 and not {"block", "clozes"} & others.keys():  # it asks nothing by itself
        made.pop(OTHERS, None)
    return {relation: _whole({**source.frame, **others, **frame}, source) for relation, frame in made.items()}


def _whole(frame: Settings, source: WordingSource) -> Settings:
    """Return a frame whose slots are filled, whose block stands in the source's own, whose second turn has its ask."""
    own = {key.removeprefix(FILLS): text for key, text in frame.items() if key.startswith(FILLS)}
    kept = {key: value for key, value in frame.items() if not key.startswith(FILLS)}
    frame = {key: fill(value, own) if isinstance(value, str) else value for key, value in kept.items()}
    if "text" in frame:
        frame = _divided(frame.pop("text")) | frame
    if "follow_up" in frame:
        frame["follow_up"] = frame["follow_up"].replace("{ask}", frame.get("ask", "{asked}"))
    if "block" in frame:
        block = str(source.frame.get("block", "{template}")).replace("{template}", frame["block"])
        frame["block"] = fill(block, own)
    return frame


def _divided(text: str) -> Settings:
    """Return what stands before and behind the examples of a whole text."""
    before, _, after = text.partition("{examples}")
    ask = after.lstrip("\n")
    return {"task": before, "task_end": "", "separator": after[: len(after) - len(ask)], "ask": ask}


def _examples(file: WordFile, text: str) -> Iterator[dict[str, Any]]:
    """Yield the examples of a file in the simpler format, each with its own words. ValueError names a wrong line."""
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except ValueError:
            raise ValueError(f"line {number} is no JSON") from None
        wanted = ("SubjectEntity", "Relation", "ObjectEntities", *file.fields.values())
        if not isinstance(row, dict) or (lacking := next((key for key in wanted if row.get(key) is None), "")):
            raise ValueError(f"line {number} has no {lacking if isinstance(row, dict) else wanted[0]!r}")
        said = {own: str(row[field]).strip() for own, field in file.fields.items()}
        yield {"subject": row["SubjectEntity"], "relation": row["Relation"], "objects": row["ObjectEntities"], **said}


def _read(file: WordFile, text: str) -> Iterator[tuple[str, str, Settings]]:
    """Yield parts, relations and settings of their frames."""
    if file.format == "templates":
        found = [("", *pair) for pair in _templates(text).items()]
    elif file.format == "prompt":
        found = [("", file.relation, _prompt(text))]
    else:
        read = _python if file.format == "python" else _yaml
        found = [(words.part, *pair) for words in file.words for pair in read(words, text, file.slots)]
    for own, relation, frame in found:
        yield from ((part, relation, frame) for part in ((own,) if own else file.parts or ("",)))


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
    return {relation.strip(): _asked(_about(template.strip())) for relation, template in rows}


def _asked(template: str) -> Settings:
    return {"clozes": [template.replace(MASK, "{mask}")]} if MASK in template else {"block": template}


def _prompt(text: str) -> Settings:
    """Return a whole prompt: its examples are the header, so that no others are shown."""
    end = text[len(text.rstrip()) :]
    examples, _, query = text.rstrip().rpartition("\n\n")
    return {"task": examples, "block": _about(query + end), "shots": {"k": 0}}


def _about(template: str) -> str:
    if SUBJECT not in template:
        raise ValueError(f"{template[:80]!r} has no {SUBJECT}")
    return template.replace(SUBJECT, "{subject}")


def _python(words: NamedWords, text: str, slots: Slots) -> Iterator[tuple[str, Settings]]:
    """Yield what a variable says of each relation."""
    found = read_python(text, words.name, words.when)
    known = {**slots, **words.slots}
    if words.setting == "forms":
        yield words.relation, {"forms": {case: _filled(value, known) for case, value in found.cases.items()}}
        return
    if words.relation:
        if found.value is None:
            raise ValueError(f"{words.name!r} is another one for each relation")
        values: Mapping[str, Value] = {words.relation: found.value}
    else:
        values = found.cases
    for name, value in values.items():
        if words.relations and name not in words.relations:
            raise ValueError(f"{words.name!r} is told of {name!r}, which relations does not name")
        yield words.relations.get(name, name), {**_setting(words, value, known), **words.frame}


def _yaml(words: NamedWords, text: str, slots: Slots) -> Iterator[tuple[str, Settings]]:
    """Yield what a key says of its relation."""
    import yaml

    try:
        found = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise ValueError(f"it is no YAML: {error}") from None
    said = found.get(words.name) if isinstance(found, dict) else None
    if not isinstance(said, str):
        raise ValueError(f"it has no text {words.name!r}")
    for slot, instead in slots.items():
        said = said.replace(slot, str(instead))
    yield words.relation, {f"steps.{words.step}.{words.setting}" if words.step else words.setting: said, **words.frame}


def _setting(words: NamedWords, value: Value, slots: Slots) -> Settings:
    """Return what a value is of a frame. Of a list within a list, such as a text and its weight, the first counts."""
    listed = value if isinstance(value, list) else [value]
    texts = [_filled(one[0] if isinstance(one, list) and one else one, slots) for one in listed]
    if words.setting == "clozes":
        return {"clozes": texts}
    if words.setting == "lines":
        if len(texts) != 3:
            raise ValueError(f"{words.name!r} has {len(texts)} parts, and not a header, an example and a query")
        return _lines(*texts)
    if len(texts) != 1:
        raise ValueError(f"{words.name!r} has {len(texts)} texts, and not one")
    return {f"{FILLS}{words.slot}" if words.slot else words.setting: texts[0]}


def _filled(text: Value, slots: Slots) -> str:
    """Return a text with what stands in its slots."""
    if not isinstance(text, tuple):
        raise ValueError("a list stands where a text should")
    unknown = next((part.expression for part in text if isinstance(part, Slot) and part.expression not in slots), None)
    if unknown is not None:
        raise ValueError(f"slots does not say what stands for {unknown[:80]!r}")
    said = "".join(str(slots[part.expression]) if isinstance(part, Slot) else part for part in text)
    for instead in slots.get("%s", ()):
        said = said.replace("%s", instead, 1)
    return said


def _lines(header: str, example: str, query: str) -> Settings:
    """Return the frame of a text: header, examples and query, each behind a line break."""
    if not example.startswith(query) or "{answer}" not in example[len(query) :] or not header.endswith("\n"):
        raise ValueError("its header has to end a line, and its example has to go on as the query does, with {answer}")
    answer = example[len(query) :].rstrip("\n")
    gap = "\n" * (1 + len(example) - len(example.rstrip("\n")))
    return {
        "task": header.removesuffix("\n"),
        "block": query,
        "answer": answer.removeprefix(" "),
        "separator": gap,
    }
