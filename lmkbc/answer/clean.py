"""Cleaning: a model's text is brought into the shape that the relation declares.

One procedure serves whole answers and the single tokens of masked models. All that depends on the relation is data in
`Relation.shape`. If cleaning removes all objects, the query still counts as answered, with nothing kept: the model gave
an answer, and would give it again. Each dropped text is recorded with the violated rule. Such an answer is therefore
not taken for "there is none".
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from lmkbc.answer.abstain import has_term, is_placeholder, stems
from lmkbc.kinds.kind import allowed_values
from lmkbc.names import LONGEST, TRAILER, folded_key, name_key, shown, without_legal_form, without_trailer
from lmkbc.relation import Relation, Shape
from lmkbc.types import Dropped
from lmkbc.words import FORM, WORDS, places

SETTLEMENTS = frozenset(("Q486972", "Q515", "Q3957", "Q532", "Q15284"))
"""Wikidata's human settlement, city, town, village and municipality; "Riga, Latvia" becomes "Riga" for them."""


SUBJECT = "subject"
"""Rule that drops a query's own subject."""


_MARKS = {'"': '"', "'": "'", "`": "`", "“": "”", "‘": "’", "«": "»", "„": "“", "*": "*", "_": "_"} | dict(
    zip("「『《〈", "」』》〉", strict=True)
)


_LONE = '"“”„«»*`'


_BRACKETS = {"(": ")", "[": "]", "{": "}"}


Clean = bool | Literal["spellings"]
"""Degree of cleaning: full (True), none (False), or only spellings that the shape lists."""


@dataclass(frozen=True, slots=True)
class _Vocabulary:
    """Lists of a shape as look-up tables, without regard to case, accents and punctuation.

    names: key of a name or variant -> canonical name. stop: keys that are never an object.
    """

    names: dict[str, str]
    stop: frozenset[str]

    def canonical(self, name: str) -> str | None:
        """Return the canonical form of a name; None if the shape does not list it."""
        canonical = self.names.get(name_key(name))
        return None if canonical is None else self.names.get(name_key(canonical), canonical)


_vocabularies: dict[int, tuple[Shape, _Vocabulary]] = {}


def vocabulary(shape: Shape) -> _Vocabulary:
    """Return a shape's vocabulary, built once. The cache keeps the shape alive, so that its id stays a valid key."""
    if id(shape) not in _vocabularies:
        names = {name_key(name): name for name in shape.variants.values()}
        names |= {name_key(variant): name for variant, name in shape.variants.items()}
        for name, variants in shape.closed.items():
            names |= {name_key(variant): name for variant in variants}
        names |= {name_key(name): name for name in shape.closed}
        _vocabularies[id(shape)] = shape, _Vocabulary(names, frozenset(map(name_key, shape.stop)))
    return _vocabularies[id(shape)][1]


def sifted(objects: Iterable[str], relation: Relation, subject: str) -> tuple[tuple[str, ...], tuple[Dropped, ...]]:
    """Return the objects in the relation's shape, in order, each once (case aside), and those that are dropped.

    It is idempotent. Of a dropped object nothing was kept; it has the violated rule.
    "closed", "stop", "subject", "minimum", "maximum" and "integer" are rules of the shape. The others are general:

    - "placeholder": a word for the object type alone.
    - "no name": prose, a word piece or mere marks.
    - "no number": a text without a number that plain digits can hold. "no date": a text without a date.
    """
    kept: dict[str, str] = {}
    dropped: dict[Dropped, None] = {}
    for text in objects:
        if relation.has_values():
            names, rule = allowed_values(text, relation)
        elif relation.is_verbatim():
            names, rule = [text], ""
        else:
            name, rule = _name(text, relation, subject)
            names = [] if rule else [name]
        for name in names:
            kept.setdefault(name.casefold(), name)
        if not names:
            dropped[Dropped(text[:LONGEST], rule)] = None
    return tuple(kept.values()), tuple(dropped)


def shaped(text: str, relation: Relation, subject: str, how: Clean) -> tuple[tuple[str, ...], tuple[Dropped, ...]]:
    """Return an object in its relation's shape, or unchanged, and what is dropped of it.

    how: the degree of cleaning.
    """
    if how is True:
        return sifted((text,), relation, subject)
    return ((how and vocabulary(relation.shape).canonical(text)) or text,), ()


