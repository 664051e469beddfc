"""Values in sentences: the best number or date of a text that says more than one."""

from __future__ import annotations

import re
from operator import itemgetter

from lmkbc.answer.abstain import has_term, is_abstention, is_refusal, name_terms, phrase_terms, stems
from lmkbc.answer.clauses import LONGEST_CLAUSE
from lmkbc.answer.clean import trim
from lmkbc.answer.own_words import speaks_of
from lmkbc.kinds.kind import kind_of
from lmkbc.kinds.units import LETTER
from lmkbc.names import LONGEST, folded_key, without_trailer
from lmkbc.relation import Relation
from lmkbc.words import FORM

MOST = 20
"""Maximum number of sentences that are looked at."""


def best_values(text: str, relation: Relation, subject: str) -> tuple[str, ...] | None:
    """Return the values of a first sentence that is a number alone, else of the best sentence that has any.

    A total is better than any other, then what holds now, then a word of the relation; of equally good ones, the first
    is taken. A correction replaces what precedes it. Where what is counted is denied, as in "no children", the number
    is 0. The result is () if the text denies any other value, and None if it has none. Lines of a long text count as
    its sentences.
    """
    found: list[tuple[tuple[bool, bool, bool], tuple[str, ...]]] = []
    unit, short = stems(relation.unit or ""), len(text) <= LONGEST_CLAUSE  # reasoning says "wait" again and again
    read, known = kind_of(relation).read, unit | phrase_terms(relation) | name_terms(relation)
    name = "(?!)" if subject.isdigit() or not subject else rf"(?<!{LETTER}){re.escape(subject)}(?!{LETTER})"
    plain = re.sub(name, "", text)  # it may be "One Piece"
    for sentence in (FORM.number_sentence.split(plain, MOST) if short else plain.split("\n", MOST))[:MOST]:
        start = sentence[: 4 * LONGEST]
        estimated, digit = FORM.estimated.search(start), re.match(r"\W*\d", start)
        if not estimated and is_refusal(start):
            continue
        if not found and not estimated and not digit and is_abstention(without_trailer(trim(start)), relation):
            none = FORM.none_of.search(text[: 4 * LONGEST]) if relation.shape.integer else None
            return ("0",) if none and has_term(folded_key(none[1] or f"{none[2]}ren"), unit) else ()
        bullet = FORM.bullet.match(sentence) if relation.has_numbers() else None
        better = FORM.better.split(FORM.other_part.sub("", sentence[bullet.end() :] if bullet else sentence))[-1]
        if values := tuple(
            read(_from_total(FORM.number_remark.split(better)[0], known), relation) or read(better, relation)
        ):
            if len(values) > 1 and relation.has_one_object() and kind_of(relation).asks_when:
                values = _of_the_relation(better, relation) or values
            if not found and (FORM.alone.fullmatch(sentence) or len(sentence.split()) == 1):
                return values
            key = folded_key(sentence[:LONGEST])
            states = has_term(key, phrase_terms(relation))
            total = bool(FORM.total.match(sentence)) and (len(sentence.split()) < 4 or has_term(key, unit) or states)
            found = [*found, ((total, not FORM.past.search(sentence), states), values)]
    return max(found, key=itemgetter(0))[1] if found else None


def _from_total(sentence: str, known: frozenset[str]) -> str:
    """Return a sentence from its total on, if it is one of what the relation asks for: it has a term, or no noun."""
    total = FORM.before_total.sub("", sentence)
    said = {word for word in stems(FORM.in_total.sub(" ", total[:LONGEST])) if word.isalpha()}
    return total if not said or said & known else sentence


def _of_the_relation(sentence: str, relation: Relation) -> tuple[str, ...]:
    """Return the dates of those parts of a sentence that have a word of the relation, else of a short first part."""
    parts = FORM.part_of_sentence.split(sentence)
    parts = [part for part in parts if speaks_of(part, relation)] or [one for one in parts[:1] if len(one.split()) < 5]
    return tuple(dict.fromkeys(value for part in parts for value in kind_of(relation).read(part, relation)))
