"""Names in plain text: in bulleted and labelled lines, between separators, and in sentences that state the relation.

A sentence counts if it states the relation, as in "It shares a land border with Chile and Bolivia."
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from lmkbc.answer.abstain import has_term, has_verb, is_made_of, object_terms, stems, terms
from lmkbc.answer.clean import trim, vocabulary
from lmkbc.answer.literal import Word
from lmkbc.names import LONGEST, folded_key, without_trailer
from lmkbc.relation import Relation

BULLET = re.compile(
    r"[ \t]*(?:[-*•–·+▪●○◦‣⁃►▶■□◆∙→➤»›][ \t]+(?:\(?\d{1,4}[.)][ \t]+)?|[-–•](?=[A-Z\"“])|(?:\*\*|__)?\(?\d{1,4}[.)]"
    r"[ \t]+|\(?\d{1,3}[.)](?=[^\W\d_])|#\d{1,3}[.:)]?[ \t]+|\(?[a-z]\)[ \t]+|(?:[a-h]|[ivx]{1,4})\.[ \t]+)(?=\S)"
)
"""A letter counts in lower case alone: "J. Smith" has an initial."""

_INLINE = re.compile(r"[,;]?\s+(?:and\s+)?\(?(?:\d{1,3}|[a-h]|[ivx]{1,4})[.)]\s+(?=\S)")
_FIRST = re.compile(r"\(?(?:1|a|i)[.)]\s+(?=\S)")
_BOLD = re.compile(r"(?:\*\*|__)([^*_]{1,300})(?:\*\*|__)")
_BOLDS = re.compile(r"(?:(?:\*\*|__)[^*_]{1,300}(?:\*\*|__)(?:, and |, | and | & )?){2,9}")
_DASH = re.compile(r"\s+[-–—]\s+")
_REMARK = re.compile(r"\s+[-–—]\s+(?=[\da-z~≈])|:\s+(?=[\da-z~≈(]|[A-Z\d.]{1,6}\W*$)")
"""A dash or a colon with a remark behind it; before a capital, it may be part of a name, but for a company's symbol."""
_BESIDE = re.compile(r",\s+(?:since |for |(?:in )?\(?[12]\d{3}\b|(?:to|in|on) the |[^,]*\b[a-z]+\W*$)")
"""A comma with a remark behind it: a year, a direction, or words of which the last is no name."""
_WORKS = re.compile(r"(?<=[^*]),\s+\*[^*\n]+\*")
"""A work in italics behind its author."""
_FOR = re.compile(r",\s+(?:for|who|which)\s")
_LABEL = re.compile(r"([^:()*\"\n]{1,60}?)[ \t]*:(?=\s|$)[ \t]*")
_IN_WORDS = re.compile(r"[A-Z][a-z]+(?:/[a-z]+)+|(?:The|Some|Other|Main|Also|Smaller) [a-z]+(?: [a-z]+)?")
"""A label such as "The classic lineup" or "Smaller parts", which is no name since its last words are in lower case."""
_SYMBOL = re.compile(r"[A-Z]{1,5}(?:[.:]\s?[A-Z\d]{1,6})?")
"""A company's symbol; the name of an exchange that looks like one is listed."""
LONGEST_LABEL = 6
"""Maximum number of words of a label."""
_PERIOD = r"(?:in )?\(?[12]\d{3}s?(?:[–/-]\d{2,4})?\)?(?: \([^()\n]{1,40}\))?"
_YEAR = re.compile(rf"\s*{_PERIOD}\s*[:–—-]\s+(?=\S)|\s*\([12]\d{{3}}\)\s+(?=\S)", re.IGNORECASE)
_ALL_YEAR = re.compile(_PERIOD, re.IGNORECASE)
_LABELS = frozenset(
    "name names label answer answers object objects entity entities item items result results output option list "
    "north south east west northeast northwest southeast southwest current former main also other others "
    "primary secondary additional".split()
)
"""General labels; those of a relation are made of its own terms, or of words that are never its object."""
_HEADING = re.compile(r"^[ \t]*#{1,6}[ \t]+(?!\d+[.)])\S[^\n]*$\n?", re.MULTILINE)
_HEADED = re.compile(r"^[ \t]*#{1,6}[ \t]+(?=\d+[.)])", re.MULTILINE)
_BOLD_LINE = re.compile(
    r"[ \t]*(?:\*\*|__)[^*_\n]{1,100}(?:(?:\*\*|__)[ \t]*(?:\([^()\n]{0,80}\)[ \t]*)?[:–—-]|:(?:\*\*|__))"
)
LEAD = re.compile(
    r"(?:sure|certainly|of course|here|below|let me|answers?|output|result|response|objects?|a|"
    r"the [^:\n]{0,200}\b(?:are|is|answer|following|list)\b|[^:\n]{1,100} (?:is|was|were|are|has|had) )"
    r"[^:\n]{0,200}:(?=\s|$)",
    re.IGNORECASE,
)
"""Words that announce a list."""
_AND = re.compile(r"(?:and|&|plus)\s+", re.IGNORECASE)
_OTHER_MARKS = re.compile(r"\s+[|/•·+]\s+")
_OWN_SUFFIX = re.compile(r"(?:jr|sr|ii|iii|iv|inc|ltd|llc|plc|co|corp|s\.?a|d\.?c|ph\.?d|m\.?d)\.?", re.IGNORECASE)


