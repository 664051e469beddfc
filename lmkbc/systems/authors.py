"""Words of published systems' authors: downloaded from the authors, never a part of this project."""

from __future__ import annotations

import ast
import csv
import io
import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import tomli_w

from lmkbc.ask.builder import PARTS
from lmkbc.ask.examples import read_bank
from lmkbc.ask.slots import fill
from lmkbc.ask.wording import NamedWords, Slots, WordFile, WordingSource
from lmkbc.errors import InputError
from lmkbc.files.atomic import write_bytes
from lmkbc.files.checksum import file_sha256
from lmkbc.files.fetch import download
from lmkbc.files.places import fetched_frames, fetched_record
from lmkbc.files.reader import whole
from lmkbc.progress import Report
from lmkbc.recipe import make_recipe, read_file
from lmkbc.relation import OTHERS
from lmkbc.workspace import Workspace, system_name

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
    own_name = system_name(path)
    frames = fetched_frames(own_name)
    frames.parent.mkdir(parents=True, exist_ok=True)
    record = fetched_record(own_name)
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
    setting = {"shots": {"path": str(bank)}} if words.examples else {}
    write_bytes(new, tomli_w.dumps(_each(words.frames, setting)).encode())
    for spec in make_recipe(own_name, file, workspace.relations, str(new)).generate:
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


SUBJECT, MASK = "{subject_entity}", "{mask_token}"
"""Slots of the subject and of the mask in the challenge's templates."""

FILLS = "fill "
"""Prefix of a frame's key that holds the text for a slot, before the slot is filled."""

TEMPLATES = "task", "block", "answer", "ask", "follow_up"
"""Settings of a frame, or of a step, that are templates."""

_SLOT = re.compile(r"\{\{ .*? \}\}|\{(\w+)\}|\{(?=[{%#])")
"""A value of a template, a slot of the authors' texts, or a brace that a template would read."""

Settings = dict[str, Any]
"""Settings of a relation's frame."""


class _ConvertedWords(NamedTuple):
    """Words of a system's authors.

    frames: relation, by the authors' name -> frame; with parts, the same per part. examples: rows in the simpler format
    of `lmkbc.ask.examples`.
    """

    frames: dict[str, Settings]
    examples: list[dict[str, Any]]


def converted(source: WordingSource, files: Sequence[bytes]) -> _ConvertedWords:
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
        except (ValueError, LookupError, SyntaxError) as error:
            raise InputError(f"{source.address(file)} is not as its format {file.format!r} has it: {error}") from None
    whole = {part: _frames(source, frames) for part, frames in made.items()}
    return _ConvertedWords(whole.pop("", {}) | ({PARTS: whole} if whole else {}), examples)


def _frames(source: WordingSource, made: dict[str, Settings]) -> dict[str, Settings]:
    """Return the frames of a part, each with the settings for all others."""
    others = made.get(OTHERS, {})
    if len(made) > 1 and not {"block", "clozes"} & others.keys():  # it holds no question
        made.pop(OTHERS, None)
    return {relation: _whole({**source.frame, **others, **frame}, source) for relation, frame in made.items()}


def _whole(frame: Settings, source: WordingSource) -> Settings:
    """Return a frame with its slots filled, its block inside the source's block, and its ask in its second turn.

    Its texts become templates.
    """
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
    texts = {key: frame[key] for key in frame if key.rpartition(".")[2] in TEMPLATES}
    return frame | {key: _SLOT.sub(_in_template, text) for key, text in texts.items()}


def _in_template(slot: re.Match[str]) -> str:
    """Return what stands in a template for a slot, for a value that is one already, or for a brace of the text."""
    if slot[1]:
        return f"{{{{ {slot[1]} }}}}"
    return slot[0] if slot[0] != "{" else "{{ '{' }}"


def _divided(text: str) -> Settings:
    """Return the parts of a whole text before and after its examples, as settings."""
    before, _, after = text.partition("{examples}")
    ask = after.lstrip("\n")
    return {"task": before, "separator": after[: len(after) - len(ask)], "ask": ask}


def _examples(file: WordFile, text: str) -> Iterator[dict[str, Any]]:
    """Yield the examples of a file in the simpler format, with their own words. Raise ValueError with a wrong line."""
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except ValueError:
            raise ValueError(f"line {number} is no JSON") from None
        wanted = ("SubjectEntity", "Relation", "ObjectEntities", *file.slots.values())
        if not isinstance(row, dict) or (lacking := next((key for key in wanted if row.get(key) is None), "")):
            raise ValueError(f"line {number} has no {lacking if isinstance(row, dict) else wanted[0]!r}")
        words = {slot: str(row[field]).strip() for slot, field in file.slots.items()}
        yield {"subject": row["SubjectEntity"], "relation": row["Relation"], "objects": row["ObjectEntities"], **words}


def _read(file: WordFile, text: str) -> Iterator[tuple[str, str, Settings]]:
    """Yield part, relation and settings of each frame in a file."""
    parts = file.parts or ("",)
    if file.format in ("templates", "prompt"):
        whole = _templates(text) if file.format == "templates" else {file.relation: _prompt(text)}
        yield from ((part, relation, frame) for relation, frame in whole.items() for part in parts)
    for one in file.words:
        settings = (_python if file.format == "python" else _yaml)(one, text, file.slots)
        for part, _, step in (name.partition("/") for name in one.parts or parts):
            worded = {f"steps.{step}.{name}": value for name, value in settings.items()} if step else settings
            yield part, one.relation, {**worded, **one.frame}


