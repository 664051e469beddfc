"""Authors' words: prompts as a system's authors published them, converted into a file of frames."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from lmkbc.ask.frames import PARTS
from lmkbc.ask.prompts import fill
from lmkbc.ask.python_words import Slot, Value, read_python
from lmkbc.ask.wording import NamedWords, Slots, WordFile, WordingSource
from lmkbc.errors import InputError
from lmkbc.relation import OTHERS

SUBJECT, MASK = "{subject_entity}", "{mask_token}"
"""Slots of the subject and of the mask in the challenge's templates."""

FILLS = "fill "
"""Prefix of a frame's key that holds the text for a slot, before the slot is filled."""

Settings = dict[str, Any]
"""Settings of a relation's frame."""


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