def body(text: str, relation: Relation) -> str:
    """Return a text without headings and without the head of its only column, if anything else is left."""
    text = _HEADING.sub("", _HEADED.sub("", text)).strip() or text
    head, _, rest = text.partition("\n")
    return rest if rest.strip() and has_term(folded_key(head), object_terms(relation)) and " " not in head else text


_FIELD = re.compile(r"[\s*_•-]*([A-Z][^:\n*(]{0,40})[*_ ]*:[*_ ]*(\S[^\n]*)")
_GROUPS = frozenset(
    "native mother tongue fluent fluently proficient basic conversational some also other others or and plays played "
    "primary primarily secondary main mainly minor current currently previous previously former formerly past early "
    "later additional smaller knew knows spoke studied".split()
)
"""Words of labels that stand for groups of objects."""


def own_fields(text: str, relation: Relation) -> str:
    """Return what stands behind the labels, as in "Place of death: Kyoto", with the most words of the relation.

    "" is returned for any other text, and the text itself if no label has such a word.
    """
    lines = [line for line in text.split("\n") if line.strip()]
    fields = [_FIELD.fullmatch(line) for line in lines]
    listed_name = vocabulary(relation.shape).canonical
    if len(lines) < 2 or not all(one and not listed_name(one[1]) for one in fields):
        return ""
    known = stems(relation.object_type.noun, relation.triple, relation.question, *relation.clozes)
    groups = [[word for word in folded_key(one[1]).split() if not has_term(word, known)] for one in fields if one]
    if all(_GROUPS.issuperset(words) for words in groups):
        return "\n".join(one[2] for one in fields if one)
    shared = [sum(has_term(word, known) for word in folded_key(one[1]).split()) for one in fields if one]
    if not (most := max(shared)):
        return text
    return "\n".join(one[2] for one, count in zip(fields, shared, strict=True) if one and count == most)


def emphasised(text: str, relation: Relation, subject: str) -> list[Word]:
    """Return the bold texts in sentences that may be names; neither the subject nor labels."""
    known, others = vocabulary(relation.shape).canonical, list[str]()
    for bold in _BOLD.finditer(text):
        name = bold[1].strip(" :")
        label = (bold[1][-1:] == ":" or text[bold.end() :][:1] == ":") and _is_label(name, relation)
        others += (
            []
            if label or folded_key(name) == folded_key(subject) or (_SYMBOL.fullmatch(name) and not known(name))
            else [name]
        )
    found = [name for name in others if len(name.split()) <= LONGEST_LABEL or known(name)]
    taken = [name for name in found if _is_a_name(name) or known(name)]
    plain = not any(name[:1].isupper() for name in found)
    return [Word(name, quoted=False) for name in (found if plain and (taken or len(found) > 1) else taken)]


def mentioned(text: str, relation: Relation) -> list[Word]:
    """Return the names of a closed list that stand in a sentence, in order; none for another relation."""
    if not relation.shape.closed or DENIED.search(text):
        return []
    words, known = text[:LONGEST_CLAUSE].split(), vocabulary(relation.shape).canonical
    found, place = list[Word](), 0
    while place < len(words):
        runs = ((trim(" ".join(words[place : place + size])), size) for size in (3, 2, 1))
        name, size = next(((run, size) for run, size in runs if len(run) > 3 and known(run)), ("", 1))
        found += [Word(name, quoted=False)] if name else []
        place += size
    return found


