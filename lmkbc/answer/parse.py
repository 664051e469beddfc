"""From a model's raw text to objects: one tolerant procedure for all models and prompt styles.

A text is first narrowed to its answer: after the reasoning, after the last "ANSWER:", inside a code fence. The answer
is then read as a table, as a literal, as a sentence that states the relation, as a bulleted list, or as plain words
between the relation's separators. The state of a text without objects depends on the reason: an explicit "none",
unwritable numbers, a text that was cut off, or anything else. The last is a failed parse and never an empty answer.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from lmkbc.answer.abstain import (
    has_term,
    has_verb,
    is_abstention,
    is_failure,
    is_prose,
    is_refusal,
    object_terms,
    terms,
)
from lmkbc.answer.clauses import LONGEST_CLAUSE, are_things, emphasised, mentioned, predicated, said_frames, stated
from lmkbc.answer.clean import trim, vocabulary
from lmkbc.answer.elements import SHORT, column, elements, is_head, mended, narrowed
from lmkbc.answer.languages import adapted, has_titles, joined, says_nothing, with_and
from lmkbc.answer.lists import (
    body,
    bulleted,
    dated,
    is_a_name,
    is_capitalised,
    is_label,
    items,
    leading_list,
    own_fields,
    parted,
)
from lmkbc.answer.literal import Bracketed, Word, has_empty_list, read_literals
from lmkbc.answer.markup import read_fields, read_table
from lmkbc.answer.own_words import in_own_language, is_told, names_in_other_words
from lmkbc.kinds.kind import kind_of
from lmkbc.kinds.texts import texts, unwrapped
from lmkbc.kinds.values import best_values
from lmkbc.names import LONGEST, folded_key, name_key, shown, without_trailer
from lmkbc.relation import Relation
from lmkbc.types import State
from lmkbc.words import FORM, WORDS


@dataclass(frozen=True, slots=True)
class Parsed:
    """Result of parsing a completion: its state, and its objects."""

    state: State
    objects: tuple[str, ...] = ()


def parse(text: str, relation: Relation, subject: str, null: str = "") -> Parsed:
    """Return the objects of one raw completion, with numbers as plain digits.

    Never raises; time is linear in the length.

    null: the prompt's text for no object, besides the words that always mean it. State UNPARSED: nothing could be read,
    for example from blank text, mere marks, or unwritable numbers. State TRUNCATED: it was cut off before its first
    whole object.
    """
    answer, marked = narrowed(text)
    marks = kind_of(relation).marked
    if answer is not None and (written := marks(answer) or marks(text)):
        return Parsed(State.ANSWERED, tuple(dict.fromkeys(written)))
    if not answer:
        return Parsed(State.TRUNCATED if answer is None or marked else State.UNPARSED)
    if null and answer.rstrip(".").casefold() == null.rstrip(".").casefold():
        return Parsed(State.ABSTAINED)
    asks = FORM.question.fullmatch(answer) and not has_titles(relation)
    counts = relation.has_entities() and len(answer) < SHORT and FORM.numbering.fullmatch(answer)
    if asks or counts or FORM.marks.fullmatch(answer) or is_failure(answer):
        return Parsed(State.UNPARSED)
    if relation.is_verbatim():
        own = _without_subject(answer, subject)
        return (
            Parsed(State.ABSTAINED)
            if says_nothing(own, relation, subject)
            else _from_texts(own, relation, subject, null)
        )
    longest = LONGEST_CLAUSE * (1 if relation.has_values() else 2)  # reasoning says "wait" again and again
    within = ",;" if has_titles(relation) else ""  # as in "Wait, Wait: A Memoir"
    places = [
        one.span()
        for one in FORM.corrected.finditer(answer if len(answer) <= longest else "")
        if one[0][0] not in within and shown(answer[: one.start()])
    ]
    found = _read(answer[: places[0][0]] if places else answer, relation, subject, marked)
    for (start, behind), (end, _) in pairwise([*places, (len(answer), 0)]):
        adds = FORM.adds.search(answer, start, end) is not None
        found = _corrected(found, answer[behind:end], relation, subject, adds=adds)
    return found


def _read(answer: str, relation: Relation, subject: str, marked: bool) -> Parsed:
    """Return the objects of an answer, or of a part of it between corrections."""
    text = answer if has_titles(relation) else FORM.denied_name.sub(r"\1", answer)
    own = _unremarked(_without_subject(text, subject), relation, subject)
    if says_nothing(own, relation, subject):
        return Parsed(State.ABSTAINED)
    return (
        _from_literals(answer, relation, subject)
        or (_from_values if relation.has_values() else _from_words)(
            adapted(own, relation, subject), relation, subject, marked
        )
        or Parsed(_why_nothing(answer, relation))
    )


def _corrected(before: Parsed, part: str, relation: Relation, subject: str, *, adds: bool) -> Parsed:
    """Return what holds after a correction: other objects, further ones, or the same without those it withdraws."""
    kept, gone = list[str](), set[str]()
    for clause in FORM.clause.split(part):
        denied, _, instead = FORM.replaces.sub("\n", clause, count=1).partition("\n")
        names = {name for name in before.objects if _holds(denied, name)}
        is_denial = names and FORM.withdraws.search(denied)
        gone |= names if is_denial else set()
        kept.append(instead if is_denial else clause)
    text = "\n".join(filter(shown, kept))
    told = _read(text, relation, subject, False) if text else Parsed(State.UNPARSED)
    left = tuple(name for name in before.objects if name not in gone)
    if told.state is State.ABSTAINED and not gone:
        return told
    if told.state is not State.ANSWERED:
        return replace(before, objects=left) if left or not gone else Parsed(State.UNPARSED)
    objects = dict.fromkeys((*left, *told.objects) if adds else told.objects)
    return Parsed(State.ANSWERED, tuple(name for name in objects if name not in gone))


def _holds(text: str, name: str) -> bool:
    """Return whether a text holds a name as whole words, where blanks part words: no "Niger" is in "Nigeria"."""
    key, parted_by = folded_key(name), " " if name[-1:].lower() != name[-1:].upper() else ""
    return f"{parted_by}{key}{parted_by}" in f" {folded_key(text)} "


def _from_literals(text: str, relation: Relation, subject: str) -> Parsed | None:
    """Return objects of the tables, lists, tuples, JSON objects and tags in a text; None if it has none."""
    whole = mended(text)
    table = None if text[:1] in ("[", "{", "(") else read_table(text, lambda cell: is_head(cell, relation))
    if table and (cells := column(table, relation, subject)):
        if relation.has_values():
            words = [Word(cell, quoted=False) for cell in cells]
        else:
            words = (
                parted(cells[0], relation)
                if len(cells) == 1
                else [word for cell in cells for word in items(cell, relation)]
            )
        groups = [Bracketed("[", [*words], closed=True)]
    else:
        commas = "," in relation.shape.separators and not kind_of(relation).holds_marks
        literals = [
            one
            for one in read_literals(whole, commas=commas)  # in Flea ("Michael Balzary") is none
            if one.bracket != "(" or text[:1] == "(" or len(one.items) != 1 or isinstance(one.items[0], Bracketed)
        ]
        groups = literals or read_fields(text)
        words = [word for group in groups for word in elements(group, relation, subject, units=True)]
    words = [part for word in words for part in _several(word, relation)]
    if len(words) > 1 and all(FORM.year.match(word.text) for word in words):
        words = [word._replace(text=word.text[year.end() :]) for word in words if (year := FORM.year.match(word.text))]
    objects, denied = _judge(words, relation, subject)
    if objects:
        return Parsed(State.ANSWERED, objects)
    if denied or any(has_empty_list(group) for group in groups):
        return Parsed(State.ABSTAINED)
    if whole != text or not groups or (text[:1] != "(" and all(group.bracket == "(" for group in groups)):
        return None
    cut = not groups[-1].closed and not any(word.whole for word in words)
    return Parsed(State.TRUNCATED if cut else _why_nothing(text, relation))


def _several(word: Word, relation: Relation) -> list[Word]:
    """Return the parts of a text that is the value of a key and no name, as in {"answer": "Chile, Bolivia"}."""
    key = folded_key(word.key or "").replace(" ", "")
    if relation.has_values() or not key or key in ("name", "label") or not word.quoted:
        return [word]
    parts = bulleted(word.text, relation) or parted(word.text, relation)
    if not parts or vocabulary(relation.shape).canonical(trim(word.text)):
        return [word]
    return [part._replace(quoted=True, whole=word.whole or place < len(parts) - 1) for place, part in enumerate(parts)]


def _judge(words: Sequence[Word], relation: Relation, subject: str) -> tuple[tuple[str, ...], bool]:
    """Return the objects among some words, each once, and whether a word says that there is none."""
    objects: dict[str, None] = {}
    denied, read, titles = False, kind_of(relation).read, has_titles(relation)
    for word in dict.fromkeys(words):
        if not word.whole or len(word.text) > 4 * LONGEST or FORM.identifier.fullmatch(word.text):
            continue
        text = _tidy(word, relation)
        if relation.has_values() and any(char.isdigit() for char in text):
            objects |= dict.fromkeys(read(text, relation))
        elif vocabulary(relation.shape).canonical(text):
            objects[text] = None
        elif listed := mentioned(text, relation) if FORM.counted.search(text) else []:
            objects |= dict.fromkeys(one.text for one in listed)
        elif (
            is_abstention(text, relation)
            or (word.quoted and not shown(word.text))
            or (not objects and word is words[-1] and says_nothing(text, relation, subject))
        ):
            denied = True
        elif relation.has_values():
            objects |= dict.fromkeys(read(text, relation))
        elif (
            0 < len(shown(text)) <= len(text) <= LONGEST
            and (word.quoted or any(map(str.isalnum, shown(text))))  # mere marks are a name in quotes alone
            and ((word.quoted and titles and " " in text) or not is_prose(without_trailer(text), subject, word.quoted))
        ):
            objects[text] = None
    return tuple(objects), denied


def _tidy(word: Word, relation: Relation) -> str:
    text = word.text if kind_of(relation).holds_marks else trim(word.text)
    if not word.quoted:
        hedge = FORM.hedge.match(text)
        is_title = hedge and has_titles(relation) and not is_capitalised(text[hedge.end() :])  # "Formerly a Slave"
        bare = trim(text[hedge.end() :] if hedge and not is_title else text)
        text = FORM.last_joint.sub("", bare if relation.has_values() else FORM.in_time.sub("", bare))
    if not word.quoted and "," not in relation.shape.separators:
        text = FORM.apposition.sub("", text)
    bare, listed = trim(without_trailer(text)) or text, vocabulary(relation.shape).canonical
    if not (relation.has_values() or listed(text)) and (not relation.shape.closed or listed(bare)):
        text = bare
    if word.quoted or relation.has_values():
        return text
    ends = (found.end() for frame in said_frames(relation) if (found := frame.match(text)))
    end = next((end for end in ends if is_capitalised(text[end:]) or are_things(relation)), 0)
    return FORM.article_before.sub("", text[end:])


def _without_subject(text: str, subject: str) -> str:
    """Return an answer without the subject as its label, as in "Peru: Chile, Bolivia" and "Peru → None"."""
    mark = r"(?:[*_\s]*[:=][*_]*|[\w. ]{0,40}[*_\s]*(?:→|=>))\s*(?=\S)"
    label = re.match(rf"\W*{re.escape(subject)}{mark}", text) if subject else None
    return text[label.end() :] if label else text


def _from_texts(answer: str, relation: Relation, subject: str, null: str) -> Parsed:
    """Return the texts of an answer as they are written, without the emphasis or the quotes around them."""
    if is_abstention(answer, relation):
        return Parsed(State.ABSTAINED)
    kind = kind_of(relation)
    if is_refusal(answer) or kind.is_marked:
        return Parsed(_why_nothing(answer, relation))

    def plain(text: str) -> list[str]:
        found = texts(text, relation)
        return (
            [word.text for text in found for word in parted(with_and(text, relation), relation)]
            if kind.is_parted
            else found
        )

    written = _as_written(answer, relation, subject, null, plain)
    return replace(written, objects=tuple(dict.fromkeys(map(unwrapped, written.objects))))


def _from_values(text: str, relation: Relation, subject: str, _: bool) -> Parsed | None:
    values = best_values(text, relation, subject)
    return None if values is None else Parsed(State.ANSWERED if values else State.ABSTAINED, values)


def _with_commas(text: str, relation: Relation) -> str:
    """Return a sentence whose names are parted by semicolons with commas in their place."""
    names = text.split(";")[1:]
    is_list = "," in relation.shape.separators and not set(",\n:") & set(text.partition(": ")[2] or text)
    return (
        text.replace("; ", ", ")
        if is_list and all(0 < len(n.split()) <= 6 and not has_verb(n) for n in names)
        else text
    )


def _from_words(text: str, relation: Relation, subject: str, marked: bool) -> Parsed | None:
    """Return objects of a list that something follows, else of clauses that state the relation, else of bullets.

    If none has any, those of the first paragraph that has any are taken; after a mark, of the first line. Last come the
    bold words of a sentence, and its words of a closed list.
    """
    text = _with_commas(body(FORM.inserted.sub(" and ", text), relation), relation)
    text = FORM.further_end.sub("", FORM.only.sub("", text))
    text = FORM.and_does.sub("", text) if are_things(relation) else text
    fields = own_fields(text, relation)
    text = fields or _said_apart(text, relation, subject) or text
    if _is_denied(text, relation):
        return Parsed(State.ABSTAINED)
    names = "" if fields or in_own_language(text, relation) else stated(text, relation, subject)
    listed, bold = vocabulary(relation.shape).canonical, emphasised(text, relation, subject)
    kinds = "\n" not in text and len(bold) > 1 and all(word.text[:1].islower() for word in bold)
    told = parted(names, relation) if not has_verb(names) else []
    for words in ([] if fields else leading_list(text, relation, subject), told or (bold if kinds else [])):
        objects, _ = _judge(words, relation, subject)
        if objects and (not relation.shape.closed or any(map(listed, objects))):
            last = max(text.rfind(name.split(" (")[0]) for name in objects)
            end = FORM.sentence_end.search(text, max(last, 0))
            near = emphasised(text[: end.start()] if end else text, relation, subject)
            bolds, _ = _judge(near if words is told else [], relation, subject)
            more = set(objects) < set(bolds) and not FORM.denied.search(text)
            return Parsed(State.ANSWERED, bolds if more else objects)
    if len(text) < SHORT and is_abstention(text, relation) and not is_refusal(text):
        return Parsed(State.ABSTAINED)
    if bullets := bulleted(text, relation):
        paragraphs = [bullets]
    elif marked:
        paragraphs = [parted(text.split("\n", 1)[0], relation)]
    else:
        each = [paragraph for paragraph in FORM.paragraph.split(text) if not _is_sentence(paragraph)]
        if all(FORM.name_line.fullmatch(paragraph) for paragraph in each):  # a name in each
            each = ["\n".join(each)]
        lists = (parted(_list_of(paragraph), relation) for paragraph in each)
        paragraphs = [words for words in lists if not _is_of_sentence(words, text, relation)]
    by_year = dated(text)  # a year may have no object
    for words in paragraphs:
        first = words[0] if words and not by_year else None
        if first and is_abstention(_tidy(first, relation), relation) and not listed(trim(first.text)):
            return Parsed(State.ABSTAINED)
        objects, _ = _judge(words, relation, subject)
        if objects:
            said = mentioned(FORM.aside.sub("", text), relation) if len(paragraphs) == 1 and " " in shown(text) else []
            named = dict.fromkeys(word.text for word in said)
            return Parsed(State.ANSWERED, tuple(named) if named.keys() > {*filter(listed, objects)} else objects)
    if is_refusal(text[:2000]):
        return None
    others = bold, mentioned(text, relation), predicated(text, relation, subject)
    found = [objects for words in others if (objects := _judge(words, relation, subject)[0])] or [
        _judge(_in_other_words(text, relation, subject), relation, subject)[0]
    ]
    best = next((objects for objects in found if any(map(listed, objects))), found[0])
    return Parsed(State.ANSWERED, best) if best else None


LONGEST_SERIES = 6
"""Maximum number of parts of a sentence between its commas; more of them are a list."""


def _is_of_sentence(words: list[Word], text: str, relation: Relation) -> bool:
    """Return whether the first part of a list is rather of a sentence, so that its commas part no names."""
    told = len(words) <= LONGEST_SERIES and any(is_told(word.text, text) for word in words[:2])
    return told and _has_names(relation) and not is_a_name(_tidy(words[0], relation))


def _in_other_words(text: str, relation: Relation, subject: str) -> list[Word]:
    """Return the names that a sentence gives in other words than the relation's; none if it says that there is none."""
    tells = _has_names(relation) and (FORM.whole_end.search(text) or has_verb(text))
    is_open = tells and _why_nothing(text, relation) is not State.ABSTAINED
    return parted(joined(names_in_other_words(text, relation, subject), relation), relation) if is_open else []


