"""Merging of several clozes' answers: by mean, by maximum, or by number of votes (Ning and Celebi 2022)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Literal

Scores = Mapping[str, float]
Ensemble = Literal["mean", "max", "count"]


def combine(proposals: Sequence[Scores], method: Ensemble) -> dict[str, float]:
    """Return object -> score in [0, 1], best first.

    proposals: one mapping of objects to probabilities per cloze. method: "mean", where a cloze without the object
    counts 0; "max", the best score; or "count", by number of clozes, then by best score: (number - 1 + best) / all.
    """
    merged: dict[str, float] = {}
    for name in dict.fromkeys(name for scores in proposals for name in scores):
        proposed = [scores[name] for scores in proposals if name in scores]
        if method == "mean":
            merged[name] = math.fsum(1 / len(proposals) * score for score in proposed)
        elif method == "max":
            merged[name] = max(proposed)
        else:
            merged[name] = (len(proposed) - 1 + max(proposed)) / len(proposals)
    return dict(sorted(merged.items(), key=lambda item: (-item[1], item[0])))