def bulleted(text: str, relation: Relation) -> list[Word]:
    """Return the names in the bulleted lines of a text, or behind the numbers of a single line; none in other texts."""
    lines = [line for line in text.split("\n") if line.strip()]
    if len(lines) == 1 and (first := _FIRST.match(lines[0])):
        parts = _INLINE.split(lines[0][first.end() :])
        if len(parts) > 1:
            return [word for part in parts for word in items(part, relation)]
    marked = [line for line in lines if BULLET.match(line) or _BOLD_LINE.match(line)]
    if not (len(marked) > 1 or (marked and (marked[0] == lines[0] or lines[0].rstrip().endswith(":")))):
        return []
    top = min(len(line) - len(line.lstrip()) for line in marked)
    found, heads, headed = list[Word](), list[Word](), False
    for line in marked:
        words, is_top = items(line, relation), line[top : top + 1].strip() != ""
        if is_top:
            headed = line.rstrip(" \t*_").endswith(":")  # "West:" heads a list of its own
        if headed and is_top:
            heads += words
        elif is_top or headed:
            found += words
    return found or heads


def leading_list(text: str, relation: Relation, subject: str) -> list[Word]:
    """Return the names of a list that something else follows: of bullets, or of a first line, bold ones before others.

    None are returned without such a list. The subject in bold is a title.
    """
    lines = [line for line in text.split("\n") if line.strip()]
    if len(lines) < 2:
        return []
    if sum(bool(BULLET.match(line) or _BOLD_LINE.match(line)) for line in lines) > 1:
        found = bulleted(text, relation)
        return found if all(_is_a_name(trim(word.text)) for word in found) else []
    if (bolds := _BOLDS.match(lines[0]) or _BOLD.match(lines[0])) and _has_comment(lines, text):
        found = [Word(name.strip(" :"), quoted=False) for name in _BOLD.findall(bolds[0])]
        title = folded_key(subject)
        return [word for word in found if not _is_label(word.text, relation) and folded_key(word.text) != title]
    names = [word for word in parted(lines[0], relation) if trim(word.text)]
    several = len(names) > 1 and text.lstrip().startswith(lines[0].strip()) and "\n\n" in text
    return names if several and all(_is_a_name(trim(word.text)) for word in names) else []


def _has_comment(lines: list[str], text: str) -> bool:
    """Return whether sentences follow a first line that is none, after a blank line."""
    return not has_verb(lines[0]) and "\n\n" in text and not any(map(_BOLD.match, lines[1:]))


def items(line: str, relation: Relation) -> list[Word]:
    """Return the names in a line: the bold text if there is any, else the text before a dash, without a label.

    A line may have several names, as in "- 2018: Ann Lee, Bo Day and Cy Fox".
    """
    text = line[: 4 * LONGEST]
    text = text[bullet.end() :] if (bullet := BULLET.match(text)) else text
    bold = _BOLD.match(text)
    if bold and not _is_label(bold[1].strip(" :"), relation):
        bolds = _BOLDS.match(text) or bold
        return [Word(name.strip(" :"), quoted=False) for name in _BOLD.findall(bolds[0])]
    text = _BOLD.sub(r"\1", text, count=1) if bold else text.replace("**", "")
    own = _unlabelled(text, relation)
    if own != text and "," in relation.shape.separators and re.fullmatch(r"[a-z][\w -]*(?:, [\w -]+)+", own):
        return parted(own, relation)
    names = _before(_REMARK, _before(_DASH, _WORKS.sub("", own)))
    several = _names_in_line(_before(_FOR, names), relation, labelled=own != text)
    return [Word(name, quoted=False) for name in several or [_before(_BESIDE, names)]]


def _names_in_line(text: str, relation: Relation, *, labelled: bool) -> list[str]:
    """Return the names between commas and "and" in a line, if there are several and nothing else; else none.

    labelled: whether a year or the like stands before them. Without it, two words and an "and" may be one name.
    """
    if (
        "," not in relation.shape.separators
        or not relation.shape.conjunction
        or vocabulary(relation.shape).canonical(text)
    ):
        return []
    parts = _joined(re.split(r",(?![^()]*\))", text))
    names = [re.sub(r"\Athe (?=[A-Z]\S* \S)", "", trim(name)) for name in _conjuncts(parts, relation) if trim(name)]
    if len(names) < 2 or not all(map(_is_a_name, names)):
        return []
    return names if labelled or len(parts) > 1 or all(" " in name for name in names) else []


