"""Names and values in sentences: names that state the relation, bold or listed ones, lower-case objects, and numbers.

"It shares a land border with Chile and Bolivia" states the relation. For objects in lower case, such as poet in "He was
a poet", a sentence must go as the relation's statement or a cloze does.
"""

from __future__ import annotations

import re
from functools import lru_cache
from operator import itemgetter

from lmkbc.answer.abstain import has_term, has_verb, is_abstention, is_refusal, phrase_terms, stems, terms
from lmkbc.answer.clean import read_values, trim, vocabulary
from lmkbc.answer.lists import (
    BOLD,
    BULLET,
    CONNECTING,
    is_a_name,
    is_capitalised,
    is_label,
    names_in_line,
    parted,
    unlabelled,
)
from lmkbc.answer.literal import Word
from lmkbc.names import LONGEST, folded_key, without_trailer
from lmkbc.relation import Relation

LONGEST_CLAUSE = 600
"""Maximum number of characters of a clause."""

CLAUSE = re.compile(r"(?<=[^\W\d_]{3}[.!?])\s|(?<=\)[.!?])\s|\n|;\s|,? but |, while ")
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
_BESIDES = re.compile(
    r",\s+which\b.*|\s+(?:of|from) (?:an? )?[a-z-]+(?: [a-z-]+){0,3}(?= (?:in|at) )"
    r"|\s+in [12]\d{3}\b(?=[,;.]|\s+and\b|$)"
)
"""A clause with "which", a cause of death before the place, or a year."""
_ALSO_THERE = re.compile(r",? and (?=[A-Z])")
_PLACED = re.compile(rf"\(((?:to|in|on|along) (?:the|its) {_SIDE})\)", re.IGNORECASE)
ASIDE = re.compile(r"(?<=[\w*]{2})\s+\([^()\n]{0,200}\)")
"""A remark in brackets behind a word."""
_PAIR = re.compile(r"[A-Z][\w.'’-]*(?: [A-Z][\w.'’-]*){0,4} and [A-Z][\w.'’-]*(?: [A-Z][\w.'’-]*){0,4}$")
_BETWEEN = frozenset(
    "is are was were be been by with on in at to of for the a an only include includes including following as namely "
    "both away its just also it them him her entirely mainly mostly partly primarily within "
    "january february march april may june july august september october "
    "november december".split()
)
"""Words between what states the relation and the names."""
_STATING = frozenset("consists consisted comprises comprised comprising contains contained".split())
_PRONOUN = re.compile(r"(?:It|Its|He|His|She|Her|They|Their|Since)\b")
_OF_NATION = re.compile(
    r"[A-Z]\w+(?:an|ish|ese|ch|sh|ek|ic)(?: (?!(?:and|or|of|in|at|near|on|as|along|while|after|by|from|with|to|for"
    r"|during|but|plus|before|when)\b)[a-z-]+){1,3} (?=[A-Z*])"
)
"""A nation and a kind before a name, as in "French luxury group Kering"."""
_VERBS = frozenset("is are was were include includes".split())


def stated(text: str, relation: Relation, subject: str) -> str:
    """Return the names, a line for each clause, that a text's clauses state of the relation; "" if none does.

    They stand behind a word of the relation, such as "borders", "countries" or "died", with only such words between as
    "are" and "with". A clause with a denial before the names does not count; a later "so" or "wait" begins afresh.
    """
    found, afresh = list[str](), False
    if ";" in text and any(unlabelled(clause, relation) != clause for clause in text.split("; ")[1:]):
        return ""  # lists, of which some have labels
    clauses = CLAUSE.split(text)
    for clause in clauses:
        afresh = AFRESH.match(clause) is not None or (afresh and len(text) <= LONGEST_CLAUSE)
        if len(clause) <= LONGEST_CLAUSE and (names := _names_of(clause.strip(" \t.!"), relation, subject)):
            several = names_in_line(names, relation, labelled=False)
            found, afresh = [*([] if afresh else found), ", ".join(several) or names], False
    if found and relation.shape.conjunction and len(clauses) > 1 and len(text) <= LONGEST_CLAUSE:
        first = without_trailer(clauses[0].strip(" *.!"))  # as in "India. It also borders China."
        is_one = is_a_name(first) and (" " in first or vocabulary(relation.shape).canonical(first))
        found = [first, *found] if is_one and _PRONOUN.match(clauses[1]) else found
    return "\n".join(found)


