"""Objects of sentences that are made as the relation's own, such as poet in "He was a poet".

A relation's statement and clozes say how its sentences go. Their objects may be in lower case, so only the whole
sentence shows what they are: it is read last, when nothing else could be.
"""

from __future__ import annotations

import re
from functools import lru_cache

from lmkbc.answer.abstain import has_term, has_verb, stems, terms
from lmkbc.answer.literal import Word
from lmkbc.answer.plain_text import DENIED, LONGEST_CLAUSE, parted
from lmkbc.names import folded_key
from lmkbc.relation import Relation

_SENTENCE = re.compile(r"(?<=[^\W\d_]{3}[.!?])\s+|\n+|;\s+")
_FRAME = re.compile(r"\{subject\} (?!has \{)([^{}]+) \{(?:mask|object)\}")
_EITHER = re.compile(r"\b(\w+) or (\w+)\b")
_ARTICLE = re.compile(r"\A(?:the|an?|some) ")
_BEING = frozenset(("is", "was"))
_ADVERB = (
    r"(?:(?:(?:best |also |widely )?known as|(?:is |was )?(?:also )?able to|also|most likely|mainly|primarily|currently"
    r"|still|mostly|only|entirely|both) )?"
)
_INCLUDE = re.compile(r"(\w+),?\s(?:is|was|are|were|includes?|included|including)(?: (?:the|an?|both))? (?=[a-z])")
_ARE_THE = re.compile(r"\s(?:is|are|was|were) (?:the|its|all|his|her)\s(.*)")
_HERE = re.compile(r"(?:sure\W+)?(?:here|these|those|this|there|they|it|the following)\b", re.IGNORECASE)
_BEHIND = re.compile(
    r"(?:,? (?:who|which|that|where|but|at|best known|known|by profession|among|from|born|in|since|for|before)\b"
    r"|, an? | [—–-] ).*"
)
_NATION = re.compile(r"(?:[A-Z][\w-]+ |former |retired )+(?=[a-z])")
"""Capitalised words before a kind of person or thing, as in "Italian novelist"."""
_NO_OBJECT = re.compile(
    r"(?:in|at|on|of|from|with|by|as|very|one|including|are|is|best|born|several|many|later|etc|himself|herself)\b|\w+ed\b"
)
LONGEST_NAME = 4
"""Maximum number of words of an object in lower case."""


def predicates(text: str, relation: Relation, subject: str) -> list[Word]:
    """Return the objects of sentences that are made as one of the relation's, up to the first that denies something.

    Behind the subject, a part of its name or a pronoun, they go on as the statement or a cloze does. Others speak of
    the objects: "Her professions include poet and memoirist." A text of many sentences has none.
    """
    found = list[Word]()
    for sentence in _SENTENCE.split(text.replace("**", "")) if len(text) <= LONGEST_CLAUSE else ():
        if DENIED.search(sentence):
            break
        for told in _told(sentence.strip(" .!:"), relation, subject):
            words = [_bare(word.text) for word in parted(_BEHIND.sub("", told), relation)]
            if words and all(_may_be_object(word, subject) for word in words):
                found += [Word(word, quoted=False) for word in words]
                break
    return found


def _told(sentence: str, relation: Relation, subject: str) -> list[str]:
    """Return what a sentence may say that the objects are: behind a frame or such as "include", or before "are the"."""
    named = "|".join(map(re.escape, {subject, *subject.split()[-1:]} - {""}))
    begins = re.finditer(rf"(?:\b(?:{named})|\b(?:he|she|they|who))\s+", sentence, re.IGNORECASE)
    rests = [sentence[one.end() :] for one in begins]
    frames = _frames(relation.statement, *relation.clozes) if rests else []
    found = [rest[frame.end() :] for rest in rests for one in frames if (frame := one.match(rest))]
    included = _INCLUDE.search(sentence)
    if included and has_term(folded_key(included[1]), stems(relation.object_type.noun.split()[-1])):
        found.append(sentence[included.end() :])
    are = None if _HERE.match(sentence) else _ARE_THE.search(sentence)
    if are and has_term(folded_key(are[1]), terms(relation)):
        found.append(sentence[: are.start()])
    return found


@lru_cache(maxsize=256)
def _frames(*sentences: str) -> list[re.Pattern[str]]:
    """Return patterns of what stands between subject and object in a relation's sentences, in any tense."""
    texts = [frame[1] for one in sentences if (frame := _FRAME.search(one))]
    made = dict.fromkeys(way for text in texts for way in (_EITHER.sub(r"\1", text), _EITHER.sub(r"\2", text)))
    return [re.compile(_ADVERB + _pattern(way), re.IGNORECASE) for way in made]


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
    told = bool(subject) and folded_key(subject) in folded_key(name)
    told = told or _NO_OBJECT.match(name) is not None
    return 0 < len(name.split()) <= LONGEST_NAME and not (told or has_verb(name) or any(map(str.isdigit, name)))


def _bare(text: str) -> str:
    """Return an object without its article and the nation before it."""
    return _NATION.sub("", _ARTICLE.sub("", text.strip(), count=1), count=1)
