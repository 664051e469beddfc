"""Worked examples for prompts: their files, and the choice for a query, never of its own subject under any name."""

from __future__ import annotations

import logging
import math
import random
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import islice
from typing import Annotated, ClassVar, Literal

import msgspec

from lmkbc.errors import InputError, did_you_mean, refuse
from lmkbc.files.jsonl import numbered, read_jsonl
from lmkbc.files.splits import QueryRow, examples_of
from lmkbc.names import folded_key, without_legal_form, without_trailer
from lmkbc.relation import Relation
from lmkbc.scoring.matchers import number
from lmkbc.settings import ReadBy
from lmkbc.types import Example, Query, grouped
from lmkbc.workspace import bundled

log = logging.getLogger(__name__)

Method = Literal["fixed", "random", "cardinality", "longest", "balanced", "log"]
SHOWN = ReadBy(
    "a prompt with examples (k of at least 1)",
    lambda _, spec, *__: any(shots.shows for _, shots, _ in spec.variants),
)
DRAWN = ReadBy(
    "a method that draws",
    lambda _, spec, *__: any((shots.k and shots.method != "fixed") for _, shots, _ in spec.variants),
)
BALANCED = ReadBy(
    "method 'balanced'",
    lambda _, spec, *__: any(shots.k and shots.method == "balanced" for _, shots, _ in spec.variants),
)
"""Readers of the settings of examples, in the general table or in that of a relation."""
OWN_WORDS = ("question", "reasoning", "answer")
"""Slots of a prompt that an example may fill with its own words."""


@dataclass(frozen=True, kw_only=True)
class Shots:
    """Number and choice of examples, as in a recipe.

    method: "fixed" (the first k in the file), "random", "cardinality" (one with the fewest and one with the most
    objects, then random; Li et al. 2023), or "longest" (by number of objects). The method "balanced" has a share
    `empty` of examples without objects. The method "log" spreads the examples evenly over the logarithm of the number.
    per: whether to draw once for the run, so that prompts share a prefix, or for each query, or for each of its draws.
    path: JSONL file of examples instead of train, bundled by name or a path.
    empty: share of examples without objects for "balanced", in [0, 1], or "train" for the share in train.
    relations: examples of the query's "own" relation, or of "all" relations, a different one each if possible. Examples
    of a file then keep its names of relations.
    names: maximum number of objects shown per example, from the first; all if not given.
    fit: whether to show fewer examples if a prompt exceeds a server's context. The last is dropped first.
    """

    k: int = 5
    method: Annotated[Method, SHOWN] = "fixed"
    per: Literal["run", "query", "draw"] = "run"
    seed: Annotated[int, DRAWN] = 0
    path: Annotated[str, SHOWN] = ""
    empty: Annotated[float | Literal["train"], BALANCED] = 0.5
    relations: Annotated[Literal["own", "all"], SHOWN] = "own"
    names: Annotated[int | None, SHOWN] = None
    fit: bool = False

    REMOVED: ClassVar[Mapping[str, str]] = {"file": "write it as path"}

    def __post_init__(self) -> None:
        """Raise ValueError for a wrong value."""
        refuse(
            (self.k < 0, f"k is {self.k}: it cannot be negative"),
            (
                self.names is not None and self.names < 1,
                f"names is {self.names}: give at least 1, or leave it out for all",
            ),
            (self.empty != "train" and not 0 <= self.empty <= 1, f"empty is {self.empty}: give a share in [0, 1]"),
        )

    @property
    def shows(self) -> bool:
        """Return whether any example is shown."""
        return self.k > 0

    def offers(self, number: int) -> bool:  # noqa: ARG002 -- subclasses use it, and those below
        """Return whether a row may be shown. number: of the row among those of its relation, counted from 1."""
        return True

    def last(self, chosen: Sequence[Example], empty: Iterable[Example]) -> list[Example]:  # noqa: ARG002
        """Return the examples after those that were chosen. empty: examples of the relation without objects."""
        return []

    def chosen(self, query: Query, free: Iterable[Example]) -> list[Example] | None:  # noqa: ARG002
        """Return the examples for a query, chosen in a way of the class's own; None if `method` chooses.

        free: examples that are not about its subject.
        """
        return None

    def shown_to(self, query: Query, draw: int) -> tuple[str | int, ...]:
        """Return what chooses the random examples beside the seed: the query and the draw, as far as `per` says."""
        return {"run": ("",), "query": (query.subject,), "draw": (query.subject, draw)}[self.per]


