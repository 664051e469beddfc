"""From a model's raw text to objects: one tolerant procedure for all models and prompt styles.

A text is first narrowed to its answer: after the reasoning, after the last "ANSWER:", inside a code fence. The answer
is then read as a table, as a literal, as a sentence that states the relation, as a bulleted list, or as plain words
between the relation's separators. The state of a text without objects depends on the reason: an explicit "none",
unwritable numbers, a text that was cut off, or anything else. The last is a failed parse and never an empty answer.

Systems that do not clean answers, or clean them later, read names as a model wrote them, by `verbatim`. Nothing is
trimmed or left out then, and no word is taken for an empty answer. Some prompts ask for a closing line such as
"ANSWER: Chad, Mali". Only lines that begin with the prompt's words count then, anywhere in the text. If such lines
disagree, there is no answer.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache
from operator import itemgetter
from typing import NamedTuple

from lmkbc.answer.abstain import (
    has_verb,
    is_abstention,
    is_failure,
    is_mute,
    is_prose,
    is_refusal,
)
from lmkbc.answer.clean import read_values, trim, vocabulary
from lmkbc.answer.elements import SHORT, column, elements, is_head, mended, narrowed
from lmkbc.answer.listing import BULLET, body, bulleted, has_lead, item, parted, stated
from lmkbc.answer.literal import Bracketed, Word, has_empty_list, read_literals
from lmkbc.answer.markup import read_fields, read_table
from lmkbc.answer.numbers import plain
from lmkbc.answer.terms import has_term, phrase_terms
from lmkbc.ask.frames import JOINTS, Listing
from lmkbc.names import LONGEST, folded_key, shown, without_trailer
from lmkbc.relation import Relation
from lmkbc.types import State

_IDENTIFIER = re.compile(r"[a-z]+(?:_[a-z]+)+")
"""A name in a program; no object is written so."""


_URL = re.compile(r"""https?://(?:[^\s<>"'()\[\]]|\([^\s()]*\))+(?<![.,;:*`])""")
_NUMBERING = re.compile(r"(?:\(?\d{1,3}[.)]\s*)+")


_HEDGE = re.compile(r"(?:probably|possibly|most likely|likely|perhaps|maybe|presumably)\s+", re.IGNORECASE)


_PARAGRAPH = re.compile(r"\n[ \t\r]*\n")


_NAME_LINE = re.compile(r"[ \t]*(?:[^\W\d_][^\s:?,;]*[ \t]*){1,6}")


_CORRECTED = re.compile(
    r"(?:\.\.\.?|…|[—–])\s*(?:no,? )?(?:wait|scratch that|correction|sorry)\b[,:]?\s*(?:no\b)?[:,]?\s", re.I
)


_ESTIMATED = re.compile(r"\b(?:approximately|roughly|around|it's|is|was|has)(?: about)?\W+[\d~]", re.IGNORECASE)


_SENTENCE = re.compile(r"(?<=[^\W\d_]{3}[.!?])\s|\n")


_SENTENCE_END = re.compile(r"""[.!?…]["'”’)*\]]*\s*$""")


@dataclass(frozen=True, slots=True)
class Parsed:
    """Result of parsing a completion: its state, and its objects."""

    state: State
    objects: tuple[str, ...] = ()


