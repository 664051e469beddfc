"""Which relations a subject is asked: those whose subjects are of its class, all where its class tells nothing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from lmkbc.link.object_types import ObjectTypes, bundled
from lmkbc.names import as_qid, folded_key
from lmkbc.relation import EntityType, Relation


class Classes:
    """The classes that relations declare, and the small tree that the linker has of them.

    A class is known where a relation's type or that tree has it; a label, where it is the noun of a type. asked: the
    relations that may be asked, by the names that queries use. known: all relations, whose types are known.
    """

    def __init__(
        self, asked: Mapping[str, Relation], known: Iterable[Relation] = (), tree: ObjectTypes | None = None
    ) -> None:
        self._asked, self._tree = asked, tree or bundled()
        types = [kind for one in (*known, *asked.values()) for kind in (one.subject_type, one.object_type)]
        self._nouns = {folded_key(kind.noun): kind.qid for kind in reversed(types)}
        self._types: dict[str, list[EntityType]] = {}
        for kind in types:
            self._types.setdefault(kind.qid, []).append(kind)
        listed = {qid for kind in types for qid in (kind.qid, *kind.classes)}
        self._known = listed.union(*map(self._tree.below, [*self._tree.types, *listed]))

    def qid(self, named: str) -> str | None:
        """The class that a QID or a label names; None for one that nothing here tells of."""
        qid = as_qid(named) or self._nouns.get(folded_key(named))
        return qid if qid in self._known else None

    def relations(self, named: str) -> Sequence[str]:
        """The relations that a subject of a class is asked."""
        qid = self.qid(named)
        return [name for name, one in self._asked.items() if qid is None or self._fits(qid, one.subject_type)]

    def _fits(self, qid: str, kind: EntityType) -> bool:
        """Whether a thing of a class may be of a type: one is the other, lies below it, or is listed as such."""
        if any(self._tree.kin(qid, one) for one in (kind.qid, *kind.classes)):
            return True
        return any(kind.qid in own.classes for own in self._types.get(qid, ()))
