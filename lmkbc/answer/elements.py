"""The answer's place in a model's text, and the words of its literals and tables that are objects.

An answer stands behind the reasoning, behind a mark such as "Answer:", or in a fence. Objects are the words of lists,
of JSON objects under certain keys, of triples, and of the column of a table that its head names.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import islice

import msgspec

from lmkbc.answer.abstain import has_term, has_verb, object_terms, phrase_terms, relation_words, stems
from lmkbc.answer.literal import Bracketed, Word, read_literals
from lmkbc.answer.markup import TextTable, read_tags, unstyled, without_signs
from lmkbc.kinds.kind import kind_of
from lmkbc.models.thoughts import answer_of, bounded
from lmkbc.names import folded_key, name_key, shown
from lmkbc.relation import Relation
from lmkbc.words import FORM, WORDS

SHORT = 60
"""A text without a full stop counts as cut-off reasoning from this many characters on."""


def narrowed(text: str) -> tuple[str | None, bool]:
    """Return the part of a completion with its answer, and whether a mark such as "Answer:" precedes it on its line.

    The part is None if the completion was cut off before its answer.
    """
    answer = answer_of(text)
    if answer is None:
        return None, False
    answer = re.sub(r"\r\n?", "\n", answer)
    answer = FORM.crossed.sub("", answer) if "✅" in answer else answer
    whole = _own_part(bounded(without_signs(unstyled(_delivered(answer)))))
    if (answer := _unthought(whole)) is None:
        return None, False
    marks = list(FORM.answer.finditer(answer))
    if marks:
        answer = answer[marks[-1].end() :]
    on_line = bool(marks) and not answer.lstrip(" \t*_").startswith("\n")
    if fences := [fence for _, fence in FORM.fence.findall(answer)]:  # an empty fence is no answer
        answer = next((fence for fence in reversed(fences) if shown(fence)), FORM.fence.split(answer, maxsplit=1)[0])
    if "<" in answer and not shown(FORM.tag.sub(" ", answer)) and not read_tags(answer):  # empty tags alone
        answer = ""
    # without lines such as "Confidence: 95%"
    return shown((shown(FORM.remark_line.sub("", answer)) or shown(answer)).strip(" \t\r\n`")), on_line


def _own_part(text: str) -> str:
    """Return an answer up to where it runs on to a question or to another subject, and without a question before it."""
    start, whole = 0, len(text)
    for end in islice(FORM.runs_on.finditer(text), 8):  # a long text of questions is no answer
        before = shown(text[start : end.start()])
        if not before:  # the question is repeated first
            start = end.end()
        elif before.rstrip("*_ ")[-1:] != ":" and not (has_verb(before) and FORM.answer.search(text, end.end())):
            whole = end.start()
            break
    return text[start:whole] if shown(text[start:whole]) else text


def _unthought(text: str) -> str | None:
    """Return an answer without a thought that no mark shows; None if no answer follows it."""
    if not FORM.thinking.match(text) or FORM.concludes.search(text):
        return text
    *steps, last = re.split(r"\n[ \t]*\n", text.rstrip())
    return None if len(steps) < 2 or FORM.step.match(last) or has_verb(last) else last


def _delivered(text: str) -> str:
    """Return the content of a text that is a message, a list of parts or a response in JSON, or a string in JSON."""
    try:
        value = msgspec.json.decode(text) if text[:1] in ('"', "{", "[") and text[-1:] in ('"', "}", "]") else text
    except (msgspec.DecodeError, RecursionError):
        return text
    if isinstance(value, str):
        return value if value.strip() else text
    content = _content(value)
    return text if content is None else content


def _content(value: object) -> str | None:
    """Return the text of a message or a response as servers write them; None for any other value."""
    if isinstance(value, list):
        parts = [part for part in value if isinstance(part, dict) and part.get("type") in ("text", "output_text")]
        return "\n".join(str(part.get("text", "")) for part in parts) if parts else None
    match value:
        case {"choices": [inner, *_]} | {"message": dict(inner)}:
            return _content(inner)
        case {"role": "assistant" | "model", "content": str() | list() as content}:
            return content if isinstance(content, str) else _content(content)
    return None


def broken_off(texts: Sequence[str | None]) -> list[bool]:
    """Return which of a query's draws ended before their answer.

    If other draws mark their answer behind a reasoning, a long draw without a mark is reasoning alone. Its names are
    then no answers.
    """
    marks = [FORM.answer.search(answer_of(text) or "") if text else None for text in texts]
    if not any(mark and mark.start() > SHORT for mark in marks):
        return [False] * len(texts)
    return [text is not None and mark is None and len(text) > SHORT for text, mark in zip(texts, marks, strict=True)]


_VERDICTS = stems("correct valid match holds included verified confirmed relevant answer true")
"""Words of keys that say whether an object is one."""


def mended(text: str) -> str:
    """Return a text whose literal can be read: without comments, a call around it and escapes before all quotes.

    The opening bracket and quote that prompts like "...: ['" already contain are added.
    """
    if text[:1] in ("[", "{"):
        text = FORM.comment.sub("", text)
        if call := FORM.call.fullmatch(text):
            text = call[1]
    if '\\"' in text and not re.search(r'(?<!\\)"', text):
        text = text.replace('\\"', '"')
    if text[:1] in ("[", "{", '"', "'", "“"):
        text = FORM.quoted_joint.sub(", ", text)
    if text[:1] in ('"', "'", "“"):
        return f"[{text}"
    if (lost := FORM.lost_opening.match(text)) or (lost := FORM.lost_closing.fullmatch(text)):
        return f"[{lost[1]}{text}"
    return text


def elements(group: Bracketed, relation: Relation, subject: str, units: bool = False) -> Iterator[Word]:
    """Yield the words of a literal that are objects: no keys, and no subject or relation of a triple.

    units: whether a number has the unit of its object beside it, as "7 ha" of {"value": 7, "unit": "ha"}.
    """
    items = group.items
    words = [item for item in items if isinstance(item, Word)]
    unit = next((word.text for word in words if folded_key(word.key or "") in ("unit", "units")), "")
    if any(item.key is not None for item in items):
        if _is_denied(items, relation):
            return
        items = _named_by_keys(items, relation) or _answer_fields(items, relation, subject)
    elif items and isinstance(items[0], Word):
        items = _behind_subject(group, relation, subject)
    kind, fields = kind_of(relation), [item for item in items if isinstance(item, Word)]
    if units and (joined := kind.joined([(field.key or "", field.text) for field in fields])):
        items = [fields[joined[0]]._replace(text=joined[1])]
    for item in items:
        if isinstance(item, Bracketed):
            yield from elements(item, relation, subject, units)
        elif kind.has_unit and units and unit:
            yield item._replace(text=f"{item.text} {unit}")
        elif item.quoted and item.text[:1] in ("[", "{"):  # a literal in a string
            for inner in read_literals(item.text):
                yield from elements(inner, relation, subject, units)
        else:
            yield item


def _is_denied(items: Sequence[Word | Bracketed], relation: Relation) -> bool:
    """Return whether an object says of itself that it is none, as in {"country": "Peru", "shares_border": false}."""
    about = object_terms(relation) | phrase_terms(relation) | _VERDICTS
    said = (item for item in items if isinstance(item, Word) and not item.quoted and item.text.casefold() == "false")
    return len(items) > 1 and any(has_term(" ".join(_key_words(item)), about) for item in said)


def is_head(cell: str, relation: Relation) -> bool:
    """Return whether a cell names a column: by a term of the relation, or as a key of JSON objects does."""
    key = folded_key(cell.replace("_", " "))
    if re.search(r"[\[\]{}=\"]", cell):
        return False
    return (
        key in WORDS["answer_keys"]
        or key in WORDS["other_keys"]
        or has_term(key, object_terms(relation) | phrase_terms(relation))
    )


def column(table: TextTable, relation: Relation, subject: str) -> list[str]:
    """Return the cells of a table's column of objects: the one whose head says so, else the first that names things.

    Cells of numbers have their head before them.
    """
    width = max(map(len, table.rows), default=0)
    head = [*table.head, *[""] * (width - len(table.head))]
    rows = [row for row in table.rows if row and folded_key(row[0]) not in ("total", "sum", "all")]
    rows = [row for row in rows if not any(cell.casefold() in WORDS["not"] for cell in row[1:])] or rows
    cells = [[row[place] if place < len(row) else "" for row in rows] for place in range(width)]
    if relation.has_values():
        about = phrase_terms(relation) | stems(f"value {relation.kind}")
        if total := [row for row in table.rows if len(row) == 2 and folded_key(row[0]) == "total"]:
            return [": ".join(total[0])]
        if fields := [": ".join(row) for row in rows if has_term(folded_key(row[0]), about)]:
            return sorted(fields, key=lambda field: not field.casefold().startswith("total"))[:1]
        wanted = [place for place in range(width) if has_term(folded_key(head[place].replace("_", " ")), about)]
        return [f"{head[place]}: {cell}" for place in wanted[:1] for cell in cells[place]]
    named = [
        place
        for place, texts in enumerate(cells)
        if any(letter.isalpha() for text in texts for letter in text)
        and not all(name_key(text) == name_key(subject) for text in texts)
    ]
    heads = [Word(head[place], False, key=head[place]) for place in named]
    chosen = _answer_fields([*heads], relation)
    best = next((place for place, word in zip(named, heads, strict=True) if word in chosen), None)
    return cells[named[0] if best is None or len(chosen) == len(heads) else best] if named else []


def _named_by_keys(items: Sequence[Word | Bracketed], relation: Relation) -> list[Word | Bracketed]:
    """Return the keys of an object that are its objects, as in {"Chile": 861, "Bolivia": 1047}, except denied ones."""
    items = [item for item in items if item.key is not None or not isinstance(item, Word) or item.whole]
    keys = [item.key or "" for item in items]
    simple = [item.bracket == "{" if isinstance(item, Bracketed) else not item.text[:1].isupper() for item in items]
    if not (relation.has_entities() and all(simple)) or not all(key[:1].isupper() for key in keys):
        return []
    if any(folded_key(key).replace(" ", "") in WORDS["answer_keys"] | WORDS["other_keys"] for key in keys):
        return []
    denied = ("false", "no", "none", "null", "0", "")
    return [
        Word(key, quoted=True)
        for key, item in zip(keys, items, strict=True)
        if not (isinstance(item, Word) and item.text.casefold() in denied)
    ]


def _answer_fields(items: list[Word | Bracketed], relation: Relation, subject: str = "") -> list[Word | Bracketed]:
    """Return the values of a JSON object that hold the answer, and are not the subject's own name.

    These are the values of known answer keys; if there are none, of all keys except those known for other content. Of
    the latter, lists come before other values, and keys with a word of the object type before others.
    """
    keyed = [(folded_key(item.key or "").replace(" ", ""), item) for item in items]
    if calls := [item for key, item in keyed if key in WORDS["arguments"] and len(items) > 1]:
        return calls
    if all(re.fullmatch(r"[12]\d{3}s?", key) for key, _ in keyed):
        return items
    if relation.has_values():  # names may lie beside their number
        counts = [(key, item) for key, item in keyed if isinstance(item, Word) and any(map(str.isdigit, item.text))]
        keyed = [one for one in counts if one[0] not in WORDS["other_keys"]] or keyed
    names = WORDS["answer_keys"] | {folded_key(name).replace(" ", "") for name in relation.spellings()}
    names |= kind_of(relation).fields
    named = [pair for pair in keyed if isinstance(pair[1], Word) and name_key(pair[1].text) == name_key(subject)]
    if subject and len(named) < len(keyed):  # as in {"name": "Peru", "neighbours": ["Chile"]}
        keyed = [pair for pair in keyed if pair not in named]
    others = [item for key, item in keyed if key not in WORDS["other_keys"]]
    if not relation.has_values():
        others = [item for item in others if isinstance(item, Bracketed)] or others
    kinds, never = object_terms(relation), relation.shape.stop
    typed = [
        item for item in others if has_term(" ".join(_key_words(item)), kinds) or not never.isdisjoint(_key_words(item))
    ]
    return [item for key, item in keyed if key in names] or typed or others


def _key_words(item: Word | Bracketed) -> list[str]:
    return folded_key((item.key or "").replace("_", " ")).split()


def _behind_subject(group: Bracketed, relation: Relation, subject: str) -> list[Word | Bracketed]:
    """Return the items behind subject and relation in a triple; all items if the literal is no triple."""
    items = group.items
    words = [item.text for item in items if isinstance(item, Word)]
    if group.bracket == "(" and len(words) < len(items):
        return [item for item in items if isinstance(item, Bracketed)]
    about_subject = name_key(words[0]) == name_key(subject)
    phrase = folded_key(words[1]).split() if len(words) > 1 else []
    shared = len(relation_words(relation).intersection(phrase))
    # half of the words of "Potomac River" or "New York Stock Exchange" may be the relation's, yet they are objects in
    # a plain list; a relation holds the whole phrase, or follows the subject
    related = bool(phrase) and (2 if group.bracket == "(" or about_subject else 1) * shared >= len(phrase)
    if len(items) > 2 and (related or (about_subject and group.bracket == "(")):
        return items[2:]
    return items[1:] if about_subject and (group.bracket == "(" or len(words) < len(items)) else items