def parse(text: str, relation: Relation, subject: str, null: str = "") -> Parsed:
    """Return the objects of one raw completion, with numbers as plain digits.

    Never raises; time is linear in the length.

    null: the prompt's text for no object, besides the words that always mean it. State UNPARSED: nothing could be read,
    for example from blank text, mere marks, or unwritable numbers. State TRUNCATED: it was cut off before its first
    whole object.
    """
    answer, marked = narrowed(text)
    if relation.kind == "url" and answer is not None and (found := _URL.findall(answer) or _URL.findall(text)):
        return Parsed(State.ANSWERED, tuple(dict.fromkeys(found)))
    if not answer:
        return Parsed(State.TRUNCATED if answer is None or marked else State.UNPARSED)
    if len(answer) < SHORT and _NUMBERING.fullmatch(answer) and relation.kind == "entity":
        return Parsed(State.UNPARSED)
    if null and answer.rstrip(".").casefold() == null.rstrip(".").casefold():
        return Parsed(State.ABSTAINED)
    if is_mute(answer) or is_failure(answer):
        return Parsed(State.UNPARSED)
    if relation.is_verbatim():
        none = is_abstention(answer, relation)
        return Parsed(State.ABSTAINED) if none else verbatim(text, relation, subject, null)
    return (
        _from_literals(answer, relation, subject)
        or (_from_values(answer, relation) if relation.has_values() else _from_words(answer, relation, subject, marked))
        or Parsed(_why_nothing(answer, relation))
    )


def _from_literals(text: str, relation: Relation, subject: str) -> Parsed | None:
    """Return objects of the tables, lists, tuples, JSON objects and tags in a text; None if it has none."""
    whole = mended(text)
    table = None if text[:1] in ("[", "{", "(") else read_table(text, lambda cell: is_head(cell, relation))
    if table and (cells := column(table, relation, subject)):
        if relation.has_values():
            words = [Word(cell, quoted=False) for cell in cells]
        else:
            words = parted(cells[0], relation) if len(cells) == 1 else [item(cell, relation) for cell in cells]
        groups = [Bracketed("[", [*words], closed=True)]
    else:
        commas = "," in relation.shape.separators and relation.kind != "date"
        groups = read_literals(whole, commas=commas) or read_fields(text)
        words = [word for group in groups for word in elements(group, relation, subject, units=True)]
    words = [part for word in words for part in _several(word, relation)]
    objects, denied = _judge(words, relation, subject)
    if objects:
        return Parsed(State.ANSWERED, objects)
    if denied or any(has_empty_list(group) for group in groups):
        return Parsed(State.ABSTAINED)
    if whole != text or not groups:
        return None
    cut = not groups[-1].closed and not any(word.whole for word in words)
    return Parsed(State.TRUNCATED if cut else _why_nothing(text, relation))


def _several(word: Word, relation: Relation) -> list[Word]:
    """Return the parts of a text that is the value of a key and no name, as in {"answer": "Chile, Bolivia"}."""
    key = folded_key(word.key or "").replace(" ", "")
    if relation.has_values() or not key or key in ("name", "label") or not word.quoted:
        return [word]
    parts = bulleted(word.text, relation) or parted(word.text, relation)
    if not parts or vocabulary(relation.shape).canonical(trim(word.text)) is not None:
        return [word]
    return [part._replace(quoted=True, whole=word.whole or place < len(parts) - 1) for place, part in enumerate(parts)]


def _judge(words: Iterable[Word], relation: Relation, subject: str) -> tuple[tuple[str, ...], bool]:
    """Return the objects among some words, each once, and whether a word says that there is none."""
    objects: dict[str, None] = {}
    denied = False
    for word in words:
        if not word.whole or len(word.text) > 4 * LONGEST or _IDENTIFIER.fullmatch(word.text):
            continue
        text = _tidy(word, relation)
        if relation.has_values() and any(char.isdigit() for char in text):
            objects |= dict.fromkeys(read_values(text, relation))
        elif vocabulary(relation.shape).canonical(text):
            objects[text] = None
        elif is_abstention(text, relation) or (word.quoted and not shown(word.text)):
            denied = True
        elif relation.has_values():
            objects |= dict.fromkeys(read_values(text, relation))
        elif _is_named(text, word.quoted) and not is_prose(text, subject, word.quoted):
            objects[text] = None
    return tuple(objects), denied


def _is_named(text: str, quoted: bool) -> bool:
    """Return whether a text can be a name; mere marks can only in quotes."""
    return bool(shown(text)) and len(text) <= LONGEST and (quoted or any(char.isalnum() for char in shown(text)))


