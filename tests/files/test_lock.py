"""One writer at a time: of commands that race for a directory one works, and the others hear of it first."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from command import Command

import lmkbc
from lmkbc import InputError


def test_another_run_is_told_before_anything_is_asked(command: Command, tmp_path: Path) -> None:
    predict = ("predict", "--edition", "mini", "--split", "val", "--system", "bl22-empty", "--out", "runs/one")
    (tmp_path / "s.csv").write_text("name\nChad\n")
    build = ("build", "--subjects", "s.csv", "--edition", "mini", "--system", "prior", "--relation", "children")
    heard = []

    def meanwhile(*_: object) -> None:
        for argv in () if heard else (predict, (*build, "--out", "runs/one")):
            heard.append(command(*argv))
            assert [path.name for path in Path("runs").iterdir()] == [".one.lock"]

    lmkbc.predict("val", edition="mini", system="bl22-empty", out="runs/one", progress=meanwhile)
    assert len(heard) == 2
    for status, _, told in heard:
        assert (status, told.count("\n"), "another run is writing runs/one: wait" in told) == (2, 1, True), told
    assert command(*predict)[0] == 0
    assert [path.name for path in Path("runs").iterdir()] == ["one"]


@pytest.mark.kill
def test_a_killed_process_locks_nothing(tmp_path: Path) -> None:
    code = (
        "import json, sys, time, lmkbc\n"
        "def wait(*_):\n    print('held', flush=True)\n    time.sleep(600)\n"
        "lmkbc.predict('val', **json.loads(sys.argv[1]), progress=wait)\n"
    )
    asked: Any = {"edition": "mini", "system": "bl22-empty", "out": str(tmp_path / "run")}
    with subprocess.Popen([sys.executable, "-c", code, json.dumps(asked)], stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == b"held\n"
        with pytest.raises(InputError, match="another run is writing"):
            lmkbc.predict("val", **asked)
        os.kill(child.pid, signal.SIGKILL)
    assert lmkbc.predict("val", **asked).directory == tmp_path / "run"
    assert [path.name for path in tmp_path.iterdir()] == ["run"]
