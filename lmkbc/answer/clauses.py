"""Names in sentences: in clauses that state the relation, bold or listed ones, and objects in lower case.

For objects in lower case, such as poet in "He was a poet", a sentence must go as the relation's statement or a cloze
does.
"""

from __future__ import annotations

import re
from functools import lru_cache, partial
from itertools import takewhile

from lmkbc.answer.abstain import PERSON, has_term, has_verb, object_terms, stems, terms
from lmkbc.answer.clean import SETTLEMENTS, is_abbreviation, trim, vocabulary
from lmkbc.answer.lists import is_a_name, is_capitalised, is_label, names_in_line, parted, unlabelled
from lmkbc.answer.literal import Word
from lmkbc.names import folded_key, name_key, without_trailer
from lmkbc.relation import Relation
from lmkbc.words import FORM, WORDS

LONGEST_CLAUSE = 600
"""Maximum number of characters of a clause."""


def stated(text: str, relation: Relation, subject: str) -> str:
    """Return the names, a line for each clause, that a text's clauses state of the relation; "" if none does.

    They stand behind a word of the relation, such as "borders", "countries" or "died", with only such words between as
    "are" and "with". A clause with a denial before the names does not count; a later "so" or "wait" begins afresh.
    """
    found, afresh = list[str](), False
    if ";" in text and any(unlabelled(clause, relation) != clause for clause in text.split("; ")[1:]):
        return ""  # lists, of which some have labels
    clauses = FORM.clause_end.split(text)
    for clause in clauses:
        afresh = FORM.afresh.match(clause) is not None or (afresh and len(text) <= LONGEST_CLAUSE)
        if len(clause) <= LONGEST_CLAUSE and (names := _names_of(_unstopped(clause), relation, subject)):
            if not relation.shape.conjunction and "," in relation.shape.separators:
                names = FORM.last_pair.sub(r"\1, \2", names)  # in a sentence, an "and" stands before the last name
            several = names_in_line(names, relation, labelled=False)
            found, afresh = [*([] if afresh else found), ", ".join(several) or names], False
    if found and relation.shape.conjunction and len(clauses) > 1 and len(text) <= LONGEST_CLAUSE:
        first = without_trailer(clauses[0].strip(" *.!"))  # as in "India. It also borders China."
        is_one = is_a_name(first) and (" " in first or vocabulary(relation.shape).canonical(first))
        found = [first, *found] if is_one and FORM.pronoun.match(clauses[1]) else found
    return "\n".join(found)


def _names_of(clause: str, relation: Relation, subject: str) -> str:
    """Return the names that a clause states; the last ones that a word of the relation stands before."""
    clause = FORM.besides.sub("", FORM.aside.sub("", FORM.placed.sub(r"\1", clause)))
    if relation.object_type.qid in SETTLEMENTS:
        clause = FORM.aside_of_place.sub("", clause)
    clause = FORM.plus.sub(", plus ", clause) if "," in relation.shape.separators else clause
    if has_term("owned", stems(relation.statement, *relation.clozes)):
        if owner := _owner(clause, subject):
            return owner
        clause = FORM.owned.sub("owned by", clause)
    plain = _without(subject, clause) if subject else clause
    kind = FORM.nouned.search(plain) if relation.shape.conjunction else None
    if kind and has_term(kind[2], object_terms(relation)) and not FORM.denied.search(plain[: kind.start()]):
        return kind[1].replace(" and the ", " and ")
    restates = plain != clause and clause[:4] == "The "  # as in "The book of Some Subject is ..."
    words = _unplaced(plain, relation).split()
    for start in range(len(words) - 1, 0, -1):
        if is_capitalised(words[start]) and _is_stated(words, start, relation, restates=restates):
            if FORM.denied.search(" ".join(words[:start])):
                return ""
            if names := _run_of_names(words[start:], relation):
                return names
    return ""


