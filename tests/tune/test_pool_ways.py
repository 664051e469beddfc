"""Ways to weigh pooled models replace parts of the engine, by their names: each part has to exist."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest

from lmkbc.tune import families

BENCH = Path(__file__).resolve().parents[2] / "eval" / "bench"


def test_each_way_is_taken_and_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(BENCH))
    ways = importlib.import_module("pool_ways").WAYS
    own = families.fit_expected_f1, families.candidate_evidence
    assert len(ways) > 1
    for name, way in ways.items():
        with way.taken(name):
            assert families.fit_expected_f1 is way.fit
            assert families.candidate_evidence.__name__ == name
    assert (families.fit_expected_f1, families.candidate_evidence) == own
