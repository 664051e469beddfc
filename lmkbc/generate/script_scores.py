"""Objects with scores in the cells of a script's file: pairs, mappings, lists of them, and scores of a column.

["Paris", 0.9], {"object": "Paris", "score": 0.9} and {"Paris": 0.9} are an object with its score.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain
from typing import Any, NamedTuple

from lmkbc.errors import counted
from lmkbc.files.tables import SCORES, folded
from lmkbc.names import as_qid
from lmkbc.relation import Relation

LACKING = ("nan", "NaN", "<NA>")
"""Cells with which tables of pandas say that there is no value."""

_KEYS = (*SCORES.split(), "p")
_NAMES = ("object", "name", "label", "answer", "value", "text", "entity", "objects", "answers", "values")
"""Keys of an object's name in a mapping, and of a list of objects that share a score."""
_IDS = ("id", "qid", "wikidataid", "objectid")
_DEEPEST = 4
"""Most lists around an object, those of a pair included."""

_QIDS, _ONLY_QIDS = re.compile(r"Q[1-9]\d*"), re.compile(r"Q[1-9]\d*(?:[;,|\s]+Q[1-9]\d*)*")
_AN_ARRAY = re.compile(r"""((?<=[\[\s])(?:'[^'\n]*'|"[^"\n]*"))\s+(?=['"])""")
"""A text and the blank behind it, in an array as NumPy shows one: ['France' 'Spain']."""
_PARTED = re.compile(r"\s{0,9}[;|\n]\s*|,\s+")
"""Signs between the objects of a text, and between their scores."""
_SHARE = re.compile(r"[01]?[.,]\d+|\d+(?:\.\d+)?\s*%")
"""A text that is a share: 0.9, or 90 %."""
_A_NUMBER = re.compile(r"[\d.,\s%+-]+")
_NAMED = re.compile(
    r"(\S.{0,200}?)\s{0,9}(?:[:=]\s*|\()((?:0?|1)\.\d+|\d{1,3}(?:\.\d+)?\s?%)"
    r"(?:\s(?:sure|certain|confident|confidence|likely))?\)?"
)
"""An object with its score in a text, as in "Paris (0.9)", "Paris: 90%" and "Paris (90% sure)"."""


class ScoredText(NamedTuple):
    """An object, or a text that may name some, with a score and a QID; None where it has none."""

    name: str
    score: float | None = None
    id: str | None = None


def value_of(text: str | None) -> Any:
    """Return what a cell holds: None if it is missing, QIDs, a list or mapping of JSON or Python, else its text."""
    if text is None or text in LACKING:
        return None
    if _ONLY_QIDS.fullmatch(text):
        return _QIDS.findall(text)
    for read in (json.loads, ast.literal_eval) if text.lstrip()[:1] in ("[", "{") else ():
        with suppress(ValueError, SyntaxError, RecursionError, MemoryError):
            value = read(_AN_ARRAY.sub(r"\1, ", text))
            return sorted(value, key=str) if isinstance(value, set) else value
    return text


def score_of(text: str | None) -> Any:
    """Return the score in a cell, or its list of scores; None if it is missing. ValueError for what is no number."""
    value = value_of(text and text.strip())
    if isinstance(value, str) and not _SHARE.fullmatch(value) and len(parts := _PARTED.split(value)) > 1:
        value = parts
    return _scores(value)


def _scores(value: Any) -> Any:
    """Return a score from 0 to 1, as which 90 % is read, or scores in a list or by object; None for a missing one."""
    if isinstance(value, list):
        return [*map(_scores, value)]
    if isinstance(value, dict):
        return {name: _scores(score) for name, score in value.items()}
    if value is None or str(value) in ("", *LACKING):
        return None
    with suppress(TypeError, ValueError):
        text = str(value).replace(",", ".")
        number = float(text.rstrip("% ")) / (100 if text.endswith("%") else 1)
        if 0 <= number <= 1 and not isinstance(value, bool):
            return number
    raise ValueError(f"{value!r} is no number from 0 to 1")


@dataclass(frozen=True)
class ScoredPairs:
    """Which lists of two, in all of a file, are an object with its score: a text that is no number, and a number.

    texts: whether the score may be a text, since each list of the file is of a name and such a text.
    numbers: whether the object may be a number too, since nothing else in the file is a score.
    """

    texts: bool
    numbers: bool

    @classmethod
    def of(cls, values: Iterable[Any], has_scores: bool) -> ScoredPairs:
        """Return the pairs of a file with these cells. has_scores: whether a column holds scores."""
        lists = [one for value in values for one in _innermost(value)] if not has_scores else []
        return cls(bool(lists) and all(map(_names_one, lists)), not has_scores)


