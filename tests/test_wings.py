"""Wings come off: without one, the core works as before, and commands of the wing name what is missing."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

WINGS = {
    "kb": (
        ["build", "--subjects", "x.csv", "--out", "kb"],
        ["audit", "kb"],
        ["export", "kb", "--format", "csv", "--out", "x"],
    ),
    "probe": (["probe", "lama", "data", "--model", "m"],),
    "train": (["train", "mlm", "--out", "x"],),
    "report": (["report", "run"],),
    "domain": (["init", "own", "--relation", "a:date"],),
    "local": (["predict", "--edition", "mini", "--system", "smollm2", "--limit", "2", "--out", "other"],),
    "masked": (["predict", "--edition", "mini", "--system", "li22", "--out", "other"],),
}
"""Wing -> commands that need it."""
WITHOUT = """
import json
import sys
from lmkbc.cli import main

class Missing:
    def find_spec(self, name, path=None, target=None):
        if (name + ".").startswith(f"lmkbc.{WING}."):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

WING, commands = sys.argv[1], json.loads(sys.argv[2])
sys.meta_path.insert(0, Missing())
import lmkbc
from lmkbc.cli import build
for words in (["--help"], ["rules", "list"], ["predict", "--edition", "mini", "--split", "val", "--system", "prior",
              "--no-report", "--out", "run"], ["evaluate", "run"]):
    build()(words, standalone_mode=False)
for words in commands:
    sys.argv = ["lmkbc", *words]
    try:
        main()
    except SystemExit as ended:
        print("status", ended.code)
"""


@pytest.mark.whole(but=["kb", "report"])
@pytest.mark.parametrize("wing", WINGS)
def test_the_core_does_without_a_wing(wing: str, tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text("name\nX\n")
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT, wing, json.dumps(WINGS[wing])],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout.count("status 2")) == (0, len(WINGS[wing])), done.stdout + done.stderr
    assert "Average" in done.stdout
    assert done.stderr.count(f"error: this needs lmkbc.{wing}") == len(WINGS[wing])
    assert "Traceback" not in done.stderr