class KnownNames:
    """Other names of a subject: its aliases as an object of other rows, without legal forms and remarks."""

    def __init__(self, train: Sequence[Example]) -> None:
        self._aliases: defaultdict[str, list[set[str]]] = defaultdict(list)
        self._keys: dict[Query, frozenset[str]] = {}
        for example in train:
            for gold in example.objects:
                keys = {key for name in gold.names for key in _keys(name)}
                for key in (*keys, *((gold.id,) if gold.id else ())):
                    self._aliases[key].append(keys)
        self._subjects = frozenset(key for example in train for key in self._of(example.query))
        self._ids = frozenset(example.query.subject_id for example in train if example.query.subject_id)

    def shared(self, query: Query) -> bool:
        """Return whether any example may be about the query's subject."""
        return query.subject_id in self._ids or not self._subjects.isdisjoint(self._of(query))

    def same(self, query: Query, other: Query) -> bool:
        """Return whether two queries may be about the same subject: by identifier or by any name."""
        same_id = bool(query.subject_id) and query.subject_id == other.subject_id
        return same_id or not self._of(query).isdisjoint(self._of(other))

    def _of(self, query: Query) -> frozenset[str]:
        if query not in self._keys:
            known = {*_keys(query.subject)}
            for key in (*known, query.subject_id or ""):
                known.update(*self._aliases.get(key, ()))
            self._keys[query] = frozenset(known)
        return self._keys[query]


@lru_cache(1 << 17)
def _keys(name: str) -> tuple[str, ...]:
    forms = dict.fromkeys((name, without_trailer(name)))
    keys = (key for form in forms for key in (folded_key(form), " ".join(without_legal_form(form))) if key)
    return tuple(dict.fromkeys(keys))


