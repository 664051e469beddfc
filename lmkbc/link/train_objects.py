"""The train split's own entities as evidence: what a name means there, by the same relation, then by type.

The rows of a query's own subject and relation are left out, so linking the train split itself is out of fold.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from rapidfuzz import process
from rapidfuzz.distance import OSA

from lmkbc.link.hits import Hit, bundled
from lmkbc.link.wordings import plausible_typo
from lmkbc.names import as_qid, name_key, spelling
from lmkbc.relation import Relation
from lmkbc.types import Example, Query

BY_ROWS = "most rows"
"""Strategy that picks the entity with the most train rows for a name; the other entities follow in that order."""


class Mention(NamedTuple):
    """A name of an entity in a row. `relation` is None for the subject of a row."""

    id: str
    name: str
    type: str
    relation: str | None
    row: Query


def mentions(examples: Iterable[Example], relations: Mapping[str, Relation]) -> Iterator[Mention]:
    """Yield the names of subjects and objects that have QIDs. An id in place of a name is left out."""
    for example in examples:
        relation, row = relations[example.query.relation], example.query
        if subject := as_qid(row.subject_id or ""):
            yield Mention(subject, row.subject, relation.subject_type.qid, None, row)
        for gold in example.objects if relation.has_entities() else ():
            if qid := as_qid(gold.id or ""):
                names = (name for name in gold.names if name.strip() and as_qid(name) is None)
                yield from (Mention(qid, name, relation.object_type.qid, relation.name, row) for name in names)


class TrainObjects:
    """Looks up names among the objects and subjects of labelled rows."""

    def __init__(self, examples: Iterable[Example], relations: Mapping[str, Relation]) -> None:
        self._relations = relations
        self._mentions: dict[str, list[Mention]] = defaultdict(list)
        self._spelt: dict[str, list[Mention]] = defaultdict(list)
        for mention in mentions(examples, relations):
            self._mentions[name_key(mention.name)].append(mention)
            self._spelt[spelling(mention.name)].append(mention)

    def exact(self, text: str, query: Query) -> tuple[str, tuple[Hit, ...]]:
        """Return hits for a name, best first, and their evidence: "relation", "type", or "" without hits.

        Names with the same key count only if no name has the same spelling.
        """
        spelt = self._rank(self._spelt.get(spelling(text), ()), text, query)
        return spelt if spelt[1] else self._rank(self._mentions.get(name_key(text), ()), text, query)

    def fuzzy(self, text: str, query: Query) -> tuple[Hit, ...]:
        """Return objects of the same relation with a name one plausible typing error away."""
        typed = name_key(text)
        near = process.extract(typed, list(self._mentions), scorer=OSA.distance, score_cutoff=1, limit=None)
        for name in sorted(name for name, *_ in near if plausible_typo(typed, name)):
            evidence, hits = self._rank(self._mentions[name], text, query)
            if evidence == "relation":
                return hits
        return ()

    def _rank(self, named: Iterable[Mention], text: str, query: Query) -> tuple[str, tuple[Hit, ...]]:
        relation = self._relations[query.relation]
        usable = [mention for mention in named if not self._is_own(mention, query)]
        same = [mention for mention in usable if mention.relation == relation.name]
        if same:
            return "relation", _by_count(same, text)
        wanted = relation.object_type.qid
        kin = [mention for mention in usable if bundled().kin(mention.type, wanted)]
        return ("type", _by_count(kin, text)) if kin else ("", ())

    def _is_own(self, mention: Mention, query: Query) -> bool:
        row = mention.row
        same_subject = row.subject == query.subject or (row.subject_id or "") == (query.subject_id or " ")
        return same_subject and self._relations[row.relation] is self._relations[query.relation]


def _by_count(mentions: list[Mention], text: str) -> tuple[Hit, ...]:
    """Return entities by the number of rows that name them; among equals, the exact spelling first."""
    counts = Counter(mention.id for mention in mentions)
    spelt = {mention.id for mention in mentions if mention.name == text}
    label = {mention.id: mention.name for mention in mentions}
    kind = {mention.id: mention.type for mention in mentions}
    order = sorted(counts, key=lambda id_: (-counts[id_], id_ not in spelt))
    return tuple(Hit(id_, label[id_], "", (kind[id_],), counts[id_], label[id_]) for id_ in order)
