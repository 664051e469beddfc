"""Names in lists: in bulleted and labelled lines, between separators, and on a first line that a comment follows."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence

from lmkbc.answer.abstain import (
    PERSON,
    PERSONS,
    has_persons,
    has_term,
    has_verb,
    is_made_of,
    object_terms,
    stems,
    terms,
)
from lmkbc.answer.clean import trim, vocabulary
from lmkbc.answer.literal import Word
from lmkbc.names import LONGEST, folded_key, name_key, without_trailer
from lmkbc.relation import Relation
from lmkbc.words import FORM, WORDS

LONGEST_LABEL = 6
"""Maximum number of words of a label."""
_LABELS = WORDS["groups"] | frozenset(
    "name names label id answer answers object objects entity entities item items result results output option list "
    "north south east west northeast northwest southeast southwest".split()
)
"""Words of general labels; those of a relation are made of its own terms, or of words that are never its object."""


def body(text: str, relation: Relation) -> str:
    """Return a text without headings and without the head of its only column, if anything else is left.

    A first line with a colon is a heading if several lines follow that state nothing and have none.
    """
    text = FORM.heading.sub("", FORM.headed.sub("", text)).strip() or text
    lines = sum(bool(line.strip()) for line in text.split("\n"))
    for year in (FORM.bare_year, FORM.last_year):
        if 1 < lines == len(year.findall(text)):
            text = year.sub(r"\1" if year.groups else "", text)
    head, _, rest = text.partition("\n")
    others = [line for line in rest.split("\n") if line.strip()]
    is_list = len(others) > 1 and not any(line.rstrip(" *_").endswith(":") or has_verb(line) for line in others)
    if head.rstrip(" *_").endswith(":") and is_list and not has_verb(head):
        return rest
    return rest if others and has_term(folded_key(head), object_terms(relation)) and " " not in head else text


def own_fields(text: str, relation: Relation) -> str:
    """Return what stands behind the labels, as in "Place of death: Kyoto", with the most words of the relation.

    All are returned if each label stands for a part of the objects, as in "Native: Polish" and "Also knew: Latin". ""
    is returned for any other text, and the text itself if no label has such a word.
    """
    lines = [line for line in text.split("\n") if line.strip()]
    fields = [FORM.field.fullmatch(line) for line in lines]
    listed_name = vocabulary(relation.shape).canonical
    if len(lines) < 2 or not all(one and not listed_name(one[1]) for one in fields):
        return ""
    known = stems(relation.object_type.noun, relation.triple, relation.question, *relation.clozes)
    labels = [folded_key(one[1]).split() for one in fields if one]
    values = [one[2].strip(" *_") for one in fields if one]
    own = all(word in WORDS["groups"] or has_term(word, known) for words in labels for word in words)
    if own or _are_groups([one[1].strip(" *_") for one in fields if one], values):
        return "\n".join(value for value in values if folded_key(value) != "none") or "none"
    shared = [sum(has_term(word, known) for word in words) for words in labels]
    if not (most := max(shared)):
        return text
    return "\n".join(one[2] for one, count in zip(fields, shared, strict=True) if one and count == most)


def _are_groups(labels: list[str], values: list[str]) -> bool:
    """Return whether labels such as "Physics" and "18th century" each stand before names, and one before several."""
    kinds = [" " not in label or re.search(r"\b[a-z]+$", label) is not None for label in labels]
    listed = [re.split(r"[;,]\s", value.strip(".")) for value in values]
    alike = [all(is_a_name(trim(name)) for name in names) for names in listed]
    plain = [all(re.fullmatch(r"[a-z][\w' -]*", name) for name in names) for names in listed]
    return (
        all(kinds)
        and not any(map(FORM.all_year.match, labels))
        and (all(alike) or all(plain))
        and any(len(names) > 1 for names in listed)
    )


def dated(text: str) -> bool:
    """Return whether each of several lines has a year, so that one may name objects where another has none."""
    lines = [line for line in text.split("\n") if line.strip() and not line.rstrip().endswith(":")]
    return len(lines) > 1 and all(FORM.any_year.search(line) and not has_verb(line) for line in lines)


def bulleted(text: str, relation: Relation) -> list[Word]:
    """Return the names in the bulleted lines of a text, or behind the numbers of a single line; none in other texts."""
    lines = [line for line in text.split("\n") if line.strip()]
    if len(lines) == 1 and (first := FORM.first.match(lines[0])):
        parts = FORM.inline.split(lines[0][first.end() :])
        if len(parts) > 1:
            return [word for part in parts for word in items(part, relation)]
    end = ":" if any(map(FORM.bullet.match, lines)) else ""  # beside bullets, "**Total:** 2" is a remark
    bold = [bool(FORM.bold_line.match(line)) and line.rstrip(" \t*_").endswith(end) for line in lines]
    marked = [line for line, is_bold in zip(lines, bold, strict=True) if is_bold or FORM.bullet.match(line)]
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
    return [word for word in found or heads if word.text[:1].isdigit() or not FORM.asides.match(word.text)]


def leading_list(text: str, relation: Relation, subject: str) -> list[Word]:
    """Return the names of a list that something else follows: of bullets, or of a first line, bold ones before others.

    None are returned without such a list. The subject in bold is a title.
    """
    lines = [line for line in text.split("\n") if line.strip()]
    if len(lines) < 2:
        return []
    if sum(bool(FORM.bullet.match(line) or FORM.bold_line.match(line)) for line in lines) > 1:
        found = bulleted(text, relation)
        return found if all(is_a_name(trim(word.text)) for word in found) else []
    if (
        (bolds := FORM.bolds.match(lines[0]) or FORM.bold.match(lines[0]))
        and "\n\n" in text
        and not (has_verb(lines[0]) or any(map(FORM.bold.match, lines[1:])))
    ):  # sentences follow
        names = [name.strip(" :") for name in FORM.bold.findall(bolds[0])]
        others = (name for name in names if name_key(name) != name_key(subject) and not is_label(name, relation))
        return [Word(name, quoted=False) for name in others]
    first = [word for word in parted(lines[0], relation) if trim(word.text)]
    several = len(first) > 1 and text.lstrip().startswith(lines[0].strip()) and "\n\n" in text
    return first if several and all(is_a_name(trim(word.text)) for word in first) else []


def items(line: str, relation: Relation) -> list[Word]:
    """Return the names in a line: the bold text if there is any, else the text before a dash, without a label.

    A line may have several names, as in "- 2018: Ann Lee, Bo Day and Cy Fox".
    """
    text = line[: 4 * LONGEST]
    text = text[bullet.end() :] if (bullet := FORM.bullet.match(text)) else text
    bold = FORM.bold.match(text)
    if bold and not is_label(bold[1].strip(" :"), relation):
        bolds = FORM.bolds.match(text) or bold
        return [Word(name.strip(" :"), quoted=False) for name in FORM.bold.findall(bolds[0])]
    text = FORM.bold.sub(r"\1", text, count=1) if bold else text.replace("**", "")
    own = unlabelled(text, relation)
    if own != text and "," in relation.shape.separators and re.fullmatch(r"[a-z][\w -]*(?:, [\w -]+)+", own):
        return parted(own, relation)
    names = _before(FORM.remark, _before(FORM.dash, FORM.works.sub("", own)))
    plain = _before(FORM.beside, names)
    parts = re.split(r";|\s/\s", names) if ";" in relation.shape.separators and "(" not in names else []
    if len(parts) > 1 and all(is_a_name(trim(part)) for part in parts):
        return [
            Word(name, quoted=False)
            for part in parts
            for name in names_in_line(part, relation, labelled=False) or [part]
        ]
    return [Word(name, quoted=False) for name in names_in_line(plain, relation, labelled=own != text) or [plain]]


def names_in_line(text: str, relation: Relation, *, labelled: bool) -> list[str]:
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
    if labelled:  # as in "Ann Lee & Bo Day"
        pairs = [re.split(r"\s&\s", part) for part in parts]
        parts = [
            one
            for pair, part in zip(pairs, parts, strict=True)
            for one in (pair if all(" " in name.strip() for name in pair) else [part])
        ]
    names = [trim(name) for name in _conjuncts(parts, relation) if trim(name)]
    article = r"\Athe (?=[A-Z]\S* \S)" if any(name.startswith("The ") for name in names) else r"\Athe (?=[A-Z])"
    plain = [re.sub(article, "", name) for name in names]
    names = [name.removeprefix("The ") for name in plain] if plain[1:] != names[1:] else plain
    if len(names) < 2 or not all(map(is_a_name, names)):
        return []
    known = vocabulary(relation.shape).canonical
    return names if labelled or len(parts) > 1 or all(" " in name or known(name) for name in names) else []


def is_a_name(text: str) -> bool:
    """Return whether all words of a text are capitalised, but for such as "of"; brackets aside."""
    words = re.sub(r"\([^()]*\)", "", text).split()
    return (
        bool(words)
        and is_capitalised(words[0])
        and is_capitalised(words[-1])
        and all(is_capitalised(word) or word.casefold() in WORDS["connecting"] or word == "for" for word in words)
    )


def _before(mark: re.Pattern[str], text: str) -> str:
    """Return the text before the first such mark outside brackets; the whole text without one."""
    heads = (text[: found.start()] for found in mark.finditer(text))
    return next((head for head in heads if head.strip() and head.count("(") <= head.count(")")), text)


def parted(text: str, relation: Relation) -> list[Word]:
    """Return the parts of plain text. If there are semicolons, only they separate parts, and commas belong to them."""
    things = FORM.article_joint.split(text)
    are_things = len(things) > 1 and all(map(FORM.with_article.match, things))
    if are_things and not vocabulary(relation.shape).canonical(text):
        return [Word(trim(thing), quoted=False) for thing in things]
    marked = [*FORM.marked.finditer(text)]
    alone = len(marked) == 1 and marked[0][1] == "**"  # a list in bold, or a name
    if marked and not alone and FORM.between_marked.fullmatch(FORM.marked.sub("", text)):
        return [Word(trim(one[2]), quoted=False) for one in marked]
    text = FORM.bold.sub(r"\1", re.sub(r"(?<=\*\*)!", "", text))
    if lead := FORM.lead.match(text):
        text = text[lead.end() :]
    elif not FORM.year.match(text):  # each line has its own
        text = unlabelled(text, relation)
    separators = relation.shape.separators
    if ";" in separators and ";" not in text:
        text = text.replace("|", ";")  # as in "Ann|Bo, Jr.|Cy"
    marks = ";" if ";" in separators and ";" in text else "".join(mark for mark in separators if len(mark) == 1)
    if not re.search(rf"[\n{re.escape(marks)}]", text):
        text = FORM.other_marks.sub("\n", text)
    pieces = re.split(r",\s+(?:and\s+)?", text) if "," not in marks and ", and " in text else []
    if len(pieces) > 2 and all(is_a_name(trim(piece)) for piece in pieces):
        marks += ","
    pieces = re.split(r",\s+(?![^()]{0,200}\))", text)[:-1]
    if "," not in marks and pieces and all(re.search(r"\([^()]*\d[^()]*\)\Z", piece) for piece in pieces):
        marks += ","  # as in "Acme (2001–2005), Beta Labs (2005–2010)"
    found = re.findall(rf"(?:\([^()\n]{{0,200}}\)|[^\n{re.escape(marks)}])+", text)
    parts = _joined([part for part in found if len(part) <= 4 * LONGEST])  # a longer one is no name
    parts = [piece for part in parts for piece in _slashed(part, relation)]
    named, owns = list[str](), [unlabelled(part, relation) for part in parts]
    groups = marks == ";" and (owns != parts or any(", " in part for part in parts))
    for part, own in zip(parts, owns, strict=True):
        name = _before(FORM.remark, own)
        labelled = own != part or groups
        several = labelled or (marks == ";" and " and " in part)
        named += (several and names_in_line(without_trailer(name.strip()), relation, labelled=labelled)) or [name]
    each = named if marks == ";" and len(parts) > 1 else _conjuncts(named, relation)
    kept = [FORM.leading_and.sub("", part.strip()) for part in each if part.strip() not in ("", "and", "or")]
    if any(part.count(mark) % 2 for part in kept for mark in '*"') and marked:  # "He wrote *Dido and Aeneas*."
        kept = [one[2] for one in marked]
    return [Word(part, quoted=False) for place, part in enumerate(kept) if not (place and FORM.asides.match(part))]


def _slashed(text: str, relation: Relation) -> list[str]:
    """Return the parts of a text between slashes: with blanks, of three or more, or of listed names."""
    pieces, known = text.strip().split("/"), vocabulary(relation.shape).canonical
    if "(" in text or known(text) or len(pieces) < 2 or not all(map(str.strip, pieces)):
        return [text]
    spaced = all(" / " in text[: text.find(piece) + len(piece) + 2] for piece in pieces[:-1])
    return pieces if spaced or (len(pieces) > 2 and " " not in text) or all(map(known, pieces)) else [text]


def _joined(parts: list[str]) -> list[str]:
    """Return parts of a text between commas, with those such as "Jr." joined to the part before them."""
    joined: list[str] = []
    for part in parts:
        if joined and FORM.own_suffix.fullmatch(part.strip()):
            joined[-1] = f"{joined[-1]},{part}"
        else:
            joined.append(part)
    return joined


def unlabelled(text: str, relation: Relation) -> str:
    """Return a text without a label such as "Country 1:" before it."""
    text = text[year.end() :] if (year := FORM.year.match(text)) else text
    if relation.shape.closed and (formula := FORM.formula.match(text)):
        return text[formula.end() :]
    label = FORM.label.match(text)
    return text[label.end() :] if label and is_label(label[1], relation) else text


def is_label(text: str, relation: Relation) -> bool:
    """Return whether a text names the kind of an object, or its place, but no object."""
    if FORM.all_year.fullmatch(text) or FORM.in_words.fullmatch(text):
        return True
    words = folded_key(text).split()
    words = words[:-1] if len(words) > 1 and words[-1].isdigit() else words
    if not 0 < len(words) <= LONGEST_LABEL or "(" in text:
        return False
    label, general = " ".join(words), _LABELS | relation.shape.stop | (PERSONS if has_persons(relation) else set())
    return has_term(label, object_terms(relation)) or is_made_of(label, terms(relation)) or general.issuperset(words)


def _conjuncts(parts: list[str], relation: Relation) -> Iterator[str]:
    """Yield parts without an "and" at their start; the last part is split at its "and" if the relation allows it.

    What adds to a list or speaks of it, as in "Chad and Mali, plus Togo" and "Chad and Mali, but not Togo", ends it. So
    does a bracket before a further "and", as in "Chad and Mali (since 1960), and Togo".
    """
    for part, following in zip(parts, [*parts[1:], "plus "], strict=False):
        whole = FORM.adds_to_list.sub("", part).strip()
        name = FORM.leading_and.sub("", whole)
        further = name[-1:] == ")" and FORM.leading_and.match(following.strip())
        ends = further or FORM.adds_to_list.match(following) or FORM.asides.match(following)
        if ends and name == whole and relation.shape.conjunction and not (len(parts) == 1 and is_firm(name, relation)):
            yield from cut(
                name,
                [*FORM.and_between.finditer(name)] or [*FORM.ampersand_between.finditer(name)],
                lambda *parts: bool(vocabulary(relation.shape).canonical(trim(without_trailer("".join(parts))))),
            )
        else:
            yield name


def is_firm(text: str, relation: Relation) -> bool:
    """Return whether a text has two names as a firm such as "Blohm & Voss", and no relation of persons or places."""
    pair, known = FORM.two_words.fullmatch(without_trailer(text)), vocabulary(relation.shape).canonical
    if not pair or relation.functional:
        return pair is not None or (relation.functional and " & " in text)
    return not (
        relation.object_type.qid == PERSON
        or has_term(folded_key(relation.object_type.noun), stems(*WORDS["no_firms"]))
        or any(map(known, pair.groups()))
    )


def cut(text: str, joints: Sequence[re.Match[str]], is_one: Callable[[str, str, str], bool]) -> Iterator[str]:
    """Yield the pieces of a text between joints that are within no name, such as that of "Arts and Sciences".

    is_one: whether what stands before a joint, the joint, and what stands behind it are one name.
    """
    names, start = [*FORM.joined_name.finditer(text)], 0
    for joint, end in zip(joints, [*(one.start() for one in joints[1:]), len(text)], strict=False):
        within = start > joint.start() or any(name.start() <= joint.start() < name.end() for name in names)
        if not within and not is_one(text[start : joint.start()], joint[0], text[joint.end() : end]):
            yield text[start : joint.start()]
            start = joint.end()
    yield text[start:]


def is_capitalised(word: str) -> bool:
    """Return whether a word begins with a capital, behind marks, the dot of ".NET" and an elided article."""
    word = word.lstrip("\"'“‘*_([.")
    return word[:1].isupper() or FORM.elided.match(word) is not None
