"""Benchmark edition, as data: its columns, splits, official metric and leaderboard."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from lmkbc.errors import InputError, did_you_mean, refuse
from lmkbc.kinds.kind import kind_of
from lmkbc.names import as_qid
from lmkbc.relation import Relation, RelationNames
from lmkbc.scoring.matchers import KindScorer, ValueScorer, number
from lmkbc.scoring.table import Metric
from lmkbc.types import Candidate, Example, GoldObject


@dataclass(frozen=True, slots=True)
class Download:
    """URL of a published split, and the SHA-256 of its bytes."""

    url: str
    sha256: str

    def __post_init__(self) -> None:
        """Raise ValueError, with the name of the field, if sha256 is not a digest."""
        if not re.fullmatch(r"[0-9a-f]{64}", self.sha256):
            raise ValueError(f"sha256 is {self.sha256!r}: give the 64 digits that 'sha256sum FILE' prints")

    @staticmethod
    def github(repository: str, **sha256: str) -> dict[str, Download]:
        """Return the splits at data/<split>.jsonl on the main branch of a GitHub repository, with their digests."""
        base = f"https://raw.githubusercontent.com/{repository}/main/data"
        return {split: Download(f"{base}/{split}.jsonl", digest) for split, digest in sha256.items()}


@dataclass(frozen=True, slots=True)
class Published:
    """Published result: system, split, and macro P, R and F1 in [0, 1] (None if not printed).

    profile: name of the scorer that computed it; "" for the edition's own scorer.
    recipe: recipe of the system, which states this result and all that follows here; "" for none.
    model: its models, parted by " + ". draws: answers to a query. about: what the system does, or why it has no recipe.
    retrieval: text that it reads, "answer" where that states the asked fact; "" if unknown.
    licence: of what its authors published, "none" if there is none; "" if unknown.
    """

    system: str
    split: str
    f1: float
    p: float | None = None
    r: float | None = None
    profile: str = ""
    recipe: str = ""
    model: str = ""
    draws: float | None = None
    retrieval: Literal["", "none", "passages", "answer"] = ""
    licence: str = ""
    about: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Edition:
    """Benchmark edition: columns, splits, official metric and leaderboard.

    folder: directory of the splits, below the data directory.
    column: the scored column.
    target: "id" (QIDs, so predictions are linked) or "string".
    metric: the official metric; without one, objects are compared by their kinds (see `KindScorer`).
    held_out: the labelled split that tuning may use.
    repeats: (subject, relation) pairs that the published splits hold twice; any other repeated query is refused.
    profiles: name -> an earlier scorer of the edition, which computed some of its published scores.
    challenge: whose edition it is, "" for none.
    names: of its relations; set by `knowing`.
    """

    name: str
    folder: str
    relations: tuple[str, ...]
    splits: Mapping[str, Download | None]
    column: Literal["ObjectEntities", "ObjectEntitiesID"]
    target: Literal["id", "string"]
    metric: Metric = field(default_factory=lambda: Metric(KindScorer(), average="row", detailed=True))
    profiles: Mapping[str, Metric] = field(default_factory=dict)
    held_out: str = "val"
    repeats: frozenset[tuple[str, str]] = frozenset()
    licence: str = ""
    published: tuple[Published, ...] = ()
    challenge: str = "LM-KBC"
    names: RelationNames = field(default=RelationNames({}), repr=False, compare=False)

    def __post_init__(self) -> None:
        """Raise ValueError, with the name of the field, if a field is inconsistent."""
        lacking = {result.profile for result in self.published if result.profile} - self.profiles.keys()
        refuse(
            (not self.relations, "relations is empty: name the relations that the edition asks for"),
            (len(set(self.relations)) != len(self.relations), "relations names a relation twice"),
            *((split not in self.splits, f"splits lacks {split!r}") for split in ("train", "test", self.held_out)),
            (self.target not in ("id", "string"), f"target is {self.target!r}: use 'id' or 'string'"),
            (
                (self.target == "id") != (self.column == "ObjectEntitiesID"),
                f"target is {self.target!r} but column is {self.column!r}: QIDs stand in ObjectEntitiesID",
            ),
            (lacking, f"published names the profile {min(lacking, default='')!r}, which profiles lacks"),
        )

    @property
    def title(self) -> str:
        """Return the name for headings, with the challenge."""
        return f"{self.challenge} {self.name}".strip()

    @property
    def is_bundled(self) -> bool:
        """Return whether no split is published elsewhere, so that all lie beside the edition's module."""
        return not any(self.splits.values())

    def split_named(self, split: str) -> str:
        """Return the name of a split in this edition: "val" and "dev" both mean the labelled held-out split."""
        return self.held_out if split in ("val", "dev") else split

    def under(self, profile: str) -> Edition:
        """Return the edition with the scorer of a metric profile. Raise InputError for an unknown profile."""
        if profile not in self.profiles:
            has = did_you_mean(profile, self.profiles) if self.profiles else "it has none, so leave --profile out"
            raise InputError(f"edition {self.name} has no metric profile {profile!r}: {has}")
        return replace(self, metric=self.profiles[profile])

    def knowing(self, relations: Mapping[str, Relation]) -> Edition:
        """Return the edition with the names of its relations, and with the relations if its scorer needs them."""
        asked = {name: relations[name] for name in self.relations}
        names = RelationNames({name: (*one.spellings(), one.property) for name, one in asked.items()})
        known, scorer = replace(self, names=names), self.metric.scorer
        if not isinstance(scorer, KindScorer):
            return known
        return replace(known, metric=replace(self.metric, scorer=replace(scorer, relations=asked)))

    def spelt(self, name: str) -> str:
        """Return the edition's name of a relation by any of its names; "" if the edition does not ask for it."""
        return self.names.own(name) or (name if name in self.relations else "")

    def needs_id(self, name: str) -> bool | None:
        """Return whether objects of a relation need a QID; None if the edition does not know the relation's kind."""
        scorer = self.metric.scorer
        known = scorer.relations if self.target == "id" and isinstance(scorer, KindScorer) else {}
        return known[own].has_entities() if (own := self.spelt(name)) in known else None

    def lacks(self, name: str) -> str:
        """Return the end of an error about a relation that the edition does not ask for, as it is written."""
        return f"{name!r} is no relation of edition {self.name}; {did_you_mean(name, self.relations)}"

    def value(self, candidate: Candidate) -> str:
        """Return the value that a submission contains for a candidate: its QID (or literal), or its text."""
        return (candidate.id or "") if self.target == "id" else candidate.text

    def accepted(self, gold: GoldObject) -> tuple[str, ...]:
        """Return the spellings that the scorer accepts for a gold object; () if they are unknown."""
        if self.target == "id":
            return (gold.id,) if gold.id else ()
        return gold.names

    def gold(self, example: Example) -> list[tuple[str, ...]]:
        """Return the gold objects as the scorer counts them, each with its accepted spellings.

        If the published row split a name at its commas, each part counts as an object.
        """
        values: list[tuple[str, ...]] = []
        for gold in example.objects:
            if gold.parts and self.target == "string":
                values += [(part,) for part in gold.parts]
            elif spellings := self.accepted(gold):
                values.append(spellings)
        return values

    def gold_column(self, example: Example) -> list[Any]:
        """Return the gold of an example in the scorer's format: ids, strings or alias lists."""
        if self.target == "id" or isinstance(self.metric.scorer, ValueScorer):
            return [spellings[0] for spellings in self.gold(example)]
        return [list(spellings) for spellings in self.gold(example)]

    def leaderboard(self, split: str, profile: str = "") -> list[Published]:
        """Return the published results on a split with one scorer, best first. "val" and "dev" name the same split."""
        names = {"val", "dev"} if split in ("val", "dev") else {split}
        results = (result for result in self.published if result.split in names and result.profile == profile)
        return sorted(results, key=lambda result: -result.f1)