def _names_of(clause: str, relation: Relation, subject: str) -> str:
    clause = _BESIDES.sub("", ASIDE.sub("", _PLACED.sub(r"\1", clause)))
    plain = re.sub(rf"(?:\bof )?\b{re.escape(subject)}(?:['’]s)?(?!\w| [A-Z])", "", clause) if subject else clause
    restates = plain != clause and clause[:4] == "The "  # as in "The book of Some Subject is ..."
    words = _unplaced(plain, relation).split()
    for start in range(len(words) - 1, 0, -1):
        before = start - 1
        while before and (_is_between(words[before]) or words[before].strip(",").isdigit()):
            before -= 1
        states = has_term(folded_key(words[before]), terms(relation)) and not _is_elsewhere(words, before, relation)
        states |= (words[0] == "There" and words[start - 1].endswith(":")) or words[before].casefold() in _STATING
        if not (states or (restates and words[start - 1] in _VERBS)) or not is_capitalised(words[start]):
            continue
        after = words[min(start + 1, len(words) - 1)]
        if words[start].casefold().strip(".,") in _BETWEEN and not is_capitalised(after):  # a month
            continue
        if is_capitalised(words[before]) and (before or words[start - 1] not in _VERBS):  # inside a name
            continue
        if words[start - 1].endswith("ly") and start > 1 and words[start - 2].endswith(","):  # "firms, mainly X Group"
            continue
        if DENIED.search(" ".join(words[:start])):
            return ""
        nation = _OF_NATION.match(" ".join(words[start:]))
        first = start + len(nation[0].split()) if nation else start
        end = first
        while end < len(words) and (is_capitalised(words[end]) or words[end].casefold().strip(",") in CONNECTING):
            end += 1
        while words[end - 1].casefold() in CONNECTING:
            end -= 1
        following = words[end] if end < len(words) else "is"
        if not words[end - 1].endswith(("'s", "’s")) or _is_between(following):  # not "George's estate"
            return " ".join(words[first:end])
    return ""


def _is_elsewhere(words: list[str], place: int, relation: Relation) -> bool:
    """Return whether a word says where the subject is, as in "a country in South Asia", which the clozes do not."""
    if words[place + 1] != "in" or not has_term(folded_key(words[place]), stems(relation.subject_type.noun)):
        return False
    return not any(f"{words[place]} in " in cloze for cloze in relation.clozes)


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


_SYMBOL = re.compile(r"[A-Z]{1,5}(?:[.:]\s?[A-Z\d]{1,6})?")
"""A company's symbol; the name of an exchange that looks like one is listed."""


def emphasised(text: str, relation: Relation, subject: str) -> list[Word]:
    """Return the bold texts that may be names, or are all in lower case; neither the subject nor labels."""
    known, title, found = vocabulary(relation.shape).canonical, folded_key(subject), list[str]()
    for bold in BOLD.finditer(text):
        name = bold[1].strip(" :")
        label = (bold[1][-1:] == ":" or text[bold.end() :][:1] == ":") and is_label(name, relation)
        if known(name) or not (label or folded_key(name) == title or _SYMBOL.fullmatch(name)):
            found.append(name)
    taken = [name for name in found if is_a_name(name) or known(name)]
    plain = [name for name in found if name[:1].islower() and len(name.split()) <= LONGEST_NAME]
    kinds = plain == found and (taken or len(plain) > 1)  # such as poet and lawyer
    return [Word(name, quoted=False) for name in (plain if kinds else taken)]


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


