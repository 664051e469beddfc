"""Names in sentences of a relation's own words, in any language but English: what is left is an object.

A sentence in other words than the relation's, in English as well, gives the names of its main clause.

An example is "Die Orgel wurde 1912 von der Firma Eva Bolt gebaut". The relation's sentences have "Orgel" and "gebaut"
in some form, the language has the small words, and the name is left. Of several names, one that stands where the
relation's sentences have their object is better, such as behind "von". Then comes one that is near a word of the
relation.

Each word of a sentence has a role, which is a letter. Signs are their own roles.

- N: a name. r: a word of the relation. x: the subject. d: a number. o: any other word.
- l: a verb that links. m: what marks the object behind it. v: the same if it may stand in a name. b: a mark of the
  object before it. w: a preposition before who does something. a: another preposition.
- c: what stands in names. s: another small word. A: the same with a capital. j: a joint.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from itertools import zip_longest
from typing import NamedTuple

from lmkbc.answer.abstain import has_persons
from lmkbc.names import folded_key
from lmkbc.relation import Relation
from lmkbc.words import FORM, LONGEST_SENTENCE, TABLES, WORDS, notions, words_in

ENGLISH = WORDS["stop"] - WORDS["little"]
"""Words of English alone."""
_ROLES = {
    "linking": "l",
    "agent": "m",
    "agent_behind": "b",
    "whence": "w",
    "away": "a",
    "beside": "s",
    "little": "s",
}
"""Table of words -> their role; the first one counts that has a word."""
_SMALL = (WORDS["little"] | WORDS["away"] | WORDS["whence"] | WORDS["stop"]) - WORDS["connecting"]
"""Words of sentences in any language that are a part of few names."""
_WORD = re.compile(
    rf"{FORM.whole_name.pattern}|\d[\d.,/–-]*|"
    rf"[^\W\d_](?:[\w-]|\.(?=\w)|(?<=\b[^\W\d_a-z])\.|{FORM.title_point.pattern})*['’]?|\S"
)
_NAME = re.compile(r"A?N(?:(?:[cvA]{1,3}|[cv]j[as]|&|-)?N)*")
_NAMES = re.compile(rf"{_NAME.pattern}(?:(?:,|,?j)[mvsc]{{0,2}}{_NAME.pattern})*")
_THINGS = re.compile(r"(?:(?<=[mv:])[sc]*|(?<=r)[sc]*)oo?(?:(?:,|,?j)[mvsc]*oo?)*")
_BEFORE = re.compile(r"(?:([mv]|r[^Nol]{0,9}:|(?<=l)w|(?<=lr)w)|([aw]))[awcsd]*\Z")


def language_of(relation: Relation) -> str:
    """Return the language of a relation's sentences, if its words are listed, or "en"; "" for any other."""
    return _language(relation.language, folded_key(f"{relation.question} {relation.statement}"))


@lru_cache(maxsize=256)
def _language(code: str, sentences: str) -> str:
    """Return the language of folded sentences. code: what their relation says, unless they are English."""
    words, listed = {*sentences.split()}, TABLES["words"]["linking"]
    if words & ENGLISH:
        return "en"
    if code:
        return code.partition("-")[0] if code.partition("-")[0] in listed else ""
    shared = {one: len(words & (words_in("little", one) | words_in("linking", one))) for one in listed}
    return max(filter(shared.get, shared), key=shared.__getitem__, default="")


def in_own_language(text: str, relation: Relation) -> bool:
    """Return whether a text is in the language of its relation, and not in English."""
    language = language_of(relation)
    return language not in ("", "en") and ENGLISH.isdisjoint(folded_key(text[:LONGEST_SENTENCE]).split())


def names_stated(text: str, relation: Relation, subject: str) -> str:
    """Return the names that the first sentence of a text with a word of the relation states; "" if there are none."""
    sentences = FORM.sentence.split(text) if language_of(relation) != "en" else []
    return _names(text, sentences, relation, subject, _stated)