def _is_a_name(text: str) -> bool:
    """Return whether all words of a text are capitalised, but for such as "of"; brackets aside."""
    words = re.sub(r"\([^()]*\)", "", text).split()
    return (
        bool(words)
        and _is_capitalised(words[0])
        and _is_capitalised(words[-1])
        and all(_is_capitalised(word) or word.casefold() in _CONNECTING or word == "for" for word in words)
    )


def _before(mark: re.Pattern[str], text: str) -> str:
    """Return the text before the first such mark outside brackets; the whole text without one."""
    for found in mark.finditer(text):
        head = text[: found.start()]
        if head.strip() and head.count("(") <= head.count(")"):
            return head
    return text


def parted(text: str, relation: Relation) -> list[Word]:
    """Return the parts of plain text. If there are semicolons, only they separate parts, and commas belong to them."""
    text = _BOLD.sub(r"\1", re.sub(r"(?<=\*\*)!", "", text))
    if lead := LEAD.match(text):
        text = text[lead.end() :]
    elif not _YEAR.match(text):  # each line has its own
        text = _unlabelled(text, relation)
    separators = relation.shape.separators
    marks = ";" if ";" in separators and ";" in text else "".join(mark for mark in separators if len(mark) == 1)
    if not re.search(rf"[\n{re.escape(marks)}]", text):
        text = _OTHER_MARKS.sub("\n", text)
    pieces = re.split(r",\s+(?:and\s+)?", text) if "," not in marks and ", and " in text else []
    if len(pieces) > 2 and all(_is_a_name(trim(piece)) for piece in pieces):
        marks += ","
    found = re.findall(rf"(?:\([^()\n]{{0,200}}\)|[^\n{re.escape(marks)}])+", text)
    parts = _joined([part for part in found if len(part) <= 4 * LONGEST])  # a longer one is no name
    named, owns = list[str](), [_unlabelled(part, relation) for part in parts]
    labelled = marks == ";" and owns != parts
    for part, own in zip(parts, owns, strict=True):
        name, joined = _before(_REMARK, own), marks == ";" and " and " in part
        several = own != part or joined or labelled
        named += (several and _names_in_line(without_trailer(name.strip()), relation, labelled=True)) or [name]
    return [Word(part, quoted=False) for part in _conjuncts(named, relation) if part.strip() not in ("", "and", "or")]


def _joined(parts: list[str]) -> list[str]:
    """Return parts of a text between commas, with those such as "Jr." joined to the part before them."""
    joined: list[str] = []
    for part in parts:
        if joined and _OWN_SUFFIX.fullmatch(part.strip()):
            joined[-1] = f"{joined[-1]},{part}"
        else:
            joined.append(part)
    return joined


def _unlabelled(text: str, relation: Relation) -> str:
    """Return a text without a label such as "Country 1:" before it."""
    text = text[year.end() :] if (year := _YEAR.match(text)) else text
    label = _LABEL.match(text)
    return text[label.end() :] if label and _is_label(label[1], relation) else text


def _is_label(text: str, relation: Relation) -> bool:
    """Return whether a text names the kind of an object, or its place, but no object."""
    if _ALL_YEAR.fullmatch(text) or _IN_WORDS.fullmatch(text):
        return True
    words = folded_key(text).split()
    words = words[:-1] if len(words) > 1 and words[-1].isdigit() else words
    if not 0 < len(words) <= LONGEST_LABEL or "(" in text:
        return False
    label, general = " ".join(words), _LABELS | relation.shape.stop
    return has_term(label, object_terms(relation)) or is_made_of(label, terms(relation)) or general.issuperset(words)


def _conjuncts(parts: list[str], relation: Relation) -> Iterator[str]:
    """Yield parts without an "and" at their start; the last part is split at its "and" if the relation allows it."""
    for index, part in enumerate(parts):
        name = part.strip()[leading.end() :] if (leading := _AND.match(part.strip())) else part.strip()
        pieces = re.split(r"\s+(?:and|&)\s+(?![^()]*\))", name, maxsplit=1)
        last = index == len(parts) - 1 and name == part.strip()
        if last and relation.shape.conjunction and not vocabulary(relation.shape).canonical(trim(name)):
            yield from pieces
        else:
            yield name


