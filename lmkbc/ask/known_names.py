"""Names of a subject in train, so that its rows are recognised under any of them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from functools import lru_cache

from lmkbc.names import folded_key, without_legal_form, without_trailer
from lmkbc.types import Example, Query


class KnownNames:
    """Other names of a subject: its aliases as an object of other rows, without legal forms and remarks."""

    def __init__(self, train: Sequence[Example]) -> None:
        self._aliases: defaultdict[str, set[str]] = defaultdict(set)
        self._keys: dict[Query, frozenset[str]] = {}
        for example in train:
            for gold in example.objects:
                keys = {key for name in gold.names for key in _keys(name)}
                for key in (*keys, *((gold.id,) if gold.id else ())):
                    self._aliases[key] |= keys
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
                known |= self._aliases.get(key, set())
            self._keys[query] = frozenset(known)
        return self._keys[query]


@lru_cache(1 << 17)
def _keys(name: str) -> tuple[str, ...]:
    forms = dict.fromkeys((name, without_trailer(name)))
    keys = (key for form in forms for key in (folded_key(form), " ".join(without_legal_form(form))) if key)
    return tuple(dict.fromkeys(keys))