def names_in_other_words(text: str, relation: Relation, subject: str) -> str:
    """Return the names of a sentence that need have no word of the relation, in English as well; "" if there are none.

    Sentences with such a word come first. What they say of another place is no object, unless objects are places.
    """
    sentences = FORM.sentence.split(text)
    near = [one for one in sentences if speaks_of(one, relation)] or sentences
    return _names(text, near, relation, subject, _told_otherwise)


def _names(text: str, sentences: list[str], relation: Relation, subject: str, chosen: _Choice) -> str:
    """Return the chosen names of the first of a text's sentences that has any; a sentence that speaks of none ends it.

    Each is read without clauses and appositions about its names, then without appositions, then as a whole.
    """
    language = language_of(relation)
    for given in sentences if language and "\n" not in text.strip() and len(text) <= LONGEST_SENTENCE else []:
        sentence = FORM.of("concession", language).sub(_blank, given)
        plain = FORM.of("what_it_is", language).sub(_blank, sentence)
        main = FORM.of("subclause", language).sub(_blank, plain)
        for clause in dict.fromkeys((main, plain, sentence)):
            words, roles = _taken_apart(clause, relation, subject, language)
            others = " ".join(word[0] for word, role in zip(words, roles, strict=True) if role != "N")
            withdraws = FORM.of("withdraws", language).search(others)
            names = None if withdraws else chosen(clause, words, roles, relation, clause == main)
            if names:
                return ", ".join(_written(clause, words, roles, one.start, one.end) for one in names)
        if names is None:
            return ""
    return ""


def denies(text: str, relation: Relation, subject: str) -> bool:
    """Return whether a text is a sentence with a word of the relation that negates it, and has no name."""
    language = language_of(relation)
    found = (
        FORM.of("negates", language).search(text)
        if language not in ("", "en") and len(text) <= LONGEST_SENTENCE
        else None
    )
    if not found:
        return False
    words, roles = _taken_apart(text, relation, subject, language)
    stated = relation.question, relation.statement, relation.triple, relation.definition, *relation.names
    known = _roots(language, *stated, *relation.clozes) - _roots(language, relation.subject_type.noun, found[0])
    keys = (_root(language, folded_key(word[0])) for word in words)
    told = {"known" if key in known else role for key, role in zip(keys, roles, strict=True)}
    return "known" in told and told.isdisjoint("Nd,:") and not FORM.but.search(text)


def _taken_apart(sentence: str, relation: Relation, subject: str, language: str) -> tuple[list[re.Match[str]], str]:
    """Return the words of a sentence but for times, and their roles."""
    words = [*_WORD.finditer(FORM.says_when.sub(_blank, FORM.aside.sub(_blank, sentence)))]
    inflected = r"(?:e?s|[nrm])?[\s-]+".join(map(re.escape, re.split(r"[\s-]+", subject)))  # "des Opernhauses Ulm"
    named = inflected if subject else "(?!)"
    subject_at = dict[int, str]()
    for found in re.finditer(rf"(?<!\w)(?i:{named})(?:e?s|n)?(?!-?\w)", sentence):  # "le pont Alexandre III", too
        is_body = FORM.body_before.search(sentence[: found.start()]) or FORM.body_behind.match(sentence[found.end() :])
        subject_at |= dict.fromkeys(range(*found.span()), "N" if is_body else "x")
    return words, _roles(words, subject_at, relation, language)


def _blank(found: re.Match[str]) -> str:
    return " " * len(found[0])


class _Names(NamedTuple):
    """Names in a sentence; better ones come first.

    unmarked: whether nothing says that they are the object. aside: how far the word before them speaks against it.
    distance: number of words to one of the relation. away: the role of a preposition before them, if it is no mark.
    """

    unmarked: bool
    aside: int
    distance: int
    start: int
    end: int
    away: str | None


