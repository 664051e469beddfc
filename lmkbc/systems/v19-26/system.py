"""Fold names by train's aliases, and decide by counts of draws (V19, LM-KBC 2026)."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from msgspec import structs

from lmkbc.answer.formats import AnswerFormat
from lmkbc.answer.parse import Parsed
from lmkbc.names import name_key
from lmkbc.notes import Notes
from lmkbc.scoring.matchers import number
from lmkbc.select.numeric import NumericRule
from lmkbc.select.pool import Grouper, Pooling
from lmkbc.select.ranking import Floats
from lmkbc.select.rule import Rule
from lmkbc.session.run import Run
from lmkbc.types import Candidate, CandidateSet, Prediction, State

_FIGURE = re.compile(r"\d[\d,]*(?:\.\d+)?")
_ALIVE = re.compile(r"\b(?:alive|unknown)\b", re.IGNORECASE)
LONGEST = 60


@dataclass(frozen=True, kw_only=True)
class FirstFigure(AnswerFormat):
    """A sentence whose first number is the answer, without regard to its unit."""

    joint: str = "; "
    tolerant: bool = False

    def parts(self, answer: str) -> list[str]:
        """Return the number; [] if there is none above 0."""
        found = _FIGURE.search(answer)
        value = number(found[0].replace(",", "")) if found else None
        return [found[0].replace(",", "")] if found and value else []


@dataclass(frozen=True, kw_only=True)
class BiographyFormat(AnswerFormat):
    """A biography in a line, and the city of death behind the last "City:"; nothing if anything says alive."""

    joint: str = "; "
    tolerant: bool = False

    def split(self, text: str, null: str = "") -> Parsed:  # noqa: ARG002 -- words for nothing may stand anywhere
        """Return the city up to a comma, a full stop or a bracket."""
        if _ALIVE.search(text):
            return Parsed(State.ABSTAINED)
        return super().split(text)

    def parts(self, answer: str) -> list[str]:
        """Return the city; [] without one."""
        _, mark, behind = answer.rpartition("City:")
        city = re.split(r"[,.(\n]", behind if mark else "")[0].strip()
        return [city] if city else []


@dataclass(frozen=True, kw_only=True)
class LineFormat(AnswerFormat):
    """Names of the first line, with semicolons between them; nothing if it begins with none."""

    joint: str = "; "
    tolerant: bool = False

    def split(self, text: str, null: str = "") -> Parsed:
        """Return the names of fewer than 60 characters."""
        line = text.strip().partition("\n")[0].strip()
        if line.casefold().startswith(null.casefold() or "none"):
            return Parsed(State.ABSTAINED)
        names = tuple(dict.fromkeys(name for name in self.parts(line) if 0 < len(name) < LONGEST))
        return Parsed(State.ANSWERED if names else State.UNPARSED, names)


@dataclass(frozen=True, kw_only=True)
class TrainNames(Pooling):
    """Names are brought to the label of the entity of train that alone has them as an alias.

    shortest: fewest letters of an alias that counts.
    """

    shortest: int

    def open(self, run: Run, notes: Notes, *, replayed: bool = False) -> Grouper | None:  # noqa: ARG002
        """Return what renames."""
        meant: defaultdict[tuple[str, str], set[str]] = defaultdict(set)
        for example in run.train:
            for gold in example.objects:
                for alias in gold.names:
                    if len(alias) >= self.shortest:
                        meant[example.query.relation, name_key(alias)].add(gold.name)
        return _Renamer({key: min(labels) for key, labels in meant.items() if len(labels) == 1})


class _Renamer:
    """Gives names the labels of a table of (relation, key of a name)."""

    def __init__(self, labels: dict[tuple[str, str], str]) -> None:
        self._labels = labels

    def merged(self, sources: Sequence[Sequence[CandidateSet]]) -> list[list[CandidateSet]]:
        """Return the sets with renamed candidates."""
        return [[self._renamed(found) for found in sets] for sets in sources]

    def _renamed(self, found: CandidateSet) -> CandidateSet:
        relation = found.query.relation
        named = (
            structs.replace(one, text=self._labels.get((relation, name_key(one.text)), one.text))
            for one in found.candidates
        )
        return replace(found, candidates=tuple(named))


@dataclass(frozen=True, kw_only=True)
class FullestWindow(NumericRule):
    """Median of the draws in the window from v to v x (1 + `width`) that holds most of them; the lowest on ties."""

    name: ClassVar[str] = "v19-26/window"
    width: float = 0.05

    def points(self, values: Floats, weights: Floats) -> Sequence[float]:
        """Return the median."""
        least = min((weight for weight in weights if weight > 0), default=1.0)
        draws = np.round(np.minimum(weights, 1000 * least) / least).astype(np.int64)
        before = np.append(0, np.cumsum(draws))
        first = np.searchsorted(values, values, "left")
        last = np.searchsorted(values, values * (1 + self.width) + 1e-9, "right")
        held = np.where(draws > 0, before[last] - before[first], 0)
        start, count = first[held.argmax()], int(held.max())
        middle = (before[start] + (count - 1) // 2, before[start] + count // 2)
        return (float(np.mean([values[np.searchsorted(before[1:], place, "right")] for place in middle])),)


@dataclass(frozen=True, kw_only=True)
class Acronyms(Rule):
    """Add the score of an acronym to the name with its initials, then select as `inner` does.

    longest: most letters of an acronym.
    """

    name: ClassVar[str] = "v19-26/acronyms"
    inner: Rule
    longest: int = 6

    def select(self, candidates: CandidateSet) -> Prediction:
        """Return the selection."""
        short = [one for one in candidates.candidates if one.text.isupper() and len(one.text) <= self.longest]
        whole = sorted(
            (one for one in candidates.candidates if one not in short), key=lambda one: (-one.score, one.text)
        )
        added: dict[str, float] = {}
        left: list[Candidate] = []
        for one in short:
            match = next((full for full in whole if _initials(full.text) == one.text), None)
            if match is None:
                left.append(one)
            else:
                added[match.text] = added.get(match.text, 0.0) + one.score
        named = [structs.replace(one, score=min(one.score + added.get(one.text, 0.0), 1.0)) for one in whole]
        ranked = sorted([*named, *left], key=lambda one: (-one.score, one.text))
        return self.inner.select(replace(candidates, candidates=tuple(ranked)))


def _initials(name: str) -> str:
    return "".join(word[0] for word in re.findall(r"[^\W\d_]+", name) if word[0].isupper())


COMPONENTS = {
    "v19-26/figure": FirstFigure(),
    "v19-26/biography": BiographyFormat(),
    "v19-26/line": LineFormat(),
    "v19-26/train-names": TrainNames,
    FullestWindow.name: FullestWindow,
    Acronyms.name: Acronyms,
}