def _has_names(relation: Relation) -> bool:
    """Return whether objects are names, and neither titles, things in small letters nor those of a list."""
    return relation.has_entities() and not (has_titles(relation) or are_things(relation) or relation.shape.closed)


def _said_apart(text: str, relation: Relation, subject: str) -> str:
    """Return the answer that stands apart from sentences about it: a first name, a last bold line or a last field.

    "" is returned for other texts.
    """
    first, *rest = [part for part in FORM.paragraph.split(text.strip()) if part.strip()] or [""]
    if not rest or not has_verb(text):
        return ""
    name, last = first.strip(" .*_"), rest[-1].strip()
    if (
        (is_a_name(name) or FORM.plain_list.fullmatch(name))
        and not has_verb(first)
        and name_key(name) != name_key(subject)
        and not is_label(name, relation)
    ):
        return first if "\n" not in first and ":" not in first else ""
    bold = FORM.bold.fullmatch(last.rstrip("."))
    if bold and not has_verb(bold[1]) and name_key(bold[1]) != name_key(subject):
        return bold[1]
    label, _, value = last.partition(":")
    is_short = "\n" not in last and not has_verb(last) and len(label.split()) < 4
    return value if is_short and has_term(folded_key(label), object_terms(relation)) else ""


def _is_denied(text: str, relation: Relation) -> bool:
    """Return whether a text begins with "None.", or its first clause denies the relation as a whole.

    No later clause may begin afresh.
    """
    first, *rest = FORM.clause_end.split(text[:LONGEST_CLAUSE])
    whole = rest and FORM.whole_denial.search(first) and is_abstention(first, relation)
    denies = whole and has_term(folded_key(first), terms(relation)) and not is_refusal(first)
    return bool(denies) and not any(map(FORM.afresh.match, rest))


