"""From a model's raw text to objects: one tolerant procedure for all models and prompt styles.

A text is first narrowed to its answer: after the reasoning, after the last "ANSWER:", inside a code fence. The answer
is then read as a literal, as a bulleted list, or as plain words between the relation's separators. The state of a text
without objects depends on the reason: an explicit "none", unwritable numbers, a text that was cut off, or anything
else. The last is a failed parse and never an empty answer.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from lmkbc.answer.abstain import has_verb, is_abstention, is_mute, is_prose, is_refusal
from lmkbc.answer.clean import UNWRITABLE, trim, vocabulary
from lmkbc.answer.elements import SHORT, elements, has_empty_list, mended, narrowed
from lmkbc.answer.literal import Word, read_literals
from lmkbc.answer.numbers import read_numbers, refused_numbers
from lmkbc.names import LONGEST, shown, without_trailer
from lmkbc.relation import Relation
from lmkbc.types import Dropped, State

LONGEST_ANSWER = 200_000
"""Maximum number of characters that are read after the reasoning; no list of objects is longer."""


_BULLET = re.compile(r"[ \t]*(?:[-*•–·][ \t]+(?:\(?\d{1,4}[.)][ \t]+)?|\(?\d{1,4}[.)][ \t]+)(?=\S)")


_REMARK = re.compile(r"\s+[-–—]\s+")


_BOLD = re.compile(r"\*\*([^*]{1,300})\*\*|__([^_]{1,300})__")


_LEAD = re.compile(
    r"(?:sure|certainly|of course|here|below|answers?|output|result|response|objects?|a|"
    r"the [^:\n]{0,200}\b(?:are|is|answer|following|list)\b)[^:\n]{0,200}:(?=\s|$)",
    re.IGNORECASE,
)


_RESTATED = re.compile(r"(the [^:\n]{1,300}?) (?:is|are|include|includes):? (?!an? |the [a-z])(\S.*)", re.IGNORECASE)


_HEDGE = re.compile(r"(?:probably|possibly|most likely|likely|perhaps|maybe|presumably)\s+", re.IGNORECASE)


_AND = re.compile(r"(?:and|&|plus)\s+", re.IGNORECASE)


_OWN_SUFFIX = re.compile(r"(?:jr|sr|ii|iii|iv|inc|ltd|llc|plc|co|corp|s\.?a|d\.?c|ph\.?d|m\.?d)\.?", re.IGNORECASE)


_PARAGRAPH = re.compile(r"\n[ \t\r]*\n")


_SENTENCE = re.compile(r"(?<=[^\W\d_]{3}[.!?])\s|\n")


_SENTENCE_END = re.compile(r"""[.!?…]["'”’)*\]]*\s*$""")


@dataclass(frozen=True, slots=True)
class Parsed:
    """Result of parsing a completion: its state, and its objects.

    dropped: for state UNPARSED, the numbers that are too large or too small for plain digits.
    """

    state: State
    objects: tuple[str, ...] = ()
    dropped: tuple[Dropped, ...] = ()


def parse(text: str, relation: Relation, subject: str, null: str = "") -> Parsed:
    """Return the objects of one raw completion, with numbers as plain digits.

    Never raises; time is linear in the length.

    null: the prompt's text for no object, besides the words that always mean it. State UNPARSED: nothing could be read,
    for example from blank text, mere marks, or unwritable numbers. State TRUNCATED: it was cut off before its first
    whole object.
    """
    answer, marked = narrowed(text)
    if not answer:
        return Parsed(State.TRUNCATED if answer is None or marked else State.UNPARSED)
    answer = answer[:LONGEST_ANSWER]
    if null and answer.rstrip(".").casefold() == null.rstrip(".").casefold():
        return Parsed(State.ABSTAINED)
    if is_mute(answer):
        return Parsed(State.UNPARSED)
    is_number = relation.kind == "number"
    parsed = (
        _from_literals(answer, relation, subject)
        or (_from_numbers(answer, relation) if is_number else _from_words(answer, relation, subject, marked))
        or Parsed(_why_nothing(answer, relation))
    )
    if parsed.state is State.UNPARSED and is_number:
        refused = tuple(Dropped(number, UNWRITABLE) for number in refused_numbers(answer, relation))
        return Parsed(State.UNPARSED, dropped=refused)
    return parsed


def _from_literals(text: str, relation: Relation, subject: str) -> Parsed | None:
    """Return objects of the lists, tuples and JSON objects in a text; None if it has none."""
    whole = mended(text)
    groups = read_literals(whole, commas="," in relation.shape.separators)
    words = [word for group in groups for word in elements(group, relation, subject)]
    objects, denied = _judge(words, relation, subject)
    if objects:
        return Parsed(State.ANSWERED, objects)
    if denied or any(has_empty_list(group) for group in groups):
        return Parsed(State.ABSTAINED)
    if whole != text or not groups:
        return None
    cut = not groups[-1].closed and not any(word.whole for word in words)
    return Parsed(State.TRUNCATED if cut else _why_nothing(text, relation))


def _judge(words: Iterable[Word], relation: Relation, subject: str) -> tuple[tuple[str, ...], bool]:
    """Return the objects among some words, each once, and whether a word says that there is none."""
    objects: dict[str, None] = {}
    denied = False
    for word in words:
        if not word.whole or len(word.text) > 4 * LONGEST:
            continue
        text = _tidy(word, relation)
        if relation.kind == "number" and any(char.isdigit() for char in text):
            objects |= dict.fromkeys(read_numbers(text, relation))
        elif vocabulary(relation.shape).canonical(text):
            objects[text] = None
        elif is_abstention(text, relation) or (word.quoted and not shown(word.text)):
            denied = True
        elif relation.kind == "number":
            objects |= dict.fromkeys(read_numbers(text, relation))
        elif _is_named(text, word.quoted) and not is_prose(text, subject, word.quoted):
            objects[text] = None
    return tuple(objects), denied