_FRAME = re.compile(r"\{subject\} (?!has \{)([^{}]+) \{(?:mask|object)\}")
_EITHER = re.compile(r"\b(\w+) or \w+\b")
_BEING = frozenset(("is", "was"))
_ADVERB = (
    r"(?:(?:(?:best |also |widely )?known as|(?:is |was )?(?:also )?able to|also|most likely|mainly|primarily|currently"
    r"|still|mostly|only|entirely|both) )?"
)
_INCLUDE = re.compile(r"(\w+),?\s(?:is|was|are|were|includes?|included|including)(?: (?:the|an?|both))? (?=[a-z])")
_ARE_THE = re.compile(
    r"(?!(?i:(?:sure\W+)?(?:here|these|those|this|there|they|it|the following)\b))"
    r"(.*?)\s(?:is|are|was|were) (?:the|its|all|his|her)\s(.*)"
)
_BEHIND = re.compile(
    r"(?:,? (?:who|which|that|where|but|at|best known|known|by profession|among|from|born|in|since|for|before)\b"
    r"|, an? | [—–-] ).*"
)
_NATION = re.compile(r"\A(?:(?:the|an?|some) )?(?:[A-Z][\w-]+ |former |retired )*(?=[a-z])")
"""An article and capitalised words before a kind of person or thing, as in "an Italian novelist"."""
_NO_OBJECT = re.compile(
    r"(?:in|at|on|of|from|with|by|as|very|one|including|are|is|best|born|several|many|later|etc|himself|herself)\b|\w+ed\b"
)
LONGEST_NAME = 4
"""Maximum number of words of an object in lower case."""


def predicated(text: str, relation: Relation, subject: str) -> list[Word]:
    """Return the objects of sentences that are made as one of the relation's, up to the first that denies something.

    Behind the subject, a part of its name or a pronoun, they go on as the statement or a cloze does. Others speak of
    the objects: "Her professions include poet and memoirist." A text of many sentences has none.
    """
    found = list[Word]()
    for sentence in CLAUSE.split(text.replace("**", "")) if len(text) <= LONGEST_CLAUSE else ():
        if DENIED.search(sentence):
            break
        for objects in _claimed(sentence.strip(" .!:"), relation, subject):
            words = [_without_nation(word.text) for word in parted(_BEHIND.sub("", objects), relation)]
            if words and all(_may_be_object(word, subject) for word in words):
                found += [Word(word, quoted=False) for word in words]
                break
    return found


def _claimed(sentence: str, relation: Relation, subject: str) -> list[str]:
    """Return what a sentence may say that the objects are: behind a frame or such as "include", or before "are the"."""
    named = "|".join(map(re.escape, {subject, *subject.split()[-1:]} - {""}))
    begins = re.compile(rf"\b(?:{named}|he|she|they|who)\s+" if named else r"\b(?:he|she|they|who)\s+", re.IGNORECASE)
    rests = [sentence[one.end() :] for one in begins.finditer(sentence)]
    frames = _frames(relation.statement, *relation.clozes)
    found = [rest[frame.end() :] for rest in rests for one in frames if (frame := one.match(rest))]
    included = _INCLUDE.search(sentence)
    if included and has_term(folded_key(included[1]), stems(relation.object_type.noun.split()[-1])):
        found.append(sentence[included.end() :])
    if (are := _ARE_THE.match(sentence)) and has_term(folded_key(are[2]), terms(relation)):
        found.append(are[1])
    return found


@lru_cache(maxsize=256)
def _frames(*sentences: str) -> list[re.Pattern[str]]:
    """Return patterns of what stands between subject and object in a relation's sentences, in any tense."""
    frames = [_EITHER.sub(r"\1", frame[1]) for one in sentences if (frame := _FRAME.search(one))]
    return [re.compile(_ADVERB + _pattern(frame), re.IGNORECASE) for frame in frames]


def _pattern(frame: str) -> str:
    """Return a frame as a pattern, with each article left out or not, and verbs with any ending."""
    words = []
    for word in frame.split():
        if word == "the":
            words.append(r"(?:(?:the|an?) )?")
        elif word in ("a", "an"):
            words.append(r"(?:the|an?) ")
        elif word in _BEING:
            words.append(rf"(?:is|was|are|were) {_ADVERB}")
        else:
            words.append(rf"{re.escape(word[:-1] if len(word) > 3 else word)}\w{{0,3}} {_ADVERB}")
    return "".join(words)


def _may_be_object(name: str, subject: str) -> bool:
    """Return whether a few words are neither a clause nor speak of the subject."""
    of_subject = bool(subject) and folded_key(subject) in folded_key(name)
    clause = _NO_OBJECT.match(name) or has_verb(name) or any(map(str.isdigit, name))
    return 0 < len(name.split()) <= LONGEST_NAME and not (clause or of_subject)


def _without_nation(text: str) -> str:
    """Return an object without its article and the nation before it."""
    return _NATION.sub("", text.strip(), count=1)


