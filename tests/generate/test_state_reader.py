"""Hidden states as a recipe asks for them: of each query's own prompt, read once, and kept."""

from pathlib import Path

import numpy as np
import pytest
from space import MINI, SPACE

from lmkbc.files.arrays import ArrayStore
from lmkbc.generate import states
from lmkbc.generate.states import States
from lmkbc.settings import checked
from lmkbc.testing import Notes, Run

QUERIES = [row.query for row in SPACE.examples(MINI, "val")][:7]


def test_states_are_kept_by_model_depth_and_prompt(tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(states, "PORTION", 3)
    run, kept = Run(workspace=SPACE, edition=MINI, model=str(tiny), offline=True), ArrayStore(tmp_path)

    def read(count: int, **table: object) -> tuple[np.ndarray, int]:
        notes = Notes()
        reader = checked(States, {"prompt": {"form": "completion"}, "shots": {"k": 0}} | table, "states").open(
            run, notes, kept
        )
        return reader.read(QUERIES[:count]), notes.usage.get("calls", 0)

    first, calls = read(7)
    assert (first.shape, calls) == ((7, 32), 7)
    again, calls = read(7)
    assert calls == 0
    np.testing.assert_array_equal(first, again)
    assert read(6)[1] == 0, "whole portions are read back"
    assert read(7, depth=0.5)[1] == 7
    assert read(7, prompt={"form": "completion", "block": "{{ subject }}, {{ phrase }}:"})[1] == 7
