"""Recognition of answers without an object: abstentions, refusals and prose, by general English phrases.

Words of a relation ("parent", "children", "stock exchange") come from its declaration. Thus "no parent organisation" is
an abstention, and the band "No Doubt" stays a name. Terms by which a declaration speaks of its objects are compared by
the stems of their words.
"""

from __future__ import annotations

import re
from functools import lru_cache

from lmkbc.names import folded_key, shown
from lmkbc.relation import Relation
from lmkbc.words import FORM, WORDS, notions

_FURTHER = frozenset(map(folded_key, WORDS["further"]))
_LITTLE = frozenset(map(folded_key, WORDS["little"]))
PERSON = "Q5"
"""Wikidata's human, who may stand behind an occupation: "his wife, the painter Ann Lee"."""
PERSONS = frozenset(map(folded_key, WORDS["persons"]))
"""Words for persons and for what makes them the objects of a relation."""


LONG = 25
"""More words than this make even a quoted text prose."""


def is_abstention(text: str, relation: Relation) -> bool:
    """Return whether one answer (a list element, a line, a short sentence) says that there is no object."""
    text = shown(text)
    key = folded_key(text)
    if text in WORDS["nothing_marks"] or (relation.has_entities() and key in ("zero", "0")):
        return True
    if key in WORDS["nothing"] or key == "na":
        marked = any(letter.isalpha() and not letter.isascii() for letter in text)  # folding turns "Ñañ" into "nan"
        return not marked and text.strip(" .") not in ("Na", "Nan")  # the symbol of sodium, and a province
    first, _, rest = key.partition(" ")
    if first in ("no", "without", "none", "non") and rest and not FORM.no_denial.match(text):
        following = text.replace("-", " ").split()[1:2]
        is_term = rest.split(" ", 1)[0] in _relation_terms(relation)
        if is_term or (following and following[0].islower()) or key in WORDS["nothing"]:
            return True
    lacks = any(word in _relation_terms(relation) for found in FORM.with_no.findall(key) for word in found.split())
    return not _is_title(text) and (lacks or bool(FORM.denial.search(key)))


def is_refusal(text: str) -> bool:
    """Return whether a model declines to answer, which differs from the answer that there is no object."""
    key = folded_key(text)
    return is_failure(text) or (bool(FORM.refusal.search(key)) and not FORM.dont_know.search(key))


def is_failure(text: str) -> bool:
    """Return whether a text is an apology in another language, an error of a server, or the mere name of a format."""
    return FORM.failed.match(text) is not None or text.strip(" .:![]").casefold() in WORDS["formats"]


def is_prose(text: str, subject: str, quoted: bool = False) -> bool:
    """Return whether a text is a sentence, or a bare yes, instead of a name. The test is milder for quoted texts."""
    words = text.split()
    asks = any(word.islower() and len(word) > 3 for word in words) and FORM.question.fullmatch(text)  # not "Who Am I?"
    if asks or folded_key(text) in WORDS["yes"] or len(words) > LONG:
        return True
    lowered = f"{text.lower()} ".replace('"', "")
    start = subject.lower()
    after = lowered[len(start) :] if start and lowered.startswith(start) else ""
    if (after and FORM.verb.match(after)) or FORM.pronoun_verb.match(lowered) or FORM.pronoun_does.match(text):
        return True
    restates = len(words) > 6 and start and lowered.startswith("the ") and start in lowered
    speaks = FORM.i_am.match(text) and not _is_title(text)
    return not quoted and (len(words) > 12 or bool(restates or speaks) or has_verb(text))


def has_verb(text: str) -> bool:
    """Return whether an unquoted text of several words reads like a sentence."""
    return len(text.split()) > 3 and FORM.verb.search(text) is not None


def _is_title(text: str) -> bool:
    """Return whether a text is capitalised like the title of a work: three words or more, the long ones capitalised."""
    words = [word.strip(".,;:!?") for word in text.split()]
    long = [word for word in words if len(word) > 3 and word.isalpha()]
    return len(words) >= 3 and len(long) >= 2 and not any(word[0].islower() for word in long)


