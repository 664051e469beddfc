"""A copy of this checkout in which something is added as the documents tell, and the tests that run there."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
DATA = os.environ.get("LMKBC_DATA", str(ROOT.parent / "shared" / "data"))


def copied(folder: Path) -> Path:
    """Copy what the tests of plug-ins read into a folder."""
    for name in ("lmkbc", "relations", "eval", "tests"):
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("bench", "attack"))
    shutil.copy(ROOT / "pyproject.toml", folder)
    return folder


def passed(folder: Path, *arguments: str) -> str:
    """Return what pytest says of tests that pass there, a line for each."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("LMKBC_")}
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-p", "no:xdist", "-vv", *arguments],
        cwd=folder,
        env=clean | {"PYTHONPATH": str(folder), "LMKBC_DATA": DATA, "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


CONTRIBUTING = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
ADDING = (ROOT / "docs" / "adding.md").read_text(encoding="utf-8")


def printed(page: str, heading: str) -> str:
    """Return the first example under a heading."""
    section = page.split(f"## {heading}\n", 1)[1]
    return re.findall(r"```\w+\n(.*?)```", section, flags=re.DOTALL)[0]