def _tidy(word: Word, relation: Relation) -> str:
    text = word.text if relation.kind == "date" else trim(word.text)
    if not word.quoted and (hedge := _HEDGE.match(text)):
        text = trim(text[hedge.end() :])
    return text if relation.shape.closed or relation.has_values() else trim(without_trailer(text)) or text


def _from_values(text: str, relation: Relation) -> Parsed | None:
    """Return the values of the first line with a word of the relation, else of the first line that has any."""
    found: list[tuple[bool, tuple[str, ...]]] = []
    for line in text.split("\n", 20)[:20]:
        if not found and is_abstention(without_trailer(trim(line[: 4 * LONGEST])), relation):
            return Parsed(State.ABSTAINED)
        if is_refusal(line[: 4 * LONGEST]) and not _ESTIMATED.search(line):
            continue
        bullet = BULLET.match(line) if relation.kind == "number" else None  # "c. 1985" is no point of a list
        if values := read_values(line[bullet.end() :] if bullet else line, relation):
            found.append((has_term(folded_key(line[:LONGEST]), phrase_terms(relation)), tuple(values)))
    return Parsed(State.ANSWERED, max(found, key=itemgetter(0))[1]) if found else None


def _from_words(text: str, relation: Relation, subject: str, marked: bool) -> Parsed | None:
    """Return objects of a bulleted list, else of the first paragraph that has any; after a mark, of the first line."""
    text = body(text, relation)
    text = next((part for part in reversed(_CORRECTED.split(text)) if shown(part)), text)
    first = _SENTENCE.split(text[:SHORT], maxsplit=1)[0]
    if len(first) < 10 and is_abstention(first, relation) and first.endswith("."):
        return Parsed(State.ABSTAINED)
    if names := stated(text, relation, subject):
        objects, _ = _judge(parted(names, relation), relation, subject)
        if objects and not has_verb(names):
            return Parsed(State.ANSWERED, objects)
    if len(text) < SHORT and is_abstention(text, relation):
        return Parsed(State.ABSTAINED)
    if bullets := bulleted(text, relation):
        paragraphs = [bullets]
    elif marked:
        paragraphs = [parted(text.split("\n", 1)[0], relation)]
    else:
        each = [paragraph for paragraph in _PARAGRAPH.split(text) if not _is_sentence(paragraph)]
        if all(_NAME_LINE.fullmatch(paragraph) for paragraph in each):  # a name in each
            each = ["\n".join(each)]
        paragraphs = [parted(paragraph, relation) for paragraph in each]
    for words in paragraphs:
        if words and is_abstention(_tidy(words[0], relation), relation) and not _known(words[0], relation):
            return Parsed(State.ABSTAINED)
        objects, _ = _judge(words, relation, subject)
        if objects:
            return Parsed(State.ANSWERED, objects)
    return None


def _is_sentence(paragraph: str) -> bool:
    """Return whether plain text starts with a sentence; its commas do not separate objects."""
    first = _SENTENCE.split(paragraph, maxsplit=1)[0]
    return len(first) <= 4 * LONGEST and (is_refusal(first) or (has_verb(first) and not has_lead(first)))


def _known(word: Word, relation: Relation) -> bool:
    return vocabulary(relation.shape).canonical(trim(word.text)) is not None


def _why_nothing(text: str, relation: Relation) -> State:
    """Return the state of a text without objects. Only its first and last sentences may say that there is none."""
    if is_refusal(text[:2000]):
        return State.UNPARSED
    sentences = [sentence for sentence in re.split(r"(?<=[.!?])\s+", text) if sentence.strip()]
    whole = bool(_SENTENCE_END.search(text[-50:]))
    ends = sentences[:1] + sentences[-1:] if whole or len(text) < SHORT else []
    if any(len(sentence) <= 2 * LONGEST and is_abstention(sentence, relation) for sentence in ends):
        return State.ABSTAINED
    return State.UNPARSED if whole or len(text) < SHORT else State.TRUNCATED