def _owner(clause: str, subject: str) -> str:
    """Return the owner in a clause such as "Gap Inc. owns Old Navy"; "" for any other."""
    owned = rf"(?:the )?{re.escape(subject)}(?!\w)" if subject else r"(?:it|the company)\b"
    found = re.match(rf"(.+?),?\s(?:which |who )?(?:owns|acquired|bought) {owned}", clause)
    return found[1] if found else ""


def _is_stated(words: list[str], start: int, relation: Relation, *, restates: bool) -> bool:
    """Return whether a word of the relation stands before the name that begins at a place, which is inside no other.

    restates: whether the sentence speaks of the subject as a question would, so that a mere verb is enough.
    """
    before, last, known = start - 1, words[start - 1], terms(relation)
    while relation.object_type.qid == PERSON and before and start - before <= 3 and _may_be(words[before], known):
        before -= 1
    while before and (_is_between(words[before]) or words[before].strip(",").isdigit()):
        before -= 1
    states = has_term(folded_key(words[before]), known) and not _is_elsewhere(words, before, relation)
    announced = words[0] in ("There", "They", "These") and last.endswith(":")
    states |= announced or words[before].casefold() in WORDS["stating"]
    after = words[min(start + 1, len(words) - 1)]
    month = words[start].casefold().strip(".,") in WORDS["between"] and not is_capitalised(after)
    inside = is_capitalised(words[before]) and (before or last not in WORDS["being"]) and not announced
    beside = last.endswith("ly") and start > 1 and words[start - 2].endswith(",")  # as in "firms, mainly X Group"
    return (states or (restates and last in WORDS["being"])) and not (month or inside or beside)


def _run_of_names(words: list[str], relation: Relation) -> str:
    """Return the names at the start of some words: what is marked as names, else all that is capitalised."""
    nation = FORM.of_nation.match(" ".join(words))
    words = words[len(nation[0].split()) :] if nation else words
    text, titles = " ".join(words), not relation.shape.conjunction
    if FORM.marked.match(text) and (titles or not text.startswith("**")):
        return "\n".join(name[0] for name in FORM.marked.finditer(text))
    if relation.object_type.qid in SETTLEMENTS and (building := FORM.building.match(text)):
        return text[building.end() :]
    end = 0
    while end < len(words) and (
        is_capitalised(words[end])
        or words[end].casefold().strip(",") in WORDS["connecting"]
        or (FORM.ordinal.fullmatch(words[end]) and is_capitalised(" ".join(words[end + 1 : end + 2])))
        or (titles and _is_in_title(words, end))
    ):
        if "," not in relation.shape.separators and words[end] in ("the", "a", "an") and words[end - 1][-1:] == ",":
            break  # as in "Kering, the French group"
        end += 1
    while end and words[end - 1].casefold() in WORDS["connecting"]:
        end -= 1
    if not end:  # as in "The answer is The"
        return ""
    following = words[end] if end < len(words) else ""
    run = " ".join(words[:end])
    ends = run.endswith(",") or _is_between(following) or vocabulary(relation.shape).canonical(run)
    if following.islower() and (
        has_term(following.strip(".,:"), object_terms(relation))  # as in "Mexican states"
        or (are_things(relation) and not ends)  # as in "Celtic harp"
    ):
        return ""
    of_another = words[end - 1].endswith(("'s", "’s")) and not _is_between(following or "is")
    return "" if of_another else run.strip(",")  # not "George's estate"


def _unstopped(clause: str) -> str:
    """Return a clause without the full stop that ends it; that of "Inc." and "D.C." belongs to a name."""
    text = clause.strip(" \t!")
    return text if is_abbreviation(text) else text.strip(".")


def _without(subject: str, clause: str) -> str:
    """Return a clause without the subject, but for where it is a part of another name, such as South Sudan."""

    def kept(found: re.Match[str]) -> str:
        word = FORM.last_word.search(clause, 0, found.start())
        return found[0] if word and word.start() and is_capitalised(word[0]) else ""

    return re.sub(rf"(?:\bof )?\b{re.escape(subject)}(?:['’]s)?(?!\w|-\w| [A-Z])", kept, clause)


