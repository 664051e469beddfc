"""Folds by subject: nothing that is known of a held-out subject is seen in training."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence

import numpy as np

from lmkbc.select.ranking import Ints
from lmkbc.types import Example


def by_subject(examples: Sequence[Example], folds: int, seed: int) -> dict[str, int]:
    """Return subject -> fold, over all relations: a seeded shuffle, dealt out per relation and empty gold.

    A subject of several relations is dealt with its first one.
    """
    strata: dict[str, tuple[str, bool]] = {}
    for example in examples:
        strata.setdefault(example.query.subject, (example.query.relation, bool(example.objects)))
    subjects = sorted(strata)
    random.Random(seed).shuffle(subjects)
    subjects.sort(key=strata.__getitem__)
    return {subject: position % folds for position, subject in enumerate(subjects)}


def fold_of(examples: Iterable[Example], folds: dict[str, int]) -> Ints:
    """Return the fold of each example, (n,)."""
    return np.array([folds[example.query.subject] for example in examples], dtype=np.int64)
