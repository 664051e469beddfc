"""Relations to ask about a subject: those for its class, unless the user names others."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from lmkbc.link.object_types import bundled
from lmkbc.names import as_qid, folded_key
from lmkbc.relation import EntityClass, EntityType, Relation


class Classes:
    """Known classes: those of the workspace, those that relations declare, and the linker's small class tree.

    A class is found by its QID or by a name. asked: relations that may be asked, by their names in queries. named:
    whether the user named them. They are then also asked about a subject whose class is unknown, or lies above theirs.
    known: all relations, whose types are known classes. table: QID -> class of the workspace.
    """

    def __init__(
        self,
        asked: Mapping[str, Relation],
        known: Iterable[Relation] = (),
        table: Mapping[str, EntityClass] | None = None,
        *,
        named: bool = False,
    ) -> None:
        table = table or {}
        self._asked, self._named = asked, named
        relations = (*known, *asked.values())
        types = [kind for one in relations for kind in (one.subject_type, one.object_type, one.subject_class) if kind]
        self._qids = {folded_key(kind.noun): kind.qid for kind in reversed(types)}
        self._qids |= {folded_key(name): qid for qid, one in table.items() for name in one.names}
        self._above: dict[str, set[str]] = {qid: set(one.below) for qid, one in table.items()}
        for kind in bundled().types.values():
            for lower in (kind.qid, *kind.subclasses):
                self._above.setdefault(lower, set()).add(kind.qid)
        for declared in types:
            for qid in (declared.qid, *declared.classes):
                self._above.setdefault(qid, set())

    def qid(self, named: str) -> str | None:
        """Return the class for a QID or a name; None if it is unknown."""
        qid = as_qid(named) or self._qids.get(folded_key(named))
        return qid if qid in self._above else None

    def relations(self, named: str) -> Sequence[str]:
        """Return the relations to ask about a subject of a class."""
        qid = self.qid(named)
        if qid is None:
            return [*self._asked] if self._named else []
        return [name for name, one in self._asked.items() if self._fits(qid, one.subject_class or one.subject_type)]

    def voted(self, weights: Mapping[str, float]) -> str:
        """Return the class with the highest weight. A weight of a class also counts for the classes below it."""
        return max(weights, key=lambda one: sum(weight for other, weight in weights.items() if self._is(one, other)))

    def _fits(self, qid: str, kind: EntityType) -> bool:
        """Return whether a class fits a type. If the user named the relations, a class above the type fits too."""
        own = (kind.qid, *kind.classes)
        return any(self._is(qid, one) for one in own) or (self._named and any(self._is(one, qid) for one in own))

    def _is(self, lower: str, upper: str) -> bool:
        """Return whether two classes are equal, or the first lies below the second."""
        met, rest = {lower}, [lower]
        while rest:
            above = self._above.get(rest.pop(), set()) - met
            met |= above
            rest += above
        return upper in met