def _unremarked(text: str, relation: Relation, subject: str) -> str:
    """Return a list of names without the remark behind it, as of "Chile and Peru. It has no coast." the two.

    A remark that names objects stays. So does one that denies that there is any, behind what may be the subject.
    """
    plain = re.sub(rf"(?<=[.;] ){re.escape(subject)}(?= [a-z])", "It", text[:LONGEST_CLAUSE]) if subject else text
    found = FORM.remarked.search(plain[:LONGEST_CLAUSE])
    names = plain[: found.start()].strip(" .!;") if found else ""
    each = [name for part in re.split(r"[,;]\s*|\band\s", names) for name in FORM.joint.split(part) if name.strip()]
    if relation.has_values() or not each or not all(map(is_a_name, each)) or ":" in names or "\n" in names:
        return text
    rest = plain[found.end() :] if found else ""
    speaks = has_term(folded_key(rest), terms(relation)) or name_key(names) == name_key(subject)
    denies = speaks and is_abstention(rest, relation) and not FORM.restricts.search(rest)
    alone = len(each) < 2 and (denies or is_refusal(rest) or is_abstention(names, relation))
    return text if alone or stated(rest, relation, subject) else names


def _list_of(paragraph: str) -> str:
    """Return the first sentence of a paragraph if it is a list and a sentence follows; else the paragraph."""
    first, *rest = FORM.sentence_end.split(paragraph, maxsplit=1)
    is_followed = bool(rest) and "\n" not in paragraph and not has_verb(first)
    is_list = first.endswith((").", ")!")) or ("," in first and any(map(has_verb, rest)))
    return first if is_followed and is_list else paragraph