def trim(text: str) -> str:
    """Return a name without white space, bullets, quotes, emphasis, brackets and punctuation around it."""
    text, before = " ".join(text.split()), None
    while text != before:
        before = text
        text = text.strip(" ,;:|")
        text = text[bullet.end() :] if (bullet := FORM.bullet_before.match(text)) else text
        if len(text) > 1 and _MARKS.get(text[0]) == text[-1]:
            text = text[1:-1]
        elif text and text[0] in _LONE and text.count(text[0]) == 1 and not FORM.mark_of_name.search(text):
            text = text[1:]
        elif text and text[-1] in _LONE and text.count(text[-1]) == 1 and not FORM.mark_of_name.search(text):
            text = text[:-1]
        if text and _BRACKETS.get(text[0]) == text[-1] and text.count(text[0]) == 1:
            text = text[1:-1]
        if text.endswith((".", "…")) and not is_abbreviation(text):
            text = text[:-1]
    return text


def is_abbreviation(text: str) -> bool:
    """Return whether the full stop at the end of a text belongs to its last word, as in "Inc.", and in "Ann B."."""
    before, _, word = text[:-1].rpartition(" ")
    is_initial = len(word) == 1 and bool(before)
    return text[-1:] == "." and (is_initial or "." in word.strip(".") or word.lower() in WORDS["abbreviations"])


def _name(text: str, relation: Relation, subject: str) -> tuple[str, str]:
    """Return the object in a text, and the rule that it violates, or ""."""
    name = trim(text[: 4 * LONGEST])
    shape, known, short = relation.shape, vocabulary(relation.shape), _plain(name)
    forms = [name, short, *(_loose_forms(name) if shape.closed else ())]
    if has_term(folded_key(relation.object_type.noun), stems(*WORDS["waters"])) and folded_key(short) not in places():
        short = FORM.of("water_before", relation.language.partition("-")[0]).sub("", short)
    if relation.object_type.qid in SETTLEMENTS:
        short = _plain(FORM.building.sub("", short).partition(",")[0]) or short
        forms.append(short)
    canonical = next((listed for form in forms if (listed := known.canonical(form))), None)
    if canonical is None and not (_is_name(name) and _is_name(short)):
        return name, "no name"
    if canonical is None and shape.closed:
        return name, "closed"
    name = canonical or short
    if name_key(name) in known.stop:
        return name, "stop"
    if is_placeholder(name, relation):
        return name, "placeholder"
    return name, SUBJECT if is_subject(name, relation, subject) else ""


def _is_name(text: str) -> bool:
    """Return whether a text is neither prose, nor a word piece, nor mere punctuation."""
    return len(text) <= LONGEST and not text.startswith("##") and any(char.isalnum() for char in shown(text))


def _plain(name: str) -> str:
    """Return a name without remarks at its end and articles before it (a capital "The" belongs to the name)."""
    before = None
    while name != before:
        before = name
        name = without_trailer(name[article.end() :] if (article := FORM.article.match(name)) else name)
        name = trim(name)
    return name


def _loose_forms(name: str) -> Iterator[str]:
    """Yield forms under which a closed list may hold a name: without its count or year, or the remark alone."""
    short = without_trailer(name)
    if count := FORM.count.match(short):
        yield short[count.end() :]
    yield short
    yield FORM.year_within.sub(" ", short)
    if trailer := TRAILER.search(name):
        yield trailer[1] or trailer[2] or ""


def is_subject(name: str, relation: Relation, subject: str) -> bool:
    """Return whether a name is that of the query's own subject, where a subject is never its own object.

    Case, accents and punctuation make no difference. Nor does a legal form if subjects are firms; of others, such as a
    castle, a firm may have the name and be the owner.
    """
    (mine, short), (theirs, plain) = _forms(name), _forms(subject)
    return not relation.shape.may_be_subject and (
        mine == theirs or (short == plain and has_term(folded_key(relation.subject_type.noun), stems(*WORDS["firms"])))
    )


@lru_cache(maxsize=1 << 14)
def _forms(name: str) -> tuple[str, list[str]]:
    """Return a name folded, and without its legal form.

    It is cached, since each object is compared with the subject.
    """
    return name_key(name), without_legal_form(name)
