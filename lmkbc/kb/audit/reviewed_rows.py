"""Labelled rows that persons' decisions make: subjects of a base whose facts are all decided."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path

from lmkbc.edition import Edition
from lmkbc.kb.base.fact_row import FactRow
from lmkbc.kb.base.knowledge import Knowledge
from lmkbc.relation import Relation
from lmkbc.types import Example, Query


def reviewed_rows(path: Path, edition: Edition, relations: Mapping[str, Relation]) -> list[Example]:
    """Return a row for each subject and relation of a base whose facts are all right by decision, in stored order.

    Wrong facts are no facts, so a subject counts once every fact of it is decided and an object is right. Subjects
    without a right object are left out: what they lack is unknown. relations: by the edition's names; only these are
    read. In an edition of QIDs, a row with an object that has none is left out.
    """
    base, rows = Knowledge(path), list[Example]()
    for name, relation in relations.items():
        if relation.name not in base.relations:
            continue
        facts = defaultdict[tuple[str, str | None], list[FactRow]](list)
        for fact in base.of(relation.name):
            facts[fact.subject, fact.subject_id].append(fact)
        for (subject, qid), own in facts.items():
            gold = tuple(fact.gold for fact in own)
            if all(fact.reviewed_by for fact in own) and all(map(edition.accepted, gold)):
                rows.append(Example(Query(subject, name, qid), gold))
    return rows
