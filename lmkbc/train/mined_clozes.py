"""Clozes mined from a text: the words between a train subject and one of its objects (Li T. et al. 2022, ablation).

Example: "Ada lives in Rome", and the fact that Ada's home is Rome, give "{subject} lives in {mask}.". LPAQA (Jiang et
al. 2020) calls these middle words. A text is read sentence by sentence, so it may have any length.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

from lmkbc.generate.masked.answers import FUNCTION_WORDS
from lmkbc.names import NameTree
from lmkbc.progress import Report, silent
from lmkbc.types import Example

LONGEST = 10
"""Most words of a span."""
MOST_SPANS = 100_000
"""Most distinct spans of a relation in memory. Beyond it, the rarer half is dropped."""
EVERY = 10_000
"""Sentences between two reports of progress."""

Words = tuple[str, ...]
"""A name in lower case, as words and punctuation marks."""

_TOKEN = re.compile(r"\w+|[^\w\s]")
_BRACKETS = frozenset("{}[]<>")


class _Place(NamedTuple):
    """Place of a name in a sentence, in tokens. Sorted places with the same start have the longest first."""

    start: int
    negated_end: int
    is_object: bool

    @property
    def end(self) -> int:
        return -self.negated_end


@dataclass(frozen=True, slots=True)
class Found:
    """Counts of a text. pairs: relation -> number of adjacent subjects and objects.

    clozes: relation -> cloze -> count.
    """

    sentences: int
    pairs: Counter[str]
    clozes: dict[str, Counter[str]]

    def most(self, relation: str, number: int) -> list[tuple[str, int]]:
        """Return a relation's most frequent clozes with counts; equal counts in alphabetical order."""
        return sorted(self.clozes.get(relation, {}).items(), key=lambda item: (-item[1], item[0]))[:number]


class TrainFacts:
    """The facts of train rows, found by their names. Names match as whole words, in any case."""

    def __init__(self, rows: Iterable[Example]) -> None:
        self._names = NameTree()
        self._about: defaultdict[Words, list[tuple[str, frozenset[Words]]]] = defaultdict(list)
        for row in rows:
            subject = _words(row.query.subject)
            objects = frozenset(_words(name) for gold in row.objects for name in gold.names) - {()}
            if subject and objects:
                self._about[subject].append((row.query.relation, objects))
                for name in (subject, *objects):
                    self._names.add(name)

    def clozes_in(self, sentence: str) -> Iterator[tuple[str, str]]:
        """Yield (relation, cloze) for each adjacent subject and object of a fact. The cloze of a useless span is ""."""
        tokens = _words(sentence)
        places = self._places(tokens)
        about = [(subject, *known) for subject in places for known in self._about.get(subject, ())]
        offsets = [token.span() for token in _TOKEN.finditer(sentence)] if about else []
        for subject, relation, objects in about:
            named = [_Place(start, -end, False) for start, end in places[subject]]
            named += [_Place(start, -end, True) for name in objects & places.keys() for start, end in places[name]]
            for first, second in pairwise(_outermost(named)):
                if first.is_object != second.is_object and first.end <= second.start:
                    text = sentence[offsets[first.end - 1][1] : offsets[second.start][0]]
                    yield relation, _cloze(text, tokens[first.end : second.start], first.is_object)

    def _places(self, tokens: Words) -> dict[Words, list[tuple[int, int]]]:
        """Return name -> its (start, end) places in a sentence, in tokens."""
        places: defaultdict[Words, list[tuple[int, int]]] = defaultdict(list)
        for start, end in self._names.find(tokens):
            places[tokens[start:end]].append((start, end))
        return dict(places)


def mine(sentences: Iterable[str], rows: Iterable[Example], report: Report = silent) -> Found:
    """Count the clozes that sentences give for the facts of train rows."""
    facts, found, number = TrainFacts(rows), Found(0, Counter(), defaultdict(Counter)), 0
    for number, sentence in enumerate(sentences, start=1):
        for relation, cloze in facts.clozes_in(sentence):
            found.pairs[relation] += 1
            if cloze:
                counts = found.clozes[relation]
                counts[cloze] += 1
                if len(counts) > MOST_SPANS:
                    found.clozes[relation] = Counter(dict(found.most(relation, MOST_SPANS // 2)))
        if number % EVERY == 0:
            report("sentences", number, None)
    return Found(number, found.pairs, dict(found.clozes))


def _words(text: str) -> Words:
    return tuple(map(str.lower, _TOKEN.findall(text)))


def _outermost(places: Iterable[_Place]) -> Iterator[_Place]:
    """Yield places in order, without those inside another. Example: in "Paris Hilton", "Paris" is left out."""
    reached = 0
    for place in sorted(places):
        if place.end > reached:
            reached = place.end
            yield place


def _cloze(text: str, tokens: Sequence[str], object_first: bool) -> str:
    """Return the cloze of a span; "" for stop words only, a long span, or characters that a prompt may not hold.

    A single letter counts as a stop word, such as that of "'s".
    """
    text = re.sub(r"\s+", " ", text)
    spoken = [token for token in tokens if token[0].isalnum()]
    telling = any(len(word) > 1 and word not in FUNCTION_WORDS for word in spoken)
    if not telling or len(spoken) > LONGEST or not text.isprintable() or not _BRACKETS.isdisjoint(text):
        return ""
    return f"{{mask}}{text}{{subject}}." if object_first else f"{{subject}}{text}{{mask}}."