def _innermost(value: Any, depth: int = 0) -> Iterator[Sequence[Any]]:
    """Yield the lists in a value that hold something, and no lists."""
    if isinstance(value, list | tuple) and value and depth <= _DEEPEST:
        inner = [one for one in value if isinstance(one, list | tuple)]
        yield from (found for one in inner for found in _innermost(one, depth + 1)) if inner else (value,)


def _names_one(pair: Sequence[Any]) -> bool:
    """Return whether a list is of a text that is no number, and of a share."""
    return len(pair) == 2 and sorted(map(_is_name, pair)) == [False, True] and any(map(_is_number, pair))


def _is_name(value: Any) -> bool:
    return isinstance(value, str) and not _A_NUMBER.fullmatch(value)


@dataclass(frozen=True)
class Scoring:
    """How values in cells are read. inside: whether pairs and mappings are objects. scores: whether theirs are read."""

    relation: Relation
    inside: bool
    scores: bool
    pairs: ScoredPairs

    def objects(self, value: Any, score: Any = None, depth: int = 0) -> Any:
        """Return a value with a `ScoredText` for each text and number, in its lists; an unknown mapping as it is.

        score: of all objects, or a list with one for each. ValueError for one that is no number from 0 to 1, and if
        scores and objects differ in number.
        """
        if isinstance(value, dict):
            return self._of_mapping(value, score) if self.inside else value
        parts = _PARTED.split(value) if isinstance(value, str) else []
        each = [_NAMED.fullmatch(part) for part in parts if self.relation.has_entities()]
        if each and all(each) and not (depth and len(each) > 1):  # as in "Paris (0.9), Lyon: 0.3"
            named = [self._scored(*one.groups()) for one in each if one]
            return named[0] if depth else named
        if isinstance(score, list) and parts:
            value = parts
        elif value == [] and isinstance(score, float):
            value = [""]
        if not isinstance(value, list | tuple):
            own = score.get(str(value)) if isinstance(score, dict) else score
            return value if value is None or isinstance(value, bool) else ScoredText(str(value), own)
        if depth == _DEEPEST:
            return value
        if self.inside and (pair := self._pair(value, within=depth > 0)):
            return pair if depth else [pair]
        if not isinstance(score, list):
            score = [score] * len(value)
        elif len(score) != len(value):
            raise ValueError(f"{counted(len(score), 'score')} for {counted(len(value), 'object')}")
        found = [self.objects(one, own, depth + 1) for one, own in zip(value, score, strict=True)]
        is_flat = all(isinstance(one, dict) and len(one) == 1 for one in value)  # [{"Paris": 0.9}, {"Lyon": 0.3}]
        return [*chain(*found)] if is_flat and all(isinstance(one, list) for one in found) else found

    def _pair(self, pair: Sequence[Any], *, within: bool) -> ScoredText | None:
        """Return the object of a pair with its score, in either order; None for other lists.

        within: whether it is in a list, where a number and a share are a pair too.
        """
        for name, score in (pair, pair[::-1]) if len(pair) == 2 else ():
            is_named = _is_name(name) and _is_number(score) and (self.pairs.texts or not isinstance(score, str))
            is_beside = isinstance(name, str) or (within and self.relation.has_numbers() and _is_number(name))
            is_share = self.pairs.numbers and isinstance(score, float) and 0 <= score <= 1
            if is_named or (is_beside and is_share):
                return self._scored(name, score)
        return None

    def _of_mapping(self, given: Mapping[Any, Any], score: Any) -> Any:
        """Return the object that a mapping names, or its keys as objects with numbers as their scores."""
        keys = {folded(str(key)): value for key, value in given.items()}
        own = next((keys[key] for key in _KEYS if key in keys), None)
        texts = [key for key, value in keys.items() if isinstance(value, str) and key not in (*_KEYS, *_IDS)]
        named = [key for key in _NAMES if isinstance(keys.get(key), str | int | float | list)]
        values = self.relation.has_values()
        if (named and (own is not None or not values)) or (own is not None and len(texts) == 1):
            name = (named or texts)[0]
            given_score = score if own is None or not self.scores else _scores(own)
            if isinstance(keys[name], list):
                return self.objects(keys[name], given_score)
            qid = next((as_qid(str(keys[key])) for key in _IDS if keys.get(key)), None)
            return ScoredText(" ".join(str(keys[key]) for key in (name, "unit") if key in keys), given_score, qid)
        are_objects = not values or all(re.search(r"\d", str(key)) for key in given)
        if given and are_objects and all(map(_is_number, given.values())):
            return [self._scored(*pair) for pair in given.items()]
        return given

    def _scored(self, name: Any, score: Any) -> ScoredText:
        return ScoredText(str(name), _scores(score) if self.scores else None)


def _is_number(value: Any) -> bool:
    """Return whether a value is a number, or a text that is a share."""
    return _SHARE.fullmatch(value) is not None if isinstance(value, str) else type(value) in (int, float)
