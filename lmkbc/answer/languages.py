"""Answers in other languages, brought into the form of English ones: without lead-ins, and with plain joints.

A joint such as "und" counts as a separate token, or as the last one of a list that other marks have parted already. A
name of a place that holds one stays whole.
"""

from __future__ import annotations

import re
from functools import reduce

from lmkbc.answer.abstain import has_persons, has_term, has_verb, name_terms, object_terms, stems, terms
from lmkbc.answer.clean import SETTLEMENTS
from lmkbc.answer.lists import cut, is_capitalised, is_firm
from lmkbc.answer.own_words import ENGLISH, denies, language_of, names_stated, speaks_of
from lmkbc.kinds.kind import kind_of
from lmkbc.kinds.numerals import has_decimal_comma
from lmkbc.names import folded_key, shown
from lmkbc.relation import Relation
from lmkbc.words import FORM, LONGEST_SENTENCE, WORDS, places, replaced

LONGEST_FRAME = 120
"""Maximum number of characters before the object in a sentence that states it."""
_WRAP = " \t\r\n.!,;:*_~`\"'“”„«»()[]{}。-–—"


def says_nothing(text: str, relation: Relation, subject: str) -> bool:
    """Return whether a whole answer in another language says that there is no object, or that it is not known."""
    whole = shown(text[:LONGEST_SENTENCE]).strip(_WRAP).replace("’", "'")
    whole = whole[sorry.end() :] if (sorry := FORM.sorry.match(whole)) else whole
    cuts = (end.split(whole, maxsplit=1) for end in (FORM.first_clause, FORM.sentence))
    firsts = ((told.strip(_WRAP), rest) for told, *more in cuts for rest in more)
    return (
        bool(relation.has_entities() and FORM.nothing_first.match(text) and not FORM.guessed.search(text))
        or _denies_all(whole, relation, subject)
        or any(
            _names_none(rest, told, relation, subject) and _denies_all(told, relation, subject) for told, rest in firsts
        )
    )