def _mended(text: str, slips: tuple[tuple[str, str], ...]) -> str:
    """Return a text with its errors corrected. Raise ValueError for an error that it does not hold."""
    for slip, instead in slips:
        if slip not in text:
            raise ValueError(f"it has no {slip!r} to mend")
        text = text.replace(slip, instead)
    return text


def _templates(text: str) -> dict[str, Settings]:
    """Return the question of each relation; further cells are left out, as the challenge's own reader does it."""
    if text.lstrip().startswith("{"):
        rows = json.loads(text).items()
    else:
        rows = [row[:2] for row in csv.reader(io.StringIO(text)) if row][1:]
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


def _python(words: NamedWords, text: str, slots: Slots) -> Settings:
    """Return the settings that some lines of Python source hold."""
    known = {**slots, **words.slots}
    found = [_expression(code) for code in _lines_of(words, text)]
    wanted = 3 if words.setting == "lines" else 1
    if words.setting != "clozes" and len(found) != wanted:
        raise ValueError(f"{words.name!r} has {len(found)} expressions, and not {wanted}")
    if words.setting == "forms":
        (forms,) = found
        pairs = zip(forms.keys, forms.values, strict=True) if isinstance(forms, ast.Dict) else ()
        return {"forms": {_written(case, known): _written(form, known) for case, form in pairs if case is not None}}
    texts = [_filled(_written(one, known), known) for one in found]
    if words.setting == "clozes":
        return {"clozes": texts}
    if words.setting == "lines":
        return _lines(*texts)
    return {f"{FILLS}{words.setting[1:-1]}" if words.is_slot else words.setting: texts[0]}


def _lines_of(words: NamedWords, text: str) -> Iterator[str]:
    """Yield each named range of lines, counted from the first line that holds `words.name`."""
    rows = text.split("\n")
    start = next((at for at, row in enumerate(rows) if words.name in row), None)
    if start is None:
        raise ValueError(f"no line has {words.name!r}")
    for first, last in words.lines:
        yield "\n".join(rows[start + first : start + last + 1])


def _expression(code: str) -> ast.expr:
    """Return the expression that lines assign, return, append or list, or the value of a pair of a dict."""
    try:
        statement = ast.parse(f"if 1:\n{code}" if code[:1].isspace() else code).body[0]
        if isinstance(statement, ast.If):  # around indented lines, whose texts keep their own white space
            statement = statement.body[0]
        value = getattr(statement, "value", None)
        if isinstance(statement, ast.AugAssign):  # as in text += "..."
            value = ast.BinOp(statement.target, statement.op, statement.value)
    except SyntaxError:
        pairs = ast.parse(f"{{{code.strip()}\n}}", mode="eval").body
        value = pairs.values[0] if isinstance(pairs, ast.Dict) else None
    if not isinstance(value, ast.expr):
        raise ValueError(f"{code[:80]!r} is no expression")
    return value


def _written(node: ast.expr, slots: Slots) -> str:
    """Return the text of an expression, the first text of a list. What is not known before the code runs is a slot."""
    match node:
        case ast.Constant(str(text)):
            return text
        case ast.JoinedStr(parts):
            return "".join(_written(part, slots) for part in parts)
        case ast.FormattedValue(value, format_spec=None):
            return _written(value, slots)
        case ast.BinOp(left, ast.Add(), right):
            return _written(left, slots) + _written(right, slots)
        case ast.Call(ast.Attribute(text, "format"), given, named):
            fields = {one.arg or "": _written(one.value, slots) for one in named}
            return _written(text, slots).format(*(_written(one, slots) for one in given), **fields)
        case (
            ast.List([first, *_])
            | ast.Tuple([first, *_])
            | ast.Dict(values=[first, *_])
            | ast.Call(ast.Attribute(_, "append"), [first])
        ):
            return _written(first, slots)
    expression = ast.unparse(node)
    if expression not in slots:
        raise ValueError(f"slots does not say what stands for {expression[:80]!r}")
    return str(slots[expression])


def _filled(text: str, slots: Slots) -> str:
    """Return a text with each "%s" replaced by the next of its replacements."""
    for instead in slots.get("%s", ()):
        text = text.replace("%s", instead, 1)
    return text


def _yaml(words: NamedWords, text: str, slots: Slots) -> Settings:
    """Return the setting that a key of YAML holds."""
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
    return {words.setting: value}


def _lines(header: str, example: str, query: str) -> Settings:
    """Return the frame of a text from its header, example and query, each of which starts a line."""
    if not example.startswith(query) or not example[len(query) :].strip() or not header.endswith("\n"):
        raise ValueError("its header has to end a line, and its example has to go on as the query does, to an answer")
    answer = example[len(query) :].rstrip("\n")
    gap = "\n" * (1 + len(example) - len(example.rstrip("\n")))
    return {
        "task": header.removesuffix("\n"),
        "block": query,
        "answer": answer.removeprefix(" "),
        "separator": gap,
    }
