"""What may not be trained on: every subject of a val or test split of any edition, under all its names."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from lmkbc.errors import LmkbcError
from lmkbc.scorers import folded_key
from lmkbc.train.facts import Fact, members
from lmkbc.types import Example
from lmkbc.workspace import Workspace


class _Names(msgspec.Struct):
    rdf: str | None = None
    chosen: str | None = None
    alternative: list[str] = []


class _Answers(msgspec.Struct):
    obj_label: list[_Names]


@dataclass(frozen=True, slots=True)
class HeldOut:
    """Subjects that training must not see. keys: normal forms of their names, aliases included. splits: whose."""

    keys: frozenset[str]
    splits: tuple[str, ...]

    @classmethod
    def of(cls, workspace: Workspace, aliases: Iterable[Sequence[str]] = ()) -> HeldOut:
        """The subjects of all editions whose data is here. aliases: groups of names of one entity."""
        groups = defaultdict[str, set[str]](set)
        subjects: list[tuple[str, str | None]] = []
        splits = []
        for edition in workspace.editions.values():
            if not workspace.has_data(edition):
                continue
            for split in edition.splits:
                rows = workspace.queries(edition, split)
                for query in rows:
                    groups[query.subject_id or query.subject].add(query.subject)
                if split != "train":
                    splits.append(f"{edition.name}/{split}")
                    subjects += [(query.subject, query.subject_id) for query in rows]
        return cls(_closed(subjects, groups, aliases), tuple(splits))

    def names(self, subject: str) -> bool:
        """Whether a name is one of a held-out subject's."""
        return folded_key(subject) in self.keys

    def without(self, facts: Iterable[Fact]) -> tuple[list[Fact], int]:
        """The facts about other subjects, and how many were removed."""
        kept: list[Fact] = []
        removed = 0
        for fact in facts:
            if self.names(fact.subject):
                removed += 1
            else:
                kept.append(fact)
        return kept, removed

    def check(self, facts: Iterable[Fact]) -> None:
        """Prove that no fact is about a held-out subject: LmkbcError with the first that is."""
        overlap = {folded_key(fact.subject) for fact in facts} & self.keys
        if overlap:
            raise LmkbcError(
                f"{len(overlap)} held-out subjects are among the facts to train on, first {min(overlap)!r}"
            )


def _closed(
    subjects: Iterable[tuple[str, str | None]], by_id: Mapping[str, set[str]], aliases: Iterable[Sequence[str]]
) -> frozenset[str]:
    """Normal forms of the subjects' names and of every alias group that holds one of them."""
    keys = set[str]()
    for name, identifier in subjects:
        keys.update(map(folded_key, by_id.get(identifier or name, ())))
        keys.add(folded_key(name))
    found = set(keys)
    for group in aliases:
        forms = {folded_key(name) for name in group}
        if forms & keys:
            found |= forms
    return frozenset(found - {""})


def alias_groups(examples: Iterable[Example], kamel: Path | None = None) -> list[Sequence[str]]:
    """Names of one entity each: of the objects of labelled rows, and of KAMEL's alias table where it is here."""
    by_id = defaultdict[str, set[str]](set)
    groups: list[Sequence[str]] = []
    for example in examples:
        for gold in example.objects:
            groups.append(gold.names)
            if gold.id:
                by_id[gold.id].update(gold.names)
    groups += [sorted(names) for names in by_id.values()]
    if kamel is not None:
        for _, raw in members(kamel, "/test.jsonl"):
            rows = msgspec.json.Decoder(_Answers).decode_lines(raw)
            groups += [
                [*filter(None, (one.rdf, one.chosen)), *one.alternative] for row in rows for one in row.obj_label
            ]
    return groups