def _is_sentence(paragraph: str) -> bool:
    """Return whether plain text starts with a sentence; its commas do not separate objects."""
    first = FORM.remark_behind.split(FORM.aside.sub("", FORM.sentence_end.split(paragraph, maxsplit=1)[0]), maxsplit=1)[
        0
    ]
    return len(first) <= 4 * LONGEST and (is_refusal(first) or (has_verb(first) and not FORM.lead.match(first)))


def _why_nothing(text: str, relation: Relation) -> State:
    """Return the state of a text without objects. Only its first and last sentences may say that there is none."""
    if is_refusal(text[:2000]):
        return State.UNPARSED
    sentences = [sentence for sentence in re.split(r"(?<=[.!?])\s+", text) if any(map(str.isalnum, sentence))]
    whole = bool(FORM.whole_end.search(text[-50:]))
    ends = sentences[:1] + sentences[-1:] if whole or len(text) < SHORT else []
    if any(len(sentence) <= 2 * LONGEST and is_abstention(sentence, relation) for sentence in ends):
        return State.ABSTAINED
    return State.UNPARSED if whole or len(text) < SHORT else State.TRUNCATED


def verbatim(text: str, relation: Relation, subject: str, null: str = "", lines: bool = False) -> Parsed:
    """Return the objects of one raw completion as written.

    null: text for no object, besides an empty list. lines: whether to read all lines of plain text; else the first.
    """
    answer, _ = narrowed(text)
    if not answer:
        return Parsed(State.TRUNCATED if answer is None else State.UNPARSED)
    if FORM.marks.fullmatch(answer):
        return Parsed(State.ABSTAINED if answer == null else State.UNPARSED)

    def plain(text: str) -> list[str]:
        kept = text if lines else text.split("\n", 1)[0]
        is_parted = kind_of(relation).is_parted
        return [word.text for word in parted(kept, relation)] if is_parted else kept.split("\n")

    return _as_written(answer, relation, subject, null, plain)


def _as_written(answer: str, relation: Relation, subject: str, null: str, plain: Callable[[str], list[str]]) -> Parsed:
    """Return the objects of an answer that is found already and is no mere mark. plain: reads one without literals."""
    words, empty = _words(answer, relation, subject, plain)
    if not words:
        return Parsed(State.ABSTAINED if empty else State.UNPARSED)
    nothing = words == (null,) or words == _words(null, relation, subject, plain)[0]
    return Parsed(State.ABSTAINED) if nothing else Parsed(State.ANSWERED, words)


def _words(
    answer: str, relation: Relation, subject: str, plain: Callable[[str], list[str]]
) -> tuple[tuple[str, ...], bool]:
    """Return the elements of an answer's literals, else the parts of its text, and whether a list is empty."""
    groups = read_literals(mended(answer), commas="," in relation.shape.separators)
    empty = any(map(has_empty_list, groups))
    words = [word for group in groups for word in elements(group, relation, subject) if word.whole]
    if any(not word.quoted and word.text in WORDS["nulls"] for word in words):
        words, empty = [word for word in words if word.quoted or word.text not in WORDS["nulls"]], True
    found = [word.text for word in words] if groups else plain(answer)
    return tuple(text for one in found if (text := one.strip())), empty or not all(found)