def _denies_all(whole: str, relation: Relation, subject: str) -> bool:
    """Return whether an answer, or a first clause, says as a whole that there is no object, or that none is known."""
    plain = FORM.reason.sub("", whole).strip(_WRAP)
    speaks = relation.is_verbatim() and has_term(folded_key(plain), terms(relation))
    head, _, rest = plain.casefold().partition(" ")
    is_noun = has_term(folded_key(head), name_terms(relation) | object_terms(relation))
    is_sentence = (speaks or not has_titles(relation)) and len(plain) < LONGEST_SENTENCE // 2
    return (
        plain.casefold() in WORDS["nothing_whole"]
        or (is_noun and not has_titles(relation) and rest in WORDS["nothing_whole"] | WORDS["nothing"])
        or FORM.no_knowledge.match(whole) is not None
        or (kind_of(relation).is_parted and not relation.has_values() and denies(plain, relation, subject))
        or (is_sentence and any(map(FORM.nothing_sentence.match, {plain, whole[: LONGEST_SENTENCE // 2].strip(_WRAP)})))
    )


def _names_none(rest: str, told: str, relation: Relation, subject: str) -> bool:
    """Return whether what follows a denial names no object: it says why there is none, or speaks of something else."""
    is_whole = told.casefold() in WORDS["nothing_whole"]
    states = speaks_of(rest, relation) and bool(
        re.search(r"\d", rest) if relation.has_values() else names_stated(rest, relation, subject)
    )
    may_name = (
        FORM.guessed.search(rest)
        or re.search("[\n:]", rest)
        or not FORM.plain_word.search(rest)  # "Nil, Kongo" are rivers
        or (states and relation.has_values())
    )
    return not FORM.but.search(rest) and bool(
        is_whole and FORM.denies.search(rest) if may_name else is_whole or not states
    )


def has_titles(relation: Relation) -> bool:
    """Return whether any sentence may be an object of a relation, as a motto or the title of a work is."""
    return relation.is_verbatim() or not (
        relation.shape.conjunction
        or relation.has_values()
        or relation.object_type.qid in SETTLEMENTS
        or has_term(folded_key(relation.object_type.noun), stems(*WORDS["named"]))
    )


def adapted(text: str, relation: Relation, subject: str) -> str:
    """Return an answer without what leads to its objects in another language, and with an English "and" as its joint.

    Titles only lose an opener: the name of a work may be any sentence. Of numbers, a lone "1.255" loses its point where
    the relation's language has a decimal comma.
    """
    if relation.has_numbers() and FORM.grouped.fullmatch(text) and has_decimal_comma(text, relation):
        return text.replace(".", "")
    of_now = relation.has_numbers() or FORM.of_now.search(f"{relation.question} {relation.definition}")
    plain = replaced(replaced(text, "former") if of_now else text, "instead")
    if relation.has_values():
        return plain
    are_others = has_persons(relation) or has_titles(relation) or relation.object_type.qid in SETTLEMENTS
    is_body = relation.functional and relation.has_entities() and not are_others
    plain = FORM.though.sub(".", FORM.place_behind.sub(r"\1", plain) if is_body else plain)
    plain = reduce(replaced, ("remarks", "pairs", "around", "times"), plain)
    plain = FORM.profession_before.sub("", plain) if has_persons(relation) and not has_titles(relation) else plain
    mark = ", " if relation.shape.conjunction or relation.object_type.qid in SETTLEMENTS else "\n"
    if relation.has_entities() and (names := _stated(FORM.bold.sub(r'"\1"', plain), relation, subject, mark)):
        return joined(names, relation)
    if has_titles(relation) or text[:1] in tuple("[{(<|") or len(text) > 20 * LONGEST_SENTENCE:
        return FORM.opener.sub("", text)
    text = plain
    if has_persons(relation) and len(text) <= LONGEST_SENTENCE:
        text = FORM.person_aside.sub("", FORM.maker_behind.sub("", FORM.maker_before.sub("", text)))
    text = _unstated(text, relation, subject)
    text = text if relation.shape.conjunction else FORM.plus.sub(mark, text)
    if relation.object_type.qid in SETTLEMENTS:
        return FORM.place_before.sub("", _without_lead(text), count=1)
    return "\n".join(joined(line, relation) for line in _without_lead(text).split("\n"))


def _stated(text: str, relation: Relation, subject: str, mark: str) -> str:
    """Return the names that a sentence states, and those that are added to it unless there is at most one object.

    mark: what parts the names.
    """
    first, *more = FORM.plus.split(text)
    clauses = [first] if relation.functional else FORM.stated_beside.split(first)
    each = [names_stated(clause, relation, subject) for clause in clauses]
    if clauses[1:] and all(each):
        names = mark.join(joined(one, relation).replace(" and ", mark) for one in each)
    else:
        names = names_stated(first, relation, subject) if clauses[1:] else each[0]
    added = () if relation.functional else (FORM.sentence.split(one, maxsplit=1)[0].strip(_WRAP) for one in more)
    whole = [names, *(names_stated(one, relation, subject) or one for one in added)]
    return mark.join(whole) if names else names_stated(FORM.plus.sub(mark, text), relation, subject)


def told_by_noun(text: str, relation: Relation) -> str:
    """Return what a sentence says that a noun of the relation is, as in "Le titre est « Le Cri »"; "" for another."""
    if (stating := FORM.states.search(text[:LONGEST_FRAME])) and has_term(
        folded_key(text[: stating.start()]), stems(relation.statement, *relation.clozes) | name_terms(relation)
    ):
        return text[stating.end() :]
    return ""


def _unstated(text: str, relation: Relation, subject: str) -> str:
    """Return the objects of a sentence that goes as those of the relation or as its triple do, else the text.

    In English, only objects in lower case are read so. In other languages, a noun of the relation is enough: "Die Maler
    sind ...".
    """
    is_english = ENGLISH.intersection(folded_key(relation.question).split())
    asking, _, rest = relation.question.partition(" ")
    asked = [f"{{mask}} {rest}"] if asking.casefold() in WORDS["asking"] else []
    stated = relation.statement.replace("{object}", "{mask}"), f"{{subject}} {relation.triple} {{mask}}"
    for sentence in (*stated, *relation.clozes, *asked):
        if not all(part.strip(" .?") in text for part in FORM.slot.split(sentence)):
            continue
        before, after = (re.escape(part.strip(" .?")) for part in sentence.split("{mask}"))
        frame = rf"\W*{before}\s*\b(.+?)\s*{after}\W*".replace(
            r"\{subject\}", rf"(?:{re.escape(subject)}|[^\W\d_]{{1,5}}(?:[ '’][^\W\d_]{{2,20}})?)"
        )
        told = re.fullmatch(frame, text[:LONGEST_SENTENCE])
        if told and not (is_english and told[1] != told[1].lower()):
            return told[1]
    return text if is_english else FORM.sentence.split(told_by_noun(text, relation), maxsplit=1)[0] or text


def _without_lead(text: str) -> str:
    """Return a text without the words before its objects, and without those behind them in its first sentence."""
    head, _, rest = text.partition("\n")
    if FORM.bullet.match(head) or len(head) > LONGEST_SENTENCE or head.rstrip(" *")[-1:] == ":":
        return text
    label = FORM.lead_label.match(head)
    if (
        label
        and ":" not in head[label.end() :] + rest
        and _leads(label[1], "," in head or FORM.joint.search(head) is not None)
    ):
        return f"{FORM.sentence.split(head[label.end() :], maxsplit=1)[0]}\n{rest}"
    if shown(rest) and (not rest.startswith("\n") or FORM.bullet.match(rest.lstrip("\n"))):
        return text
    first = FORM.sentence.split(head, maxsplit=1)[0]
    bare = FORM.says_after.sub("", first)
    stated = FORM.says.match(first)
    told = FORM.says_when.sub("", bare[stated.end() if stated else 0 :])
    return (_from_name(told) or bare) if stated or bare != first else text


def _leads(label: str, several: bool) -> bool:
    """Return whether words before a colon lead to objects: they end in lower case, or have no case.

    several: whether a list follows, which no part of a name is.
    """
    is_cased = any(map(str.isupper, label)) or any(map(str.islower, label))
    return any(map(str.isalpha, label)) and (
        not is_cased or several or (" " in label and label.rpartition(" ")[2].islower())
    )


def _from_name(rest: str) -> str:
    """Return the rest of a sentence from its first name on; "" if more than a few small words stand before it."""
    words = rest.strip(" :,").split()
    start = next(
        (place for place, word in enumerate(words[:7]) if not word[:1].islower() or is_capitalised(word)), None
    )
    return "" if start is None else " ".join(words[start:])


def joined(line: str, relation: Relation) -> str:
    """Return a line with " and " or a comma at the joints of another language that are no part of a name."""
    if (
        not relation.shape.conjunction
        or has_verb(line)
        or is_firm(line, relation)
        or len(line) > 4 * LONGEST_SENTENCE
        or (";" in line and ";" in relation.shape.separators)
    ):
        return line
    if FORM.point.search(line) and places().issuperset(map(folded_key, FORM.point.split(line.strip(_WRAP)))):
        line = FORM.point.sub(", ", line)
    joint_form = FORM.joint if (own := language_of(relation)) in ("", "en") else FORM.of("joint", own)
    line = FORM.first_article.sub("", line)  # as in "Le Chili et la Bolivie"
    if FORM.bullet.match(line) and "," not in line and joint_form.search(line):
        names = joint_form.split(line)
        each = names[-1], FORM.bullet.sub("", names[0], count=1)
        are_persons = has_persons(relation) and not any(
            map(str.islower, {*" ".join(each).split()} - WORDS["connecting"])
        )
        if any(" " not in name.strip() for name in each) or not (are_persons or all(map(_is_place, each))):
            return line  # as in "- Weber und Sohn"; of English names, too, only those of several words are parted
    persons, given = has_persons(relation), FORM.comma.split(line)
    parts = [FORM.joint_first.sub("", part, count=1) if place else part for place, part in enumerate(given)]
    parts = [
        bare if _is_place(bare := FORM.article_of_place.sub("", part)) and not _is_place(part) else part
        for part in parts
    ]
    ends, further = {len(parts) - 1}, given[-1].strip()[:1].islower()  # "A, B und C, sowie D"
    parts = [
        _apart(_apart(part, joint_form, " and " if place in ends else ", ", persons), FORM.joint_within, ", ")
        if place in ends or further
        else part
        for place, part in enumerate(parts)
    ]
    if len(parts) > 1 and (all(part[:1] in "וو" for part in parts[1:]) or _is_place(parts[-1][1:])):
        parts[1:] = [part[1:] if part[:1] in "וو" else part for part in parts[1:]]
    pieces = FORM.joint_before.split(parts[-1])
    if not _is_place(parts[-1]) and (len(parts) > 1 or len(pieces) > 2 or all(map(_is_place, pieces))):
        parts[-1] = _apart(parts[-1], FORM.joint_before, ", ")
    return line if parts == given else ", ".join(parts)


def with_and(text: str, relation: Relation) -> str:
    """Return a list of texts between commas with an English "and" in place of the joint before its last one.

    It is without what leads to it, if that speaks of the objects, without "etc.", and without the full stop of a
    sentence.
    """
    text = FORM.further_end.sub("", text)
    if shows := FORM.shows.match(text):
        text = FORM.shows_behind.sub("", text[shows.end() :]).rstrip(". ")
    if not text:
        return ""
    stated = FORM.says.match(text)
    bare = text[stated.end() :].strip() if stated else _without_lead(text).strip()
    lead = text.partition(bare.partition(",")[0] or text)[0]
    if lead.rstrip()[-1:] == ":" or has_term(folded_key(lead), terms(relation)):
        text = bare
    head, comma, last = text.rpartition(",")
    is_list = ";" not in text and relation.shape.conjunction and "," in relation.shape.separators
    parts = comma or (is_list and FORM.joint.search(last))
    last = last.rstrip(". ") if parts and "," in relation.shape.separators and FORM.last_stop.search(text) else last
    last = _apart(_apart(last, FORM.joint, " and "), FORM.joint_within, " and ") if is_list else last
    return f"{head}{comma}{last}"


def _apart(part: str, joint_form: re.Pattern[str], mark: str, persons: bool = False) -> str:
    """Return a part of a list with a mark at its joints; pieces that make up the name of a place stay together.

    persons: whether "y", "e" and "i" before a single word may join family names, as in "Santiago Ramón y Cajal".
    """

    def is_one(before: str, joint: str, behind: str) -> bool:
        family = persons and joint.strip() in ("y", "e", "i") and " " in before.strip() and " " not in behind.strip()
        return family or _is_place(before + joint + behind)

    return mark.join(cut(part, [*joint_form.finditer(part)], is_one))


def _is_place(text: str) -> bool:
    bullet = FORM.bullet.match(text)
    return folded_key(text[bullet.end() if bullet else 0 :].strip(_WRAP)) in places()
