"""Names in sentences: bold or listed ones, and objects in lower case.

For objects in lower case, such as poet in "He was a poet", a sentence must go as the relation's statement or a cloze
does.
"""

from __future__ import annotations

import re
from functools import lru_cache, partial
from itertools import takewhile

from lmkbc.answer.abstain import has_term, has_verb, stems, terms
from lmkbc.answer.clauses import LONGEST_CLAUSE
from lmkbc.answer.clean import trim, vocabulary
from lmkbc.answer.lists import is_a_name, is_label, parted
from lmkbc.answer.literal import Word
from lmkbc.answer.words import FORM, WORDS
from lmkbc.names import folded_key, name_key
from lmkbc.relation import Relation


def emphasised(text: str, relation: Relation, subject: str) -> list[Word]:
    """Return the bold texts that may be names, or are all in lower case; neither the subject nor labels."""
    known, title, found = vocabulary(relation.shape).canonical, name_key(subject), list[str]()
    for bold in FORM.bold.finditer(text):
        name = bold[1].strip(" :")
        label = (bold[1][-1:] == ":" or text[bold.end() : bold.end() + 1] == ":") and is_label(name, relation)
        if known(name) or not (label or name_key(name) == title or FORM.symbol.fullmatch(name)):
            found.append(name)
    taken = [name for name in found if is_a_name(name) or known(name)]
    plain = [name for name in found if name[:1].islower() and len(name.split()) <= LONGEST_NAME]
    kinds = plain == found and (taken or len(plain) > 1)  # such as poet and lawyer
    return [Word(name, quoted=False) for name in (plain if kinds else taken)]


def mentioned(text: str, relation: Relation) -> list[Word]:
    """Return the names of a closed list that stand in a sentence, in order; none for another relation."""
    if not relation.shape.closed or FORM.denied.search(text):
        return []
    words, known = text[:LONGEST_CLAUSE].split(), vocabulary(relation.shape).canonical
    found, place = list[Word](), 0
    while place < len(words):
        runs = ((trim(" ".join(words[place : place + size])), size) for size in (3, 2, 1))
        name, size = next(((run, size) for run, size in runs if len(run) > 3 and known(run)), ("", 1))
        found += [Word(name, quoted=False)] if name else []
        place += size
    return found


_ADVERB = (
    r"(?:(?:(?:best |also |widely )?known as|(?:is |was )?(?:also )?able to|also|most likely|mainly|primarily|currently"
    r"|still|mostly|only|entirely|both) )?"
)
LONGEST_NAME = 4
"""Maximum number of words of an object in lower case."""


def predicated(text: str, relation: Relation, subject: str) -> list[Word]:
    """Return the objects of sentences that are made as one of the relation's, up to the first that denies something.

    Behind the subject, a part of its name or a pronoun, they go on as the statement or a cloze does. Others speak of
    the objects: "Her professions include poet and memoirist." A text of many sentences has none.
    """
    found = list[Word]()
    for sentence in FORM.clause_end.split(text.replace("**", "")) if len(text) <= LONGEST_CLAUSE else ():
        if FORM.denied.search(sentence):
            break
        plain = FORM.in_time.sub("", FORM.aside.sub("", sentence.strip(" .!:")))
        for objects in _claimed(plain, relation, subject):
            parts = [part.text for part in parted(FORM.behind.sub("", objects), relation)]
            if relation.shape.conjunction:
                parts = [piece for part in parts for piece in part.split(" and ")]
            words = [*takewhile(partial(_may_be_object, subject=subject), map(_without_nation, parts))]
            found += [Word(word, quoted=False) for word in words]
            if words:
                break
    return found


def _claimed(sentence: str, relation: Relation, subject: str) -> list[str]:
    """Return what a sentence may say that the objects are: behind a frame or such as "include", or before "are the"."""
    named = "|".join(map(re.escape, {subject, *subject.split()[-1:]} - {""}))
    begins = re.compile(rf"\b(?:{named}|he|she|they|who)\s+" if named else r"\b(?:he|she|they|who)\s+", re.IGNORECASE)
    rests = [sentence[one.end() :] for one in begins.finditer(sentence)]
    frames = _frames(relation.statement, *relation.clozes)
    found = [rest[frame.end() :] for rest in rests for one in frames if (frame := one.match(rest))]
    included = FORM.include.search(sentence)
    if included and has_term(folded_key(included[1]), stems(relation.object_type.noun.split()[-1])):
        found.append(sentence[included.end() :])
    if (are := FORM.are_the.match(sentence)) and has_term(folded_key(are[2]), terms(relation)):
        found.append(are[1])
    return found


@lru_cache(maxsize=256)
def _frames(*sentences: str) -> list[re.Pattern[str]]:
    """Return patterns of what stands between subject and object in a relation's sentences, in any tense."""
    frames = [FORM.either.sub(r"\1", frame[1]) for one in sentences if (frame := FORM.frame.search(one))]
    return [re.compile(_ADVERB + _pattern(frame), re.IGNORECASE) for frame in frames]


def said_frames(relation: Relation) -> list[re.Pattern[str]]:
    """Return patterns of what may stand before an object where the subject is left out: "Died in" and "In"."""
    return _said(relation.statement, *relation.clozes)


@lru_cache(maxsize=256)
def _said(*sentences: str) -> list[re.Pattern[str]]:
    frames = [FORM.either.sub(r"\1", frame[1]).split() for one in sentences if (frame := FORM.frame.search(one))]
    whole = [" ".join(words[1:] if words[0] in WORDS["be"] and len(words) > 1 else words) for words in frames]
    whole += [bare for one in whole if (bare := re.sub(r" the \w+\Z", "", one)) != one]
    last = {words[-1] for words in frames if len(words[-1]) < 4 and words[-1] not in {*WORDS["be"], "the", "a", "an"}}
    return [re.compile(_pattern(frame), re.IGNORECASE) for frame in whole] + [
        re.compile(rf"{word.capitalize()} ") for word in sorted(last)
    ]


def _pattern(frame: str) -> str:
    """Return a frame as a pattern, with each article left out or not, and verbs with any ending."""
    words = []
    for word in frame.split():
        if word == "the":
            words.append(r"(?:(?:the|an?) )?")
        elif word in ("a", "an"):
            words.append(r"(?:the|an?) ")
        elif word in ("of", "by"):
            words.append(rf"(?:{word}|{'from|due to|in' if word == 'of' else 'in'}) ")
        elif word in WORDS["be"]:
            words.append(rf"(?:is|was|are|were) {_ADVERB}")
        else:
            words.append(rf"{re.escape(word[:-1] if len(word) > 3 else word)}\w{{0,3}} {_ADVERB}")
    return "".join(words)


def _may_be_object(name: str, subject: str) -> bool:
    """Return whether a few words are neither a clause nor speak of the subject."""
    of_subject = bool(subject) and folded_key(subject) in folded_key(name)
    clause = FORM.no_object.match(name) or has_verb(name) or any(map(str.isdigit, name))
    return 0 < len(name.split()) <= LONGEST_NAME and not (clause or of_subject)


def _without_nation(text: str) -> str:
    """Return an object without its article and the nation before it."""
    return FORM.nation.sub("", text.strip(), count=1)
