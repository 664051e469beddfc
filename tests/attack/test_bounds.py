"""Inputs that never end or are beyond all bounds: each reader says so in a sentence, within 500 MB and its time."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest
from memory import ROOT, measured

COMMAND = "from lmkbc.cli import main\nmain()"
MOST = 500
"""MB of memory that any reader may take at its peak."""
HUGE = 2 << 30
GOLD = ROOT / "eval" / "mini" / "val.jsonl"
MINI: Sequence[object] = ("--edition", "mini", "--split", "val")
RECORDED = 'description = "r"\n[[generate]]\ncomponent = "recorded"\n[select]\nrule = "cutoff"\nthreshold = 0.5\n'
READERS: dict[str, Callable[[Path, Path], Sequence[object]]] = {
    "evaluate": lambda file, _: ["evaluate", file, *MINI],
    "gold": lambda file, _: ["evaluate", GOLD, "--gold", file, "--edition", "mini"],
    "submit": lambda file, folder: ["submit", file, *MINI, "--out", folder / "o.zip"],
    "--from": lambda file, folder: predict(folder, "--from", file),
    "--system": lambda file, folder: ["predict", *MINI, "--system", toml(file, folder), "--out", folder / "o"],
    "--search-table": lambda file, folder: ["link", GOLD, "--edition", "mini", "--search-table", file, "--offline"],
    "link build": lambda file, folder: ["link", "build", folder / "i.sqlite", "--dump", file],
    "subjects": lambda file, folder: [
        "build",
        "--subjects",
        file,
        "--system",
        "prior",
        "--out",
        folder / "kb",
        *MINI[:2],
    ],
}
ROW = b'{"SubjectEntity": "a", "Relation": "CountryBordersCountry", "ObjectEntities": ['


def predict(folder: Path, *more: object) -> Sequence[object]:
    recipe = folder / "recorded.toml"
    recipe.write_text(RECORDED)
    return ["predict", *MINI, "--system", recipe, "--out", folder / "o", *more]


def toml(file: Path, folder: Path) -> Path:
    """The same file under a name that recipes have."""
    named = folder / "huge.toml"
    named.symlink_to(file)
    return named


def blank(folder: Path) -> Path:
    """A file of 2 GB without a line end, which takes no room on the disk."""
    path = folder / "blank"
    with path.open("wb") as file:
        file.truncate(HUGE)
    return path


def dense(folder: Path) -> Path:
    """100 MB of rows whose lists are as short as JSON has them."""
    path = folder / "dense"
    with path.open("wb") as file:
        for _ in range(100):
            file.write(ROW + b"[]," * (1 << 18) + b"[]]}\n" + ROW + b'"",' * (1 << 16) + b'""]}\n')
    return path


def silent(folder: Path) -> Path:
    os.mkfifo(folder / "pipe")
    return folder / "pipe"


INPUTS: dict[str, Callable[[Path], Path]] = {
    "/dev/zero": lambda _: Path("/dev/zero"),
    "2 GB": blank,
    "dense rows": dense,
    "silent pipe": silent,
}


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder that goes with its test, since what is in it is large."""
    with tempfile.TemporaryDirectory() as name:
        yield Path(name)


@pytest.mark.whole
@pytest.mark.parametrize("given", INPUTS)
@pytest.mark.parametrize("reader", READERS)
def test_endless_input_to(reader: str, given: str, folder: Path) -> None:
    words = READERS[reader](INPUTS[given](folder), folder)
    code, told, peak = measured(COMMAND, *words, environment={"XDG_CACHE_HOME": str(folder / "cache")})
    print(f"{reader}, {given}: {peak} MB, exit status {code}")
    assert code in (1, 2) or (reader == "link build" and "skipped" in told), told  # which skips lines that are none
    assert "Traceback" not in told
    assert "error: " in told or not code
    assert peak < MOST, f"{reader} of {given} took {peak} MB"
