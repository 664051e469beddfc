"""Answer formats: each writes the objects of an answer, in examples and requests, and reads them in replies.

A recipe names a format as its prompt's `listing`, and how replies are read as its `parse_as`. A reply in any form is
read by `parse`; the functions below keep to the form that was asked for.

Systems that do not clean answers, or clean them later, read names as a model wrote them, by `verbatim`. Nothing is
trimmed or left out then, and no word is taken for an empty answer. Some prompts ask for a closing line such as
"ANSWER: Chad, Mali". Only lines that begin with the prompt's words count then, anywhere in the text. If such lines
disagree, there is no answer.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any, Literal, NamedTuple

from lmkbc.answer.clean import Clean
from lmkbc.answer.parse import Parsed, parse, verbatim
from lmkbc.kinds.kind import kind_of
from lmkbc.relation import Relation
from lmkbc.types import State
from lmkbc.words import FORM, WORDS

ParseAs = Literal["any", "line", "split"]
"""Reading of replies: as any form that names objects, as a marked line, or cut at every separator, also in names."""


ENDS = "zq", "zq, Zq", " Zq"
"""Texts with which an answer may go on where it was cut off."""


@dataclass(frozen=True, kw_only=True)
class AnswerFormat:
    """Form of the objects in an answer: `write` makes it, and `parts` takes it apart.

    joint: text between two objects, at which no answer may stop.
    tolerant: whether `parse` reads replies, which knows this form and others; else `parts` does.
    marks: separators of names on a closing line; "" if the form has no place there.
    brackets: whether an answer is a list in brackets, so that it ends with them.
    instead: format for relations whose names may hold the separator; this one if not given.
    """

    joint: str
    tolerant: bool = True
    marks: str = ""
    brackets: bool = False
    instead: str = ""

    def write(self, objects: Sequence[str]) -> str:
        """Return some objects as an answer, in an example or a request."""
        return self.joint.join(objects)

    def typed(self, objects: Sequence[str], relation: Relation) -> str:  # noqa: ARG002
        """Return some objects of a relation as an answer, where the form depends on their kind."""
        return self.write(objects)

    def schema(self, relation: Relation) -> str:  # noqa: ARG002
        """Return the JSON schema of an answer, as text; "" for a form that needs none."""
        return ""

    def parts(self, answer: str) -> list[str]:
        """Return the texts of the objects in an answer; none if it has another form."""
        return [part.strip() for part in answer.split(self.joint)]

    def read(
        self,
        text: str,
        relation: Relation,
        subject: str,
        null: str,
        *,
        clean: Clean = True,
        parse_as: ParseAs = "any",
        cut: bool = False,
    ) -> Parsed:
        """Return the objects of a reply.

        null: text for no object. clean: whether to remove what is around names. cut: whether the reply was cut off, so
        that only objects count that do not depend on how it goes on.
        """

        def parsed(text: str) -> Parsed:
            if parse_as == "split" or not self.tolerant:
                return self.split(text, null)
            if clean is True:
                return parse(text, relation, subject, null)
            if parse_as == "line":
                return named(text, self.marks, relation, null)
            return verbatim(text, relation, subject, null, lines="\n" in self.joint)

        whole = parsed(text)
        if not cut:
            return whole
        further = [{*parsed(text + end).objects} for end in (("7",) if relation.has_values() else ENDS)]
        if parse_as == "any":  # a bracket within a name may be taken for the list's end
            further.append({name for name in whole.objects if name.count("[") == name.count("]")})
        return Parsed(whole.state, tuple(name for name in whole.objects if all(name in names for names in further)))

    def split(self, text: str, null: str = "") -> Parsed:
        """Return the parts of a reply as its objects."""
        answer = text.strip()
        if answer == null:
            return Parsed(State.ABSTAINED)
        parts = self.parts(answer)
        names = tuple(dict.fromkeys(filter(None, (part.removeprefix("and ").strip() for part in parts))))
        nothing = State.ABSTAINED if self.brackets and parts else State.UNPARSED
        return Parsed(State.ANSWERED if names else nothing, names)


@dataclass(frozen=True, kw_only=True)
class _QuotedList(AnswerFormat):
    """A list in brackets, with names in quotes. dump: writes it."""

    brackets: bool = True
    dump: Callable[[Any], str]

    def write(self, objects: Sequence[str]) -> str:
        """Return some objects as a list."""
        return self.dump([*objects])

    def parts(self, answer: str) -> list[str]:
        """Return the texts between the commas of the first brackets, without quotation marks."""
        _, opened, inside = answer.partition("[")
        return [part.strip(" \t\n\"'") for part in inside.partition("]")[0].split(",")] if opened else []


@dataclass(frozen=True, kw_only=True)
class _Schema(_QuotedList):
    """A JSON object with the list, to which servers and local models can hold an answer."""

    def write(self, objects: Sequence[str | float]) -> str:
        """Return some objects as a JSON object."""
        return self.dump({OBJECTS: [*objects]})

    def typed(self, objects: Sequence[str], relation: Relation) -> str:
        """Return some objects as a JSON object, numbers without quotes."""
        is_number = _item(relation) == "number" and all(map(_NUMBER.fullmatch, objects))
        return self.write([*map(json.loads, objects)] if is_number else objects)

    def schema(self, relation: Relation) -> str:
        """Return the schema: a list of texts or of numbers, by kind; at most one for one object."""
        objects = {
            "type": "array",
            "items": {"type": _item(relation)},
            **({"maxItems": 1} if relation.has_one_object() else {}),
        }
        form = {"type": "object", "properties": {OBJECTS: objects}, "required": [OBJECTS]}
        return json.dumps({**form, "additionalProperties": False})


def _item(relation: Relation) -> str:
    return "number" if kind_of(relation).schema["type"] == "number" else "string"


OBJECTS = "objects"
"""Key of the list in a JSON object."""
_NUMBER = re.compile(r"-?(?:0|[1-9]\d*)(?:\.\d+)?")
SCHEMA = _Schema(joint='", "', dump=partial(json.dumps, ensure_ascii=False))
JSON = _QuotedList(joint='", "', dump=partial(json.dumps, ensure_ascii=False))
PYTHON = _QuotedList(joint="', '", dump=repr)
COMMA = AnswerFormat(joint=", ", marks=",;", instead="semicolon")
SEMICOLON = AnswerFormat(joint="; ", marks=";")
LINE = AnswerFormat(joint="\n")


class _Line(NamedTuple):
    """Text of an answer's line. last: whether nothing follows it; a text that was cut off then ends in it."""

    text: str
    last: bool