def _is_named(text: str, quoted: bool) -> bool:
    """Return whether a text can be a name; mere marks can only in quotes."""
    return bool(shown(text)) and len(text) <= LONGEST and (quoted or any(char.isalnum() for char in shown(text)))


def _tidy(word: Word, relation: Relation) -> str:
    text = trim(word.text)
    if not word.quoted and (hedge := _HEDGE.match(text)):
        text = trim(text[hedge.end() :])
    return text if relation.shape.closed or relation.kind == "number" else trim(without_trailer(text)) or text


def _from_numbers(text: str, relation: Relation) -> Parsed | None:
    """Return the numbers of the first line that has any."""
    for line in text.split("\n", 20)[:20]:
        if is_abstention(without_trailer(trim(line[: 4 * LONGEST])), relation):
            return Parsed(State.ABSTAINED)
        if numbers := read_numbers(line[bullet.end() :] if (bullet := _BULLET.match(line)) else line, relation):
            return Parsed(State.ANSWERED, tuple(numbers))
    return None


def _from_words(text: str, relation: Relation, subject: str, marked: bool) -> Parsed | None:
    """Return objects of a bulleted list, else of the first paragraph that has any; after a mark, of the first line."""
    if len(text) < SHORT and is_abstention(text, relation):
        return Parsed(State.ABSTAINED)
    lines = text.split("\n")
    bullets = [_bullet(line) for line in lines if _BULLET.match(line)]
    if len(bullets) > 1 or (bullets and _BULLET.match(lines[0])):
        paragraphs = [bullets]
    elif marked:
        paragraphs = [parted(lines[0], relation)]
    else:
        paragraphs = [
            parted(paragraph, relation) for paragraph in _PARAGRAPH.split(text) if not _is_sentence(paragraph)
        ]
    for words in paragraphs:
        if words and is_abstention(_tidy(words[0], relation), relation) and not _known(words[0], relation):
            return Parsed(State.ABSTAINED)
        objects, denied = _judge(words, relation, subject)
        if objects:
            return Parsed(State.ANSWERED, objects)
        if denied:
            return Parsed(State.ABSTAINED)
    return _restated(text, relation, subject)


def _restated(text: str, relation: Relation, subject: str) -> Parsed | None:
    """Return objects of a first sentence that repeats the question, as in "The official languages of Fiji are ..."."""
    restated = _RESTATED.match(_SENTENCE.split(text[:LONGEST_ANSWER], maxsplit=1)[0])
    if not (restated and (restated[1].casefold() == "the answer" or subject.casefold() in restated[1].casefold())):
        return None
    rest = restated[2]
    if is_abstention(trim(rest), relation):
        return Parsed(State.ABSTAINED)
    if subject.casefold() in rest.casefold() or is_prose(f"{rest} x x x", subject):
        return None
    objects, _ = _judge(parted(rest, relation), relation, subject)
    return Parsed(State.ANSWERED, objects) if objects else None


def _is_sentence(paragraph: str) -> bool:
    """Return whether plain text starts with a sentence; its commas do not separate objects."""
    first = _SENTENCE.split(paragraph[:LONGEST_ANSWER], maxsplit=1)[0]
    return len(first) <= 4 * LONGEST and (is_refusal(first) or (has_verb(first) and not _LEAD.match(first)))


def _known(word: Word, relation: Relation) -> bool:
    return vocabulary(relation.shape).canonical(trim(word.text)) is not None


def _bullet(line: str) -> Word:
    """Return the name in a bulleted line: the bold text if there is any, else the text before a dash."""
    text = line[: 4 * LONGEST]
    text = text[bullet.end() :] if (bullet := _BULLET.match(text)) else text
    bold = _BOLD.match(text)
    return Word(bold[1] or bold[2] if bold else _REMARK.split(text, maxsplit=1)[0], quoted=False)


def parted(text: str, relation: Relation) -> list[Word]:
    """Return the parts of plain text. If there are semicolons, only they separate parts, and commas belong to them."""
    text = text[lead.end() :] if (lead := _LEAD.match(text)) else text
    separators = relation.shape.separators
    marks = ";" if ";" in separators and ";" in text else "".join(mark for mark in separators if len(mark) == 1)
    parts: list[str] = []
    for part in re.findall(rf"(?:\([^()\n]{{0,200}}\)|[^\n{re.escape(marks)}])+", text):
        if len(part) > 4 * LONGEST:  # too long for a name
            continue
        if parts and _OWN_SUFFIX.fullmatch(part.strip()):
            parts[-1] = f"{parts[-1]},{part}"
        else:
            parts.append(part)
    return [Word(part, quoted=False) for part in _conjuncts(parts, relation) if part.strip()]


def _conjuncts(parts: list[str], relation: Relation) -> Iterator[str]:
    """Yield parts without an "and" at their start; the last part is split at its "and" if the relation allows it."""
    for index, part in enumerate(parts):
        name = part.strip()[leading.end() :] if (leading := _AND.match(part.strip())) else part.strip()
        pieces = re.split(r"\s+(?:and|&)\s+", name, maxsplit=1)
        last = index == len(parts) - 1 and name == part.strip()
        if last and relation.shape.conjunction and not vocabulary(relation.shape).canonical(trim(name)):
            yield from pieces
        else:
            yield name


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
