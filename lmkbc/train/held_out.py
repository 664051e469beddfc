"""Subjects that must not be trained on: those of val and test splits of all editions, under all their names."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from lmkbc.errors import LmkbcError
from lmkbc.names import folded_key
from lmkbc.probe.kamel.dataset import Kamel
from lmkbc.types import Example, Fact
from lmkbc.workspace import Workspace

_POSSESSIVE = re.compile(r"['\u2019]s?(?!\w)")
_BRACKETS = re.compile(r"\([^()]*\)")


@dataclass(frozen=True, slots=True)
class HeldOut:
    """Held-out subjects. keys: normal forms of their names, aliases included. splits: names of their splits."""

    keys: frozenset[str]
    splits: tuple[str, ...]

    @classmethod
    def of(cls, workspace: Workspace, aliases: Iterable[Sequence[str]] = ()) -> HeldOut:
        """Collect the subjects of all editions with data here. aliases: groups of names of one entity.

        InputError for an edition with only some of its held-out splits here.
        """
        groups = defaultdict[str, set[str]](set)
        subjects: list[tuple[str, str | None]] = []
        splits = []
        for edition in workspace.editions.values():
            here = [split for split in edition.splits if workspace.has_data(edition, split)]
            for split in edition.splits if here else ():
                if split == "train" and split not in here:
                    continue
                rows = workspace.queries(edition, split)
                for query in rows:
                    groups[query.subject_id or query.subject].add(query.subject)
                if split != "train":
                    splits.append(f"{edition.name}/{split}")
                    subjects += [(query.subject, query.subject_id) for query in rows]
        return cls(_closed(subjects, groups, aliases), tuple(splits))

    def names(self, subject: str) -> bool:
        """Return whether a name belongs to a held-out subject."""
        return not self.keys.isdisjoint(_readings(subject))

    def without(self, facts: Iterable[Fact]) -> tuple[list[Fact], int]:
        """Return the facts about other subjects, and the number of removed facts."""
        whole = list(facts)
        kept = [fact for fact in whole if not self.names(fact.subject)]
        return kept, len(whole) - len(kept)

    def unmentioned(self, sentences: Iterable[str]) -> tuple[list[str], int]:
        """Return the sentences without a name of a held-out subject, and the number of the others."""
        most = max((key.count(" ") for key in self.keys), default=0) + 1

        def mentions(sentence: str) -> bool:
            readings = {_key(sentence), _key(_POSSESSIVE.sub(" ", sentence))}
            return any(span in self.keys for reading in readings for span in _spans(reading.split(), most))

        whole = list(sentences)
        kept = [sentence for sentence in whole if not mentions(sentence)]
        return kept, len(whole) - len(kept)

    def check(self, facts: Iterable[Fact]) -> None:
        """Check that no fact is about a held-out subject. LmkbcError names one that is."""
        overlap = {reading for fact in facts for reading in _readings(fact.subject)} & self.keys
        if overlap:
            raise LmkbcError(
                f"{len(overlap)} held-out subjects are among the facts to train on, first {min(overlap)!r}"
            )


def _spans(words: Sequence[str], most: int) -> Iterator[str]:
    for start in range(len(words)):
        for end in range(start + 1, min(start + most, len(words)) + 1):
            yield " ".join(words[start:end])


def _key(name: str) -> str:
    """Return the normal form of a name; for a name of punctuation only, the name itself."""
    return folded_key(name) or name.strip()


def _readings(name: str) -> set[str]:
    """Return the forms in which a name may occur: also without brackets, article or spaces."""
    whole = {_key(name), _key(_BRACKETS.sub(" ", name))}
    readings = whole | {reading.removeprefix("the ") for reading in whole}
    return (readings | {reading.replace(" ", "") for reading in readings}) - {""}


def _closed(
    subjects: Iterable[tuple[str, str | None]], by_id: Mapping[str, set[str]], aliases: Iterable[Sequence[str]]
) -> frozenset[str]:
    """Return normal forms of the subjects' names, and of every alias group with one of them."""
    keys = set[str]()
    for name, identifier in subjects:
        for known in (name, *by_id.get(identifier or name, ())):
            keys |= _readings(known)
    names = set(keys)
    for group in aliases:
        if not keys.isdisjoint(map(_key, group)):
            names.update(*map(_readings, group))
    return frozenset(names)


def alias_groups(examples: Iterable[Example], kamel: Kamel | None = None) -> list[Sequence[str]]:
    """Return groups of names of one entity: from objects of labelled rows, and from KAMEL's test split."""
    by_id = defaultdict[str, set[str]](set)
    groups: list[Sequence[str]] = []
    for example in examples:
        for gold in example.objects:
            groups.append(gold.names)
            if gold.id:
                by_id[gold.id].update(gold.names)
    groups += [sorted(names) for names in by_id.values()]
    tested = (facts for (_, split), facts in kamel.facts.items() if split == "test") if kamel else ()
    groups += [gold.names for facts in tested for fact in facts for gold in fact.objects]
    return groups