def answer_line(text: str, mark: str) -> _Line | None:
    """Return the line that begins with a mark, without the mark; None if there is none, or if two of them disagree.

    Blank lines do not count. Lines that differ only in case and blanks agree.
    """
    found = [(match.end(), _unmarked(match[0], mark)) for match in _marked(mark).finditer(text)]
    lines = [(end, line) for end, line in found if line]
    if len({" ".join(line.split()).casefold() for _, line in lines}) != 1:
        return None
    end, line = lines[-1]
    return _Line(line, not text[end:].strip())


def named(line: str, marks: str, relation: Relation, null: str) -> Parsed:
    """Return the objects of a line as written: its first number, or the names between some marks.

    A suffix such as "Jr." stays with the name before it. null: the prompt's word for no object.
    """
    nothing = WORDS["nothing_line"] | {null.casefold()}
    if line.strip(" .").casefold() in nothing:
        return Parsed(State.ABSTAINED)
    if not relation.has_entities():
        values = tuple(kind_of(relation).in_line(line, relation))
        return Parsed(State.ANSWERED if values else State.UNPARSED, values)
    names: list[str] = []
    for part in re.split(f"[{re.escape(marks)}]", line):
        name = part.strip(" .")
        name = name[4:].strip() if name[:4].casefold() == "and " else name
        if names and FORM.suffix.fullmatch(name):
            names[-1] = f"{names[-1]}, {name}"
        elif name:
            names.append(name)
    objects = tuple(dict.fromkeys(name for name in names if name.casefold() not in nothing))
    if not objects:
        return Parsed(State.ABSTAINED if names else State.UNPARSED)
    return Parsed(State.ANSWERED, objects)


@lru_cache(maxsize=64)
def _marked(mark: str) -> re.Pattern[str]:
    """Return a pattern that finds lines that begin with a mark; blanks may stand before its colon."""
    words = r"[ \t]*".join(re.escape(part) for part in re.split(r"\s*(?=:)", mark))
    return re.compile(rf"^[ \t]*(?:{words})[^\r\n]*$", re.IGNORECASE | re.MULTILINE)


def _unmarked(line: str, mark: str) -> str:
    """Return a line without its mark, which some models write twice."""
    head = re.compile(_marked(mark).pattern.removesuffix(r"[^\r\n]*$"), re.IGNORECASE)
    while found := head.match(line):
        line = line[found.end() :].strip()
    return line