def _is_elsewhere(words: list[str], place: int, relation: Relation) -> bool:
    """Return whether a word says where the subject is, as in "a country in South Asia", which the clozes do not."""
    return (
        words[place + 1] == "in"
        and has_term(folded_key(words[place]), stems(relation.subject_type.noun))
        and not any(f"{words[place]} in " in cloze for cloze in relation.clozes)
    )


def _is_in_title(words: list[str], place: int) -> bool:
    """Return whether a word such as "to" stands before a further capitalised word, as in "The Road to Mecca"."""
    following = " ".join(words[place + 1 : place + 3]).split(" ")
    capital = next((word for word in following if word.casefold() not in WORDS["connecting"]), "")
    return (
        words[place] in WORDS["title_words"]
        and is_capitalised(capital)
        and capital.casefold().strip(".,") not in WORDS["between"]
    )


def _may_be(word: str, known: frozenset[str]) -> bool:
    """Return whether a word may say what a person is, before the name. known: terms, which state the relation."""
    return (
        word.isalpha()
        and word.islower()
        and not (word in WORDS["stating"] or _is_between(word) or has_term(word, known))
    )


def _is_between(word: str) -> bool:
    """Return whether a word may stand before names; "The" begins one."""
    return word != "The" and (word in "–—-" or word.casefold().strip(":,") in WORDS["between"])


def _unplaced(clause: str, relation: Relation) -> str:
    """Return a clause without directions; of "Chile and Peru to the west", a comma replaces the "and"."""
    known = vocabulary(relation.shape).canonical
    made, start = "", 0
    for place in FORM.where.finditer(clause):
        names = clause[start : place.start()]
        if relation.shape.conjunction:
            names = FORM.pair.sub(lambda pair: pair[0] if known(pair[0]) else pair[0].replace(" and ", ", "), names)
        start = place.end()
        if also := FORM.also_there.match(clause, start):
            names, start = f"{names}, ", also.end()
        made += names
    return made + clause[start:]


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
            before = FORM.before_thing if are_things(relation) else FORM.nation  # "an Italian novelist Ann Lee"
            names = (before.sub("", part.strip(), count=1) for part in parts)
            words = [*takewhile(partial(_may_be_object, subject=subject), names)]
            found += [Word(word, quoted=False) for word in words]
            if words:
                break
    return found


def are_things(relation: Relation) -> bool:
    """Return whether a relation's objects are things in lower case, such as harps, by the names that it lists.

    A capital belongs to such a name, as in "English horn". What the subject itself is, such as a poet, is none.
    """
    names = [*relation.shape.variants.values(), *relation.shape.closed]
    return 2 * sum(name[:1].islower() for name in names) > len(names) and " a {object}" not in relation.statement


def _claimed(sentence: str, relation: Relation, subject: str) -> list[str]:
    """Return what a sentence may say that the objects are: behind a frame or such as "include", or before "are the"."""
    named = filter(None, (subject, *subject.split()[-1:], "he", "she", "they", "who"))
    begins = re.compile(rf"\b(?:{'|'.join(map(re.escape, named))})\s+", re.IGNORECASE)
    rests = [sentence, *(sentence[one.end() :] for one in begins.finditer(sentence))]
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
    return [re.compile(FORM.adverb.pattern + _pattern(frame), re.IGNORECASE) for frame in frames]


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
            words.append(rf"(?:is|was|are|were) {FORM.adverb.pattern}")
        else:
            words.append(rf"{re.escape(word[:-1] if len(word) > 3 else word)}\w{{0,3}} {FORM.adverb.pattern}")
    return "".join(words)


def _may_be_object(name: str, subject: str) -> bool:
    """Return whether a few words are neither a clause nor speak of the subject."""
    of_subject = bool(subject) and folded_key(subject) in folded_key(name)
    clause = FORM.no_object.match(name) or has_verb(name) or any(map(str.isdigit, name))
    return 0 < len(name.split()) <= LONGEST_NAME and not (clause or of_subject)
