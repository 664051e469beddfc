"""Commands that race for one directory: one writes, the others are refused before they work, and no half is left."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from artefacts import build, subjects
from forge import ONE_THREAD, ROOT, Forge
from places import EMBEDDED, Places, tree

AT_ONCE = 5
ASIDE = ("timing.json",)


def start(argv: Sequence[object], environment: dict[str, str]) -> subprocess.Popen[str]:
    env = {**os.environ, **ONE_THREAD, **environment, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "lmkbc", *map(str, argv)]
    return subprocess.Popen(command, env=env, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True)


@pytest.mark.whole
@pytest.mark.parametrize("artefact", ["predict", "build"])
def test_race_for_one_directory_by(forge: Forge, places: Places, tmp_path: Path, artefact: str, seed: int) -> None:
    subjects(tmp_path)
    recipe = places.recipe("embedded-strings", EMBEDDED)
    where = ["--edition", "mini", "--split", "test", "--data", places.data, "--out", tmp_path / "out"]
    command = build(places, tmp_path) if artefact == "build" else ["predict", "--system", recipe, *where]
    environment = places.environment(tmp_path)
    alone = forge.run(command, environment)
    assert alone.code == 0, alone.err
    whole = tree(tmp_path / "out", ASIDE)
    (tmp_path / "out").rename(tmp_path / "alone")
    racing = [start(command, environment) for _ in range(AT_ONCE)]
    killed = random.Random(seed).randrange(AT_ONCE) if seed % 2 else None
    if killed is not None:
        racing[killed].kill()
    codes = []
    for at, child in enumerate(racing):
        told = child.communicate(timeout=240)[1]
        if at != killed:
            codes.append(child.returncode)
            assert child.returncode in (0, 2), told
            assert child.returncode == 0 or "another run is writing" in told.splitlines()[-1], told
    assert 0 in codes or killed is not None
    assert forge.run(command, environment).code == 0
    assert tree(tmp_path / "out", ASIDE) == whole
    assert not [path for path in tmp_path.iterdir() if path.name.endswith(".lock")]