def _ranked(roles: str, relation: Relation) -> list[_Names]:
    """Return the names of a sentence, the best ones first."""
    is_german = language_of(relation) == "de"
    near, ranked = [place for place, role in enumerate(roles) if role == "r"], list[_Names]()
    for names in _NAMES.finditer(roles):
        start, end = names.span()
        before = _BEFORE.search(roles, 0, start)
        if before and before[2] and (agent := roles.find("v", start, end)) > 0:  # "a Como da Eva Bolt"
            start, before = agent + 1, _BEFORE.search(roles, 0, agent + 1)
        if is_german and end - start > 2 and roles[start - 1 : start] == "o" and has_persons(relation):
            start += 1  # "die bekannte Malerin Eva Bolt"
        away = before[2] if before else None
        beside = 1 + (is_german and end - start == 1)  # may be a common noun
        aside = 3 if away == "a" else beside if away or roles[start - 1 : start] in tuple("cs") else 0
        distance = min((abs(place - edge) for place in near for edge in (start, end - 1)), default=LONGEST_SENTENCE)
        if relation.functional and "j" not in roles[start:end] and (first := _NAME.match(roles, start)):
            end = first.end()
        unmarked = roles[end : end + 1] != "b" and not (before and before[1])
        ranked.append(_Names(unmarked, aside, distance, start, end, away))
    return sorted(ranked)


_Choice = Callable[[str, list[re.Match[str]], str, Relation, bool], list[_Names] | None]
"""Names of a clause, from its text, words and roles; None if it is no sentence about a name.

The last argument says whether it is the main clause, without clauses about its names.
"""


def _stated(_: str, words: list[re.Match[str]], roles: str, relation: Relation, is_main: bool) -> list[_Names] | None:
    """Return the names that a clause states in words of the relation; in any but the main one, they need a mark."""
    if not re.search(r"\As+v|[lrmbo]", roles) or "Ao" in roles:
        return None
    near = [word[0] for word, role in zip(words, roles, strict=True) if role == "r"]
    speaks = re.search(r"[l:]|N,[so]*r(?!N)|\Ars+N", roles) or any(word[0].islower() for word in near)
    return [best for best in _ranked(roles, relation)[:1] if not best.unmarked or (is_main and near and speaks)]


def _told_otherwise(
    clause: str, _: list[re.Match[str]], roles: str, relation: Relation, __: bool
) -> list[_Names] | None:
    """Return the names of a clause in other words than the relation's, of places all, in the order that they have.

    Its first word is no name unless it stands alone. "A friend of Ann is Bo" speaks of somebody else.
    """
    if FORM.indefinite.match(clause) and re.match(r"so[cvm][cs]*x", roles):
        return None
    names = [one for one in _ranked(roles, relation) if "r" in roles or one.end > 1 or roles[1:2] in tuple(",.")]
    if not _are("places", relation):
        return [one for one in names[:1] if one.away != "a"]
    there = [  # "the village of Bray"
        one
        for one in names
        if one.away or not one.unmarked or ("r" in roles and roles[one.start - 1 : one.start] == "c")
    ]
    return there[:1] if relation.functional else sorted(there, key=lambda one: one.start)


def _written(sentence: str, words: list[re.Match[str]], roles: str, start: int, end: int) -> str:
    """Return names between two places as a list, without what stands between a joint and the next name."""
    made, last = "", start
    for name in _NAME.finditer(roles, start, end):
        joint = next((f" {words[place][0]} " for place in range(last, name.start()) if roles[place] == "j"), ", ")
        made += (made and joint) + sentence[words[name.start()].start() : words[name.end() - 1].end()].rstrip("'’")
        last = name.end()
    return made


