"""A container runs lmkbc as the owner of the directory that is mounted. No container is needed to see that."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
ENTRY = ROOT / "docker" / "entrypoint.sh"


def run(work: Path, **environment: str) -> str:
    """Return what a stand-in for lmkbc says of who runs it, and where its cache is."""
    bin_ = work.parent / "bin"
    bin_.mkdir(exist_ok=True)
    (bin_ / "lmkbc").write_text('#!/bin/sh\necho "$(id -u):$(id -g) $XDG_CACHE_HOME $XDG_CONFIG_HOME $*"\n')
    (bin_ / "lmkbc").chmod(0o755)
    own = {"PATH": f"{bin_}:{os.environ['PATH']}", "LMKBC_WORK": str(work)} | environment
    done = subprocess.run(
        ["sh", str(ENTRY), "predict", "-s", "test"], env=own, capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


@pytest.mark.skipif(os.geteuid() != 0 or not shutil.which("setpriv"), reason="only root becomes another user")
@pytest.mark.parametrize(("owner", "runs_as"), [(0, 1000), (1234, 1234), (1000, 1000)])
def test_it_runs_as_the_owner_of_what_is_mounted(tmp_path: Path, owner: int, runs_as: int) -> None:
    for folder in (tmp_path, *tmp_path.parents):
        if folder.stat().st_mode & 0o005 != 0o005:
            folder.chmod(folder.stat().st_mode | 0o055)  # another user has to reach it
        if folder == Path(tmp_path.anchor) / "tmp":
            break
    work = tmp_path / "work"
    work.mkdir()
    os.chown(work, owner, owner)
    assert run(work) == f"{runs_as}:{runs_as} {work}/.cache {work}/.cache predict -s test"
    assert work.stat().st_uid == runs_as


@pytest.mark.skipif(os.geteuid() == 0, reason="root becomes another user")
def test_who_is_not_root_stays_who_they_are_and_keeps_a_cache_that_was_named(tmp_path: Path) -> None:
    work = tmp_path / "work"
    work.mkdir()
    assert (
        run(work, XDG_CACHE_HOME="/elsewhere") == f"{os.geteuid()}:{os.getegid()} /elsewhere /elsewhere predict -s test"
    )
