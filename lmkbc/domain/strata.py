"""Strata: a draw of subjects into train, val and test, by their number of objects and by their popularity."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256

from lmkbc.domain.gold import LabelledSubject, number_of
from lmkbc.types import grouped

SPLITS = ("train", "val", "test")
OBJECTS = {"0": 0, "1": 1, "2-4": 2, "5+": 5}
"""Fewest objects of each stratum."""
POPULARITY = ("low", "middle", "high")
"""Thirds of the subjects by their number of sitelinks."""


@dataclass(frozen=True, slots=True)
class Stratum:
    """Counts of a stratum. links: fewest and most sitelinks. found: subjects. splits: drawn subjects of each split."""

    objects: str
    popularity: str
    links: tuple[int, int]
    found: int
    splits: Mapping[str, int]


def draw(
    found: Sequence[LabelledSubject], size: int, seed: int, splits: dict[str, str]
) -> tuple[dict[str, list[LabelledSubject]], list[Stratum]]:
    """Draw subjects, and return those of each split with the counts of each stratum.

    A stratum has its share of the draw, and at least a subject in each split where it has so many. splits: QID -> split
    of subjects that other relations drew; these keep it, so no subject is in two splits. New ones are added.
    """
    strata = dict(sorted(grouped((key, subject) for subject, key in _keys(found)).items()))
    drawn: dict[str, list[LabelledSubject]] = {split: [] for split in SPLITS}
    counts = []
    for (key, members), share in zip(strata.items(), _shares([*map(len, strata.values())], size), strict=True):
        chosen = sorted(members, key=lambda subject: _rank(seed, subject))[:share]
        here = dict.fromkeys(SPLITS, 0)
        for subject in sorted(chosen, key=lambda subject: subject.qid not in splits):
            split = splits.get(subject.qid) or min(SPLITS, key=lambda name: (here[name], len(drawn[name])))
            splits[subject.qid] = split
            here[split] += 1
            drawn[split].append(subject)
        links = [subject.links for subject in members]
        objects, popularity = key
        counts.append(
            Stratum([*OBJECTS][objects], POPULARITY[popularity], (min(links), max(links)), len(members), here)
        )
    return {
        split: sorted(members, key=lambda subject: _rank(seed, subject)) for split, members in drawn.items()
    }, counts


def _keys(found: Sequence[LabelledSubject]) -> list[tuple[LabelledSubject, tuple[int, int]]]:
    """Return each subject with the places of its stratum: by objects, and by sitelinks."""
    ordered = sorted(found, key=lambda subject: (subject.links, number_of(subject.qid)))
    return [
        (
            subject,
            (
                sum(len(subject.objects) >= fewest for fewest in OBJECTS.values()) - 1,
                len(POPULARITY) * at // len(ordered),
            ),
        )
        for at, subject in enumerate(ordered)
    ]


def _shares(sizes: Sequence[int], total: int) -> list[int]:
    """Return how many to draw of each stratum: in proportion, by largest remainders, one for each split first."""
    if sum(sizes) <= total:
        return list(sizes)
    least = [min(size, len(SPLITS)) for size in sizes]
    if sum(least) > total:
        least = [0] * len(sizes)
    exact = [size * total / sum(sizes) for size in sizes]
    shares = [max(floor, int(part)) for floor, part in zip(least, exact, strict=True)]
    while sum(shares) != total:
        step = 1 if sum(shares) < total else -1
        able = [at for at in range(len(sizes)) if least[at] <= shares[at] + step <= sizes[at]]
        shares[max(able, key=lambda at: step * (exact[at] - shares[at]))] += step
    return shares


def _rank(seed: int, subject: LabelledSubject) -> bytes:
    """Return a subject's place in a random order that only the seed and its QID decide."""
    return sha256(f"{seed} {subject.qid}".encode()).digest()
