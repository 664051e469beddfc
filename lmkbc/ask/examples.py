"""Worked examples for prompts: the choice of train rows for a query, never of its own subject under any name."""

from __future__ import annotations

import logging
import math
import random
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from itertools import islice
from typing import Literal, Protocol

import numpy as np
import numpy.typing as npt

from lmkbc.ask.known_names import KnownNames
from lmkbc.errors import InputError, refuse
from lmkbc.groups import grouped
from lmkbc.scoring.matchers import number
from lmkbc.types import Example, Query

log = logging.getLogger(__name__)

Method = Literal["fixed", "random", "cardinality", "shortest", "longest", "balanced", "nearest", "log"]


class TextEncoder(Protocol):
    """Encodes texts as unit vectors."""

    def encode(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        """Return one row per text."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Shots:
    """Number and choice of examples, as in a recipe.

    method: "fixed" (the first k in the file), "random", "cardinality" (one with the fewest and one with the most
    objects, then random; Li et al. 2023), "shortest" or "longest" (by number of objects). The method "balanced" has a
    share `empty` of examples without objects. The method "nearest" takes the nearest subjects by embedding, nearest
    last. The method "log" spreads the examples evenly over the logarithm of the number.
    per: whether to draw once for the run, so that prompts share a prefix, or for each query.
    draw: with "hash", a query's draw depends on the SHA-256 of seed, subject and relation, and no subject is shown
    twice (Chironk 2026).
    file: JSONL file of examples instead of train, bundled by name or a path.
    rows: use only the relation's n-th to m-th row of the file or of train, counted from 1.
    empties: whether examples without objects may occur.
    one_empty: whether to append the relation's first example without objects if the k others all have objects.
    empty: share of examples without objects for "balanced", in [0, 1], or "train" for the share in train.
    relations: examples of the query's "own" relation, or of "all" relations, a different one each if possible. Examples
    of a file then keep its names of relations.
    names: maximum number of objects shown per example, from the first; all if not given.
    fit: whether to show fewer examples if a prompt exceeds a server's context. The last is dropped first, but for
    "nearest" the farthest.
    """

    k: int = 5
    method: Method = "fixed"
    per: Literal["run", "query"] = "run"
    draw: Literal["seed", "hash"] = "seed"
    seed: int = 0
    file: str = ""
    rows: tuple[int, int] | None = None
    empties: bool = True
    one_empty: bool = False
    empty: float | Literal["train"] = 0.5
    relations: Literal["own", "all"] = "own"
    names: int | None = None
    fit: bool = False

    def __post_init__(self) -> None:
        """Raise ValueError for a wrong value."""
        first, last = self.rows or (1, 1)
        refuse(
            (
                self.draw == "hash" and (self.method, self.per) != ("random", "query"),
                "draw 'hash' is of method 'random' and per 'query': use it with both",
            ),
            (self.k < 0, f"k is {self.k}: it cannot be negative"),
            (not 1 <= first <= last, f"rows is {[first, last]}: give the first and the last row, counted from 1"),
            (
                self.names is not None and self.names < 1,
                f"names is {self.names}: give at least 1, or leave it out for all",
            ),
            (self.empty != "train" and not 0 <= self.empty <= 1, f"empty is {self.empty}: give a share in [0, 1]"),
        )


class ExampleSelector:
    """Selects examples for queries from a train split.

    encoder: needed for "nearest". bank: rows to use instead of train. names: names of all these rows, if already known.
    A row with an unnamed object would show an incomplete answer, so it is no example.
    """

    def __init__(
        self,
        shots: Shots,
        train: Sequence[Example],
        encoder: TextEncoder | None = None,
        bank: Sequence[Example] | None = None,
        names: KnownNames | None = None,
    ) -> None:
        if shots.method == "nearest" and encoder is None:
            raise InputError("shots: method 'nearest' needs the sentence encoder: install lmkbc[encoder]")
        self.shots = shots
        self._encoder = encoder
        self._names = names or KnownNames([*train, *(bank or ())])
        self._pools: defaultdict[str, list[Example]] = defaultdict(list)
        self._empties: defaultdict[str, list[Example]] = defaultdict(list)
        rows: Counter[str] = Counter()
        first, last = shots.rows or (1, math.inf)
        for example in train if bank is None else bank:
            rows[example.query.relation] += 1
            if not example.objects:
                self._empties[example.query.relation].append(example)
            if not first <= rows[example.query.relation] <= last:
                continue
            if example.named and (example.objects or shots.empties):
                self._pools[example.query.relation].append(example)
                if shots.relations == "all":
                    self._pools[""].append(example)
        self._vectors: dict[str, npt.NDArray[np.float32]] = {}
        self._hands: dict[str, tuple[tuple[Example, ...], ...]] = {}
        self._shuffled: dict[str, list[Example]] = {}
        self._bare: set[str] = set()

    def select(self, query: Query, unseen: Query | None = None) -> tuple[Example, ...]:
        """Return at most k examples, in the order of the prompt.

        unseen: another query whose subject no example may show. All queries of a run share a first set of examples.
        Queries about its subjects share a second set, so that their prompts share a prefix too. If train has no second
        set, they get the remaining examples without their own subject.
        """
        own = [query] if unseen is None else [query, unseen]
        of_run = self.shots.per == "run" and self.shots.method != "nearest"
        hands = self._of_run(query.relation) if of_run else ()
        free = (hand for hand in hands if not any(self._any_about(hand, subject) for subject in own))
        chosen = next(free, ()) or self._select(query, own)
        if self.shots.file and self.shots.k and not chosen and query.relation not in self._bare:
            self._bare.add(query.relation)
            log.warning(f"{self.shots.file} has no example for {query.subject!r} ({query.relation}): none is shown")
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

    def fewer(self, query: Query) -> Iterator[tuple[Example, ...]]:
        """Yield the examples with one less each time, down to none, if the shots may be fitted; else nothing."""
        shots = self.select(query) if self.shots.fit else ()
        for count in range(len(shots) - 1, -1, -1):
            yield shots[len(shots) - count :] if self.shots.method == "nearest" else shots[:count]

    def _select(self, query: Query, own: Sequence[Query]) -> tuple[Example, ...]:
        shots = self.shots
        free = (one for one in self._pool(query) if not self._about(one, own))
        if shots.draw == "hash":
            chosen = [*islice(_hashed([*free], query, shots.seed), shots.k)]
        elif shots.relations == "own" and shots.method in ("fixed", "random"):  # the first k suffice
            chosen = list(islice(free, shots.k))
        else:
            pool = _mixed([*free]) if shots.relations == "all" else [*free]
            chosen = self._ordered(pool, query)[: shots.k]
        if shots.one_empty and all(example.objects for example in chosen):
            chosen += islice((one for one in self._empties[query.relation] if not self._about(one, own)), 1)
        return tuple(replace(example, objects=example.objects[: shots.names]) for example in chosen)

    def _about(self, example: Example, own: Iterable[Query]) -> bool:
        return any(self._names.same(example.query, other) for other in own)

    def _pool(self, query: Query) -> list[Example]:
        """Return the examples of a relation, in the order of choice."""
        shots = self.shots
        draw = (shots.seed, query.relation, query.subject if shots.per == "query" else "")
        pool = self._pools["" if shots.relations == "all" else query.relation]
        if shots.method == "fixed" or shots.draw == "hash":
            return pool
        if shots.per == "query":
            return random.Random(repr(draw)).sample(pool, len(pool))
        if query.relation not in self._shuffled:
            self._shuffled[query.relation] = random.Random(repr(draw)).sample(pool, len(pool))
        return self._shuffled[query.relation]

    def _ordered(self, pool: list[Example], query: Query) -> list[Example]:
        """Return the examples of a pool in the method's order; the first k are shown."""
        match self.shots.method:
            case "shortest":
                return sorted(pool, key=lambda example: example.size)
            case "longest":
                return sorted(pool, key=lambda example: -example.size)
            case "cardinality" if len(pool) > 1:
                fewest, *_, most = sorted(pool, key=lambda example: example.size)
                return [fewest, most, *(example for example in pool if example is not fewest and example is not most)]
            case "balanced":
                return self._balanced(pool)
            case "nearest":
                return self._nearest(pool, query)
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

    def _nearest(self, pool: list[Example], query: Query) -> list[Example]:
        own = self._vector(query.subject)
        closeness = {id(example): float(self._vector(example.query.subject) @ own) for example in pool}
        nearest = sorted(pool, key=lambda example: (-closeness[id(example)], example.query.subject))
        return nearest[: self.shots.k][::-1]

    def _log(self, pool: list[Example]) -> list[Example]:
        """Return the middle of each of k equal slices of the examples by size, shuffled; the pool if none has one."""
        sized = sorted((size, place) for place, example in enumerate(pool) if (size := _size(example)) is not None)
        if not sized:
            return pool
        k = min(self.shots.k, len(sized))
        places = [sized[(2 * slice_ + 1) * len(sized) // (2 * k)][1] for slice_ in range(k)]
        return [pool[place] for place in sorted(places)]

    def _vector(self, subject: str) -> npt.NDArray[np.float32]:
        if subject not in self._vectors:
            assert self._encoder is not None  # noqa: S101  (checked when made)
            known = [*dict.fromkeys(example.query.subject for pool in self._pools.values() for example in pool)]
            texts = [subject] if self._vectors else [*dict.fromkeys((subject, *known))]
            self._vectors |= dict(zip(texts, self._encoder.encode(texts), strict=True))
        return self._vectors[subject]


def _hashed(pool: list[Example], query: Query, seed: int) -> Iterator[Example]:
    """Yield examples in an order that depends on the query, the first example of each subject."""
    text = "\x1f".join(("shots", str(seed), query.subject, query.relation))
    random.Random(int.from_bytes(sha256(text.encode()).digest()[:8])).shuffle(pool)
    shown: set[str] = set()
    for example in pool:
        if example.query.subject not in shown:
            shown.add(example.query.subject)
            yield example


def _mixed(pool: Sequence[Example]) -> list[Example]:
    """Return examples from each relation in turn, so that the first k are of k relations."""
    turns = grouped((example.query.relation, example) for example in pool)
    most = max(map(len, turns.values()), default=0)
    return [examples[turn] for turn in range(most) for examples in turns.values() if turn < len(examples)]


def _size(example: Example) -> float | None:
    values = [value for name in example.names if (value := number(name)) is not None and value > 0]
    return math.log10(values[0]) if values else None