@lru_cache(maxsize=256)
def _words(*texts: str) -> frozenset[str]:
    folded = (folded_key(FORM.slot.sub(" ", text)) for text in texts)
    return frozenset(word for text in folded for word in text.split() if len(word) > 3)


def _relation_terms(relation: Relation) -> frozenset[str]:
    kinds = relation.subject_type.noun, relation.object_type.noun
    general = (
        "known official public information data record evidence such answer recorded confirmed available applicable"
    )
    return _words(*kinds, relation.triple, relation.question, general)


def relation_words(relation: Relation) -> frozenset[str]:
    """Return the words of a relation's phrase, in any edition's spelling."""
    return _words(relation.name, relation.triple, relation.question, *_spelt_out(relation)) | {"has", "is", "at", "of"}


def is_placeholder(name: str, relation: Relation) -> bool:
    """Return whether a name only states the type of the object: "State A", "Member 2", "other languages"."""
    words = folded_key(name).split()
    if " ".join(words) in _FURTHER:
        return True
    if words and words[0] in _FURTHER:
        noun = _words(relation.object_type.noun)
        return all(word in noun or word.removesuffix("s") in noun for word in words[1:])
    if len(words) > 1 and (len(words[-1]) == 1 or words[-1].isdigit()):
        words = words[:-1]
    return bool(words) and _words(relation.object_type.noun, *_spelt_out(relation)).issuperset(words)


def _spelt_out(relation: Relation) -> list[str]:
    """Return a relation's names in words; in German, those with "ae" in place of "ä" as they are folded, too."""
    names = [re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name) for name in relation.names]
    return [*names, *(re.sub("(?<=[aou])e", "", name) for name in names if relation.language[:2] == "de")]


def object_terms(relation: Relation) -> frozenset[str]:
    """Return the terms for a relation's objects: the words of their type."""
    return stems(relation.object_type.noun)


def phrase_terms(relation: Relation) -> frozenset[str]:
    """Return the terms of the verb phrase between subject and object."""
    return stems(relation.triple)


def terms(relation: Relation) -> frozenset[str]:
    """Return all terms of a relation's declaration, and those for an answer."""
    texts = (relation.object_type.noun, relation.triple, relation.question, relation.definition, *relation.clozes)
    return _with_others(stems(*texts, "answer"))


def name_terms(relation: Relation) -> frozenset[str]:
    """Return the terms of a relation's names, without those of its subjects."""
    return _with_others(stems(relation.name, *_spelt_out(relation))) - stems(relation.subject_type.noun)


@lru_cache(maxsize=256)
def _with_others(known: frozenset[str]) -> frozenset[str]:
    """Return terms, and those that replies have in their place."""
    return known.union(*(words for words in map(stems, notions()) if not known.isdisjoint(words)))


def has_persons(relation: Relation) -> bool:
    """Return whether the objects of a relation are persons."""
    words = folded_key(relation.object_type.noun).split()
    return relation.object_type.qid == PERSON or not PERSONS.isdisjoint(words)


def has_term(text: str, known: frozenset[str]) -> bool:
    """Return whether a folded text holds any of some terms."""
    return not known.isdisjoint(map(_stem, text.split()))


def is_made_of(text: str, known: frozenset[str]) -> bool:
    """Return whether all words of a folded text are terms."""
    return bool(text) and known.issuperset(map(_stem, text.split()))


@lru_cache(maxsize=1024)
def stems(*texts: str) -> frozenset[str]:
    """Return the words of texts as terms, without words that state nothing in English, or in their own language."""
    words = folded_key(FORM.slot.sub(" ", "\n".join(texts))).split()
    stop, others = WORDS["stop"], _LITTLE.intersection(words)
    stop = stop | others if len(others) > len(stop.intersection(words)) else stop
    return frozenset(_stem(word) for word in words if len(word) > 2 and word not in stop)


@lru_cache(maxsize=4096)
def _stem(word: str) -> str:
    """Return a word without the endings of plurals and of verbs, in American spelling."""
    word = word.replace("isation", "ization").replace("bour", "bor")
    return re.sub(r"(?:er)?(?:ies|y|ed|es|s|ing|e)$|er$", "", word) if len(word) > 3 else word
