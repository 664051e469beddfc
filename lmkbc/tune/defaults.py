"""Defaults of tuning, shared by the command, the benchmarks and Python callers; published figures use them."""

from __future__ import annotations

FOLDS = 5
SEED = 0
TRIALS = 40
"""Maximum number of Optuna trials per relation and fold."""
PATIENCE = 15
"""Trials without a gain after which a study ends."""
