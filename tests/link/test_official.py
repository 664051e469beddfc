"""What linking reaches on the published data; eval/bench/linking.py prints the tables behind these numbers."""

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

BENCH = Path(__file__).resolve().parents[2] / "eval" / "bench" / "linking.py"


@pytest.fixture(scope="module")
def bench(data_dir: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location("bench_linking", BENCH)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.DATA = data_dir
    return module


def test_gold_names_of_2023_val(bench: ModuleType) -> None:
    assert bench.gold() >= 0.951


def test_search_calls_of_a_cold_run(bench: ModuleType) -> None:
    assert bench.calls() <= 0.52