def _roles(words: list[re.Match[str]], subject_at: dict[int, str], relation: Relation, language: str) -> str:
    """Return the roles of a sentence's words.

    subject_at: places of its characters where the subject stands -> the role there, which a body's name may hold.
    """
    sentences = relation.question, relation.statement, *relation.clozes
    texts = *sentences, relation.subject_type.noun, relation.object_type.noun, relation.triple, *relation.names
    known, own = _roots(language, *texts), folded_key(FORM.slot_or_elision.sub(" ", " ".join(texts))).split()
    marks, joint, roles = _marks(language, *sentences), FORM.of("joint", language), ""
    of_subject, of_object = (
        folded_key(relation.subject_type.noun),
        _root(language, folded_key(relation.object_type.noun)),
    )
    for word, following in zip_longest(words, words[1:]):
        text, key = word[0], folded_key(word[0])
        is_name = text[0].isupper()
        small = "m" if key in marks else _small(language, key)
        begins = is_name and roles[-1:] in tuple("mvl:") and following is not None and following[0][0].isupper()
        root = _root(language, key.partition(" ")[0])
        states = (
            root in known
            or (len(root) > 3 and (of_object.startswith(root) or of_object.endswith(root) or of_subject.endswith(key)))
            or (len(roles) < 2 and key.endswith(of_subject))  # "Die Klosterbrauerei", of a brewery
        )
        if word.start() in subject_at:
            role = "N" if roles[-1:] == "N" else subject_at[word.start()]  # "Gianni Caproni" founded Caproni
        elif FORM.whole_name.fullmatch(text):
            role = "N"
        elif not text[0].isalpha():
            role = "d" if text[0].isdigit() else text[0]
        elif joint.fullmatch(f" {text} "):
            role = "j"
        elif is_name and roles and key in words_in("little", language):
            role = "A"
        elif roles[-1:] == "N" and (is_name or FORM.of("name_behind", language).fullmatch(text)):
            role = "N"
        elif key in WORDS["connecting"] and small not in tuple("lab"):
            role = "v" if small == "m" else "c"
        elif is_name and roles and language != "de" and states and following is not None and following[0][0].isupper():
            role = "N"  # "il Teatro Verdi"
        elif small or (states and (not begins or key in own)):  # "von Orgelbau Bolt" has a name of three words
            role = small or "r"
        else:
            role = "N" if is_name else "o"
        roles += role
    things = "N" not in roles and _are("things", relation)
    return _THINGS.sub(lambda found: found[0].replace("o", "N"), roles) if things else roles


def is_told(part: str, text: str) -> bool:
    """Return whether a part of a list is rather of a sentence: it links words, or three small ones stand in a row.

    Those of a name are of few kinds, such as "de la"; a text that does not end as a sentence may have others.
    """
    plain = FORM.joined_name.sub("", FORM.aside.sub("", part))
    runs = FORM.three_small.findall(plain) if FORM.whole_end.search(text) else []
    return (
        not WORDS["linking"].isdisjoint(plain.split()[1:])
        or not all(_SMALL.isdisjoint(run.split()) for run in runs)
        or FORM.told_start.match(plain) is not None
    )


def speaks_of(text: str, relation: Relation) -> bool:
    """Return whether a text has a word of what a relation states, in any form; its types alone do not count."""
    sentences = relation.question, relation.statement, *relation.clozes
    language = language_of(relation)
    known = _roots(language, *sentences, relation.triple, *relation.names) - _roots(
        language, relation.subject_type.noun, relation.object_type.noun
    )
    return any(_root(language, key) in known for key in folded_key(text[:LONGEST_SENTENCE]).split())


def _are(kind: str, relation: Relation) -> bool:
    """Return whether a relation's objects are of a kind, by the nouns of their type. kind: name of a table of nouns."""
    return not words_in(kind, language_of(relation)).isdisjoint(folded_key(relation.object_type.noun).split())


@lru_cache(maxsize=4096)
def _small(language: str, key: str) -> str:
    """Return the role of a folded word that states nothing by itself; "" for another word."""
    return next((role for name, role in _ROLES.items() if key in words_in(name, language)), "")


@lru_cache(maxsize=4096)
def _root(language: str, key: str) -> str:
    """Return a folded word without the prefixes of its verb and without its endings."""
    return found[1] if (found := FORM.of("root", language).fullmatch(key)) else key


@lru_cache(maxsize=256)
def _roots(language: str, *texts: str) -> frozenset[str]:
    """Return the roots of the words of texts, and of those that replies have in their place."""
    own, *others = (
        frozenset(_root(language, word) for word in words.split() if len(word) > 2 and not _small(language, word))
        for words in (folded_key(FORM.slot_or_elision.sub(" ", " ".join(texts))), *notions(language))
    )
    return own.union(*(words for words in others if not own.isdisjoint(words)))


@lru_cache(maxsize=256)
def _marks(language: str, *sentences: str) -> frozenset[str]:
    """Return the prepositions that a relation's sentences have before the object."""
    before = (folded_key(word) for one in sentences for word in FORM.before_slot.findall(one))
    return frozenset(word for word in before if _small(language, word) in tuple("maws"))
