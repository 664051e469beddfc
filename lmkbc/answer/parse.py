"""From a model's raw text to objects: one tolerant procedure for all models and prompt styles.

A text is first narrowed to its answer: after the reasoning, after the last "ANSWER:", inside a code fence. The answer
is then read as a table, as a literal, as a sentence that states the relation, as a bulleted list, or as plain words
between the relation's separators. The state of a text without objects depends on the reason: an explicit "none",
unwritable numbers, a text that was cut off, or anything else. The last is a failed parse and never an empty answer.

Names in plain text are those of bulleted and labelled lines, between separators, and in sentences. A sentence counts if
it states the relation, as in "It shares a land border with Chile and Bolivia."
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from operator import itemgetter

from lmkbc.answer.abstain import (
    has_term,
    has_verb,
    is_abstention,
    is_failure,
    is_made_of,
    is_mute,
    is_prose,
    is_refusal,
    object_terms,
    phrase_terms,
    terms,
)
from lmkbc.answer.clean import read_values, trim, vocabulary
from lmkbc.answer.elements import SHORT, column, elements, is_head, mended, narrowed
from lmkbc.answer.literal import Bracketed, Word, has_empty_list, read_literals
from lmkbc.answer.markup import read_fields, read_table
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


BULLET = re.compile(
    r"[ \t]*(?:[-*•–·+▪●○◦‣⁃►▶■□◆∙→➤»›][ \t]+(?:\(?\d{1,4}[.)][ \t]+)?|[-–•](?=[A-Z\"“])|(?:\*\*|__)?\(?\d{1,4}[.)]"
    r"[ \t]+|\(?\d{1,3}[.)](?=[^\W\d_])|#\d{1,3}[.:)]?[ \t]+|\(?[a-z]\)[ \t]+|(?:[a-h]|[ivx]{1,4})\.[ \t]+)(?=\S)"
)
"""A letter counts in lower case alone: "J. Smith" has an initial."""

_INLINE = re.compile(r"[,;]?\s+(?:and\s+)?\(?(?:\d{1,3}|[a-h]|[ivx]{1,4})[.)]\s+(?=\S)")
_FIRST = re.compile(r"\(?(?:1|a|i)[.)]\s+(?=\S)")
_BOLD = re.compile(r"(?:\*\*|__)([^*_]{1,300})(?:\*\*|__)")
_DASH = re.compile(r"\s+[-–—]\s+")
_REMARK = re.compile(r"\s+[-–—]\s+(?=[\da-z~≈])|:\s+(?=[\da-z~≈(])")
"""A dash or a colon with a remark behind it; before a capital, it may be part of a name."""
_LABEL = re.compile(r"([^:()*\"\n]{1,60}?)[ \t]*:(?=\s|$)[ \t]*")
LONGEST_LABEL = 6
"""Maximum number of words of a label."""
_YEAR = re.compile(r"\s*(?:in )?[12]\d{3}(?:[–-]\d{2,4})?\s*[:–—-]\s+(?=\S)", re.IGNORECASE)
_LABELS = frozenset(
    "name names label answer answers object objects entity entities item items result results output option list "
    "north south east west northeast northwest southeast southwest".split()
)
"""General labels; those of a relation are made of its own terms, or of words that are never its object."""
_HEADING = re.compile(r"^[ \t]*#{1,6}[ \t]+(?!\d+[.)])\S[^\n]*$\n?", re.MULTILINE)
_HEADED = re.compile(r"^[ \t]*#{1,6}[ \t]+(?=\d+[.)])", re.MULTILINE)
_BOLD_LINE = re.compile(r"[ \t]*(?:\*\*|__)[^*_\n]{1,100}(?:(?:\*\*|__)[ \t]*[:–—-]|:(?:\*\*|__))")
_LEAD = re.compile(
    r"(?:sure|certainly|of course|here|below|answers?|output|result|response|objects?|a|"
    r"the [^:\n]{0,200}\b(?:are|is|answer|following|list)\b)[^:\n]{0,200}:(?=\s|$)",
    re.IGNORECASE,
)
_AND = re.compile(r"(?:and|&|plus)\s+", re.IGNORECASE)
_OTHER_MARKS = re.compile(r"\s+[|/•·]\s+")
_OWN_SUFFIX = re.compile(r"(?:jr|sr|ii|iii|iv|inc|ltd|llc|plc|co|corp|s\.?a|d\.?c|ph\.?d|m\.?d)\.?", re.IGNORECASE)


def body(text: str, relation: Relation) -> str:
    """Return a text without headings and without the head of its only column, if anything else is left."""
    text = _HEADING.sub("", _HEADED.sub("", text)).strip() or text
    head, _, rest = text.partition("\n")
    return rest if rest.strip() and has_term(folded_key(head), object_terms(relation)) and " " not in head else text


def has_lead(text: str) -> bool:
    """Return whether a text begins with words that announce a list."""
    return _LEAD.match(text) is not None


def bulleted(text: str, relation: Relation) -> list[Word]:
    """Return the names in the bulleted lines of a text, or behind the numbers of a single line; none in other texts."""
    lines = [line for line in text.split("\n") if line.strip()]
    if len(lines) == 1 and (first := _FIRST.match(lines[0])):
        parts = _INLINE.split(lines[0][first.end() :])
        if len(parts) > 1:
            return [item(part, relation) for part in parts]
    marked = [line for line in lines if BULLET.match(line) or _BOLD_LINE.match(line)]
    if not (len(marked) > 1 or (marked and (marked[0] == lines[0] or lines[0].rstrip().endswith(":")))):
        return []
    top = min(len(line) - len(line.lstrip()) for line in marked)
    found, heads, headed = list[Word](), list[Word](), False
    for line in marked:
        word, is_top = item(line, relation), line[top : top + 1].strip() != ""
        if is_top:
            headed = line.rstrip(" \t*_").endswith(":")  # "West:" heads a list of its own
        if headed and is_top:
            heads.append(word)
        elif is_top or headed:
            found.append(word)
    return found or heads


def item(line: str, relation: Relation) -> Word:
    """Return the name in a line: the bold text if there is any, else the text before a dash, without a label."""
    text = line[: 4 * LONGEST]
    text = text[bullet.end() :] if (bullet := BULLET.match(text)) else text
    bold = _BOLD.match(text)
    if bold and not _is_label(bold[1].strip(" :"), relation):
        return Word(bold[1].strip(" :"), quoted=False)
    text = _BOLD.sub(r"\1", text, count=1) if bold else text
    text = _unlabelled(text if bold else text.replace("**", ""), relation)
    text = _DASH.split(text, maxsplit=1)[0]
    return Word(_REMARK.split(text, maxsplit=1)[0], quoted=False)


def parted(text: str, relation: Relation) -> list[Word]:
    """Return the parts of plain text. If there are semicolons, only they separate parts, and commas belong to them."""
    text = _BOLD.sub(r"\1", text)
    text = text[lead.end() :] if (lead := _LEAD.match(text)) else _unlabelled(text, relation)
    separators = relation.shape.separators
    marks = ";" if ";" in separators and ";" in text else "".join(mark for mark in separators if len(mark) == 1)
    if not re.search(rf"[\n{re.escape(marks)}]", text):
        text = _OTHER_MARKS.sub("\n", text)
    parts: list[str] = []
    for part in re.findall(rf"(?:\([^()\n]{{0,200}}\)|[^\n{re.escape(marks)}])+", text):
        if len(part) > 4 * LONGEST:  # too long for a name
            continue
        if parts and _OWN_SUFFIX.fullmatch(part.strip()):
            parts[-1] = f"{parts[-1]},{part}"
        else:
            parts.append(part)
    named = (_REMARK.split(_unlabelled(part, relation), maxsplit=1)[0] for part in parts)
    return [Word(part, quoted=False) for part in _conjuncts([*named], relation) if part.strip()]


def _unlabelled(text: str, relation: Relation) -> str:
    """Return a text without a label such as "Country 1:" before it."""
    text = text[year.end() :] if (year := _YEAR.match(text)) else text
    label = _LABEL.match(text)
    return text[label.end() :] if label and _is_label(label[1], relation) else text


def _is_label(text: str, relation: Relation) -> bool:
    """Return whether a text names the kind of an object, or its place, but no object."""
    words = folded_key(text).split()
    words = words[:-1] if len(words) > 1 and words[-1].isdigit() else words
    if not 0 < len(words) <= LONGEST_LABEL:
        return False
    label, general = " ".join(words), _LABELS | relation.shape.stop
    return has_term(label, object_terms(relation)) or is_made_of(label, terms(relation)) or general.issuperset(words)


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


LONGEST_CLAUSE = 600
"""Maximum number of characters of a clause."""

_CLAUSE = re.compile(r"(?<=[^\W\d_]{3}[.!?])\s|\n|;\s|,? but |, while ")
_DENIED = re.compile(r"\b(?:not|no|none|never|neither|nor|nobody|without|cannot|\w+n['’]t)\b", re.IGNORECASE)
_AFRESH = re.compile(
    r"\W*(?:so|therefore|thus|hence|actually|wait|sorry|correction|in conclusion|in summary|overall"
    r"|the (?:final )?answer)\b",
    re.IGNORECASE,
)
"""Words by which a clause replaces what was said before."""
_WHERE = re.compile(
    r"\s+(?:to|in|on|along) (?:the|its) (?:far )?(?:north|south|east|west|centre|center)[\w-]*"
    r"(?: \w+(?= (?:and|by)\b))?",
    re.IGNORECASE,
)
_CONNECTING = frozenset("and or of the & de da di do du del la le el al bin ibn van von der den des y e et".split())
"""Words in lower case inside names and between them."""
_BETWEEN = frozenset(
    "is are was were be been by with on in at to of for the a an only include includes including following as namely "
    "both its just also it them him her january february march april may june july august september october november "
    "december".split()
)
"""Words between what states the relation and the names."""
_VERBS = frozenset("is are was were include includes".split())


def stated(text: str, relation: Relation, subject: str) -> str:
    """Return the names, a line for each clause, that a text's clauses state of the relation; "" if none does.

    They stand behind a word of the relation, such as "borders", "countries" or "died", with only such words between as
    "are" and "with". A clause with a denial before the names does not count; a later "so" or "wait" begins afresh.
    """
    found: list[str] = []
    for clause in _CLAUSE.split(text):
        if len(clause) <= LONGEST_CLAUSE and (names := _names_of(clause.strip(" \t.!"), relation, subject)):
            found = [*([] if _AFRESH.match(clause) else found), names]
    return "\n".join(found)


def _names_of(clause: str, relation: Relation, subject: str) -> str:
    plain = re.sub(rf"(?:\bof )?\b{re.escape(subject)}(?:['’]s)?(?!\w)", "", clause) if subject else clause
    restates = plain != clause and clause[:4] == "The "  # as in "The book of Some Subject is ..."
    words = _WHERE.sub("", plain).split()
    for start in range(len(words) - 1, 0, -1):
        before = start - 1
        while before and (words[before].casefold().strip(":,") in _BETWEEN or words[before].strip(",").isdigit()):
            before -= 1
        states = has_term(folded_key(words[before]), terms(relation))
        states |= words[0] == "There" and words[start - 1].endswith(":")
        if not (states or (restates and words[start - 1] in _VERBS)) or not _is_capitalised(words[start]):
            continue
        if _is_capitalised(words[before]) and (before or words[start - 1] not in _VERBS):  # inside a name
            continue
        if _DENIED.search(" ".join(words[:start])):
            return ""
        end = start
        while end < len(words) and (_is_capitalised(words[end]) or words[end].casefold().strip(",") in _CONNECTING):
            end += 1
        while words[end - 1].casefold() in _CONNECTING:
            end -= 1
        return " ".join(words[start:end])
    return ""


def _is_capitalised(word: str) -> bool:
    return word.lstrip("\"'“‘*_([")[:1].isupper()


_NULLS = ("null", "None")
"""Literals for nothing in JSON and Python."""


def verbatim(text: str, relation: Relation, subject: str, null: str = "", lines: bool = False) -> Parsed:
    """Return the objects of one raw completion as written.

    null: text for no object, besides an empty list. lines: whether to read all lines of plain text; else the first.
    """
    answer, _ = narrowed(text)
    if not answer:
        return Parsed(State.TRUNCATED if answer is None else State.UNPARSED)
    if is_mute(answer):
        return Parsed(State.ABSTAINED if answer == null else State.UNPARSED)
    words, empty = _words(answer, relation, subject, lines)
    if not words:
        return Parsed(State.ABSTAINED if empty else State.UNPARSED)
    nothing = words == (null,) or words == _words(null, relation, subject, lines)[0]
    return Parsed(State.ABSTAINED) if nothing else Parsed(State.ANSWERED, words)


def _words(answer: str, relation: Relation, subject: str, lines: bool) -> tuple[tuple[str, ...], bool]:
    """Return the elements of an answer's literals, else the parts of its text, and whether a list is empty."""
    groups = read_literals(mended(answer), commas="," in relation.shape.separators)
    empty = any(map(has_empty_list, groups))
    words = [word for group in groups for word in elements(group, relation, subject) if word.whole]
    if any(not word.quoted and word.text in _NULLS for word in words):
        words, empty = [word for word in words if word.quoted or word.text not in _NULLS], True
    if not groups:
        plain = answer if lines else answer.split("\n", 1)[0]
        is_parted = relation.kind in ("entity", "number")
        words = parted(plain, relation) if is_parted else [Word(line, quoted=False) for line in plain.split("\n")]
    return tuple(text for word in words if (text := word.text.strip())), empty or any(not word.text for word in words)
