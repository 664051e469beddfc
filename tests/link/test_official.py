"""Figures of linking on the published data; `python -m eval.bench linking` prints the tables behind these numbers."""

import argparse
from pathlib import Path

import pytest

from eval.bench.linking import Linking


@pytest.fixture(scope="module")
def linking(data_dir: Path) -> Linking:
    return Linking(argparse.Namespace(data=data_dir, limit=None, figures=None))


@pytest.mark.whole
def test_gold_names_of_2023_val(linking: Linking) -> None:
    assert linking.gold() >= 0.951


@pytest.mark.whole
def test_search_calls_of_a_cold_run(linking: Linking) -> None:
    assert linking.calls() <= 0.52