MOST = 20
"""Maximum number of sentences that are looked at."""
_ESTIMATED = re.compile(
    r"\b(?:approximately|approx|roughly|around|nearly|estimated?|but|say|guess|it's|is|was|has)"
    r"(?: (?:it|at|is|to|be|about|around|roughly|approximately))*\W+[\d~]",
    re.IGNORECASE,
)
_NUMBER_SENTENCE = re.compile(r"\n|(?<=[^\W\d_]{3}[.!?])\s+(?=[A-Z])|(?<=\d{3}[.!?])\s+(?=[A-Z][a-z])")
_CORRECTION = re.compile(r"\W*(?:(?:wait|correction|sorry|actually)[,:]|let me correct\b)", re.IGNORECASE)
_PAST = re.compile(
    r"\A\W*(?:(?:its |the )?(?:original|initial)|(?:its )?(?:former|previous)|once|when it opened)\b"
    r"|\b(?:originally|formerly|previously|once) (?:had|held|seated)\b",
    re.IGNORECASE,
)
_OTHER_PART = re.compile(
    r",? of which\b.*"
    r"|\b(?:increas|expand|rais|grew|grown|reduc|rose|enlarg)\w*\b[^.\d]{0,60} from \D{0,9}[\d.,]+ (?=to \d)"
)
"""A part of what is asked for, or what it was before a change."""
_NUMBER_REMARK = re.compile(r"\s[—–-]\s(?=[^\W\d_])")
_BETTER = re.compile(
    r" (?:for|making|with) a (?:grand )?total of |(?<=[a-z]) = (?=\d)"
    r"|(?<=\w),? (?:or,? more precisely,?|to be precise,?) "
)
"""Words before the better form of a number."""
_ALONE = re.compile(r"\W*\d[\d.,]*\W*")
_TOTAL = re.compile(r"\W*(?:grand |overall )?total\b", re.IGNORECASE)
_NONE_OF = re.compile(r"\b(?:no|any)\s+(\w+(?:\s+\w+)?)")


def best_values(text: str, relation: Relation, subject: str) -> tuple[str, ...] | None:
    """Return the values of a first sentence that is a number alone, else of the best sentence that has any.

    A total is better than any other, then what holds now, then a word of the relation; of equally good ones, the first
    is taken. A correction replaces what precedes it. Where what is counted is denied, as in "no children", the number
    is 0. The result is () if the text denies any other value, and None if it has none. Lines of a long text count as
    its sentences.
    """
    found: list[tuple[tuple[bool, bool, bool], tuple[str, ...]]] = []
    unit, short = stems(relation.unit or ""), len(text) <= LONGEST_CLAUSE  # reasoning says "wait" again and again
    plain = text if subject.isdigit() or not subject else text.replace(subject, "")  # which may be "One Piece"
    for sentence in (_NUMBER_SENTENCE.split(plain, MOST) if short else plain.split("\n", MOST))[:MOST]:
        start = sentence[: 4 * LONGEST]
        estimated, digit = _ESTIMATED.search(start), re.match(r"\W*\d", start)
        if not estimated and is_refusal(start):
            continue
        if not found and not estimated and not digit and is_abstention(without_trailer(trim(start)), relation):
            none = _NONE_OF.search(text[: 4 * LONGEST]) if relation.shape.integer else None
            return ("0",) if none and has_term(folded_key(none[1]), unit) else ()
        bullet = BULLET.match(sentence) if relation.kind == "number" else None  # "c. 1985" is no point of a list
        better = _BETTER.split(_OTHER_PART.sub("", sentence[bullet.end() :] if bullet else sentence))[-1]
        if values := tuple(read_values(_NUMBER_REMARK.split(better)[0], relation) or read_values(better, relation)):
            if not found and (_ALONE.fullmatch(sentence) or len(sentence.split()) == 1):
                return values
            key = folded_key(sentence[:LONGEST])
            states = has_term(key, phrase_terms(relation))
            total = bool(_TOTAL.match(sentence)) and (len(sentence.split()) < 4 or has_term(key, unit) or states)
            before = [] if short and _CORRECTION.match(sentence) else found
            found = [*before, ((total, not _PAST.search(sentence), states), values)]
    return max(found, key=itemgetter(0))[1] if found else None
