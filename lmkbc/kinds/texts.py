"""Texts and identifiers in replies as they are written, without the markup, labels and sentences around them."""

from __future__ import annotations

from itertools import takewhile

from lmkbc.answer.abstain import has_verb
from lmkbc.answer.languages import LONGEST_FRAME, told_by_noun
from lmkbc.answer.lists import is_label
from lmkbc.kinds.kind import kind_of
from lmkbc.names import shown
from lmkbc.relation import Relation
from lmkbc.words import FORM


def texts(answer: str, relation: Relation) -> list[str]:
    """Return the objects in a plain answer: those of its bullets if it has any, else of its first line but headings.

    Where lines part texts, all lines of the first paragraph count up to a comment, or all paragraphs of one line each.
    """
    if kind_of(relation).is_parted and "\n" not in answer and FORM.first.match(answer):
        answer = FORM.inline.sub("\n- ", f" {answer}").strip()
    bullets = [line[found.end() :] for line in answer.split("\n") if (found := FORM.bullet.match(line))]
    written = [[line for line in part.split("\n") if line.strip()] for part in FORM.paragraph.split(answer)]
    parts = [plain for part in written if (plain := [line for line in part if not line.rstrip(" *_").endswith(":")])]
    parts = parts or [*filter(None, written)]
    lines = parts[0] if parts and len(parts[0]) > 1 else [line for part in parts for line in part if len(part) == 1]
    is_parted = kind_of(relation).is_parted and "\n" in relation.shape.separators
    are_sentences = lines and FORM.comment_line.fullmatch(lines[0]) and not FORM.shows.match(lines[0])
    ends = FORM.remark_in_brackets if are_sentences else FORM.comment_line
    further = takewhile(lambda line: not (ends.fullmatch(line) or has_verb(line)), lines[1:])
    listed = [*lines[:1], *(further if is_parted else ())]
    return [text for line in bullets or listed if (text := _unframed(shown(line), relation))]


def unwrapped(text: str) -> str:
    """Return a text without the emphasis or the quotes around all of it."""
    found = FORM.wrapped.fullmatch(text)
    return unwrapped(found[2]) if found and found[1] not in found[2] else text


def _unframed(text: str, relation: Relation) -> str:
    """Return the object in a line, without its label or sentence; "" for another sentence if an identifier is asked."""
    if kind_of(relation).is_parted and (several := FORM.quoted_list.search(text)):
        return "; ".join(FORM.quoted_title.findall(several[0]))
    label, _, rest = text.partition(":")
    if rest and is_label(label.strip(" *_"), relation):
        text = shown(rest.removeprefix("**").removeprefix("__"))
    if told := told_by_noun(text, relation):
        text = _of_sentence(told)
    elif 0 <= (at := text.find(f"{relation.triple} ")) < LONGEST_FRAME and not FORM.sentence.search(text[:at]):
        text = _of_sentence(text[at + len(relation.triple) :])
    plain = unwrapped(text)
    is_sentence = plain == text and text[-1:] == "." and text.count(" ") > 1 and not any(map(str.isdigit, text))
    return kind_of(relation).bare(plain, is_sentence=is_sentence)


def _of_sentence(rest: str) -> str:
    """Return the object at the head of what a sentence states: what is marked in it, else all of it."""
    marked = FORM.marked_text.search(rest)
    return marked[1] if marked else rest.strip().rstrip(".")