class ExampleSelector:
    """Selects examples for queries from a train split.

    bank: rows to use instead of train. names: names of all these rows, if already known. A row with an unnamed object
    would show an incomplete answer, so it is no example.
    """

    def __init__(
        self,
        shots: Shots,
        train: Sequence[Example],
        bank: Sequence[Example] | None = None,
        names: KnownNames | None = None,
    ) -> None:
        self.shots = shots
        self._names = names or KnownNames([*train, *(bank or ())])
        self._pools: defaultdict[str, list[Example]] = defaultdict(list)
        self._empties: defaultdict[str, list[Example]] = defaultdict(list)
        rows: Counter[str] = Counter()
        for example in train if bank is None else bank:
            rows[example.query.relation] += 1
            if not example.objects:
                self._empties[example.query.relation].append(example)
            if example.named and shots.offers(rows[example.query.relation]):
                self._pools[example.query.relation].append(example)
                if shots.relations == "all":
                    self._pools[""].append(example)
        self._hands: dict[str, tuple[tuple[Example, ...], ...]] = {}
        self._shuffled: dict[str, list[Example]] = {}
        self._bare: set[str] = set()

    def select(self, query: Query, unseen: Query | None = None, draw: int = 0) -> tuple[Example, ...]:
        """Return at most k examples, in the order of the prompt.

        unseen: another query whose subject no example may show. draw: the draw that they are shown to.

        All queries of a run share a first set of examples. Queries about its subjects share a second set, so that their
        prompts share a prefix too. If train has no second set, they get the remaining examples without their own
        subject.
        """
        own = [query] if unseen is None else [query, unseen]
        hands = self._of_run(query.relation) if self.shots.per == "run" else ()
        free = (hand for hand in hands if not any(self._any_about(hand, subject) for subject in own))
        chosen = next(free, ()) or self._select(query, own, draw)
        if self.shots.path and self.shots.k and not chosen and query.relation not in self._bare:
            self._bare.add(query.relation)
            log.warning(f"{self.shots.path} has no example for {query.subject!r} ({query.relation}): none is shown")
        return chosen

    def _of_run(self, relation: str) -> tuple[tuple[Example, ...], ...]:
        """Return the example sets of a run: the first, and a second one if there are enough examples."""
        if relation not in self._hands:
            anyone = Query("", relation)
            first = self._select(anyone, ())
            second = self._select(anyone, [example.query for example in first])
            self._hands[relation] = (first, second) if len(second) == len(first) else (first,)
        return self._hands[relation]

    def _any_about(self, examples: Iterable[Example], query: Query) -> bool:
        """Return whether any of the examples may be about a query's subject."""
        return self._names.shared(query) and any(self._names.same(example.query, query) for example in examples)

    def fewer(self, query: Query, draw: int = 0) -> Iterator[tuple[Example, ...]]:
        """Yield the examples with one less each time, down to none, if the shots may be fitted; else nothing."""
        shots = self.select(query, draw=draw) if self.shots.fit else ()
        for count in range(len(shots) - 1, -1, -1):
            yield shots[:count]

    def _select(self, query: Query, own: Sequence[Query], draw: int = 0) -> tuple[Example, ...]:
        shots = self.shots
        free = (one for one in self._pool(query, draw) if not self._about(one, own))
        if (own_choice := shots.chosen(query, free)) is not None:
            chosen = own_choice
        elif shots.relations == "own" and shots.method in ("fixed", "random"):  # the first k suffice
            chosen = list(islice(free, shots.k))
        else:
            chosen = self._ordered(_mixed([*free]) if shots.relations == "all" else [*free])[: shots.k]
        empty = (one for one in self._empties[query.relation] if not self._about(one, own))
        shown = [*chosen, *shots.last(chosen, empty)]
        return tuple(replace(example, objects=example.objects[: shots.names]) for example in shown)

    def _about(self, example: Example, own: Iterable[Query]) -> bool:
        return any(self._names.same(example.query, other) for other in own)

    def _pool(self, query: Query, draw: int) -> list[Example]:
        """Return the examples of a relation, in the order of choice for a draw of a query."""
        shots = self.shots
        seed = repr((shots.seed, query.relation, *shots.shown_to(query, draw)))
        pool = self._pools["" if shots.relations == "all" else query.relation]
        if shots.method == "fixed":
            return pool
        if shots.per != "run":
            return random.Random(seed).sample(pool, len(pool))
        if query.relation not in self._shuffled:
            self._shuffled[query.relation] = random.Random(seed).sample(pool, len(pool))
        return self._shuffled[query.relation]

    def _ordered(self, pool: list[Example]) -> list[Example]:
        """Return the examples of a pool in the method's order; the first k are shown."""
        match self.shots.method:
            case "longest":
                return sorted(pool, key=lambda example: -example.size)
            case "cardinality" if len(pool) > 1:
                fewest, *_, most = sorted(pool, key=lambda example: example.size)
                return [fewest, most, *(example for example in pool if example is not fewest and example is not most)]
            case "balanced":
                return self._balanced(pool)
            case "log":
                return self._log(pool)
        return pool

    def _balanced(self, pool: list[Example]) -> list[Example]:
        """Return k examples with the wanted share of empty ones, in random order.

        If one kind runs out, there are more of the other.
        """
        empty = [example for example in pool if not example.objects]
        full = [example for example in pool if example.objects]
        share = len(empty) / max(len(pool), 1) if self.shots.empty == "train" else self.shots.empty
        k = min(self.shots.k, len(pool))
        wanted = max(min(round(share * k), len(empty)), k - len(full))
        kept = {id(example) for example in (*empty[:wanted], *full[: k - wanted])}
        return [example for example in pool if id(example) in kept]

    def _log(self, pool: list[Example]) -> list[Example]:
        """Return the middle of each of k equal slices of the examples by size, shuffled; the pool if none has one."""
        sized = sorted((size, place) for place, example in enumerate(pool) if (size := _size(example)) is not None)
        if not sized:
            return pool
        k = min(self.shots.k, len(sized))
        places = [sized[(2 * slice_ + 1) * len(sized) // (2 * k)][1] for slice_ in range(k)]
        return [pool[place] for place in sorted(places)]


def _mixed(pool: Sequence[Example]) -> list[Example]:
    """Return examples from each relation in turn, so that the first k are of k relations."""
    turns = grouped((example.query.relation, example) for example in pool)
    most = max(map(len, turns.values()), default=0)
    return [examples[turn] for turn in range(most) for examples in turns.values() if turn < len(examples)]


def _size(example: Example) -> float | None:
    values = [value for name in example.names if (value := number(name)) is not None and value > 0]
    return math.log10(values[0]) if values else None


class _Row(msgspec.Struct, forbid_unknown_fields=True):
    """Line of the simple JSONL format.

    ids: as many as objects. question, reasoning, answer: the example's own words.
    """

    subject: str
    relation: str
    objects: list[str | list[str]]
    id: str | None = None
    ids: list[str] | None = None
    question: str | None = None
    reasoning: str | None = None
    answer: str | None = None

    @property
    def words(self) -> tuple[tuple[str, str], ...]:
        """Return its own words, by slot."""
        given = ((slot, getattr(self, slot)) for slot in OWN_WORDS)
        return tuple((slot, text) for slot, text in given if text is not None)


def read_bank(name: str, known: Mapping[str, Relation], asked: Mapping[str, Relation]) -> list[Example]:
    """Return the examples of a file, bundled or a path, in order. Raise InputError with file, line and field.

    known: relations by any name. asked: relations of an edition, by its names. Examples of these relations get the
    edition's names; others keep the names of the file.
    """
    path = bundled("shots", name, ".jsonl")
    lines = [*numbered(path)]
    if b'"SubjectEntity"' in (lines[0][1] if lines else b""):
        rows = read_jsonl(path, QueryRow)
        words: list[tuple[tuple[str, str], ...]] = [()] * len(rows)
    else:
        plain = read_jsonl(path, _Row)
        rows = [QueryRow(row.subject, row.relation, row.id, row.objects, row.ids) for row in plain]
        words = [row.words for row in plain]
    spelt = {relation.name: spelling for spelling, relation in asked.items()}
    for (line, _), row in zip(lines, rows, strict=True):
        if row.Relation not in known:
            hint = did_you_mean(row.Relation, known)
            raise InputError(f"{path}, line {line}: {row.Relation!r} is no relation: {hint}")
        if not row.SubjectEntity.strip():
            raise InputError(f"{path}, line {line}: the subject is empty; name it")
        row.Relation = spelt.get(known[row.Relation].name, row.Relation)
    return [replace(example, words=own) for example, own in zip(examples_of(rows), words, strict=True)]