def misfit(edition: Edition, relation: Relation, value: str) -> bool:
    """Return whether an edition of QIDs cannot accept a value: it is neither a QID nor a literal of the relation."""
    if edition.target != "id" or as_qid(value) == value or relation.is_verbatim():
        return False
    if relation.has_values() and not relation.has_numbers():
        return kind_of(relation).meaning(value, relation) is None
    read = number(value) if relation.has_numbers() else None
    return read is None or not math.isfinite(read)


_PLAIN = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]*[1-9])?")
"""A number as gold writes it."""
_GROUPED = re.compile(r"[^,]*,?|[+-]?[0-9]{1,3}(?:,[0-9]{2,3})*,[0-9]{3}(?:\.[0-9]*)?,?")
"""A number without commas, or with commas between thousands (or lakhs)."""


def fault(edition: Edition, name: str, relation: Relation, value: str) -> str:
    """Return why the scorer can only count a value as wrong, and what to write; "" if it can count as right.

    name: the edition's name of the relation. value: stripped.
    """
    kind = kind_of(relation)
    if kind.has_values and (isinstance(edition.metric.scorer, KindScorer) or not kind.is_numeric):
        is_readable = kind.meaning(value, relation) is not None
        return "" if is_readable else f"is no {kind.name}: write {kind.example}, or [] if there is none"
    read = number(value) if kind.is_numeric else None
    is_sound = read is not None and math.isfinite(read) and _GROUPED.fullmatch(value) is not None
    if edition.target == "id":
        if not kind.is_numeric:
            qid = as_qid(value)
            what = f"write {qid!r}" if qid else "link it, or write [] if there is none"
            return (
                f"is not a QID, and the scorer compares ids exactly: {what}" if misfit(edition, relation, value) else ""
            )
        if _PLAIN.fullmatch(value):
            return ""
        what = f"write '{read:.15g}'" if is_sound else "give digits alone, as in '2', or [] if there is none"
        return f"is not a plain number, and the scorer reads it as text, which no gold has: {what}"
    if name not in getattr(edition.metric.scorer, "numeric", ()):
        return ""
    if is_sound and read:  # the difference is divided by gold, so 0 matches nothing
        return ""
    what = "no number" if read is None else f"{read:.15g}"
    return f"is not a number that can match, since the scorer reads {what}: give digits alone, as in '74.36', or []"
