"""Defaults of the command, of the benchmarks and of every other caller, which published figures use."""

from __future__ import annotations

FOLDS = 5
SEED = 0
TRIALS = 40
"""Optuna's trials, at most, per relation and fold."""
PATIENCE = 15
"""Trials without a gain after which Optuna ends."""
