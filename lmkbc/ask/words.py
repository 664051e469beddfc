"""Authors' words: prompts as a system's authors published them, converted into a file of frames."""

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
"""Slots of the subject and of the mask in the challenge's templates."""

FILLS = "fill "
"""Prefix of a frame's key that holds the text for a slot, before the slot is filled."""

RAW = "https://raw.githubusercontent.com"
"""Address of files in GitHub repositories, by commit, so that their content never changes."""

Settings = dict[str, Any]
"""Settings of a relation's frame."""

Slots = Mapping[str, str | tuple[str, ...]]
"""Expression of the code, or part of a text -> its replacement."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedWords:
    """Named words in a file: a variable of Python source, or a key of YAML.

    name: the key, or the variable with its scopes, as for `read_python`.
    step: name of the recipe's step, if the words are its "task" or "ask".
    setting: setting of the frame: its "block", "task", "ask", or "follow_up" (with {ask} for the ask). For a masked
    model, it is the "clozes", the cloze of the "precondition", or the "forms" of a subject by answer. It may also be a
    whole text. The setting "lines" is a list of header, example and query; "text" is one text with {examples} for the
    examples.
    slot: slot that the words fill in other words of their relation, such as "phrase" for {phrase} in a block.
    when: condition of the code for these words, if there are several (see `read_python`).
    relation: the relation, "*" for all others; "" if the code names relations itself, as dict keys or in conditions.
    part: name of the recipe's table.
    relations: the code's name of a relation -> its name.
    frame: further settings.
    slots: further slots, besides the file's.
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
    """File of published words.

    format: "templates" has each relation's question or cloze, as a JSON object or as CSV of relation and template. The
    format "prompt" is a whole prompt with examples, and the subject in its last paragraph. The format "python" is
    source, which is not run. The format "yaml" is a table of texts. The format "examples" is JSONL in an edition's
    format, with the examples of all prompts.
    path: in the source's repository.
    commit: if not the source's.
    url: whole address, instead of path. sha256: digest of the file.
    relation: the relation of a "prompt".
    words: variables of the source, or keys.
    slots: the code's expression in a text, such as "row['subject']", or text of YAML, such as "{year}" -> its
    replacement. For "%s", it is a list, each item of which replaces the next "%s".
    fields: an example's "question", "reasoning" or "answer" -> the file's field with the example's own words.
    parts: names of the recipe's tables that it is for; () for all.
    mended: errors that the authors corrected after the pinned state, each with its correction.
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
        """Raise ValueError for an untrusted address, and for settings that do not fit the format."""
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
    """Published files of a system's words.

    licence, credit: stored beside the words.
    repository, commit: GitHub repository as owner/name, and 40 hexadecimal digits, of all files with a path.
    frame: settings of every frame; {template} stands for the text of the file.
    """

    licence: str
    credit: str
    files: tuple[WordFile, ...]
    repository: str = ""
    commit: str = ""
    frame: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Raise ValueError for a path without a valid repository or commit."""
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
        """Return the URL of a file."""
        return file.url or f"{RAW}/{self.repository}/{file.commit or self.commit}/{quote(file.path)}"


class ConvertedWords(NamedTuple):
    """Words of a system's authors.

    frames: relation, by the authors' name -> frame; with parts, the same per part. examples: rows in the simpler format
    of `lmkbc.ask.bank`.
    """

    frames: dict[str, Settings]
    examples: list[dict[str, Any]]


def converted(source: WordingSource, files: Sequence[bytes]) -> ConvertedWords:
    """Return the words in published files. files: content of the source's files, in order.

    Raise InputError with the wrong file.
    """
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
    return ConvertedWords(whole.pop("", {}) | ({PARTS: whole} if whole else {}), examples)


def _frames(source: WordingSource, made: dict[str, Settings]) -> dict[str, Settings]:
    """Return the frames of a part, each with the settings for all others."""
    others = made.get(OTHERS, {})
    if len(made) > 1 and not {"block", "clozes"} & others.keys():  # it holds no question
        made.pop(OTHERS, None)
    return {relation: _whole({**source.frame, **others, **frame}, source) for relation, frame in made.items()}