LONGEST_CLAUSE = 600
"""Maximum number of characters of a clause."""

_CLAUSE = re.compile(r"(?<=[^\W\d_]{3}[.!?])\s|(?<=\)[.!?])\s|\n|;\s|,? but |, while ")
DENIED = re.compile(r"\b(?:not|no|none|never|neither|nor|nobody|without|cannot|\w+n['’]t)\b", re.IGNORECASE)
AFRESH = re.compile(
    r"\W*(?:so|therefore|thus|hence|actually|wait|sorry|correction|in conclusion|in summary|overall"
    r"|the (?:final )?answer)\b",
    re.IGNORECASE,
)
"""Words by which a clause replaces what was said before."""
_SIDE = r"(?:far )?(?:north|south|east|west|centre|center)[\w-]*"
_WHERE = re.compile(
    rf"\s+(?:to|in|on|along) (?:the|its) {_SIDE}(?:(?:,| and|, and) (?:the )?{_SIDE})*(?: \w+(?= (?:and|by)\b))?"
    r"(?! (?-i:[A-Z]))",
    re.IGNORECASE,
)
_WHICH = re.compile(r",\s+which\b.*")
_OF_WHAT = re.compile(r"\s+(?:of|from) (?:an? )?[a-z-]+(?: [a-z-]+){0,3}(?= (?:in|at) )")
"""What somebody died of, before the place."""
_IN_YEAR = re.compile(r"\s+in [12]\d{3}\b(?=[,;.]|\s+and\b|$)")
_ALSO_THERE = re.compile(r",? and (?=[A-Z])")
_PLACED = re.compile(rf"\(((?:to|in|on|along) (?:the|its) {_SIDE})\)", re.IGNORECASE)
_ASIDE = re.compile(r"(?<=[\w*]{2})\s+\([^()\n]{0,200}\)")
"""A remark in brackets behind a word."""
_PAIR = re.compile(r"[A-Z][\w.'’-]*(?: [A-Z][\w.'’-]*){0,4} and [A-Z][\w.'’-]*(?: [A-Z][\w.'’-]*){0,4}$")
_CONNECTING = frozenset("and or of the & de da di do du del la le el al bin ibn van von der den des y e et".split())
"""Words in lower case inside names and between them."""
_BETWEEN = frozenset(
    "is are was were be been by with on in at to of for the a an only include includes including following as namely "
    "both away its just also it them him her entirely mainly mostly partly primarily within "
    "january february march april may june july august september october "
    "november december".split()
)
"""Words between what states the relation and the names."""
_STATING = frozenset("consists consisted comprises comprised comprising contains contained".split())
_PRONOUN = re.compile(r"(?:It|Its|He|His|She|Her|They|Their|Since)\b")
_MOSTLY = frozenset("mainly mostly partly primarily".split())
_OF_NATION = re.compile(
    r"[A-Z]\w+(?:an|ish|ese|ch|sh|ek|ic)(?: (?!(?:and|or|of|in|at|near|on|as|along|while|after|by|from|with|to|for"
    r"|during|but|plus|before|when)\b)[a-z-]+){1,3} (?=[A-Z*])"
)
"""A nation and a kind before a name, as in "French luxury group Kering"."""
_ELIDED = re.compile(r"[a-z]{1,2}['’][A-Z]")
"""An article or preposition before a name, as in "d'Ivoire"."""
_VERBS = frozenset("is are was were include includes".split())


