"""Names in plain text: in bulleted and labelled lines, between separators, and in sentences that state the relation.

A sentence counts if it states the relation, as in "It shares a land border with Chile and Bolivia."
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from lmkbc.answer.abstain import has_term, is_made_of, object_terms, terms
from lmkbc.answer.clean import trim, vocabulary
from lmkbc.answer.literal import Word
from lmkbc.names import LONGEST, folded_key
from lmkbc.relation import Relation

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
LEAD = re.compile(
    r"(?:sure|certainly|of course|here|below|answers?|output|result|response|objects?|a|"
    r"the [^:\n]{0,200}\b(?:are|is|answer|following|list)\b)[^:\n]{0,200}:(?=\s|$)",
    re.IGNORECASE,
)
"""Words that announce a list."""
_AND = re.compile(r"(?:and|&|plus)\s+", re.IGNORECASE)
_OTHER_MARKS = re.compile(r"\s+[|/•·]\s+")
_OWN_SUFFIX = re.compile(r"(?:jr|sr|ii|iii|iv|inc|ltd|llc|plc|co|corp|s\.?a|d\.?c|ph\.?d|m\.?d)\.?", re.IGNORECASE)


def body(text: str, relation: Relation) -> str:
    """Return a text without headings and without the head of its only column, if anything else is left."""
    text = _HEADING.sub("", _HEADED.sub("", text)).strip() or text
    head, _, rest = text.partition("\n")
    return rest if rest.strip() and has_term(folded_key(head), object_terms(relation)) and " " not in head else text


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
    text = text[lead.end() :] if (lead := LEAD.match(text)) else _unlabelled(text, relation)
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