def _whole(frame: Settings, source: WordingSource) -> Settings:
    """Return a frame with its slots filled, its block inside the source's block, and its ask in its second turn."""
    fills = {key.removeprefix(FILLS): text for key, text in frame.items() if key.startswith(FILLS)}
    kept = {key: value for key, value in frame.items() if not key.startswith(FILLS)}
    frame = {key: fill(value, fills) if isinstance(value, str) else value for key, value in kept.items()}
    if "text" in frame:
        frame = _divided(frame.pop("text")) | frame
    if "follow_up" in frame:
        frame["follow_up"] = frame["follow_up"].replace("{ask}", frame.get("ask", "{asked}"))
    if "block" in frame:
        block = str(source.frame.get("block", "{template}")).replace("{template}", frame["block"])
        frame["block"] = fill(block, fills)
    return frame


def _divided(text: str) -> Settings:
    """Return the parts of a whole text before and after its examples, as settings."""
    before, _, after = text.partition("{examples}")
    ask = after.lstrip("\n")
    return {"task": before, "task_end": "", "separator": after[: len(after) - len(ask)], "ask": ask}


def _examples(file: WordFile, text: str) -> Iterator[dict[str, Any]]:
    """Yield the examples of a file in the simpler format, with their own words. Raise ValueError with a wrong line."""
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
        words = {slot: str(row[field]).strip() for slot, field in file.fields.items()}
        yield {"subject": row["SubjectEntity"], "relation": row["Relation"], "objects": row["ObjectEntities"], **words}


def _read(file: WordFile, text: str) -> Iterator[tuple[str, str, Settings]]:
    """Yield part, relation and settings of each frame in a file."""
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
    """Return a text with its errors corrected. Raise ValueError for an error that it does not hold."""
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
    """Return a whole prompt as a frame: its examples are the header, and no others are shown."""
    end = text[len(text.rstrip()) :]
    examples, _, query = text.rstrip().rpartition("\n\n")
    return {"task": examples, "block": _about(query + end), "shots": {"k": 0}}


def _about(template: str) -> str:
    if SUBJECT not in template:
        raise ValueError(f"{template[:80]!r} has no {SUBJECT}")
    return template.replace(SUBJECT, "{subject}")


def _python(words: NamedWords, text: str, slots: Slots) -> Iterator[tuple[str, Settings]]:
    """Yield the frame of each relation in a variable."""
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
            raise ValueError(f"{words.name!r} has {name!r}, which relations does not name")
        yield words.relations.get(name, name), {**_setting(words, value, known), **words.frame}


def _yaml(words: NamedWords, text: str, slots: Slots) -> Iterator[tuple[str, Settings]]:
    """Yield the frame of a key's relation."""
    import yaml

    try:
        found = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise ValueError(f"it is no YAML: {error}") from None
    value = found.get(words.name) if isinstance(found, dict) else None
    if not isinstance(value, str):
        raise ValueError(f"it has no text {words.name!r}")
    for slot, instead in slots.items():
        value = value.replace(slot, str(instead))
    yield words.relation, {f"steps.{words.step}.{words.setting}" if words.step else words.setting: value, **words.frame}


def _setting(words: NamedWords, value: Value, slots: Slots) -> Settings:
    """Return a value as settings of a frame.

    From a list within a list, such as a text and its weight, take the first.
    """
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
    """Return a text with its slots filled."""
    if not isinstance(text, tuple):
        raise ValueError("a list stands where a text should")
    unknown = next((part.expression for part in text if isinstance(part, Slot) and part.expression not in slots), None)
    if unknown is not None:
        raise ValueError(f"slots does not say what stands for {unknown[:80]!r}")
    filled = "".join(str(slots[part.expression]) if isinstance(part, Slot) else part for part in text)
    for instead in slots.get("%s", ()):
        filled = filled.replace("%s", instead, 1)
    return filled


def _lines(header: str, example: str, query: str) -> Settings:
    """Return the frame of a text from its header, example and query, each of which starts a line."""
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