def stated(text: str, relation: Relation, subject: str) -> str:
    """Return the names, a line for each clause, that a text's clauses state of the relation; "" if none does.

    They stand behind a word of the relation, such as "borders", "countries" or "died", with only such words between as
    "are" and "with". A clause with a denial before the names does not count; a later "so" or "wait" begins afresh.
    """
    found, afresh = list[str](), False
    if ";" in text and any(_unlabelled(clause, relation) != clause for clause in text.split("; ")[1:]):
        return ""  # lists, of which some have labels
    clauses = _CLAUSE.split(text)
    for clause in clauses:
        afresh = AFRESH.match(clause) is not None or (afresh and len(text) <= LONGEST_CLAUSE)
        if len(clause) <= LONGEST_CLAUSE and (names := _names_of(clause.strip(" \t.!"), relation, subject)):
            several = _names_in_line(names, relation, labelled=False)
            found, afresh = [*([] if afresh else found), ", ".join(several) or names], False
    first = without_trailer(clauses[0].strip(" *.!"))
    goes_on = len(clauses) > 1 and len(text) <= LONGEST_CLAUSE and _PRONOUN.match(clauses[1])
    named = " " in first or vocabulary(relation.shape).canonical(first)
    before = found and goes_on and named and relation.shape.conjunction and _is_a_name(first)
    return "\n".join([first, *found] if before else found)


def _names_of(clause: str, relation: Relation, subject: str) -> str:
    clause = _OF_WHAT.sub("", _WHICH.sub("", clause))
    clause = _IN_YEAR.sub("", _ASIDE.sub("", _PLACED.sub(r"\1", clause)))
    plain = re.sub(rf"(?:\bof )?\b{re.escape(subject)}(?:['’]s)?(?!\w| [A-Z])", "", clause) if subject else clause
    restates = plain != clause and clause[:4] == "The "  # as in "The book of Some Subject is ..."
    words = _unplaced(plain, relation).split()
    for start in range(len(words) - 1, 0, -1):
        before = start - 1
        while before and (_is_between(words[before]) or words[before].strip(",").isdigit()):
            before -= 1
        states = has_term(folded_key(words[before]), terms(relation)) and not _is_elsewhere(words, before, relation)
        states |= (words[0] == "There" and words[start - 1].endswith(":")) or words[before].casefold() in _STATING
        if not (states or (restates and words[start - 1] in _VERBS)) or not _is_capitalised(words[start]):
            continue
        after = words[min(start + 1, len(words) - 1)]
        if words[start].casefold().strip(".,") in _BETWEEN and not _is_capitalised(after):  # a month
            continue
        if _is_capitalised(words[before]) and (before or words[start - 1] not in _VERBS):  # inside a name
            continue
        if (
            start > 1 and words[start - 1] in _MOSTLY and words[start - 2].endswith(",")
        ):  # "companies, mainly Some Group"
            continue
        if DENIED.search(" ".join(words[:start])):
            return ""
        nation = _OF_NATION.match(" ".join(words[start:]))
        first = start + len(nation[0].split()) if nation else start
        end = first
        while end < len(words) and (_is_capitalised(words[end]) or words[end].casefold().strip(",") in _CONNECTING):
            end += 1
        while words[end - 1].casefold() in _CONNECTING:
            end -= 1
        if (
            words[end - 1].endswith(("'s", "’s")) and end < len(words) and not _is_between(words[end])
        ):  # "George's estate"
            continue
        return " ".join(words[first:end])
    return ""


def _is_elsewhere(words: list[str], place: int, relation: Relation) -> bool:
    """Return whether a word says where the subject is, as in "a country in South Asia", which the clozes do not."""
    where = f"{words[place]} in "
    kinds = stems(relation.subject_type.noun)
    told = words[place + 1] == "in" and has_term(folded_key(words[place]), kinds)
    return told and not any(where in cloze for cloze in relation.clozes)


def _is_between(word: str) -> bool:
    """Return whether a word may stand before names; "The" begins one."""
    return word != "The" and word.casefold().strip(":,") in _BETWEEN


def _unplaced(clause: str, relation: Relation) -> str:
    """Return a clause without directions; of "Chile and Peru to the west", a comma replaces the "and"."""
    known = vocabulary(relation.shape).canonical
    made, start = "", 0
    for place in _WHERE.finditer(clause):
        names = clause[start : place.start()]
        if relation.shape.conjunction:
            names = _PAIR.sub(lambda pair: pair[0] if known(pair[0]) else pair[0].replace(" and ", ", "), names)
        start = place.end()
        if also := relation.shape.conjunction and _ALSO_THERE.match(clause, start):
            names, start = f"{names}, ", also.end()
        made += names
    return made + clause[start:]


def _is_capitalised(word: str) -> bool:
    word = word.lstrip("\"'“‘*_([")
    return word[:1].isupper() or _ELIDED.match(word) is not None