NOTHING = frozenset(("none", "null", "n/a", "na", "unknown", "empty", "no answer"))
"""Words for no object on such a line, besides the word that the prompt gives."""

_SUFFIX = re.compile(r"(?:jr|sr|ii|iii|iv|inc|ltd|llc|plc|co|corp)\.?", re.IGNORECASE)
_NUMBER = re.compile(r"-?\d[\d,]{0,40}(?:\.\d{1,40})?")


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


def named(line: str, listing: Listing, relation: Relation, null: str) -> Parsed:
    """Return the objects of a line as written: its first number, or names separated by semicolons or commas.

    listing: with "semicolon", commas belong to names. A suffix such as "Jr." stays with the name before it. null: the
    prompt's word for no object.
    """
    nothing = NOTHING | {null.casefold()}
    if line.strip(" .").casefold() in nothing:
        return Parsed(State.ABSTAINED)
    if relation.kind == "number":
        number = _NUMBER.search(line)
        if number is None:
            return Parsed(State.UNPARSED)
        return Parsed(State.ANSWERED, (plain(Decimal(number[0].replace(",", ""))),))
    if relation.kind != "entity":
        values = tuple(read_values(line, relation)) if relation.kind == "date" else (line.strip(),)
        return Parsed(State.ANSWERED if values else State.UNPARSED, values)
    names: list[str] = []
    for part in re.split(";" if listing == "semicolon" else "[,;]", line):
        name = part.strip(" .")
        name = name[4:].strip() if name[:4].casefold() == "and " else name
        if names and _SUFFIX.fullmatch(name):
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


_NULLS = ("null", "None")
"""Literals for nothing in JSON and Python."""


def verbatim(text: str, relation: Relation, subject: str, null: str = "") -> Parsed:
    """Return the objects of one raw completion. null: text for no object, besides an empty list."""
    answer, _ = narrowed(text)
    if not answer:
        return Parsed(State.TRUNCATED if answer is None else State.UNPARSED)
    if is_mute(answer):
        return Parsed(State.ABSTAINED if answer == null else State.UNPARSED)
    words, empty = _words(answer, relation, subject)
    if not words:
        return Parsed(State.ABSTAINED if empty else State.UNPARSED)
    nothing = words == (null,) or words == _words(null, relation, subject)[0]
    return Parsed(State.ABSTAINED) if nothing else Parsed(State.ANSWERED, words)


def split(text: str, listing: Listing, null: str = "") -> Parsed:
    """Return the objects of a reply that is split at every separator of the listing, also within names.

    For a list, the text in its brackets is split at every comma and loses its quotation marks.
    """
    answer = text.strip()
    if answer == null:
        return Parsed(State.ABSTAINED)
    marks, trimmed = JOINTS[listing], None
    if listing in ("json", "python"):
        _, opened, listed = answer.partition("[")
        answer, marks, trimmed = listed.partition("]")[0], opened and ",", " \t\n\"'"
    parts = [part.strip(trimmed).removeprefix("and ").strip() for part in answer.split(marks)] if marks else []
    words = tuple(dict.fromkeys(filter(None, parts)))
    return Parsed(State.ANSWERED if words else State.ABSTAINED if trimmed and marks else State.UNPARSED, words)


def _words(answer: str, relation: Relation, subject: str) -> tuple[tuple[str, ...], bool]:
    """Return the elements of an answer's literals, else the parts of its first line, and whether a list is empty."""
    groups = read_literals(mended(answer), commas="," in relation.shape.separators)
    empty = any(map(has_empty_list, groups))
    words = [word for group in groups for word in elements(group, relation, subject) if word.whole]
    if any(not word.quoted and word.text in _NULLS for word in words):
        words, empty = [word for word in words if word.quoted or word.text not in _NULLS], True
    if not groups:
        line = answer.split("\n", 1)[0]
        words = parted(line, relation) if relation.kind in ("entity", "number") else [Word(line, quoted=False)]
    return tuple(text for word in words if (text := word.text.strip())), empty or any(not word.text for word in words)
